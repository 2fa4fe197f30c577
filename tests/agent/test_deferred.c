/* SPDX-License-Identifier: Apache-2.0 */
/* Made stacks over two files, of which the second becomes known late. */
#include "agent/sample/deferred.h"
#include "base/clock.h"
#include "test.h"

#define APP 0x550000000000 /* known from the beginning: inode 1 */
#define NEW 0x7f0000000000 /* inode 2 */
#define VDSO 0x7ffd10000000
#define SP 0x7ffc00001000
#define UPPER (SP + 0x80000)
#define APP_ID 12
#define NEW_ID 13

static struct {
	enum deferred_file state; /* of the new file */
	uint32_t emitted;
	struct event_sample *last;
	struct unwind_rule app;
	uint32_t frequency_hz, questions;
	uint64_t bytes_max;
	int64_t wait_ns;
} world;

static enum deferred_file find(void *ctx, const struct file_key *key, uint64_t offset,
	uint32_t *out_file_id, struct unwind_rule *out_rule)
{
	(void)ctx;
	bool is_new = key->inode == 2;
	world.questions++;
	*out_file_id = is_new ? NEW_ID : key->inode ? APP_ID : FRAME_FILE_VDSO;
	if (is_new && world.state != DEFERRED_KNOWN)
		return world.state;
	*out_rule = is_new || !key->inode
			    ? (struct unwind_rule){ UNWIND_CFA_SP, UNWIND_FP_SAME, 16, 0, -8 }
			    : world.app;
	if (offset >= 0x9000) /* main */
		*out_rule = (struct unwind_rule){ .cfa = UNWIND_CFA_STOP };
	return DEFERRED_KNOWN;
}

static void emit(void *ctx, const struct event_sample *s)
{
	(void)ctx;
	size_t len = sizeof(*s) + ((size_t)s->kernel_count + s->user_count) * 8;
	free(world.last);
	world.last = malloc(len);
	CHECK(world.last != NULL);
	memcpy(world.last, s, len);
	world.emitted++;
}

struct made {
	struct deferred *d;
	struct event_stack *stack;
	struct event_sample *sample;
};

/* A leaf in the new file at +0x123, called by APP+0x2001 (file offset 0x3000), called by its main.
 */
static void begin(struct made *m)
{
	struct err e = { 0 };
	const struct deferred_config c = { find, emit, NULL, world.frequency_hz, world.bytes_max,
		world.wait_ns };
	world.state = DEFERRED_NOT_YET;
	world.emitted = world.questions = 0;
	world.app = (struct unwind_rule){ UNWIND_CFA_SP, UNWIND_FP_SAME, 32, 0, -8 };
	CHECK_OK(deferred_new(&c, &m->d, &e), &e);
	m->stack = calloc(1, sizeof(*m->stack));
	m->sample = calloc(1, sizeof(*m->sample) + 4 * 8);
	CHECK(m->stack && m->sample);
	*m->stack = (struct event_stack){ .h = { .type = EVENT_STACK, .cpu = 3, .tid = 8 },
		.pc = NEW + 0x123,
		.sp = SP,
		.vdso = VDSO,
		.stack_start = SP + 0x100000,
		.parts = { { .at = SP }, { .at = UPPER } },
		.pc_is_exact = 1,
		.mapping_count = 3,
		.stack_bytes = 1024,
		.mappings = { { { 1, 5, 0 }, APP, APP + 0x10000, 0x1000 },
			{ { 2, 5, 0 }, NEW, NEW + 0x1000, 0 },
			{ { 0 }, VDSO, VDSO + 0x2000, 0x7777000 } } };
	uint64_t words[] = { 0, APP + 0x2001, 0, 0, 0, APP + 0x8800 };
	memcpy(m->stack->stack, words, sizeof(words));
	m->sample->h = m->stack->h;
	m->sample->h.type = EVENT_SAMPLE;
	m->sample->h.stack_end = STACK_END_NO_FILE;
	m->sample->h.flags = EVENT_FLAG_STACK;
	m->sample->kernel_count = 2;
	m->sample->user_count = 1;
	m->sample->frames[0] = 0xffffffff81000001;
	m->sample->frames[2] = NEW + 0x123;
}

static void end(struct made *m)
{
	deferred_free(m->d);
	free(m->stack);
	free(m->sample);
	free(world.last);
	world.last = NULL;
}

static void add(struct made *m)
{
	deferred_stack(m->d, m->stack);
	CHECK(deferred_add(m->d, m->sample, 1000));
}

static uint64_t user_frame(uint32_t i)
{
	CHECK(i < world.last->user_count);
	return world.last->frames[world.last->kernel_count + i];
}

