/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/go.h as ordinary C: the labels of a goroutine, in a slice (Go 1.24) and in a map
 * (1.23), are told once and are beside each sample; forged ones end within a bounded number of
 * reads.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define G PLACE(2)  /* the goroutine */
#define G0 PLACE(3) /* the scheduler's */
#define M PLACE(4)
#define LABELS PLACE(5) /* the slice; the address of the map */
#define MAP PLACE(6)
#define PAIRS PLACE(7) /* the slice's, or the map's buckets */
#define TEXTS PLACE(8)
#define TEXT_AT(n) (TEXTS + 0x80 * (uint64_t)(n))
#define M_CURG 184
#define G_LABELS 352

static bool is_map;

static struct runtime_record record(void)
{
	return (struct runtime_record){ .kind = RUNTIME_GO,
		.version = 1 << 8 | (is_map ? 23 : 26),
		.layout.go = {
			.g_at = -8, .m_curg = M_CURG, .g_labels = G_LABELS, .is_slice = !is_map } };
}

static void put_string(uint64_t at, unsigned n, const char *text)
{
	put_word(at, TEXT_AT(n));
	put_word(at + 8, strlen(text));
	put_bytes(TEXT_AT(n), text);
}

/* Pair n: key and value are texts 2 n and 2 n + 1. */
static void put_pair(unsigned n, const char *key, const char *value)
{
	if (is_map) { /* in bucket n */
		uint64_t bucket = PAIRS + GO_BUCKET_BYTES * (uint64_t)n;
		put(bucket + 3, GO_BUCKET_TOP_LEAST, 1);
		put_string(bucket + GO_BUCKET_KEYS + 3 * GO_STRING_BYTES, 2 * n, key);
		put_string(bucket + GO_BUCKET_VALUES + 3 * GO_STRING_BYTES, 2 * n + 1, value);
	} else {
		put_string(PAIRS + 32 * (uint64_t)n, 2 * n, key);
		put_string(PAIRS + 32 * (uint64_t)n + 16, 2 * n + 1, value);
	}
}

static void begin(void)
{
	const struct runtime_record r = record();
	made_runtime_begin(&r);
	put_word(POINTER - 8, G);
	put_word(G + GO_G_M, M);
	put_word(G0 + GO_G_M, M);
	put_word(M + GO_M_G0, G0);
	put_word(M + M_CURG, G);
	put_word(G + G_LABELS, LABELS);
	put_word(LABELS, is_map ? MAP : PAIRS);
	put_word(LABELS + 8, 2);
	put_word(MAP, 2);
	put(MAP + GO_MAP_BUCKETS_LOG2, 1, 1);
	put_word(MAP + GO_MAP_BUCKETS, PAIRS);
	put_pair(0, "span_id", "00f067aa0ba902b7");
	put_pair(1, "endpoint", "/api");
}

static bool is_label(const struct event_code *e, uint32_t i, const char *key, const char *value)
{
	struct runtime_label l;
	if (!e || (i + 1) * sizeof(l) > e->lines_bytes)
		return false;
	memcpy(&l, e->data + i * sizeof(l), sizeof(l));
	return l.key_bytes == strlen(key) && memcmp(l.key, key, l.key_bytes) == 0 &&
	       l.value_bytes == strlen(value) && memcmp(l.value, value, l.value_bytes) == 0;
}

/* Both labels, and native frames as they are. */
static bool is_whole(const struct event_sample *s)
{
	const struct event_code *e = s->labels ? told(s->labels) : NULL;
	return s->h.stack_end == STACK_END_ROOT && s->user_count == 3 && e &&
	       e->kind == RUNTIME_GO && e->lines_bytes == 2 * sizeof(struct runtime_label) &&
	       is_label(e, 0, "span_id", "00f067aa0ba902b7") && is_label(e, 1, "endpoint", "/api");
}

