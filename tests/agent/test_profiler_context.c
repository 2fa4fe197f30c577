/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/thread_context.h as ordinary C: each way to the variable of a thread leads to its trace
 * and span, which are told once and are beside each sample; forged ones say nothing.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define VARIABLE (POINTER - 0x40) /* below the thread pointer */
#define SLOT PLACE(3)             /* in the library's data */
#define PAIR PLACE(4)
#define MODULES PLACE(5)
#define BLOCK PLACE(6)
#define RECORD (PLACE(7) + 4) /* at any byte */
#define MODULE 3

static const struct runtime_record none = { .kind = RUNTIME_NONE };
static struct thread_context_place *place;

static void begin(enum thread_context_form form)
{
	made_runtime_begin(&none);
	settings.has_contexts = 1;
	place = shim_value(&thread_contexts, 0);
	*place = (struct thread_context_place){ .process_start_ns = world.leader.start_boottime,
		.at = form == THREAD_CONTEXT_FIXED ? VARIABLE - POINTER : SLOT,
		.form = form };
	put_word(VARIABLE, RECORD);
	put_word(POINTER + THREAD_MODULES, MODULES);
	put_word(MODULES + MODULE * 16, BLOCK);
	put_word(BLOCK + 0x18, RECORD);
	put_bytes(RECORD, "0123456789abcdefSPAN-ID8\1\1");
	if (form == THREAD_CONTEXT_OFFSET)
		put_word(SLOT, VARIABLE - POINTER);
	if (form == THREAD_CONTEXT_PAIR) {
		put_word(SLOT, MODULE);
		put_word(SLOT + 8, 0x18);
	}
	if (form == THREAD_CONTEXT_DESCRIPTOR) {
		put_word(SLOT, TEXT); /* a function */
		put_word(SLOT + 8, PAIR);
		put_word(PAIR, MODULE);
		put_word(PAIR + 8, 0x18);
	}
}

static bool has_context(void)
{
	const struct event_sample *s = made_runtime_take();
	const struct event_code *e = told(s->labels);
	return s->labels && e && e->kind == RUNTIME_NONE && e->form == RUNTIME_FORM_CONTEXT &&
	       e->name_bytes == 0 && e->lines_bytes == THREAD_CONTEXT_BYTES &&
	       memcmp(e->data, "0123456789abcdefSPAN-ID8", 24) == 0;
}

static void shows_it_in_each_form(void **state)
{
	(void)state;
	for (unsigned form = THREAD_CONTEXT_FIXED; form <= THREAD_CONTEXT_DESCRIPTOR; form++) {
		begin(form);
		CHECK(has_context() && has_context());
		CHECK(counted()->codes == 1);
		put_bytes(RECORD + 16, "another!"); /* the next span */
		CHECK(!has_context() && counted()->codes == 2);
		made_runtime_end();
	}
	begin(THREAD_CONTEXT_DESCRIPTOR); /* a library that was there from the start */
	put_word(SLOT + 8, VARIABLE - POINTER);
	CHECK(has_context());
	made_runtime_end();
	begin(THREAD_CONTEXT_PAIR);
	place->is_musl = 1;
	put_word(MODULES + MODULE * 16, 0);
	put_word(MODULES + MODULE * 8, BLOCK);
	CHECK(has_context());
	made_runtime_end();
}

/* clang-format off */
static const struct {
	const char *name;
	enum thread_context_form form;
	uint64_t at, word;
} cases[] = {
	{ "no record", THREAD_CONTEXT_FIXED, VARIABLE, 0 },
	{ "a record that is not mapped", THREAD_CONTEXT_FIXED, VARIABLE, UNMAPPED },
	{ "one that ends behind the memory", THREAD_CONTEXT_FIXED, VARIABLE, DATA + DATA_BYTES - 27 },
	{ "one that is not valid", THREAD_CONTEXT_FIXED, RECORD + 20, 0 },
	{ "a thread without the library's block", THREAD_CONTEXT_PAIR, MODULES + MODULE * 16, UINT64_MAX },
	{ "one without blocks", THREAD_CONTEXT_PAIR, POINTER + THREAD_MODULES, 0 },
	{ "a library too many", THREAD_CONTEXT_PAIR, SLOT, UINT64_MAX / 2 },
	{ "a descriptor of nothing", THREAD_CONTEXT_DESCRIPTOR, SLOT + 8, UNMAPPED | 1ULL << 40 },
};
/* clang-format on */

static void says_nothing_of_forged_ones(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		begin(c->form);
		put_word(c->at, c->word);
		CHECK_CASE(c, made_runtime_take()->labels == 0 && counted()->codes == 0);
		made_runtime_end();
	}
	begin(THREAD_CONTEXT_FIXED); /* another process of that number */
	place->process_start_ns++;
	CHECK(made_runtime_take()->labels == 0);
	made_runtime_end();
	begin(THREAD_CONTEXT_FIXED);
	settings.has_contexts = 0;
	CHECK(made_runtime_take()->labels == 0);
	made_runtime_end();
}

static void begin_with_descriptor(void)
{
	begin(THREAD_CONTEXT_DESCRIPTOR);
}

static void survives_any_word(void **state)
{
	(void)state;
	static const uint64_t words[] = { MADE_RUNTIME_WORDS };
	made_runtime_any_word(begin_with_descriptor, words, ARRAY_COUNT(words));
}

static void bears_memory_that_changes_while_it_is_read(void **state)
{
	(void)state;
	begin_with_descriptor();
	changes_while_it_is_read(made_runtime_take);
	made_runtime_end();
}

TEST_MAIN(cmocka_unit_test(shows_it_in_each_form), cmocka_unit_test(says_nothing_of_forged_ones),
	cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
