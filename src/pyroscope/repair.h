/* SPDX-License-Identifier: Apache-2.0 */
/* repair: puts back the roots that Go cut off deep stacks. */
#pragma once

#include "pyroscope/pyroscope.h"
#include "pyroscope/types.h"

/* Puts back the outermost frames that Go cut off deep stacks, if other stacks of the same file have
 * them. Files that are not from Go are left unchanged. E_LIMIT, E_NOMEM. */
NODISCARD enum status repair_go_stacks(struct profile *p, struct added a);
