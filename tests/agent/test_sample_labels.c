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

TEST_MAIN(cmocka_unit_test(labels_threads_and_processes))
