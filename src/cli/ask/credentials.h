/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials: with which a verb authenticates itself to a server.
 *
 * Private to cli/.
 */
#pragma once

#include "cli/options/options.h"
#include "fetch/fetch.h"

struct cli_credentials {
	const char *token, *token_file; /* NULL, "": none */
	const char *basic;              /* "NAME:PASSWORD" */
};

#define CLI_CREDENTIALS 3 /* rows */
/* Rows for the member `m`, a struct cli_credentials, of the group's struct T. */
/* clang-format off */
#define CLI_CREDENTIALS_OPTIONS(T, m)                                                              \
	{ .name = "bearer-token-file", .kind = CLI_TEXT, .at = offsetof(T, m.token_file),          \
	  .value = "FILE", .env = "FIRN_BEARER_TOKEN_FILE",                                        \
	  .help = "A file with the token, for a server that asks for one." },                      \
	{ .name = "bearer-token", .kind = CLI_TEXT, .at = offsetof(T, m.token),                    \
	  .value = "TOKEN", .env = "FIRN_BEARER_TOKEN", .secret = true,                            \
	  .help = "The token itself. The command line is for all to see: better a file." },        \
	{ .name = "basic-auth", .kind = CLI_TEXT, .at = offsetof(T, m.basic),                      \
	  .value = "NAME:PASSWORD", .env = "FIRN_BASIC_AUTH", .secret = true,                      \
	  .help = "A name and a password instead. Better in the environment." }
/* clang-format on */

/* fetch_new() with these credentials; `c` may be NULL. E_INVALID: more than one, or none that can
 * be sent. */
NODISCARD enum status cli_fetch_new(
	const char *server, const struct cli_credentials *c, struct fetch **out, struct err *e);
