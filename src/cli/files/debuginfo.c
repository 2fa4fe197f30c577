/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What parca-debuginfo does, with the same flags. The list of sources comes from the symbol table
 * that the server would make of the file, made in the same sandboxed child. So the archive has each
 * file under the name that frames have, and this process reads no DWARF.
 */
#include "cli/files/debuginfo.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/options/options.h"
#include "debuginfo/debuginfo.h"

#define PATHS_MAX 1024

/* ---- buildid ---- */

static const struct cli_command buildid_command = {
	.name = "debuginfo buildid",
	.summary = "firn debuginfo buildid: print the build id of an ELF file.",
	.args = "PATH",
	.args_least = 1,
	.args_most = 1,
	.text = "  firn debuginfo buildid /bin/ls",
};

static int buildid(int argc, char **argv)
{
	int at = 0, code = CLI_OK;
	if (!cli_parse(&buildid_command, argc, argv, NULL, &at, &code))
		return code;
	struct objfile *obj;
	struct err e = { 0 };
	enum status s = cli_debuginfo_open(argv[at], true, &obj, &e);
	if (s != OK)
		return cli_debuginfo_code(s, &e);
	bool written = puts(objfile_build_id(obj)) >= 0 && fflush(stdout) == 0;
	objfile_close(obj);
	if (!written)
		cli_complain("standard output could not be written");
	return written ? CLI_OK : CLI_FAILED;
}

/* ---- extract ---- */

struct extract {
	const char *dir;
};

static const struct cli_option extract_options[] = {
	{ .name = "output-dir",
		.kind = CLI_TEXT,
		.at = offsetof(struct extract, dir),
		.value = "DIR",
		.otherwise = "out",
		.help = "Where the debug files go, as BUILDID.debuginfo. What else is there "
			"stays." },
};

static const struct cli_command extract_command = {
	.name = "debuginfo extract",
	.summary = "firn debuginfo extract: copy what names addresses out of ELF files.",
	.args = "PATH...",
	.args_least = 1,
	.args_most = PATHS_MAX,
	.text = "Debug information and symbols, without the code and data of the program: what "
		"`firn debuginfo upload` sends.\n"
		"\n"
		"  firn debuginfo extract --output-dir debug /usr/local/bin/app",
	.groups = { { "Output", extract_options, ARRAY_COUNT(extract_options), 0 } },
	.group_count = 1,
};

static enum status extract_to(const struct objfile *obj, const char *path, struct err *e)
{
	char temporary[PATH_MAX];
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return err_set(e, E_INVALID, "%s: the path is too long", path);
	CLEANUP(fd_cleanup) int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "%s", temporary);
	enum status s = debuginfo_extract(obj, fd, e);
	if (s == OK && (fchmod(fd, 0644) != 0 || rename(temporary, path) != 0))
		s = err_os(e, "%s", path);
	if (s != OK)
		(void)unlink(temporary);
	return s;
}

static enum status extract_one(const char *from, const char *dir, struct err *e)
{
	struct objfile *obj;
	char path[PATH_MAX];
	enum status s = cli_debuginfo_open(from, true, &obj, e);
	if (s != OK)
		return s;
	if (snprintf(path, sizeof(path), "%s/%s.debuginfo", dir, objfile_build_id(obj)) >=
		(int)sizeof(path))
		s = err_set(e, E_INVALID, "--output-dir is too long");
	else
		s = extract_to(obj, path, e);
	objfile_close(obj);
	return s;
}

static int extract(int argc, char **argv)
{
	struct extract v = { 0 };
	struct err e = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&extract_command, argc, argv, &v, &at, &code))
		return code;
	enum status s = os_make_dirs(v.dir, &e);
	if (s != OK)
		return cli_debuginfo_code(s, &e);
	for (code = CLI_OK; at < argc; at++) {
		s = extract_one(argv[at], v.dir, &e);
		if (s != OK)
			code = cli_debuginfo_code(s, &e);
	}
	return code;
}

/* ---- source ---- */

static const struct cli_command source_command = {
	.name = "debuginfo source",
	.summary = "firn debuginfo source: gather the sources that debug information names.",
	.args = "PATH [ARCHIVE]",
	.args_least = 1,
	.args_most = 2,
	.text = "PATH is a program or a debug file with DWARF. The sources are looked for on this "
		"host, where the compiler saw them (relative ones below the current folder), and "
		"packed into ARCHIVE (source.tar.zstd). Those that are not here are named and "
		"left out.\n"
		"\n"
		"  firn debuginfo source app.debug\n"
		"  firn debuginfo upload --type=sources \\\n"
		"      --build-id=$(firn debuginfo buildid app.debug) source.tar.zstd",
};

struct gathering {
	struct debuginfo_pack *pack;
	struct buf text;
	uint32_t packed, missing;
};

