/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever pyroscope_ingest_decode() takes (pprof, folded, lines, trie, tree, multipart,
 * and by speedscope_decode() files of speedscope)
 * is a sound profile; what it refuses it says why, and leaves no samples. The first line of the
 * input is the query: format, and where it begins with '{', labels. "file": the same of
 * pyroscope_file_decode(), and the flame graph of a type is the sum of its samples.
 */
#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "pyroscope/pyroscope.h"

#define LIMIT ((size_t)16 << 20)
#define NOW INT64_C(1700000000000000000)

static int64_t sum_of(const struct profile *p, uint32_t type)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < p->samples.len; i++)
		if (p->heads.v[p->samples.v[i].head].type == type)
			sum += (uint64_t)p->samples.v[i].value;
	return (int64_t)sum;
}

static void draw(struct profile *p)
{
	struct pyroscope_file_type *types;
	struct arena a;
	size_t count = 0;
	arena_init(&a, LIMIT);
	FUZZ_CHECK(pyroscope_file_types(p, &a, &types, &count, NULL) == OK);
	for (size_t i = 0; i < count && i < 4; i++) {
		struct pyroscope_side side;
		struct pyroscope_flame f;
		if (pyroscope_file_side(p, types[i].type, &a, &side, NULL) == OK &&
			pyroscope_flame_make(&side, NULL, 16, &a, &f, NULL) == OK)
			FUZZ_CHECK(f.total == sum_of(p, types[i].type));
	}
	arena_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile p;
	struct err e = { 0 };
	struct str body = str_make(data, size), line = STR("");
	str_split(&body, '\n', &line);
	size_t space = str_index(line, ' ');
	struct pyroscope_ingest q = { .format = str_sub(line, 0, space),
		.content_type = STR("multipart/form-data; boundary=b"),
		.spy = STR("gospy"),
		.name = STR("app"),
		.from = str_sub(line, space + 1, line.len) };
	if (q.from.len && str_index(q.from, '{') < q.from.len)
		q.name = q.from;
	if (!str_eq(q.format, STR("multipart")))
		q.content_type = STR("");
	FUZZ_CHECK(profile_init(&p, LIMIT) == OK);
	if (str_eq(q.format, STR("file"))) {
		enum status s = pyroscope_file_decode(body, NOW, &p, &e);
		FUZZ_CHECK(profile_validate(&p, NULL) == OK);
		FUZZ_CHECK(s == OK || (p.samples.len == 0 && e.text[0]));
		draw(&p);
	} else if (pyroscope_ingest_check(&q, &e) == OK) {
		enum status s = pyroscope_ingest_decode(&q, body, NOW, &p, &e);
		FUZZ_CHECK(profile_validate(&p, NULL) == OK);
		FUZZ_CHECK(s == OK || (p.samples.len == 0 && e.text[0]));
	}
	profile_deinit(&p);
	return 0;
}
