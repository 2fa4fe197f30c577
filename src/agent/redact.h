/* SPDX-License-Identifier: Apache-2.0 */
/* redact: takes what looks like a secret out of a command line. Private to agent/. Pure. */
#pragma once

#include "base/buf.h"

/* Arguments in /proc's form (each with a NUL after it) as one line, blanks between. A value becomes
 * "[redacted]" where it follows a flag, or a name and '=' or ':', whose name holds one of: password
 * passwd passphrase secret token credential apikey api-key api_key access-key access_key
 * private-key private_key authorization (any case); and the password of a URL (user:password@). */
void redact_command_line(struct str arguments, struct buf *out);
