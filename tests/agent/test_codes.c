/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/names/codes.h"
#include "test.h"

#include <stdlib.h>

#define NUMBER (FRAME_CODE_REAL | 0x1234)
#define PID 77

/* lines: one entry, line 10, of 8 units; then one more line of 8. */
static const char lines[] = "\x87\x12\xdf\x01\x02";

static void fill(struct event_code *e, uint32_t pid, uint64_t number, const char *name)
{
	*e = (struct event_code){
		.type = EVENT_CODE,
		.kind = RUNTIME_CPYTHON,
		.version = 3 << 8 | 11,
		.name_bytes = (uint16_t)strlen(name),
		.file_bytes = 8,
		.lines_bytes = sizeof(lines) - 1,
		.name_unit = 1,
		.file_unit = 2,
		.pid = pid,
		.first_line = 10,
		.process_start_ns = 1000 + pid,
		.code = number,
	};
	memcpy(e->data, name, strlen(name));
	memcpy(e->data + e->name_bytes, "\x42\x04.\0p\0y\0", 8);
	memcpy(e->data + e->name_bytes + 8, lines, sizeof(lines) - 1);
}

static void add(struct codes *c, uint32_t pid, uint64_t number, const char *name)
{
	struct event_code *e = malloc(sizeof(*e));
	CHECK(e);
	fill(e, pid, number, name);
	codes_add(c, e);
	free(e);
}

static struct codes *new_codes(size_t bytes_max)
{
	struct codes *c = NULL;
	struct err e = { 0 };
	CHECK_OK(codes_new(bytes_max, &c, &e), &e);
	return c;
}

static void keeps_what_was_told(void **state)
{
	(void)state;
	struct codes *c = new_codes(CODES_BYTES_MAX);
	add(c, PID, NUMBER, "Work.m\xe9thode");
	const struct code *x = codes_find(c, PID, NUMBER);
	CHECK(x && x->kind == RUNTIME_CPYTHON && x->first_line == 10);
	CHECK(str_eq(x->name, STR("Work.m\xc3\xa9thode")));
	CHECK(str_eq(x->file, STR("\xd1\x82.py")));
	CHECK(codes_line(x, 0) == 10 && codes_line(x, 8) == 11 && codes_line(x, 99) == 0);
	CHECK(codes_line(x, FRAME_POSITION_NONE) == 0);
	CHECK(!codes_missed(c));
	/* Another process' function may have the same number. */
	CHECK(!codes_find(c, PID + 1, NUMBER) && codes_missed(c) && !codes_missed(c));
	add(c, PID, NUMBER, "again");
	CHECK(str_eq(codes_find(c, PID, NUMBER)->name, STR("Work.m\xc3\xa9thode")));
	CHECK(metric_get(&codes_metrics(c)->known) == 1);
	codes_free(c);
}

static void forgets_those_of_processes_that_ended(void **state)
{
	(void)state;
	struct codes *c = new_codes(CODES_BYTES_MAX);
	add(c, PID, NUMBER, "one");
	add(c, PID + 1, NUMBER, "two");
	const struct event_header other = { .pid = PID, .process_start_ns = 5 };
	const struct event_header exit = { .pid = PID, .process_start_ns = 1000 + PID };
	codes_process_ended(c, &other); /* an earlier process had its pid */
	codes_process_ended(c, &exit);
	for (int i = 0; i < CODES_REST_EPOCHS; i++) {
		codes_next_epoch(c);
		CHECK(codes_find(c, PID, NUMBER));
	}
	codes_next_epoch(c);
	CHECK(!codes_find(c, PID, NUMBER) && codes_find(c, PID + 1, NUMBER));
	CHECK(metric_get(&codes_metrics(c)->forgotten) == 0);
	add(c, PID, NUMBER, "three"); /* in the place of the first */
	CHECK(str_eq(codes_find(c, PID, NUMBER)->name, STR("three")));
	codes_free(c);
}

