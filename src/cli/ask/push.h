/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push: sends a pprof file to a server.
 *
 * Private to cli/.
 */
#pragma once

#include "base/str.h"

/* The largest file that is sent: a server takes no larger one by default. */
#define CLI_PUSH_BYTES_MAX ((size_t)64 << 20)

struct cli_credentials;
/* Sends the bytes by POST, as `who` (NULL: without authentication). Prints an error about `file` on
 * standard error, and returns the exit code. */
int cli_push_bytes(const char *server, const struct cli_credentials *who,
	const char *path_and_query, const char *file, struct str bytes, uint64_t *out_samples);
