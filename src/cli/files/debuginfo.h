/* SPDX-License-Identifier: Apache-2.0 */
/* debuginfo: functions that the files of `firn debuginfo` share. Private to cli/. */
#pragma once

#include "base/err.h"
#include "objfile/objfile.h"

#include <limits.h>

int cli_debuginfo_upload(int argc, char **argv);

/* Prints the error, if there is one, and returns the exit code. */
int cli_debuginfo_code(enum status s, const struct err *e);
/* A pattern of mkstemp() in TMPDIR. */
NODISCARD enum status cli_debuginfo_temporary_name(char out[PATH_MAX], struct err *e);
/* Opens a file without a name in TMPDIR. */
NODISCARD enum status cli_debuginfo_temporary(int *out_fd, struct err *e);
/* E_NOTFOUND: it should have a build id, and has none. */
NODISCARD enum status cli_debuginfo_open(
	const char *path, bool id_needed, struct objfile **out, struct err *e);
