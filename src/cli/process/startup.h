/* SPDX-License-Identifier: Apache-2.0 */
/*
 * startup: prints why a server did not start, and what to do about it.
 *
 * Private to cli/.
 */
#pragma once

#include "server/server.h"

/* Where a client on this host reaches `address`: wildcards become loopback. */
void cli_dial_address(const char *address, char *out, size_t out_size);
/* Prints why nothing can listen on `address` (--http-address). False: `text` is not about that. */
bool cli_complain_of_address(const char *address, enum status s, const char *text);
/* Prints what `e` means in terms of the flags of `c`. used_path: the other name under which the
 * storage directory was opened; or NULL. Returns the exit code: CLI_USAGE if the address is
 * invalid. */
int cli_complain_of_start(
	const struct server_config *c, const char *used_path, enum status s, const struct err *e);
