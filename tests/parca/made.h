/* SPDX-License-Identifier: Apache-2.0 */
/* made: what parca_maker.py makes, file by file. */
#pragma once

#include "os/os.h"
#include "profile_dump.h"
#include "temp_dir.h"

#define MADE_BYTES_MAX ((size_t)64 << 20)

struct made {
	char name[128];
	struct buf arrow;
	struct buf stacks; /* v1: the second message */
	struct buf text;
};
typedef void made_fn(const struct made *m);

static inline void made_read(const char *dir, const char *name, const char *suffix, struct buf *out)
{
	char path[512];
	struct err e;
	snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
	buf_init(out, MADE_BYTES_MAX);
	CHECK_OK(os_read_file(path, out, &e), &e);
}

/* Those whose names begin with `prefix`; how many there were. */
static inline size_t made_each(const char *prefix, made_fn *fn)
{
	struct temp_dir d;
	char command[1024];
	size_t count = 0;
	temp_dir_init(&d);
	snprintf(command, sizeof(command), "python3 %s/parca_maker.py %s %s", PARCA_DIR, ARROW_DIR,
		d.path);
	CHECK(system(command) == 0);
	DIR *dir = opendir(d.path);
	CHECK(dir);
	for (struct dirent *n; (n = readdir(dir));) {
		struct str file = str_of(n->d_name);
		if (!str_ends(file, STR(".arrow")) || !str_starts(file, str_of(prefix)))
			continue;
		struct made m;
		snprintf(m.name, sizeof(m.name), "%.*s", (int)(file.len - 6), file.p);
		made_read(d.path, m.name, ".arrow", &m.arrow);
		made_read(d.path, m.name, ".txt", &m.text);
		buf_init(&m.stacks, MADE_BYTES_MAX);
		if (str_starts(file, STR("v1_")))
			made_read(d.path, m.name, ".stacks", &m.stacks);
		fn(&m);
		buf_deinit(&m.arrow);
		buf_deinit(&m.stacks);
		buf_deinit(&m.text);
		count++;
	}
	closedir(dir);
	temp_dir_deinit(&d);
	return count;
}

/* The profile is what the text says, or the first line that differs is shown. */
static inline void made_check(const struct made *m, const struct profile *p)
{
	struct buf got;
	struct err e;
	buf_init(&got, MADE_BYTES_MAX);
	CHECK_OK(profile_validate(p, &e), &e);
	CHECK(profile_dump(p, &got));
	struct str g = buf_view(&got), w = buf_view(&m->text), a = STR(""), b = STR("");
	if (!str_eq(g, w)) {
		do {
			a = b = STR("");
			(void)(str_split(&g, '\n', &a) + str_split(&w, '\n', &b));
		} while (str_eq(a, b) && (g.len || w.len));
		print_error("[%s] got:\n%.*s\nwant:\n%.*s\n", m->name, STR_ARG(a), STR_ARG(b));
		fail();
	}
	buf_deinit(&got);
}
