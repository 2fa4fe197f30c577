/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/jitframes.h"

#include "procfs/procfs.h"
#include "test.h"

#include <unistd.h>

static char path[64];
static struct profile p;
static struct jitframes frames;
static struct jitnames_place place;

static void tell(const char *text)
{
	FILE *f = fopen(path, "a");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int begin(void **state)
{
	(void)state;
	struct err e;
	struct procfs_stat stat;
	int pid = (int)getpid();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	CHECK_OK(procfs_stat(pid, &stat, &e), &e);
	CHECK(profile_init(&p, 1 << 20) == OK);
	frames = (struct jitframes){ .names = NULL };
	CHECK_OK(jitnames_new(&frames.names, &e), &e);
	place = (struct jitnames_place){ .pid = pid,
		.start_ns = stat.start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK)),
		.at = 0x1234,
		.time_ns = (uint64_t)clock_monotonic_ns() };
	return 0;
}

static int end(void **state)
{
	(void)state;
	jitframes_deinit(&frames);
	jitnames_free(frames.names);
	profile_deinit(&p);
	unlink(path);
	return 0;
}

/* With all the time that a busy machine needs for the files. */
static void end_interval(void)
{
	jitnames_settle(frames.names, 30 * NS_PER_SEC);
	jitframes_resolve(&frames, &p);
}

static uint32_t add(uint64_t at)
{
	const struct profile_location plain = { .address = at, .kind = FRAME_JIT };
	uint32_t id = 0;
	place.at = at;
	CHECK(jitframes_location(&frames, &p, &place, &plain, &id) == OK);
	return id;
}

static struct str name_of(uint32_t id)
{
	const struct profile_location *l = &p.locations.v[id];
	if (!l->line_count)
		return STR("");
	return profile_str(&p, p.functions.v[p.lines.v[l->line_first].function].name);
}

static void names_it_at_the_end_of_the_interval(void **state)
{
	(void)state;
	tell("1200 100 JS:*f /srv/a b.js:12:5\n1300 100 py::g:/x.py\n");
	uint32_t f = add(0x1234), g = add(0x1310), other = add(0x9999);
	CHECK(p.locations.v[f].line_count == 0);
	uint32_t again = add(0x1234); /* the file may have been read by now */
	CHECK(again == f || str_eq(name_of(again), STR("f")));
	end_interval();
	CHECK_STR(name_of(f), "f");
	const struct profile_location *l = &p.locations.v[f];
	const struct profile_function *fn = &p.functions.v[p.lines.v[l->line_first].function];
	CHECK_STR(profile_str(&p, fn->filename), "/srv/a b.js");
	CHECK(fn->start_line == 12 && fn->system_name == fn->name);
	CHECK(l->kind == FRAME_V8JS && l->address == 0);
	CHECK_STR(profile_str(&p, p.mappings.v[l->mapping].filename), "[jit]");
	CHECK_STR(name_of(g), "g");
	CHECK(p.locations.v[g].kind == FRAME_CPYTHON);
	l = &p.locations.v[other];
	CHECK(l->kind == FRAME_JIT && l->address == 0x9999 && l->mapping == 0);
}

static void one_function_is_one_location(void **state)
{
	(void)state;
	tell("1200 100 JS:~f /a.js:1:1\n1300 100 JS:*f /a.js:1:1\n");
	(void)add(0x1200);
	end_interval();
	CHECK(profile_clear(&p) == OK);
	uint32_t f = add(0x1200);
	CHECK_STR(name_of(f), "f"); /* at once */
	CHECK(add(0x1210) == f && add(0x13ff) == f);
	CHECK(frames.late.len == 0);
}

static void tells_processes_apart(void **state)
{
	(void)state;
	tell("1200 100 f\n");
	uint32_t mine = add(0x1234);
	int pid = place.pid;
	place.pid = 1 << 30; /* nobody */
	uint32_t others = add(0x1234);
	place.pid = pid;
	CHECK(mine != others);
	end_interval();
	CHECK_STR(name_of(mine), "f");
	CHECK_STR(name_of(others), "");
}

TEST_MAIN(cmocka_unit_test_setup_teardown(names_it_at_the_end_of_the_interval, begin, end),
	cmocka_unit_test_setup_teardown(one_function_is_one_location, begin, end),
	cmocka_unit_test_setup_teardown(tells_processes_apart, begin, end))