static void makes_room_for_new_ones(void **state)
{
	(void)state;
	struct codes *c = new_codes(64 << 10);
	for (uint32_t i = 0; i < 100; i++)
		add(c, PID, NUMBER + i, "old");
	for (int i = 0; i < 3; i++)
		codes_next_epoch(c);
	for (uint32_t i = 0; i < 2000; i++) {
		add(c, PID, NUMBER + 1000 + i, "new");
		CHECK(codes_find(c, PID, NUMBER + 1000 + i));
		CHECK(metric_get(&codes_metrics(c)->bytes) <= 64 << 10);
	}
	CHECK(!codes_find(c, PID, NUMBER));
	CHECK(metric_get(&codes_metrics(c)->forgotten) > 1000);
	codes_free(c);
}

/* ---- what a program may have forged ---- */

/* Takes an event of exactly these bytes, so that a sanitizer sees one that is read behind its end.
 */
static void add_exact(struct codes *c, const struct event_code *e)
{
	size_t size =
		offsetof(struct event_code, data) + e->name_bytes + e->file_bytes + e->lines_bytes;
	struct event_code *exact = malloc(size);
	CHECK(exact);
	memcpy(exact, e, size);
	codes_add(c, exact);
	free(exact);
}

/* clang-format off */
static const struct {
	const char *name;
	uint8_t name_unit, byte; uint16_t name_bytes, file_bytes, lines_bytes;
	size_t kept; /* of the name, as UTF-8 */
} forged_cases[] = {
	{ "nothing", 1, 0, 0, 0, 0, 0 },
	{ "characters of no bytes", 0, 'x', 8, 8, 8, 0 },
	{ "characters of 3 bytes", 3, 'x', 9, 8, 8, 0 },
	{ "characters of 7 bytes", 7, 'x', 14, 8, 8, 0 },
	{ "characters of 255 bytes", 255, 'x', 255, 8, 8, 0 },
	{ "half a character", 2, 1, 1, 1, 1, 0 },
	{ "two characters and a half", 2, 1, 5, 3, 1, 4 },
	{ "no characters", 4, 0xff, 16, 16, 16, 12 },
	{ "control characters", 1, 27, 16, 16, 16, 16 },
	{ "all that there is room for", 1, 0xff, CODE_NAME_BYTES_MAX, CODE_FILE_BYTES_MAX,
		CODE_LINES_BYTES_MAX, 2 * CODE_NAME_BYTES_MAX },
	{ "half characters, all that there is room for", 2, 0xd8, CODE_NAME_BYTES_MAX,
		CODE_FILE_BYTES_MAX, CODE_LINES_BYTES_MAX, CODE_NAME_BYTES_MAX / 2 * 3 },
};
/* clang-format on */

static void takes_forged_texts(void **state)
{
	(void)state;
	struct event_code *e = malloc(sizeof(*e));
	CHECK(e);
	FOR_EACH_CASE (f, forged_cases) {
		struct codes *c = new_codes(CODES_BYTES_MAX);
		fill(e, PID, NUMBER, "");
		memset(e->data, f->byte, sizeof(e->data));
		e->name_unit = e->file_unit = f->name_unit;
		e->name_bytes = f->name_bytes;
		e->file_bytes = f->file_bytes;
		e->lines_bytes = f->lines_bytes;
		add_exact(c, e);
		const struct code *x = codes_find(c, PID, NUMBER);
		CHECK_CASE(f, x && x->name.len == f->kept && x->lines.len == f->lines_bytes);
		for (size_t i = 0; i < x->name.len; i++)
			CHECK_CASE(f, (uint8_t)x->name.p[i] >= 0x20);
		CHECK_CASE(f, metric_get(&codes_metrics(c)->refused) == 0);
		codes_free(c);
	}
	free(e);
}

/* Tables of any bytes: each position has a line or none, and is found in bounded time. */
static void reads_forged_lines(void **state)
{
	(void)state;
	uint32_t seed = 1;
	struct event_code *e = malloc(sizeof(*e));
	CHECK(e);
	for (uint32_t n = 0; n < 600; n++) {
		struct codes *c = new_codes(CODES_BYTES_MAX);
		fill(e, PID, NUMBER, "");
		e->version = (uint16_t)(3 << 8 | (6 + n % 10));
		e->kind = n % 50 == 0 ? UINT16_MAX : RUNTIME_CPYTHON;
		e->first_line = n % 3 ? 10 : UINT32_MAX;
		e->file_bytes = 0;
		e->lines_bytes = (uint16_t)(n % 7 ? n : CODE_LINES_BYTES_MAX);
		for (size_t i = 0; i < e->lines_bytes; i++) {
			seed = seed * 1664525u + 1013904223u;
			e->data[i] = n % 5 ? (uint8_t)(seed >> 24) : 0xff;
		}
		add_exact(c, e);
		const struct code *x = codes_find(c, PID, NUMBER);
		CHECK(x && codes_line(x, FRAME_POSITION_NONE) == 0);
		for (uint64_t at = 0; at < FRAME_POSITION_NONE; at += 1 + at / 2)
			(void)codes_line(x, at);
		CHECK(e->kind == RUNTIME_CPYTHON || codes_line(x, 0) == 0);
		codes_free(c);
	}
	free(e);
}

