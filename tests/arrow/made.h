/* SPDX-License-Identifier: Apache-2.0 */
/* made: the streams that arrow_maker.py makes, one after the other. */
#pragma once

#include "os/os.h"
#include "temp_dir.h"

#define MADE_BYTES_MAX ((size_t)16 << 20)

typedef void made_fn(const char *name, struct str arrow, struct str text);

static inline void made_read(const char *dir, const char *name, const char *suffix, struct buf *out)
{
	char path[512];
	struct err e;
	snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
	buf_init(out, MADE_BYTES_MAX);
	CHECK_OK(os_read_file(path, out, &e), &e);
}

/* Those whose names begin with "bad_", or the others. */
static inline size_t made_each(bool bad, made_fn *fn)
{
	struct temp_dir d;
	char command[512], name[256];
	size_t count = 0;
	temp_dir_init(&d);
	snprintf(command, sizeof(command), "python3 %s %s", ARROW_MAKER, d.path);
	CHECK(system(command) == 0);
	DIR *dir = opendir(d.path);
	CHECK(dir);
	for (struct dirent *n; (n = readdir(dir));) {
		struct str file = str_of(n->d_name);
		if (!str_ends(file, STR(".arrow")) || str_starts(file, STR("bad_")) != bad)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(file.len - 6), file.p);
		struct buf arrow, text;
		made_read(d.path, name, ".arrow", &arrow);
		made_read(d.path, name, ".txt", &text);
		fn(name, buf_view(&arrow), buf_view(&text));
		buf_deinit(&arrow);
		buf_deinit(&text);
		count++;
	}
	closedir(dir);
	temp_dir_deinit(&d);
	return count;
}