static uint64_t frame(uint64_t id, uint64_t offset)
{
	return id << FRAME_FILE_SHIFT | offset;
}

static void finishes_when_the_file_is_known(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	add(&m);
	deferred_run(m.d, 2000, false);
	CHECK(world.emitted == 0 && metric_get(&deferred_metrics(m.d)->waiting) == 1);
	world.state = DEFERRED_KNOWN;
	deferred_run(m.d, 3000, false);
	CHECK(world.emitted == 1 && metric_get(&deferred_metrics(m.d)->whole) == 1);
	CHECK(world.last->h.stack_end == STACK_END_ROOT && world.last->user_count == 3);
	CHECK(world.last->kernel_count == 2 && world.last->frames[0] == 0xffffffff81000001);
	CHECK(user_frame(0) == frame(NEW_ID, 0x123));
	CHECK(user_frame(1) == frame(APP_ID, 0x3000));
	CHECK(user_frame(2) == frame(APP_ID, 0x97ff));
	CHECK(world.last->h.flags == 0 && world.last->notice.key.inode == 0);
	deferred_run(m.d, 4000, true);
	CHECK(world.emitted == 1);
	end(&m);
}

/* clang-format off */
static const struct {
	const char *name;
	uint64_t frame_bytes; /* of the second frame */
	uint32_t missing;     /* chunks of the upper part */
	enum stack_end want; uint32_t frames;
} large_frames[] = {
	{ "into the upper part", UPPER - SP + 256, 0, STACK_END_ROOT, 3 },
	{ "to its first word", UPPER - SP, 0, STACK_END_ROOT, 3 },
	{ "to before its first word", UPPER - SP - 8, 0, STACK_END_COPY, 2 },
	{ "into a page of it that is not there", UPPER - SP + 256, 1, STACK_END_NO_TABLE, 2 },
	{ "beyond it", UPPER - SP + STACK_PART_BYTES, 0, STACK_END_COPY, 2 },
};
/* clang-format on */

/* A frame that is larger than any copy: its caller is found at the upper end of the stack. */
static void passes_a_large_frame(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, large_frames) {
		struct made m;
		begin(&m);
		world.app = (struct unwind_rule){ .cfa = UNWIND_CFA_FRAME_POINTER };
		world.state = DEFERRED_KNOWN;
		m.stack->stack_bytes = STACK_PART_BYTES + 1024;
		m.stack->parts[1].missing = c->missing;
		m.stack->fp = SP + c->frame_bytes; /* at it the caller's, then the return address */
		const uint64_t words[] = { SP + c->frame_bytes + 512, APP + 0x8800 };
		uint64_t at = c->frame_bytes - (UPPER - SP);
		if (at <= 1024 - sizeof(words))
			memcpy(m.stack->stack + STACK_PART_BYTES + at, words, sizeof(words));
		add(&m);
		deferred_run(m.d, 2000, false);
		CHECK_CASE(c, world.emitted == 1 && world.last->h.stack_end == c->want);
		CHECK_CASE(c, world.last->user_count == c->frames);
		end(&m);
	}
}

/* Frames of a language runtime that the kernel had not come to yet: its gap is no frame to walk
 * from, and stays the last. */
static void keeps_the_gap_of_a_runtime(void **state)
{
	(void)state;
	const uint64_t gap = FRAME_RUNTIME | 0x1030bULL << FRAME_CODE_SHIFT | RUNTIME_GAP_OWNER;
	for (int is_known = 0; is_known < 2; is_known++) {
		struct made m;
		begin(&m);
		m.sample->user_count = 2;
		m.sample->frames[3] = gap;
		add(&m);
		world.state = is_known ? DEFERRED_KNOWN : DEFERRED_NEVER;
		deferred_run(m.d, 2000, false);
		CHECK(world.emitted == 1 && world.last->user_count == (is_known ? 4 : 2));
		CHECK(user_frame(0) == (is_known ? frame(NEW_ID, 0x123) : NEW + 0x123));
		if (is_known)
			CHECK(user_frame(2) == frame(APP_ID, 0x97ff));
		CHECK(user_frame(is_known ? 3 : 1) == gap);
		end(&m);
	}
}

static void says_that_a_table_had_no_room(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	add(&m);
	world.state = DEFERRED_NO_ROOM;
	deferred_run(m.d, 2000, false);
	CHECK(world.emitted == 1 && world.last->h.stack_end == STACK_END_NO_ROOM);
	CHECK(user_frame(0) == frame(NEW_ID, 0x123) && world.last->notice.key.inode == 0);
	end(&m);
}