/* ---- room ---- */

/* A process with few functions keeps them, used or not. */
static void takes_room_from_those_that_have_most(void **state)
{
	(void)state;
	struct codes *c = new_codes(64 << 10);
	for (uint32_t i = 0; i < 20; i++)
		add(c, PID + i % 2, NUMBER + i, "small");
	for (int i = 0; i < 100; i++)
		codes_next_epoch(c);
	for (uint32_t i = 0; i < 5000; i++) {
		add(c, PID + 2, NUMBER + i, "many");
		CHECK(codes_find(c, PID + 2, NUMBER + i));
		CHECK(metric_get(&codes_metrics(c)->bytes) <= 64 << 10);
	}
	for (uint32_t i = 0; i < 20; i++)
		CHECK(codes_find(c, PID + i % 2, NUMBER + i));
	CHECK(metric_get(&codes_metrics(c)->forgotten) > 4000);
	codes_free(c);
}

/* Nor does the count let one drive out another. */
static void counts_those_that_are_small(void **state)
{
	(void)state;
	struct codes *c = new_codes((size_t)1 << 30);
	add(c, PID, NUMBER, "small");
	codes_next_epoch(c);
	for (uint32_t i = 0; i < CODES_MAX + 10; i++)
		add(c, PID + 1, NUMBER + i, "");
	CHECK(codes_find(c, PID, NUMBER));
	CHECK(metric_get(&codes_metrics(c)->known) <= CODES_MAX);
	CHECK(metric_get(&codes_metrics(c)->forgotten) >= CODES_MAX / 8);
	codes_free(c);
}

static void names_methods_and_stubs_of_hotspot(void **state)
{
	(void)state;
	static const char method[] = "a/B.c"
				     "B.java"
				     "\xff\x00\x18\x21\x00"; /* 12, then 13 */
	struct codes *c = new_codes(CODES_BYTES_MAX);
	struct event_code *e = calloc(1, sizeof(*e));
	CHECK(e);
	*e = (struct event_code){ .type = EVENT_CODE,
		.kind = RUNTIME_HOTSPOT,
		.version = 17 << 8,
		.name_bytes = 5,
		.file_bytes = 6,
		.lines_bytes = 5,
		.name_unit = 1,
		.file_unit = 1,
		.pid = PID,
		.code = NUMBER };
	memcpy(e->data, method, sizeof(method) - 1);
	add_exact(c, e);
	const struct code *x = codes_find(c, PID, NUMBER);
	CHECK(x && str_eq(x->name, STR("a.B.c")) && str_eq(x->file, STR("B.java")));
	CHECK(x->first_line == 12 && codes_line(x, 3) == 12 && codes_line(x, 4) == 13);
	CHECK(codes_line(x, FRAME_POSITION_NONE) == 0);
	e->code = NUMBER + 1;
	e->name_unit = 0;
	e->file_bytes = e->lines_bytes = 0;
	memcpy(e->data, "stub\0", 5);
	add_exact(c, e);
	x = codes_find(c, PID, NUMBER + 1);
	CHECK(x && str_eq(x->name, STR("stub")) && x->first_line == 0);
	free(e);
	codes_free(c);
}

TEST_MAIN(cmocka_unit_test(keeps_what_was_told),
	cmocka_unit_test(names_methods_and_stubs_of_hotspot),
	cmocka_unit_test(forgets_those_of_processes_that_ended),
	cmocka_unit_test(makes_room_for_new_ones), cmocka_unit_test(takes_forged_texts),
	cmocka_unit_test(reads_forged_lines),
	cmocka_unit_test(takes_room_from_those_that_have_most),
	cmocka_unit_test(counts_those_that_are_small))
