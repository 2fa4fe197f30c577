/* SPDX-License-Identifier: Apache-2.0 */
/* Schema v1: samples, the question, the stacks; against parca_maker.py. */
#include "arrow/arrow.h"
#include "made.h"

#include "parca/parca.h"

#define MEMORY ((size_t)64 << 20)

/* What is asked for, as the sender reads it: how many ids, each of 16 bytes. */
static uint64_t read_question(const struct buf *question)
{
	struct arrow_stream s;
	struct arrow_array batch;
	bool more;
	struct err e;
	CHECK_OK(arrow_stream_open(&s, buf_view(question), MEMORY, &e), &e);
	CHECK_STR(arrow_stream_metadata(&s, STR("parca_write_schema_version")), "v1");
	CHECK_OK(arrow_stream_next(&s, &batch, &more, &e), &e);
	const struct arrow_array *ids = arrow_child(&batch, STR("stacktrace_id"));
	CHECK(more && batch.child_count == 1 && ids && ids->field->type == ARROW_BINARY);
	uint64_t count = batch.length;
	for (uint64_t i = 0; i < count; i++) {
		struct arrow_value v = arrow_at(ids, i);
		CHECK(v.array && arrow_bytes(&v).len == 16);
	}
	CHECK_OK(arrow_stream_next(&s, &batch, &more, &e), &e);
	CHECK(!more);
	arrow_stream_close(&s);
	return count;
}

static void is_decoded(const struct made *m)
{
	struct profile p;
	struct parca_session *s;
	struct parca_arrow_stats stats = { 0 };
	struct buf question;
	struct err e = { 0 };
	bool any;
	buf_init(&question, MEMORY);
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK(parca_session_new(MEMORY, &p, &stats, &s) == OK);
	CHECK_OK(parca_session_samples(s, buf_view(&m->arrow), &e), &e);
	CHECK(p.samples.len == 0);
	CHECK_OK(parca_session_ask(s, &question, &any, &e), &e);
	CHECK(any && read_question(&question) == parca_session_stack_count(s) - 1);
	CHECK_OK(parca_session_stacks(s, buf_view(&m->stacks), &e), &e);
	CHECK_OK(parca_session_finish(s, &e), &e);
	CHECK((stats.no_stack > 0) == (strcmp(m->name, "v1_gaps") == 0));
	made_check(m, &p);
	parca_session_free(s);
	profile_deinit(&p);
	buf_deinit(&question);
}

static void decodes_samples_and_stacks(void **state)
{
	(void)state;
	assert_int_equal(made_each("v1_", is_decoded), 2);
}

/* The stacks of one session are known in the next: it asks for nothing, and gets the same. */
static void knows(const struct made *m)
{
	struct profile p[2];
	struct parca_stacks *known;
	struct parca_arrow_stats stats = { 0 };
	struct buf question;
	struct err e = { 0 };
	bool any;
	buf_init(&question, MEMORY);
	CHECK(parca_stacks_new(MEMORY, &known) == OK);
	for (int round = 0; round < 2; round++) {
		struct parca_session *s;
		uint32_t stack;
		CHECK(profile_init(&p[round], MEMORY) == OK);
		CHECK(parca_session_new(MEMORY, &p[round], &stats, &s) == OK);
		CHECK_OK(parca_session_samples(s, buf_view(&m->arrow), &e), &e);
		for (uint32_t i = 1; i < parca_session_stack_count(s); i++) {
			struct str id = parca_session_stack_id(s, i);
			if (parca_stacks_find(known, hash128(id.p, id.len), &p[round], &stack))
				parca_session_set_stack(s, i, stack);
		}
		CHECK_OK(parca_session_ask(s, &question, &any, &e), &e);
		CHECK(any == (round == 0));
		if (any)
			CHECK_OK(parca_session_stacks(s, buf_view(&m->stacks), &e), &e);
		for (uint32_t i = 1; i < parca_session_stack_count(s); i++) {
			struct str id = parca_session_stack_id(s, i);
			if (parca_session_stack(s, i, &stack))
				parca_stacks_add(known, hash128(id.p, id.len), &p[round], stack);
		}
		CHECK_OK(parca_session_finish(s, &e), &e);
		made_check(m, &p[round]);
		parca_session_free(s);
		profile_deinit(&p[round]);
	}
	parca_stacks_free(known);
	buf_deinit(&question);
}

static void asks_once(void **state)
{
	(void)state;
	CHECK(made_each("v1_whole", knows) == 1);
}

static void is_refused(const struct made *m)
{
	struct profile p;
	struct parca_session *s;
	struct parca_arrow_stats stats = { 0 };
	struct err e = { 0 };
	CHECK(profile_init(&p, MEMORY) == OK);
	/* The messages in the other order, and one of the other schema. */
	CHECK(parca_session_new(MEMORY, &p, &stats, &s) == OK);
	CHECK(parca_session_samples(s, buf_view(&m->stacks), &e) == E_INVALID);
	CHECK(strstr(e.text, "column value is missing"));
	parca_session_free(s);
	CHECK(parca_session_new(MEMORY, &p, &stats, &s) == OK);
	CHECK_OK(parca_session_samples(s, buf_view(&m->arrow), &e), &e);
	CHECK(parca_session_stacks(s, buf_view(&m->arrow), &e) == E_INVALID);
	CHECK(strstr(e.text, "column locations is missing"));
	CHECK(parca_session_stacks(s, STR("nonsense"), &e) == E_INVALID);
	parca_session_free(s);
	CHECK(p.samples.len == 0);
	profile_deinit(&p);
}

static void refuses_another_order(void **state)
{
	(void)state;
	CHECK(made_each("v1_whole", is_refused) == 1);
}

static void refuses_the_other_schema(const struct made *m)
{
	struct profile p;
	struct parca_session *s;
	struct parca_arrow_stats stats = { 0 };
	struct err e = { 0 };
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK(parca_session_new(MEMORY, &p, &stats, &s) == OK);
	CHECK(parca_session_samples(s, buf_view(&m->arrow), &e) == E_INVALID);
	CHECK(strstr(e.text, "WriteArrow"));
	parca_session_free(s);
	profile_deinit(&p);
}

static void refuses_v2(void **state)
{
	(void)state;
	CHECK(made_each("v2_agent", refuses_the_other_schema) == 1);
}

TEST_MAIN(cmocka_unit_test(decodes_samples_and_stacks), cmocka_unit_test(asks_once),
	cmocka_unit_test(refuses_another_order), cmocka_unit_test(refuses_v2))
