/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever pyroscope_query_decode(), pyroscope_calls_decode() and pyroscope_diff_decode()
 * take lies in the message; what they refuse they say why. The first byte chooses the request. What
 * follows is a tree, too: each byte a node under one of those before it. Of its flame graph every
 * level's tuples lie within those above, and the totals are the sums of the selves.
 */
#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "pyroscope/pyroscope.h"

#define NODES_MAX 256

static void check_flame(const struct pyroscope_flame *f, int64_t want)
{
	size_t width = f->sides == 2 ? 7 : 4;
	int64_t total = 0;
	FUZZ_CHECK(f->level_count > 0);
	for (size_t l = 0; l < f->level_count; l++) {
		const struct pyroscope_level *level = &f->levels[l];
		FUZZ_CHECK(level->count % width == 0);
		int64_t end = 0;
		for (size_t i = 0; i < level->count; i += width) {
			const int64_t *t = &level->v[i];
			FUZZ_CHECK(t[0] >= 0 && t[2] <= t[1] &&
				   (uint64_t)t[width - 1] < f->name_count);
			end += t[0] + t[1];
			total += t[2];
		}
		FUZZ_CHECK(end <= f->side_totals[0]);
	}
	FUZZ_CHECK(total == f->side_totals[0] && total == want);
}

static void check_tree(const uint8_t *data, size_t size)
{
	static const struct str names[] = { { "a", 1 }, { "b", 1 }, { "other", 5 }, { "", 0 } };
	uint32_t parent[NODES_MAX] = { 0 }, name[NODES_MAX] = { 0 };
	int64_t self[NODES_MAX] = { 0 }, sum = 0;
	uint32_t count = (uint32_t)MIN(size, (size_t)NODES_MAX - 1) + 1;
	for (uint32_t i = 1; i < count; i++) {
		parent[i] = data[i - 1] / 8 % i;
		name[i] = data[i - 1] % 4;
		self[i] = data[i - 1] % 8;
		sum += self[i];
	}
	struct pyroscope_side side = { count, parent, name, names, self };
	struct pyroscope_flame flame;
	struct arena a;
	struct err e;
	arena_init(&a, 1 << 24);
	FUZZ_CHECK(pyroscope_flame_make(&side, NULL, data[0] % 16, &a, &flame, &e) == OK);
	check_flame(&flame, sum);
	FUZZ_CHECK(pyroscope_flame_make(&side, &side, data[0] % 16, &a, &flame, &e) == OK);
	check_flame(&flame, sum);
	FUZZ_CHECK(flame.side_totals[0] == flame.side_totals[1]);
	arena_deinit(&a);
}

static void check_calls(struct str message)
{
	struct pyroscope_calls calls;
	struct arena a;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	enum status s = pyroscope_calls_decode(message, &a, &calls, &e);
	FUZZ_CHECK(s == OK || e.text[0]);
	for (uint32_t i = 0; s == OK && i < calls.count; i++)
		FUZZ_CHECK(calls.v[i].len <= message.len);
	for (uint32_t i = 0; s == OK && i < calls.frame_count; i++) {
		const struct pyroscope_frame *f = &calls.frames[i];
		FUZZ_CHECK(f->name.p >= message.p &&
			   f->name.p + f->name.len <= message.p + message.len);
	}
	arena_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pyroscope_query left, right;
	struct err e = { 0 };
	if (size < 1)
		return 0;
	struct str message = str_make(data + 1, size - 1);
	enum status s;
	if (data[0] % (PYROSCOPE_REQUEST_COUNT + 1) == PYROSCOPE_REQUEST_COUNT)
		s = pyroscope_diff_decode(message, &left, &right, &e);
	else
		s = pyroscope_query_decode(message,
			(enum pyroscope_request)(data[0] % (PYROSCOPE_REQUEST_COUNT + 1)), &left,
			&e);
	FUZZ_CHECK(s == OK || e.text[0]);
	FUZZ_CHECK(s != OK || left.matchers.count <= PYROSCOPE_LIST_MAX);
	check_calls(message);
	if (size > 1)
		check_tree(data + 1, size - 1);
	return 0;
}
