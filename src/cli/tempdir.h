/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tempdir: a directory that lives as long as a verb.
 *
 * Private to cli/. Both say on standard error what went wrong.
 */
#pragma once

#include <stdbool.h>

#define CLI_TEMP_DIR_BYTES 64 /* a socket below it has room in its address */

/* In TMPDIR where that is short, else in /tmp; out is "" on failure. */
bool cli_temp_dir_make(const char *verb, char out[CLI_TEMP_DIR_BYTES]);
/* And all that is in it; "": none. */
void cli_temp_dir_remove(const char *dir);