static void gives_up_in_time_or_at_once(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct made m;
		world.wait_ns = way == 3 ? DEFERRED_RECORDING_WAIT_NS : 0;
		int64_t wait_ns = way == 3 ? DEFERRED_RECORDING_WAIT_NS : DEFERRED_WAIT_NS;
		begin(&m);
		add(&m);
		world.state = way == 2 ? DEFERRED_NEVER : DEFERRED_NOT_YET;
		if (way == 0 || way == 3)
			deferred_run(m.d, 999 + wait_ns, false);
		CHECK(world.emitted == 0);
		deferred_run(m.d, way == 0 || way == 3 ? 1000 + wait_ns : 2000, way == 1);
		CHECK(world.emitted == 1 && world.last->h.stack_end == STACK_END_NO_FILE);
		CHECK(world.last->user_count == 1 && user_frame(0) == NEW + 0x123);
		CHECK(world.last->notice.key.inode == 2 && world.last->notice.vma_start == NEW);
		CHECK(metric_get(&deferred_metrics(m.d)->expired) == 1);
		end(&m);
	}
	world.wait_ns = 0;
}

/* clang-format off */
static const struct {
	const char *name;
	struct unwind_rule app; /* of the second frame */
	uint64_t caller;        /* of the leaf */
	uint32_t stack_bytes, missing;
	enum stack_end want; uint32_t frames;
} ends[] = {
	{ "the stack ends", { UNWIND_CFA_SP, 0, 2000, 0, -8 }, APP + 0x2001, 1024, 0, STACK_END_READ_ERROR, 2 },
	{ "in the middle of a word", { UNWIND_CFA_SP, 0, 32, 0, -8 }, APP + 0x2001, 44, 0, STACK_END_READ_ERROR, 2 },
	{ "nothing was copied", { 0 }, APP + 0x2001, 0, 0, STACK_END_READ_ERROR, 1 },
	{ "over a page that is not there", { UNWIND_CFA_SP, 0, 5000, 0, -8 }, APP + 0x2001, 8192, 2, STACK_END_ZERO, 2 },
	{ "in a page that is not there", { UNWIND_CFA_SP, 0, 7000, 0, -8 }, APP + 0x2001, 8192, 8, STACK_END_READ_ERROR, 2 },
	{ "half of a word", { UNWIND_CFA_SP, 0, 4084, 0, -8 }, APP + 0x2001, 8192, 4, STACK_END_READ_ERROR, 2 },
	{ "deeper than the copy", { UNWIND_CFA_SP_WORDS, 0, STACK_PART_BYTES / 8, 0, 0 }, APP + 0x2001, STACK_PART_BYTES, 0, STACK_END_COPY, 2 },
	{ "below the copy", { UNWIND_CFA_SWITCH, 0, -20000, 0, -8 }, APP + 0x2001, 1024, 0, STACK_END_COPY, 2 },
	{ "Go's registers", { UNWIND_CFA_GO_MORESTACK, 0, 0, 0, 0 }, APP + 0x2001, 1024, 0, STACK_END_COPY, 2 },
	{ "by a pointer beyond it", { .cfa = UNWIND_CFA_FRAME_POINTER }, APP + 0x2001, 1024, 0, STACK_END_COPY, 2 },
	{ "no rule", { .cfa = UNWIND_CFA_UNSUPPORTED }, APP + 0x2001, 1024, 0, STACK_END_UNSUPPORTED, 2 },
	{ "no mapping", { 0 }, 0x1234, 1024, 0, STACK_END_NO_VMA, 1 },
	{ "through the vDSO", { 0 }, VDSO + 0x11, 1024, 0, STACK_END_ZERO, 2 },
	{ "an endless circle", { UNWIND_CFA_SP, 0, 0, 0, -8 }, APP + 0x2001, 1024, 0, STACK_END_LOOP, 2 },
};
/* clang-format on */

static void ends_as_a_walk_in_the_kernel(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, ends) {
		struct made m;
		begin(&m);
		world.app = c->app;
		world.state = DEFERRED_KNOWN;
		m.stack->stack_bytes = c->stack_bytes;
		m.stack->parts[0].missing = c->missing;
		m.stack->fp = SP + STACK_PART_BYTES; /* its caller's lies beyond */
		if (c->app.cfa == UNWIND_CFA_SWITCH)
			m.stack->fp = SP + 16384;
		memcpy(m.stack->stack + 8, &c->caller, 8);
		add(&m);
		deferred_run(m.d, 2000, false);
		CHECK_CASE(c, world.emitted == 1 && world.last->h.stack_end == c->want);
		CHECK_CASE(c, world.last->user_count == c->frames);
		if (c->caller == VDSO + 0x11)
			CHECK_CASE(c, user_frame(1) == frame(FRAME_FILE_VDSO, 0x10));
		end(&m);
	}
}

