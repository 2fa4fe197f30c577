/* SPDX-License-Identifier: Apache-2.0 */
/* log_once: which sentences were logged before. Private to agent/. Not thread safe. */
#pragma once

#include "base/str.h"

/* Different ones; more are not logged. */
#define LOG_ONCE_MAX 64

struct log_once {
	uint64_t hashes[LOG_ONCE_MAX];
	uint32_t count;
};

/* True: it was not logged yet, and is to be now. */
bool log_once_is_new(struct log_once *t, struct str sentence);
