/* SPDX-License-Identifier: Apache-2.0 */
/* query/stacks/stacks: the stacks of a report, loaded, named, filtered and summed, as the other
 * folders of query/ see them. Private to query/. */
#pragma once

#include "query/stacks/lines.h"
#include "query/stacks/loaded.h"
#include "query/stacks/tree.h"
