/* SPDX-License-Identifier: Apache-2.0 */
/* repair: the roots that Go cut off deep stacks. */
#pragma once

#include "pyroscope/pyroscope.h"
#include "pyroscope/types.h"

/* Puts back what Go cut off at the roots of deep stacks, where other stacks of the same file have
 * it. Files of others stay as they are. E_LIMIT, E_NOMEM. */
NODISCARD enum status repair_go_stacks(struct profile *p, struct added a);