static enum status gather(void *ctx, struct str file, struct err *e)
{
	struct gathering *g = ctx;
	char path[PATH_MAX];
	struct err why = { 0 };
	enum status s = E_LIMIT;
	CLEANUP(fd_cleanup) int fd = -1;
	buf_clear(&g->text);
	if (snprintf(path, sizeof(path), "%.*s", STR_ARG(file)) >= (int)sizeof(path))
		(void)err_set(
			&why, s, "%.*s…: the path is too long", STR_ARG(str_sub(file, 0, 64)));
	else /* its path comes from the file with the debug information */
		s = os_open_regular(AT_FDCWD, path, &fd, &why);
	if (s == OK)
		s = os_read_fd(fd, path, &g->text, &why);
	if (s != OK) {
		g->missing++;
		cli_complain("left out: %s", err_text(&why, s));
		return OK;
	}
	g->packed++;
	return debuginfo_pack_add(g->pack, file, buf_view(&g->text), e);
}

static enum status gather_all(
	const struct debuginfo_table *t, int fd, struct gathering *g, struct err *e)
{
	enum status s = debuginfo_pack_new(fd, &g->pack, e);
	if (s != OK)
		return s;
	buf_init(&g->text, DEBUGINFO_SOURCE_BYTES_MAX);
	s = debuginfo_table_files(t, gather, g, e);
	if (s == OK)
		s = debuginfo_pack_end(g->pack, e);
	debuginfo_pack_free(g->pack);
	buf_deinit(&g->text);
	return s;
}

/* Makes the symbol table of the file; it stays mapped after its own file is removed. */
static enum status table_of(const char *path, struct debuginfo_table **out, struct err *e)
{
	char dir[PATH_MAX], made[PATH_MAX + 8];
	struct debuginfo_limits limits;
	CLEANUP(fd_cleanup) int fd = -1;
	enum status s = os_open_regular(AT_FDCWD, path, &fd, e);
	if (s != OK)
		return s;
	s = cli_debuginfo_temporary_name(dir, e);
	if (s != OK)
		return s;
	if (!mkdtemp(dir))
		return err_os(e, "%s", dir);
	debuginfo_limits_default(&limits);
	snprintf(made, sizeof(made), "%s/table", dir);
	s = debuginfo_build(fd, -1, made, &limits, e);
	if (s != OK)
		s = err_prefix(e, s, "%s", path);
	else
		s = debuginfo_table_open(made, out, e);
	(void)unlink(made);
	(void)rmdir(dir);
	return s;
}

static enum status pack_sources(const char *from, const char *to, struct err *e)
{
	struct debuginfo_table *t;
	struct debuginfo_table_info info;
	struct gathering g = { 0 };
	struct stat st;
	enum status s = table_of(from, &t, e);
	if (s != OK)
		return s;
	debuginfo_table_describe(t, &info);
	CLEANUP(fd_cleanup) int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		s = err_os(e, "%s", to);
	else
		s = gather_all(t, fd, &g, e);
	debuginfo_table_close(t);
	if (s == OK && g.packed + g.missing == 0)
		s = err_set(e, E_NOTFOUND, "%s: %s", from,
			info.has_dwarf ? "its debug information names no source"
				       : "it has no debug information (DWARF)");
	else if (s == OK && g.packed == 0)
		s = err_set(e, E_NOTFOUND, "%s: none of its sources is on this host", from);
	if (s != OK && fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		(void)unlink(to);
	return s;
}

static int source(int argc, char **argv)
{
	struct err e = { 0 };
	int at = 0, code = CLI_OK;
	if (!cli_parse(&source_command, argc, argv, NULL, &at, &code))
		return code;
	return cli_debuginfo_code(
		pack_sources(argv[at], at + 1 < argc ? argv[at + 1] : "source.tar.zstd", &e), &e);
}

/* ---- the verbs ---- */

static const struct cli_subverb verbs[] = {
	{ "upload", cli_debuginfo_upload },
	{ "extract", extract },
	{ "buildid", buildid },
	{ "source", source },
};

static const struct cli_command command = {
	.name = "debuginfo",
	.summary = "firn debuginfo: give a server the debug information of programs.",
	.args = "upload|extract|buildid|source ...",
	.args_least = 1,
	.args_most = 1,
	.text = "  upload PATH...          send debug information, executables or sources\n"
		"  extract PATH...         copy what names addresses into files of its own\n"
		"  buildid PATH            print a file's build id\n"
		"  source PATH [ARCHIVE]   gather the sources that a file was made of\n"
		"\n"
		"Flags are parca-debuginfo's. `firn debuginfo VERB --help` says more.",
};

int cli_debuginfo(int argc, char **argv)
{
	return cli_run_subverb(&command, verbs, ARRAY_COUNT(verbs),
		"upload, extract, buildid and source", argc, argv);
}
