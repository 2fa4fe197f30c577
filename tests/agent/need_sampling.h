/* SPDX-License-Identifier: Apache-2.0 */
/* need_sampling: a test is skipped where the kernel does not let this process sample. */
#pragma once

#include "agent/sample/probe.h"
#include "test.h"

static inline bool can_sample(void)
{
	struct err e = { 0 };
	if (probe_sampling(&e) == OK)
		return true;
	print_message("%s\n", e.text);
	return false;
}

#define NEED_SAMPLING()                             \
	do {                                        \
		if (!can_sample())                  \
			SKIP("cannot sample here"); \
	} while (0)
