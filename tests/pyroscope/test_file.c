/* SPDX-License-Identifier: Apache-2.0 */
/* Single files: each format by its first bytes, and a flame graph that comes back as it was. */
#include "test.h"

#include "base/arena.h"
#include "codec/codec.h"
#include "pyroscope/pyroscope.h"
#include "say.h"

#define MEMORY ((size_t)64 << 20)
#define BEARER(levels)                                                                         \
	"{\"version\":1,\"flamebearer\":{\"names\":[\"total\",\"a\",\"b\"],\"levels\":" levels \
	"},\"metadata\":{\"format\":\"single\",\"units\":\"bytes\",\"name\":\"space\"}}"

/* Types, and of each the graph as levels of "total self name". */
static void tell(struct profile *p, struct buf *b)
{
	struct pyroscope_file_type *types;
	struct arena a;
	struct err e;
	size_t count;
	arena_init(&a, MEMORY);
	buf_clear(b);
	CHECK_OK(pyroscope_file_types(p, &a, &types, &count, &e), &e);
	for (size_t t = 0; t < count; t++) {
		struct pyroscope_side side;
		struct pyroscope_flame f;
		CHECK_OK(pyroscope_file_side(p, types[t].type, &a, &side, &e), &e);
		CHECK_OK(pyroscope_flame_make(&side, NULL, 0, &a, &f, &e), &e);
		buf_printf(b, "%s%.*s/%.*s:", t ? " " : "", STR_ARG(types[t].name),
			STR_ARG(types[t].unit));
		for (size_t l = 1; l < f.level_count; l++)
			for (size_t i = 0; i < f.levels[l].count; i += 4)
				buf_printf(b, "%s%lld %lld %.*s", i ? "," : "|",
					(long long)f.levels[l].v[i + 1],
					(long long)f.levels[l].v[i + 2],
					STR_ARG(f.names[f.levels[l].v[i + 3]]));
	}
	arena_deinit(&a);
}

static enum status read_file(struct profile *p, struct str bytes, struct err *e)
{
	*p = (struct profile){ 0 };
	CHECK(profile_init(p, MEMORY) == OK);
	return pyroscope_file_decode(bytes, 7, p, e);
}

static const struct file_case {
	const char *name, *text;
	const char *want; /* NULL: E_INVALID, where `name` is what the error says */
} files[] = {
	{ "folded", "a;b 3\na;c 4\na 1\n", "samples/count:|8 1 a|3 3 b,4 4 c" },
	{ "perf", "x 1 2.5: 7 cycles:\n\t1f b (/x)\n\t2f a (/x)\n\n", "cycles/count:|7 0 a|7 7 b" },
	{ "flamebearer", BEARER("[[0,9,0,0],[0,9,4,1],[4,5,5,2]]"), "space/bytes:|9 4 a|5 5 b" },
	{ "own value of the root", BEARER("[[0,9,4,0],[4,5,5,1]]"),
		"space/bytes:|5 5 a,4 4 total" },
	{ "the same name twice", BEARER("[[0,9,0,0],[0,4,0,1,0,5,5,1],[0,4,4,2]]"),
		"space/bytes:|9 5 a|4 4 b" },
	{ "levels without bars", BEARER("[[0,0,0,0],[],[]]"), "space/bytes:" },
	{ "levels[1]: no list", BEARER("[[0,9,0,0],[0,9,4]]"), NULL },
	{ "levels[0]: no list", BEARER("[[]]"), NULL },
	{ "levels[2]: no list", BEARER("[[0,9,0,0],[],[0,4,4,2]]"), NULL },
	{ "bar 0 is malformed", BEARER("[[0,9,0,0],[0,9,4,3]]"), NULL },
	{ "bar 0 is malformed", BEARER("[[0,9,0,0],[1,9,4,1]]"), NULL },
	{ "bar 0 is malformed", BEARER("[[0,9,10,0]]"), NULL },
	{ "bar 1 is malformed", BEARER("[[0,9,0,0],[0,4,4,1,9223372036854775807,5,5,1]]"), NULL },
	{ "single",
		"{\"flamebearer\":{\"names\":[],\"levels\":[]},\"metadata\":{\"format\":\"double\"}"
		"}",
		NULL },
	{ "names and levels", "{}", NULL },
	{ "byte 1", "{", NULL },
	{ "speedscope", "{\"$schema\":\"x\"}", NULL },
	{ "malformed at byte", "\x01\x02", NULL },
	{ "profile", "", NULL },
};

static void reads_files(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, files) {
		CLEANUP(buf_deinit) struct buf b;
		CLEANUP(profile_deinit) struct profile p;
		struct err e = { 0 };
		buf_init(&b, 65536);
		enum status s = read_file(&p, str_of(c->text), &e);
		CHECK_CASE(c, s == (c->want ? OK : E_INVALID));
		if (s == OK)
			tell(&p, &b);
		if (c->want)
			CHECK_STR(buf_view(&b), c->want);
		else
			CHECK_STR(str_of(strstr(e.text, c->name) ? "" : e.text), "");
	}
}

/* Two types of one name are told apart by their profiles', and a file may be gzipped. */
static void reads_pprof(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b, pprof, packed;
	CLEANUP(profile_deinit) struct profile p;
	struct err e = { 0 };
	buf_init(&b, 65536);
	buf_init(&pprof, 65536);
	buf_init(&packed, 65536);
	say_pprof(&pprof, &(struct pprof_example){ .a = "cpu", .b = "samples" });
	CHECK_OK(codec_gzip(pprof.data, pprof.len, 1, &packed), &e);
	CHECK_OK(read_file(&p, buf_view(&packed), &e), &e);
	tell(&p, &b);
	CHECK_STR(buf_view(&b), "cpu/count:|5 5 main samples/nanoseconds:|7 7 main");
}

/* What pyroscope_flamebearer_write() makes is read as what it was made of. */
static void reads_what_is_written(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf before, after, json;
	CLEANUP(profile_deinit) struct profile p, again;
	struct pyroscope_file_type *types;
	struct pyroscope_side side;
	struct pyroscope_flame f;
	struct arena a;
	struct err e = { 0 };
	size_t count;
	arena_init(&a, MEMORY);
	buf_init(&before, 65536);
	buf_init(&after, 65536);
	buf_init(&json, 65536);
	CHECK_OK(read_file(&p, STR("r;a;b 3\nr;a;c 4\nr;x;c;d 2\nr 1\ns;r 9\n"), &e), &e);
	CHECK_OK(pyroscope_file_types(&p, &a, &types, &count, &e), &e);
	CHECK_OK(pyroscope_file_side(&p, types[0].type, &a, &side, &e), &e);
	CHECK_OK(pyroscope_flame_make(&side, NULL, 0, &a, &f, &e), &e);
	pyroscope_flamebearer_write(&f, types[0].name, STR("count"), NULL, &json);
	CHECK_OK(read_file(&again, buf_view(&json), &e), &e);
	tell(&p, &before);
	tell(&again, &after);
	CHECK_STR(buf_view(&before), "samples/count:|10 1 r,9 0 s|7 0 a,2 0 x,9 9 r|3 3 b,4 4 c,"
				     "2 0 c|2 2 d");
	struct str one = buf_view(&before), other = buf_view(&after);
	one = str_sub(one, str_index(one, ':'), one.len);
	other = str_sub(other, str_index(other, ':'), other.len);
	CHECK(str_eq(one, other));
	arena_deinit(&a);
}

TEST_MAIN(cmocka_unit_test(reads_files), cmocka_unit_test(reads_pprof),
	cmocka_unit_test(reads_what_is_written))
