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

TEST_MAIN(cmocka_unit_test(keeps_what_was_told),
	cmocka_unit_test(forgets_those_of_processes_that_ended),
	cmocka_unit_test(makes_room_for_new_ones))
