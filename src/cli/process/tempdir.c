/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/tempdir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/options.h"

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
	(void)st;
	(void)kind;
	(void)walk;
	return remove(path);
}

void cli_temp_dir_remove(const char *dir)
{
	if (dir[0] && nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) < 0)
		cli_complain("%s is left behind: %m", dir);
}

bool cli_temp_dir_make(const char *verb, char out[CLI_TEMP_DIR_BYTES])
{
	const char *tmp = getenv("TMPDIR");
	if (!tmp || tmp[0] != '/' || strlen(tmp) > 32)
		tmp = "/tmp";
	snprintf(out, CLI_TEMP_DIR_BYTES, "%s/firn-%.8s-XXXXXX", tmp, verb);
	if (mkdtemp(out))
		return true;
	cli_complain("%s: %m", out);
	out[0] = 0;
	return false;
}
