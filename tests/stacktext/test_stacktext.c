/* SPDX-License-Identifier: Apache-2.0 */
#include "stacktext/stacktext.h"
#include "test.h"

#define TIME_NS ((int64_t)1700000000 * 1000000000)

/* "type{labels} root@file;…;leaf value", a line each. */
static void dump(const struct profile *p, struct buf *out)
{
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_stack *stack = &p->stacks.v[s->stack];
		const struct profile_labels *set = &p->label_sets.v[s->own];
		profile_type_write(out, p, &p->types.v[p->heads.v[s->head].type]);
		for (uint32_t k = 0; k < set->count; k++) {
			const struct profile_label *l = &p->labels.v[set->first + k];
			buf_printf(out, "%s%.*s=%.*s", k ? "," : " ",
				STR_ARG(profile_str(p, l->name)),
				STR_ARG(profile_str(p, l->value)));
		}
		for (uint32_t k = stack->count; k-- > 0;) {
			const struct profile_location *l =
				&p->locations.v[p->stack_locations.v[stack->first + k]];
			const struct profile_function *f =
				&p->functions.v[p->lines.v[l->line_first].function];
			struct str file = profile_str(p, p->mappings.v[l->mapping].filename);
			buf_printf(out, "%s%.*s%s%.*s", k + 1 == stack->count ? " " : ";",
				STR_ARG(profile_str(p, f->name)), file.len ? "@" : "",
				STR_ARG(file));
		}
		buf_printf(out, " %lld\n", (long long)s->value);
	}
}

static void check(const char *text, enum stacktext_format f, const char *want, uint64_t skipped,
	uint64_t first_skipped)
{
	CLEANUP(profile_deinit) struct profile p = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	struct stacktext_stats stats;
	struct err e;
	buf_init(&out, 1 << 20);
	CHECK(stacktext_guess(str_of(text)) == f);
	CHECK(profile_init(&p, 1 << 20) == OK);
	CHECK_OK(stacktext_decode(str_of(text), f, TIME_NS, &p, &stats, &e), &e);
	CHECK_OK(profile_validate(&p, &e), &e);
	dump(&p, &out);
	CHECK_STR(buf_view(&out), want);
	assert_int_equal(stats.skipped, skipped);
	assert_int_equal(stats.first_skipped, first_skipped);
	CHECK(p.samples.v[0].time_ns == TIME_NS);
}

static void reads_folded_stacks(void **state)
{
	(void)state;
#define FOLDED "folded:samples:count:samples:count:delta"
	check("# a comment\n"
	      "main;f;g 12\n"
	      "\n"
	      "main;std::map<a, b>::at (int) 3.6\r\n"
	      "main;nothing 0\n"
	      "no value\n"
	      "alone 7\n"
	      "main 99999999999999999999\n",
		STACKTEXT_FOLDED,
		FOLDED " main;f;g 12\n" FOLDED " main;std::map<a, b>::at (int) 4\n" FOLDED
		       " alone 7\n",
		2, 6);
	/* With the unit that firn writes above its own; one that is none of these is a comment. */
	check("# unit: nanoseconds\nmain;f 12\n", STACKTEXT_FOLDED,
		"folded:time:nanoseconds:samples:count:delta main;f 12\n", 0, 0);
	check("# unit: bytes\n# unit: furlongs\nmain 3\n", STACKTEXT_FOLDED,
		"folded:space:bytes:samples:count:delta main 3\n", 0, 0);
	check("# unit: count\nmain 3\n", STACKTEXT_FOLDED, FOLDED " main 3\n", 0, 0);
}

static void reads_perf_script(void **state)
{
	(void)state;
#define CPU "perf:cpu:nanoseconds:samples:count:delta"
	check("# captured on: x\n"
	      "Web Content  1234/1235 [000]  12.345678:     250000 cpu-clock:pppH: \n"
	      "\tffffffff8104f45a native_write+0x1a ([kernel.kallsyms])\n"
	      "\t    55d0c0ffee operator new (unsigned long)+0x1f (/usr/bin/x (deleted))\n"
	      "\t    55d0c0ff00 inner (inlined)\n"
	      "\t          7f00 [unknown] ([unknown])\n"
	      "  x.c:12\n"
	      "\n"
	      "swapper     0 [001]     1.5: cycles: \n"
	      "\tffffffff81000000 idle ([kernel.kallsyms])\n"
	      "ls  5  1.6:  3 sched:sched_switch:   7ff00 main+0x3 (/bin/ls)\n"
	      "what is this\n",
		STACKTEXT_PERF,
		CPU " comm=Web Content,pid=1234,tid=1235 [unknown];inner;operator new (unsigned "
		    "long)@/usr/bin/x (deleted);native_write@[kernel.kallsyms] 250000\n"
		    "perf:samples:count:samples:count:delta comm=swapper,pid=0 "
		    "idle@[kernel.kallsyms] 1\n"
		    "perf:sched_sched_switch:count:samples:count:delta comm=ls,pid=5 "
		    "main@/bin/ls 3\n",
		2, 7);
}

static void refuses_what_is_neither(void **state)
{
	(void)state;
	struct stacktext_stats stats;
	struct err e;
	CLEANUP(profile_deinit) struct profile p = { 0 };
	CHECK(profile_init(&p, 64 << 20) == OK);
	CHECK(stacktext_guess(STR("")) == STACKTEXT_NONE);
	CHECK(stacktext_guess(STR("\x0a\x04\x08\x01")) == STACKTEXT_NONE);
	CHECK(stacktext_decode(STR("# firn\nA page.\n"), STACKTEXT_FOLDED, 0, &p, &stats, &e) ==
		E_INVALID);
	CHECK(strstr(e.text, "there is no stack in it"));
	CHECK(stacktext_decode(STR("x"), STACKTEXT_NONE, 0, &p, &stats, &e) == E_INVALID);
	/* Limits: the frames of a stack, and the events of perf's. */
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 64 << 20);
	buf_cstr(&text, "good 1\n");
	for (uint32_t i = 0; i <= STACKTEXT_FRAMES_MAX; i++)
		buf_cstr(&text, "f;");
	buf_cstr(&text, "f 1\n");
	CHECK(stacktext_decode(buf_view(&text), STACKTEXT_FOLDED, 0, &p, &stats, &e) == E_LIMIT);
	CHECK(strstr(e.text, "line 2: a stack of more than") && p.samples.len == 0);
	buf_clear(&text);
	for (int i = 0; i < 300; i++)
		buf_printf(&text, "x 1 1.0: 5 e%d:\n\t1 f (a)\n", i);
	CHECK(stacktext_decode(buf_view(&text), STACKTEXT_PERF, 0, &p, &stats, &e) == E_LIMIT);
	CHECK(strstr(e.text, "events") && p.samples.len == 0);
}

TEST_MAIN(cmocka_unit_test(reads_folded_stacks), cmocka_unit_test(reads_perf_script),
	cmocka_unit_test(refuses_what_is_neither))