static void names_what_is_returned_to(void **state)
{
	(void)state;
	for (int is_early = 0; is_early < 2; is_early++) {
		struct made m;
		begin(&m);
		world.app = (struct unwind_rule){ .cfa = UNWIND_CFA_STOP,
			.cfa_off = is_early ? UNWIND_OFF_EARLY : 0 };
		world.state = DEFERRED_KNOWN;
		add(&m);
		deferred_run(m.d, 2000, false);
		CHECK(world.emitted == 1 && world.last->h.stack_end == STACK_END_ROOT);
		CHECK(user_frame(1) == frame(APP_ID, 0x3000 + (uint64_t)is_early));
		end(&m);
	}
}

/* What is not in a list that is full may be mapped, too. */
static void knows_a_list_that_was_cut(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	world.app = (struct unwind_rule){ UNWIND_CFA_SP, 0, 32, 0, -8 };
	world.state = DEFERRED_KNOWN;
	const uint64_t caller = 0x1234;
	memcpy(m.stack->stack + 8, &caller, 8);
	for (; m.stack->mapping_count < STACK_MAPPINGS_MAX; m.stack->mapping_count++)
		m.stack->mappings[m.stack->mapping_count] = m.stack->mappings[2];
	add(&m);
	deferred_run(m.d, 2000, false);
	CHECK(world.emitted == 1 && world.last->h.stack_end == STACK_END_COPY);
	end(&m);
}

static void takes_only_what_belongs_together(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	CHECK(!deferred_add(m.d, m.sample, 1000)); /* no stack came */
	CHECK(metric_get(&deferred_metrics(m.d)->refused) == 1);
	m.stack->h.tid++; /* another thread's */
	deferred_stack(m.d, m.stack);
	CHECK(!deferred_add(m.d, m.sample, 1000));
	m.stack->h.tid--;
	m.stack->h.cpu = 4;
	deferred_stack(m.d, m.stack);
	CHECK(!deferred_add(m.d, m.sample, 1000));
	m.stack->h.cpu = 1u << 20; /* no CPU */
	deferred_stack(m.d, m.stack);
	m.stack->h.cpu = 3;
	m.sample->h.flags = 0; /* an ordinary sample */
	CHECK(!deferred_add(m.d, m.sample, 1000));
	m.sample->h.flags = EVENT_FLAG_STACK;
	add(&m); /* and freed with what waits */
	end(&m);
}

/* clang-format off */
static const struct {
	const char *name;
	uint32_t frequency_hz, want;
	uint64_t bytes_max;
} rooms[] = {
	{ "at a low rate", 1, DEFERRED_LEAST, 0 },
	{ "on two CPUs by default", 2 * 19, 380, 0 },
	{ "at ten times the rate", 10 * 2 * 19, 3800, 0 },
	{ "by bytes", 190, 100, 600000 },
	{ "by bytes at any rate", 100000, UINT32_MAX, 0 },
};
/* clang-format on */

static void fill_random(struct event_stack *s, size_t from)
{
	uint32_t random = 1;
	for (size_t i = from; i < s->stack_bytes; i++) {
		random = random * 1664525 + 1013904223;
		s->stack[i] = (uint8_t)(random >> 24);
	}
}

static void has_room_by_rate_and_bytes(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, rooms) {
		struct made m;
		world.frequency_hz = c->frequency_hz;
		world.bytes_max = c->bytes_max;
		begin(&m);
		m.stack->stack_bytes = 8192;
		fill_random(m.stack, 64); /* behind what is walked */
		const struct deferred_metrics *metrics = deferred_metrics(m.d);
		add(&m);
		uint64_t each = metric_get(&metrics->bytes);
		deferred_run(m.d, 2000, true);
		CHECK_CASE(c, each > 0 && metric_get(&metrics->bytes) == 0);
		uint64_t want = c->want;
		if (c->bytes_max)
			want = c->bytes_max / each;
		else if (want == UINT32_MAX)
			want = DEFERRED_BYTES_MAX / each;
		CHECK_CASE(
			c, want <= MAX((uint64_t)c->frequency_hz * 10, (uint64_t)DEFERRED_LEAST));
		for (int round = 0; round < 2; round++) { /* what is emitted makes room */
			for (uint64_t i = 0; i < want; i++)
				add(&m);
			deferred_stack(m.d, m.stack);
			CHECK_CASE(c, !deferred_add(m.d, m.sample, 1000));
			deferred_run(m.d, 2000, true);
			CHECK_CASE(c, world.emitted == 1 + (uint64_t)(round + 1) * want);
		}
		CHECK_CASE(c, metric_get(&metrics->taken) == 1 + 2 * want);
		CHECK_CASE(c, metric_get(&metrics->refused) == 2);
		end(&m);
	}
	world.frequency_hz = 0;
	world.bytes_max = 0;
}

