/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever pyroscope_ingest_decode() takes (pprof, folded, lines, trie, tree, multipart,
 * and by speedscope_decode() files of speedscope)
 * is a sound profile; what it refuses it says why, and leaves no samples. The first line of the
 * input is the query: format, and where it begins with '{', labels.
 */
#include "fuzz/fuzz.h"

#include "pyroscope/pyroscope.h"

#define LIMIT ((size_t)16 << 20)
#define NOW INT64_C(1700000000000000000)

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
	if (pyroscope_ingest_check(&q, &e) == OK) {
		enum status s = pyroscope_ingest_decode(&q, body, NOW, &p, &e);
		FUZZ_CHECK(profile_validate(&p, NULL) == OK);
		FUZZ_CHECK(s == OK || (p.samples.len == 0 && e.text[0]));
	}
	profile_deinit(&p);
	return 0;
}
