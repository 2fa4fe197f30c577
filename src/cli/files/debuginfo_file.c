/* SPDX-License-Identifier: Apache-2.0 */
/* How: files are opened here and read elsewhere; temporary files are in TMPDIR. */
#include "cli/files/debuginfo.h"

#include "cli/cli.h"
#include "cli/options/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int cli_debuginfo_code(enum status s, const struct err *e)
{
	if (s == OK)
		return CLI_OK;
	cli_complain("%s", err_text(e, s));
	return s == E_UNAVAILABLE || s == E_TIMEOUT ? CLI_UNREACHABLE : CLI_FAILED;
}

enum status cli_debuginfo_temporary_name(char out[PATH_MAX], struct err *e)
{
	const char *dir = getenv("TMPDIR");
	if (!dir || !dir[0])
		dir = "/tmp";
	if (snprintf(out, PATH_MAX, "%s/firn-debuginfo-XXXXXX", dir) >= PATH_MAX)
		return err_set(e, E_INVALID, "TMPDIR is too long");
	return OK;
}

enum status cli_debuginfo_temporary(int *out_fd, struct err *e)
{
	char path[PATH_MAX];
	enum status s = cli_debuginfo_temporary_name(path, e);
	if (s != OK)
		return s;
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "%s", path);
	(void)unlink(path);
	*out_fd = fd;
	return OK;
}

enum status cli_debuginfo_open(
	const char *path, bool id_needed, struct objfile **out, struct err *e)
{
	struct objfile *obj;
	enum status s = objfile_open(path, &obj, e);
	if (s != OK)
		return s;
	if (id_needed && !objfile_build_id(obj)[0]) {
		objfile_close(obj);
		return err_set(e, E_NOTFOUND, "%s: it has no build id (note of GNU)", path);
	}
	*out = obj;
	return OK;
}
