/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks, lines, tries and trees: what becomes of them, limits, and each way to be torn. */
#include "test.h"

#include "pyroscope/stacks.h"
#include "say.h"

#include <stdio.h>

#define MEMORY ((size_t)64 << 20)
#define TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta 10 1 {}{} "

struct text_case {
	const char *name;
	enum text_format format;
	struct str bytes;
	const char *want; /* NULL: E_INVALID */
	uint64_t bad_lines;
};

static const struct text_case texts[] = {
	{ "no count", TEXT_GROUPS, STR("a;b\nno count\n"), NULL },
	{ "no text", TEXT_GROUPS, STR("\x0a\x04\x08\x01\x10\x02"), NULL },
	{ "counts", TEXT_GROUPS, STR("a;b 2\nalone\na;b c; 3\r\n\nno count\nx 0\n"),
		"20000000 " TYPE "a;b\n30000000 " TYPE "a;b c\n", 2 },
	{ "huge", TEXT_GROUPS, STR("a 9223372036854775807\n"), NULL },
	{ "lines", TEXT_LINES, STR("a;b 2\r\n\nx\n"),
		"10000000 " TYPE "a;b 2\n10000000 " TYPE "x\n" },
	/* root "" { "a" 0 { ";b" 1, ";c" 2 } } */
	{ "trie", TEXT_TRIE, STR("\0\0\1\1a\0\2\2;b\1\0\2;c\2\0"),
		"10000000 " TYPE "a;b\n20000000 " TYPE "a;c\n" },
	/* root "" { "ma" 3 { "in;f" 1, ";g" 2 } } */
	{ "trie that tears names", TEXT_TRIE, STR("\0\0\1\2ma\3\2\4in;f\1\0\2;g\2\0"),
		"30000000 " TYPE "ma\n10000000 " TYPE "main;f\n20000000 " TYPE "ma;g\n" },
	{ "trie cut", TEXT_TRIE, STR("\0\0\1\1a\0\2\2;b\1\0\2;c\2"), NULL },
	{ "trie of too many children", TEXT_TRIE, STR("\0\0\5\1a\1\0"), NULL },
	{ "trie and more", TEXT_TRIE, STR("\0\0\1\1a\1\0x"), NULL },
	{ "name cut", TEXT_TRIE, STR("\0\0\1\77a\1\0"), NULL },
	{ "empty", TEXT_TRIE, STR(""), "" },
	/* root "" { "a;b" 4 { "c" 1 }, "" 2 } */
	{ "tree", TEXT_TREE, STR("\0\0\2\3a;b\4\1\1c\1\0\0\2\0"),
		"40000000 " TYPE "a;b\n10000000 " TYPE "a;b;c\n20000000 " TYPE "[unknown]\n" },
};

static enum status decode(const struct text_case *c, struct profile *p, struct err *e)
{
	struct text_body b = {
		.format = c->format, .bytes = c->bytes, .rate = 100, .time_ns = 1, .duration_ns = 10
	};
	struct str app = STR("x");
	CHECK_OK(text_type_of(&app, &b.type, e), e);
	return text_decode(&b, p, e);
}

static void reads_texts(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	FOR_EACH_CASE (c, texts) {
		struct profile p;
		struct err e = { 0 };
		CHECK_OK(profile_init(&p, MEMORY), &e);
		enum status s = decode(c, &p, &e);
		CHECK_CASE(c, s == (c->want ? OK : E_INVALID));
		if (c->want)
			CHECK_STR(say(&b, &p), c->want);
		CHECK_CASE(c, !c->want || p.bad_lines == c->bad_lines);
		CHECK_CASE(c, c->want || e.text[0]);
		CHECK_OK(profile_validate(&p, &e), &e);
		profile_deinit(&p);
	}
}

/* A chain of nodes whose names share what is above them: what it spells out grows with the square
 * of its length. */
static void limits_tries(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 24);
	for (enum text_format f = TEXT_TRIE; f <= TEXT_TREE; f++)
		for (size_t depth = 20000; depth <= 200000; depth += 180000) {
			struct profile p;
			struct err e = { 0 };
			buf_clear(&b);
			for (size_t i = 0; i < depth; i++) {
				buf_varint(&b, 2);
				buf_cstr(&b, ";a");
				buf_varint(&b, depth > 20000 ? 0 : 1);
				buf_varint(&b, i + 1 < depth);
			}
			CHECK_OK(profile_init(&p, (size_t)512 << 20), &e);
			const struct text_case c = { "deep", f, buf_view(&b), "" };
			CHECK(decode(&c, &p, &e) == E_LIMIT);
			profile_deinit(&p);
		}
}

static void tells_types(void **state)
{
	(void)state;
	static const struct {
		const char *name, *app, *type; /* app NULL: refused */
	} cases[] = {
		{ "app", "app", "process_cpu:cpu" },
		{ "my.app.cpu", "my.app", "process_cpu:cpu" },
		{ "app.wall", "app", "wall:wall" },
		{ "app.alloc_objects", "app", "memory:alloc_objects" },
		{ "app.inuse_space", "app", "memory:inuse_space" },
		{ "app.mutex_duration", "app", "mutex:delay" },
		{ "app.lock_count", "app", "block:contentions" },
		{ "app.exceptions", "app", "exceptions:samples" },
		{ "my.app", NULL, NULL },
	};
	FOR_EACH_CASE (c, cases) {
		struct text_type t;
		struct err e;
		struct str app = str_of(c->name);
		enum status s = text_type_of(&app, &t, &e);
		CHECK_CASE(c, (s == OK) == (c->app != NULL));
		if (s != OK)
			continue;
		char type[64];
		snprintf(type, sizeof(type), "%s:%s", t.name, t.sample_type);
		CHECK_STR(app, c->app);
		CHECK_STR(str_of(type), c->type);
	}
}

TEST_MAIN(cmocka_unit_test(reads_texts), cmocka_unit_test(limits_tries),
	cmocka_unit_test(tells_types))
