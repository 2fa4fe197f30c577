/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tempdir: a directory for as long as a verb runs.
 *
 * Private to cli/. Both say on standard error what went wrong.
 */
#pragma once

#include <stdbool.h>

#define CLI_TEMP_DIR_BYTES 64 /* a socket below it has room in its address */

/* Makes a directory in TMPDIR if that path is short, else in /tmp; out is "" on failure. */
bool cli_temp_dir_make(const char *verb, char out[CLI_TEMP_DIR_BYTES]);
/* Removes it with all that is in it; "": does nothing. */
void cli_temp_dir_remove(const char *dir);