static void tells_labels_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		is_map = i;
		begin();
		const struct event_sample *s = made_runtime_take();
		const uint64_t first = s->labels;
		CHECK(is_whole(s) && counted()->codes == 1);
		shim_drop_events();
		s = made_runtime_take();
		CHECK(s->labels == first && counted()->codes == 1);
		shim_drop_events();
		put_bytes(TEXT_AT(1), "1"); /* another span in the same memory */
		s = made_runtime_take();
		CHECK(s->labels != first && counted()->codes == 2);
		CHECK(is_label(told(s->labels), 0, "span_id", "10f067aa0ba902b7"));
		made_runtime_end();
	}
}

static void finds_the_goroutine(void **state)
{
	(void)state;
	is_map = false;
	begin();
	put_word(POINTER - 8, G0); /* the scheduler runs for it */
	CHECK(is_whole(made_runtime_take()));
	shim_drop_events();
	put_word(POINTER - 8, PLACE(20)); /* no g */
	CHECK(made_runtime_take()->labels == 0);
	shim_drop_events();
	put_word(POINTER - 8, G0);
	put_word(M + M_CURG, 0); /* no goroutine runs */
	CHECK(made_runtime_take()->labels == 0);
	made_runtime_end();
}

/* clang-format off */
static const struct {
	const char *name;
	uint64_t at, word;
	unsigned labels[2]; /* in a slice, in a map */
} cases[] = {
	{ "no labels", G + G_LABELS, 0, { 0, 0 } },
	{ "labels that are not mapped", G + G_LABELS, UNMAPPED, { 0, 0 } },
	{ "pairs that are not mapped", LABELS, UNMAPPED, { 0, 0 } },
	{ "2^64 - 1 pairs", LABELS + 8, UINT64_MAX, { 2, 2 } },
	{ "an empty map", MAP, 0, { 2, 0 } },
	{ "2^255 buckets", MAP + 8, UINT64_MAX, { 2, 2 } },
	{ "a key that is not mapped", PAIRS, UNMAPPED, { 1, 1 } },
	{ "a key of 2^64 - 1 bytes, which is cut", PAIRS + 8, UINT64_MAX, { 2, 2 } },
	{ "a value of no bytes", PAIRS + 24, 0, { 1, 2 } },
	{ "a value of 2^63 bytes, which is cut", PAIRS + 24, 1ULL << 63, { 2, 2 } },
};
/* clang-format on */

static void takes_what_can_be_read(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		FOR_EACH_CASE (c, cases) {
			is_map = i;
			begin();
			put_word(c->at, c->word);
			const struct event_sample *s = made_runtime_take();
			const struct event_code *e = s->labels ? told(s->labels) : NULL;
			size_t bytes = c->labels[i] * sizeof(struct runtime_label);
			CHECK_CASE(c, s->h.stack_end == STACK_END_ROOT && s->user_count == 3);
			CHECK_CASE(c, bytes ? e && e->lines_bytes == bytes : !s->labels);
			made_runtime_end();
		}
	}
}

static void tells_as_many_as_there_is_room_for(void **state)
{
	(void)state;
	is_map = false;
	begin();
	put_word(LABELS + 8, 12);
	for (unsigned n = 0; n < 12; n++)
		put_pair(n, "key", "value");
	const struct event_sample *s = made_runtime_take();
	const struct event_code *e = told(s->labels);
	CHECK(e && e->lines_bytes == RUNTIME_LABELS_MAX * sizeof(struct runtime_label));
	made_runtime_end();
}

static void survives_any_word(void **state)
{
	(void)state;
	static const uint64_t words[] = { MADE_RUNTIME_WORDS, LABELS, MAP, PAIRS };
	for (unsigned i = 0; i < 2; i++) {
		is_map = i;
		made_runtime_any_word(begin, words, ARRAY_COUNT(words));
	}
}

static void bears_memory_that_changes_while_it_is_read(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		is_map = i;
		begin();
		changes_while_it_is_read(made_runtime_take);
		made_runtime_end();
	}
}

TEST_MAIN(cmocka_unit_test(tells_labels_once), cmocka_unit_test(finds_the_goroutine),
	cmocka_unit_test(takes_what_can_be_read),
	cmocka_unit_test(tells_as_many_as_there_is_room_for), cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
