/* SPDX-License-Identifier: Apache-2.0 */
/* redact: takes what looks like a secret out of a command line. Private to agent/. Pure. */
#pragma once

#include "base/buf.h"

/* Arguments in /proc's form (each with a NUL after it) as one line, blanks between. What follows a
 * flag, or a name and '=' or ':' anywhere in an argument, up to its end, becomes "[redacted]" where
 * the name holds one of: password passwd passphrase secret token credential apikey api-key api_key
 * access-key access_key accesskey accountkey sharedaccess private-key private_key authorization
 * cookie pwd jwt sessionid session-id session_id signature, or ends in the word pass, auth, pw, pin
 * or sig (any case; but PWD=/… and OLDPWD=/… are folders); and so do the passwords of URLs
 * (user:password@) and of Go's names of databases (user:password@tcp(host)), a name that stands
 * alone in a URL over TLS (https://token@), what follows the colon behind -u or a --…user, -psecret
 * of mysql, mariadb and sshpass, and tokens of twenty characters or more that begin as those of
 * GitHub, GitLab, Slack, Stripe, Vault, npm, PyPI, DigitalOcean and JSON Web Tokens do. */
void redact_command_line(struct str arguments, struct buf *out);
