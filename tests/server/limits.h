/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a server without flags, for tests that bring their own store. */
#pragma once

#include "server/internal.h"

static const struct server_limits test_limits = { .labels = 128,
	.label_name_bytes = 256,
	.label_value_bytes = 4096,
	.stack_frames = PROFILE_STACK_MAX,
	.series = 1000000 };
