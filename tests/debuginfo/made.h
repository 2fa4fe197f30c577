/* SPDX-License-Identifier: Apache-2.0 */
/* made: small programs, compiled on the spot in a folder of their own, and their tables. */
#pragma once

#include "test.h"

#include "debuginfo/debuginfo.h"
#include "objfile/objfile.h"

#include <fcntl.h>
#include <unistd.h>

static char made_dir[64];

static inline int made_begin(void **state)
{
	(void)state;
	snprintf(made_dir, sizeof(made_dir), "/tmp/firn-test-debuginfo-XXXXXX");
	return mkdtemp(made_dir) ? 0 : -1;
}

static inline int made_end(void **state)
{
	(void)state;
	char command[96];
	snprintf(command, sizeof(command), "rm -r %s", made_dir);
	return system(command); /* NOLINT */
}

/* In the folder; true when it ended well. */
static inline bool made_try(const char *command)
{
	char all[4096];
	CHECK((size_t)snprintf(all, sizeof(all), "cd %s && (%s) >/dev/null 2>&1", made_dir,
		      command) < sizeof(all));
	return system(all) == 0; /* NOLINT */
}

static inline void made_run(const char *command)
{
	if (!made_try(command)) {
		print_error("%s\n", command);
		fail();
	}
}

static inline void made_write(const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", made_dir, name);
	FILE *f = fopen(path, "we");
	CHECK(f);
	CHECK(fputs(text, f) >= 0);
	fclose(f);
}

static inline int made_open(const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", made_dir, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The table of a file in the folder; `debug` and `alt` may be NULL. */
static inline struct debuginfo_table *made_table(
	const char *name, const char *debug, const char *alt)
{
	char path[128];
	struct err e = { 0 };
	struct debuginfo_limits limits;
	debuginfo_limits_default(&limits);
	snprintf(path, sizeof(path), "%s/made.sym", made_dir);
	struct debuginfo_files f = { made_open(name), debug ? made_open(debug) : -1,
		alt ? made_open(alt) : -1 };
	CHECK(f.fd >= 0);
	CHECK_OK(debuginfo_build_files(&f, path, &limits, &e), &e);
	fd_cleanup(&f.fd);
	fd_cleanup(&f.debug_fd);
	fd_cleanup(&f.alt_fd);
	struct debuginfo_table *t;
	CHECK_OK(debuginfo_table_open(path, &t, &e), &e);
	return t;
}

static inline struct debuginfo_table_info made_info(const struct debuginfo_table *t)
{
	struct debuginfo_table_info info;
	debuginfo_table_describe(t, &info);
	return info;
}

/* Addresses of a section, to try one after the other. */
static inline struct objfile_section made_section(const char *name, const char *section)
{
	struct objfile *obj;
	struct err e = { 0 };
	int fd = made_open(name);
	CHECK_OK(objfile_open_fd(fd, name, &obj, &e), &e);
	const struct objfile_section *s = objfile_section(obj, section);
	struct objfile_section out = s ? *s : (struct objfile_section){ 0 };
	out.name = str_make(NULL, 0); /* it goes with the file */
	objfile_close(obj);
	return out;
}

/* The first address in .text whose frame number `depth` has this name; 0: none. */
static inline uint64_t made_find(
	const char *file, const struct debuginfo_table *t, const char *name, uint32_t depth)
{
	struct objfile_section text = made_section(file, ".text");
	struct debuginfo_frame f[DEBUGINFO_FRAMES_MAX];
	for (uint64_t at = text.addr; at < text.addr + text.size; at++)
		if (debuginfo_table_find(t, at, f, DEBUGINFO_FRAMES_MAX) > depth &&
			str_eq(f[depth].name, str_of(name)))
			return at;
	return 0;
}

#define MADE(f) cmocka_unit_test_setup_teardown(f, made_begin, made_end)
