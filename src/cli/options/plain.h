/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain: text of others as a terminal should show it.
 *
 * Private to cli/. Texts from a server (reasons, names of functions in profiles of others) may
 * contain control characters for a terminal.
 */
#pragma once

#include <stdio.h>

#include "base/buf.h"

/* Appends `s` with U+FFFD in place of each control character (C0, DEL, C1) that is not in `kept`,
 * of characters that change the direction of text, and of bytes that are not UTF-8. */
void cli_plain(struct str s, const char *kept, struct buf *out);

/* Writes all of `s` to `to`: unchanged, or if that is a terminal, plain with its lines and tabs. */
NODISCARD bool cli_show(FILE *to, struct str s);
