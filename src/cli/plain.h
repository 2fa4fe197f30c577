/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain: text of others as a terminal should show it.
 *
 * Private to cli/. What a server says (reasons, names of functions in profiles of others) may
 * hold what a terminal obeys.
 */
#pragma once

#include <stdio.h>

#include "base/buf.h"

/* `s` with U+FFFD for each control character (C0, DEL, C1) but those in `kept`, for what changes
 * the direction of text, and for bytes that are not UTF-8. */
void cli_plain(struct str s, const char *kept, struct buf *out);

/* All of `s` to `to`: as it is, on a terminal plain with its lines and tabs. */
NODISCARD bool cli_show(FILE *to, struct str s);