/* A deep stack of words that repeat: a fraction of it is kept, and it comes out as it was. */
static void keeps_stacks_compressed(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	world.app = (struct unwind_rule){ UNWIND_CFA_SP, UNWIND_FP_SAME, 1024, 0, -8 };
	m.stack->stack_bytes = STACK_PART_BYTES;
	for (uint64_t i = 0; i < STACK_PART_BYTES; i += 8) {
		uint64_t word = i % 1024 == 8 ? APP + 0x2001 : i % 64 == 0 ? SP + i : 0;
		memcpy(m.stack->stack + i, &word, 8);
	}
	for (int i = 0; i < 100; i++)
		add(&m);
	CHECK(metric_get(&deferred_metrics(m.d)->bytes) < 100 * STACK_PART_BYTES / 2);
	world.state = DEFERRED_KNOWN;
	deferred_run(m.d, 2000, false);
	CHECK(world.emitted == 100 && world.last->h.stack_end == STACK_END_COPY);
	CHECK(world.last->user_count == 1 + STACK_PART_BYTES / 1024);
	end(&m);
}

/* Thousands may wait for one file, and are not walked each time. */
static void walks_when_there_is_news(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	world.app = (struct unwind_rule){ UNWIND_CFA_SP, UNWIND_FP_SAME, 8, 0, -8 };
	uint64_t words[] = { APP + 0x2001, APP + 0x2001, APP + 0x2001, NEW + 0x200 };
	memcpy(m.stack->stack, words, sizeof(words));
	m.stack->pc = m.sample->frames[2] = APP + 0x123;
	world.state = DEFERRED_NOT_YET;
	add(&m);
	deferred_run(m.d, 2000, false);
	uint32_t first = world.questions;
	deferred_run(m.d, 3000, false);
	CHECK(first > 5 && world.questions == first + 1 && world.emitted == 0);
	world.state = DEFERRED_KNOWN;
	deferred_run(m.d, 4000, false);
	CHECK(world.emitted == 1 && world.last->user_count > 5);
	end(&m);
}

static void follows_the_host(void **state)
{
	(void)state;
	const uint64_t mib = 1 << 20;
	CHECK(deferred_bytes(0, 0) == 64 * mib && deferred_bytes(1024 * mib, 0) == 64 * mib);
	CHECK(deferred_bytes(16384 * mib, 0) == 128 * mib);
	CHECK(deferred_bytes(1024 * 1024 * mib, 0) == 512 * mib);
	CHECK(deferred_bytes(16384 * mib, 100 * mib) == 25 * mib);
}

/* A stack that goes on for ever is cut like in the kernel. */
static void cuts_what_is_too_deep(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	world.state = DEFERRED_KNOWN;
	world.app = (struct unwind_rule){ UNWIND_CFA_SP, UNWIND_FP_SAME, 8, 0, -8 };
	uint64_t caller = APP + 0x2001;
	m.stack->stack_bytes = STACK_PART_BYTES;
	for (size_t i = 0; i < STACK_PART_BYTES; i += 8)
		memcpy(m.stack->stack + i, &caller, 8);
	add(&m);
	deferred_run(m.d, 2000, false);
	CHECK(world.last->h.stack_end == STACK_END_DEPTH);
	CHECK(world.last->user_count == SAMPLE_USER_FRAMES_MAX);
	end(&m);
}

TEST_MAIN(cmocka_unit_test(finishes_when_the_file_is_known), cmocka_unit_test(passes_a_large_frame),
	cmocka_unit_test(keeps_the_gap_of_a_runtime),
	cmocka_unit_test(says_that_a_table_had_no_room),
	cmocka_unit_test(gives_up_in_time_or_at_once),
	cmocka_unit_test(ends_as_a_walk_in_the_kernel), cmocka_unit_test(names_what_is_returned_to),
	cmocka_unit_test(knows_a_list_that_was_cut),
	cmocka_unit_test(takes_only_what_belongs_together),
	cmocka_unit_test(has_room_by_rate_and_bytes), cmocka_unit_test(keeps_stacks_compressed),
	cmocka_unit_test(walks_when_there_is_news), cmocka_unit_test(follows_the_host),
	cmocka_unit_test(cuts_what_is_too_deep))
