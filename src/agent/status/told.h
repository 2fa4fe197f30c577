/* SPDX-License-Identifier: Apache-2.0 */
/* told: sentences that are logged once, however often they are said. Private to agent/. Not thread
 * safe. */
#pragma once

#include "base/str.h"

/* Different ones; more are not logged. */
#define TOLD_MAX 64

struct told {
	uint64_t hashes[TOLD_MAX];
	uint32_t count;
};

/* True: it was not told yet, and is now. */
bool told_is_new(struct told *t, struct str sentence);
