/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/broker_request.h"
#include "test.h"

static const struct broker_config config = { .own_files = { "", NULL, "/etc/firn/agent.yaml" } };
static const struct broker_config curious = { .environment = true };

static const struct {
	const char *name;
	const char *path;
	enum broker_place want;
	const char *below;
} places[] = {
	{ "maps", "/proc/12/maps", BROKER_TEXT, NULL },
	{ "a thread's name", "/proc/12/task/13/comm", BROKER_TEXT, NULL },
	{ "symbols", "/proc/kallsyms", BROKER_TEXT, NULL },
	{ "named at the start", "/etc/firn/agent.yaml", BROKER_OWN, NULL },
	{ "program", "/proc/12/exe", BROKER_MAPPED, NULL },
	{ "mapping", "/proc/12/map_files/7f00-7f1000", BROKER_MAPPED, NULL },
	{ "in the root", "/proc/12/root/usr/bin/a b", BROKER_IN_ROOT, "usr/bin/a b" },
	{ "names of code", "/proc/12/root/tmp/perf-7.map", BROKER_PERFMAP, NULL },
	{ "no number of names", "/proc/12/root/tmp/perf-.map", BROKER_IN_ROOT, "tmp/perf-.map" },
	{ "names of long", "/proc/12/root/tmp/perf-12345678901.map", BROKER_IN_ROOT,
		"tmp/perf-12345678901.map" },
	{ "names and more", "/proc/12/root/tmp/perf-7.map2", BROKER_IN_ROOT, "tmp/perf-7.map2" },
	{ "names elsewhere", "/proc/12/root/tmp/a/perf-7.map", BROKER_IN_ROOT, "tmp/a/perf-7.map" },
	{ "environment", "/proc/12/environ", BROKER_NOWHERE, NULL },
	{ "memory", "/proc/12/mem", BROKER_NOWHERE, NULL },
	{ "itself", "/proc/self/maps", BROKER_NOWHERE, NULL },
	{ "no number", "/proc//maps", BROKER_NOWHERE, NULL },
	{ "long number", "/proc/12345678901/maps", BROKER_NOWHERE, NULL },
	{ "a descriptor", "/proc/12/fd/3", BROKER_NOWHERE, NULL },
	{ "up and down", "/proc/12/root/../../etc/shadow", BROKER_NOWHERE, NULL },
	{ "a dot", "/proc/12/root/./bin/sh", BROKER_NOWHERE, NULL },
	{ "two slashes", "/proc/12/root//bin/sh", BROKER_NOWHERE, NULL },
	{ "a folder", "/proc/12/root/bin/", BROKER_NOWHERE, NULL },
	{ "the root", "/proc/12/root/", BROKER_NOWHERE, NULL },
	{ "no range", "/proc/12/map_files/7f00", BROKER_NOWHERE, NULL },
	{ "half a range", "/proc/12/map_files/7f00-", BROKER_NOWHERE, NULL },
	{ "more than a range", "/proc/12/map_files/7f00-7f10/x", BROKER_NOWHERE, NULL },
	{ "capital digits", "/proc/12/map_files/7F00-7F10", BROKER_NOWHERE, NULL },
	{ "begins like one named", "/etc/firn/agent.yaml2", BROKER_NOWHERE, NULL },
	{ "any file", "/etc/shadow", BROKER_NOWHERE, NULL },
	{ "nothing", "", BROKER_NOWHERE, NULL },
};

static void only_what_the_table_says(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, places) {
		const char *below = NULL;
		CHECK_CASE(c, broker_place_of(&config, c->path, &below) == c->want);
		CHECK_CASE(c, !below == !c->below && (!below || strcmp(below, c->below) == 0));
	}
	const char *below = NULL;
	CHECK(broker_place_of(&curious, "/proc/12/environ", &below) == BROKER_TEXT);
}

