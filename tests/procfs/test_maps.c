/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs/procfs.h"

#include "test.h"

#include <errno.h>
#include <unistd.h>

struct found {
	struct procfs_map last;
	char path[256];
	int count;
	int stop_after;
};

static bool collect(void *ctx, const struct procfs_map *m)
{
	struct found *f = ctx;
	f->last = *m;
	snprintf(f->path, sizeof(f->path), "%.*s", STR_ARG(m->path));
	return ++f->count != f->stop_after;
}

/* clang-format off */
static const struct { const char *name; const char *text; bool ok; int count; const char *path; } texts[] = {
	{ "none", "", true, 0, "" },
	{ "a library", "7f00-7f10 r-xp 00001000 fd:0a 1234                       /usr/lib/x.so\n", true, 1, "/usr/lib/x.so" },
	{ "anonymous", "7f00-7f10 rw-p 00000000 00:00 0 \n", true, 1, "" },
	{ "anonymous, no blank", "7f00-7f10 rw-p 00000000 00:00 0", true, 1, "" },
	{ "blanks in the path", "1-2 r-xp 0 08:01 7 /a b/c d (deleted)\n", true, 1, "/a b/c d (deleted)" },
	{ "highest", "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n", true, 1, "[vsyscall]" },
	{ "empty line", "\n", false, 0, "" },
	{ "end before start", "7f10-7f00 r-xp 0 0:0 0 \n", false, 0, "" },
	{ "no permissions", "7f00-7f10 r-x 0 0:0 0 \n", false, 0, "" },
	{ "17 digits", "00000000000000001-2 r-xp 0 0:0 0 \n", false, 0, "" },
	{ "device too large", "1-2 r-xp 0 100000000:0 0 \n", false, 0, "" },
	{ "no inode", "1-2 r-xp 0 0:0 x\n", false, 0, "" },
	{ "cut short", "1-2 r-xp 0 0:0", false, 0, "" },
};
/* clang-format on */

static void parses_lines(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, texts) {
		struct found f = { 0 };
		struct err e;
		enum status s = procfs_maps_parse(str_of(c->text), collect, &f, &e);
		CHECK_CASE(c, s == (c->ok ? OK : E_INVALID));
		CHECK_CASE(c, f.count == c->count);
		CHECK_CASE(c, strcmp(f.path, c->path) == 0);
	}
	struct found f = { 0 };
	CHECK(procfs_maps_parse(str_of(texts[1].text), collect, &f, NULL) == OK);
	CHECK(f.last.start == 0x7f00 && f.last.end == 0x7f10 && f.last.offset == 0x1000);
	CHECK(f.last.dev_major == 0xfd && f.last.dev_minor == 0x0a && f.last.inode == 1234);
	CHECK(f.last.read && !f.last.write && f.last.exec && !f.last.shared);
}

static void stops_when_asked(void **state)
{
	(void)state;
	struct found f = { .stop_after = 1 };
	CHECK(procfs_maps_parse(STR("1-2 r-xp 0 0:0 0 \nnonsense\n"), collect, &f, NULL) == OK);
	CHECK(f.count == 1);
}

static bool find_main(void *ctx, const struct procfs_map *m)
{
	uintptr_t at = (uintptr_t)find_main;
	if (m->exec && m->start <= at && at < m->end)
		*(bool *)ctx = str_ends(m->path, str_of(program_invocation_short_name));
	return true;
}

static void reads_its_own(void **state)
{
	(void)state;
	bool found = false;
	struct err e;
	CHECK_OK(procfs_maps((int)getpid(), find_main, &found, &e), &e);
	CHECK(found);
	CHECK(procfs_maps(1 << 30, find_main, &found, &e) == E_NOTFOUND);
}

TEST_MAIN(cmocka_unit_test(parses_lines), cmocka_unit_test(stops_when_asked),
	cmocka_unit_test(reads_its_own))
