/* SPDX-License-Identifier: Apache-2.0 */
/* redact: takes what looks like a secret out of a command line. Private to agent/. Pure. */
#pragma once

#include "base/buf.h"

/* Arguments in /proc's form (each with a NUL after it) as one line, blanks between. What follows a
 * flag, or a name and '=' or ':' anywhere in an argument, up to its end, becomes "[redacted]" where
 * the name holds one of: password passwd passphrase secret token credential apikey api-key api_key
 * access-key access_key accesskey accountkey sharedaccess private-key private_key authorization
 * cookie pwd jwt, or ends in the word pass, auth or pw (any case); and so do the passwords of URLs
 * (user:password@) and of Go's names of databases (user:password@tcp(host)), and whoever stands
 * alone in a URL over TLS (https://token@). */
void redact_command_line(struct str arguments, struct buf *out);