static void links_and_what_may_hang(void **state)
{
	(void)state;
	CHECK(broker_is_link("/proc/1/exe"));
	CHECK(broker_is_link("/proc/1/map_files/0-1"));
	CHECK(broker_is_link("/proc/1/ns/pid_for_children"));
	CHECK(!broker_is_link("/proc/1/ns/"));
	CHECK(!broker_is_link("/proc/1/ns/../root"));
	CHECK(!broker_is_link("/proc/1/root"));
	CHECK(!broker_is_link("/proc/1/fd/1"));
	CHECK(broker_may_hang("/proc/1/root/bin/sh"));
	CHECK(broker_may_hang("/proc/1/exe"));
	CHECK(broker_may_hang("/etc/firn/agent.yaml"));
	CHECK(!broker_may_hang("/proc/1/maps"));
	CHECK(!broker_may_hang("/proc/kallsyms"));
}

static enum status parse(const struct buf *b, struct broker_request *out, struct err *e)
{
	return broker_request_parse(buf_view(b), out, e);
}

static void reads_each_kind(void **state)
{
	(void)state;
	struct err e = { 0 };
	static struct broker_request r;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, BROKER_MESSAGE_BYTES_MAX + 1);
	buf_u32(&b, BROKER_OPEN);
	buf_u32(&b, 7);
	buf_cstr(&b, "/proc/1/exe");
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.kind == BROKER_OPEN && r.number == 7 && strcmp(r.path, "/proc/1/exe") == 0);
	buf_clear(&b);
	buf_u32(&b, BROKER_CGROUP);
	buf_u32(&b, 8);
	buf_u64(&b, 99);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.kind == BROKER_CGROUP && r.cgroup_id == 99);
	buf_u8(&b, 0);
	CHECK(parse(&b, &r, &e) == E_INVALID);
	CHECK(r.number == 8);
	buf_clear(&b);
	buf_u32(&b, BROKER_PERF_EVENT);
	buf_u32(&b, 9);
	buf_u32(&b, 3);
	buf_u32(&b, 19);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.cpu == 3 && r.frequency_hz == 19);
	buf_clear(&b);
	buf_u32(&b, BROKER_HOLD);
	buf_u32(&b, 10);
	buf_u32(&b, 1);
	buf_cstr(&b, "/proc/1/exe");
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.below_is_disk && strcmp(r.path, "/proc/1/exe") == 0);
	buf_clear(&b);
	buf_u32(&b, BROKER_READ);
	buf_u32(&b, 11);
	buf_u32(&b, 2);
	buf_u32(&b, BROKER_READ_BYTES_MAX);
	buf_u64(&b, 3);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.handle == 2 && r.len == BROKER_READ_BYTES_MAX && r.offset == 3);
	buf_clear(&b);
	buf_u32(&b, BROKER_DROP);
	buf_u32(&b, 12);
	buf_u32(&b, 4);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.kind == BROKER_DROP && r.handle == 4);
	buf_clear(&b);
	buf_u32(&b, BROKER_JIT_LIST);
	buf_u32(&b, 13);
	buf_u32(&b, 5);
	buf_u64(&b, 6);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.pid == 5 && r.address == 6);
	buf_clear(&b);
	buf_u32(&b, BROKER_JIT_READ);
	buf_u32(&b, 14);
	buf_u32(&b, 5);
	buf_u32(&b, BROKER_READ_BYTES_MAX);
	buf_u64(&b, 6);
	buf_u64(&b, 7);
	buf_u64(&b, 8);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.pid == 5 && r.len == BROKER_READ_BYTES_MAX && r.address == 6 && r.offset == 7);
	CHECK(r.descriptor == 8);
	buf_clear(&b);
	buf_u32(&b, BROKER_CONTEXT);
	buf_u32(&b, 15);
	buf_u32(&b, 5);
	buf_u64(&b, 4096);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.kind == BROKER_CONTEXT && r.pid == 5 && r.address == 4096);
	buf_clear(&b);
	buf_u32(&b, BROKER_DOTNET_FIND);
	buf_u32(&b, 16);
	buf_u32(&b, 5);
	buf_u32(&b, 10);
	buf_u64(&b, 6);
	buf_u64(&b, 7);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.pid == 5 && r.version == 10 && r.descriptor == 6 && r.address == 7);
	buf_clear(&b);
	buf_u32(&b, BROKER_DOTNET_READ);
	buf_u32(&b, 17);
	buf_u32(&b, 5);
	buf_u32(&b, 64);
	buf_u64(&b, 6);
	buf_u64(&b, 7);
	CHECK_OK(parse(&b, &r, &e), &e);
	CHECK(r.pid == 5 && r.len == 64 && r.address == 6 && r.offset == 7);
}

