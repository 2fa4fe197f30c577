/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/sample_labels.h"
#include "test.h"

static bool has(const struct profile *p, uint32_t set, const char *name, const char *value)
{
	const struct profile_labels *s = &p->label_sets.v[set];
	for (uint32_t i = s->first; i < s->first + s->count; i++) {
		if (str_eq(profile_str(p, p->labels.v[i].name), str_of(name)))
			return str_eq(profile_str(p, p->labels.v[i].value), str_of(value));
	}
	return false;
}

static void labels_threads_and_processes(void **state)
{
	(void)state;
	struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	struct relabel_label labels[] = { { STR("comm"), STR("worker") }, { STR("env"), STR("") } };
	const struct process x = { .pid = 7, .labels = labels, .label_count = 2 };
	uint32_t set = 0;
	CHECK(sample_labels_of_process(&p, &x, &set) == OK);
	CHECK(has(&p, set, "comm", "worker") && p.label_sets.v[set].count == 1);

	struct event_sample s = {
		.h = { .pid = 7, .tid = 9, .cpu = 3, .comm = "0123456789abcde" }
	};
	struct sample_labels l = { 0 };
	CHECK(sample_labels_own(&l, &p, &x, &s, STR("sleeping"), &set) == OK);
	CHECK(has(&p, set, "pid", "7") && has(&p, set, "thread_id", "9") &&
		has(&p, set, "cpu", "3"));
	CHECK(has(&p, set, "thread_name", "0123456789abcde") && has(&p, set, "state", "sleeping"));
	l = (struct sample_labels){ .no_thread_id = true, .no_thread_name = true, .no_cpu = true };
	CHECK(sample_labels_own(&l, &p, &x, &s, STR(""), &set) == OK);
	CHECK(has(&p, set, "pid", "7") && p.label_sets.v[set].count == 1);
	profile_deinit(&p);
}

/* A thread's trace and span, by their bytes; an id of zeros is none. */
static void labels_spans(void **state)
{
	(void)state;
	struct profile p;
	struct codes *codes;
	struct err e;
	struct event_code told = { .type = EVENT_CODE,
		.form = RUNTIME_FORM_CONTEXT,
		.name_unit = RUNTIME_TEXT_UTF8,
		.file_unit = RUNTIME_TEXT_UTF8,
		.pid = 7,
		.code = FRAME_CODE_REAL | 5,
		.lines_bytes = THREAD_CONTEXT_BYTES };
	memcpy(told.data + 16, "\x01\x02\x03\x04\x05\x06\xfe\xff", 8);
	CHECK(profile_init(&p, 1 << 20) == OK);
	CHECK_OK(codes_new(CODES_BYTES_MAX, &codes, &e), &e);
	codes_add(codes, &told);
	told.code++;
	told.data[15] = 0xa0;
	codes_add(codes, &told);
	told.code++;
	told.lines_bytes--;
	codes_add(codes, &told);
	const struct process x = { .pid = 7 };
	struct event_sample s = { .h = { .pid = 7, .tid = 9 }, .labels = FRAME_CODE_REAL | 5 };
	struct sample_labels l = { .codes = codes };
	uint32_t set = 0;
	CHECK(sample_labels_own(&l, &p, &x, &s, STR(""), &set) == OK);
	CHECK(has(&p, set, "span_id", "010203040506feff") && !has(&p, set, "trace_id", ""));
	s.labels++;
	CHECK(sample_labels_own(&l, &p, &x, &s, STR(""), &set) == OK);
	CHECK(has(&p, set, "trace_id", "000000000000000000000000000000a0"));
	s.labels++; /* cut */
	CHECK(sample_labels_own(&l, &p, &x, &s, STR(""), &set) == OK);
	CHECK(p.label_sets.v[set].count == 3);
	codes_free(codes);
	profile_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(labels_threads_and_processes), cmocka_unit_test(labels_spans))