static void refuses_what_is_none(void **state)
{
	(void)state;
	static struct broker_request r;
	static const struct {
		const char *name;
		uint32_t kind;
		const char *rest;
		size_t len;
	} cases[] = {
		{ "kind 0", 0, "/proc/1/exe", 11 },
		{ "kind 14", 14, "/proc/1/exe", 11 },
		{ "code of nobody", BROKER_DOTNET_FIND,
			"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24 },
		{ "no metadata", BROKER_DOTNET_READ,
			"\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24 },
		{ "a list of nobody", BROKER_JIT_LIST, "\0\0\0\0\0\0\0\0\0\0\0\0", 12 },
		{ "half a list", BROKER_JIT_LIST, "\1\0\0\0\0\0\0\0\0\0\0", 11 },
		{ "nothing of an object", BROKER_JIT_READ,
			"\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
			"\0\0\0\0\0\0\0\0",
			32 },
		{ "a context of nobody", BROKER_CONTEXT, "\0\0\0\0\0\0\0\0\0\0\0\0", 12 },
		{ "to hold no path", BROKER_HOLD, "\0\0\0\0", 4 },
		{ "to hold half a flag", BROKER_HOLD, "\0\0", 2 },
		{ "to read nothing", BROKER_READ, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16 },
		{ "too much", BROKER_READ, "\0\0\0\0\1\0\1\0\0\0\0\0\0\0\0\0", 16 },
		{ "before it", BROKER_READ, "\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\x80", 16 },
		{ "a short read", BROKER_READ, "\0\0\0\0\1\0\0\0\0\0\0", 11 },
		{ "to drop more", BROKER_DROP, "\0\0\0\0\0", 5 },
		{ "a slab with something", BROKER_SLAB, "x", 1 },
		{ "no path", BROKER_OPEN, "", 0 },
		{ "a NUL", BROKER_LINK, "/proc\0/1", 8 },
		{ "short id", BROKER_CGROUP, "1234567", 7 },
		{ "no frequency", BROKER_PERF_EVENT, "\1\0\0\0", 4 },
		{ "frequency too high", BROKER_PERF_EVENT, "\1\0\0\0\0\0\1\0", 8 },
	};
	FOR_EACH_CASE (c, cases) {
		struct err e = { 0 };
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 64);
		buf_u32(&b, c->kind);
		buf_u32(&b, 1);
		buf_put(&b, c->rest, c->len);
		CHECK_CASE(c, parse(&b, &r, &e) == E_INVALID && e.text[0]);
	}
	CHECK(broker_request_parse(STR("1234567"), &r, NULL) == E_INVALID);
	static char path[8 + BROKER_PATH_MAX + 1] = { BROKER_OPEN };
	memset(path + 8, 'a', BROKER_PATH_MAX + 1);
	CHECK(broker_request_parse(str_make(path, sizeof(path) - 1), &r, NULL) == OK);
	CHECK(broker_request_parse(str_make(path, sizeof(path)), &r, NULL) == E_INVALID);
}

TEST_MAIN(cmocka_unit_test(only_what_the_table_says), cmocka_unit_test(links_and_what_may_hang),
	cmocka_unit_test(reads_each_kind), cmocka_unit_test(refuses_what_is_none))
