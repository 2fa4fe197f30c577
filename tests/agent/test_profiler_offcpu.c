/* SPDX-License-Identifier: Apache-2.0 */
/* agent/bpf/offcpu.h as ordinary C: who is sampled when he leaves his CPU, and what is told. */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
/* clang-format on */

static const struct world_row rows[] = { { 0, { UNWIND_CFA_NONE, 0, 0, 0, 0 } },
	{ 0x100, { UNWIND_CFA_SP, UNWIND_FP_SAME, 16, 0, -8 } },
	{ 0x200, { .cfa = UNWIND_CFA_STOP } } };

/* The task of the world in a system call, called by CALLER; every switch is sampled. */
static void begin(void)
{
	begin_with(rows, ARRAY_COUNT(rows));
	world.regs = (struct x86_regs){ .ip = CALLEE, .sp = SP0, .cs = 0x33, .orig_ax = 0 };
	world.stack[(SP0 + 8 - WORLD_STACK_BASE) / 8] = CALLER + 1;
	shim.kernel_stack[0] = 0xffffffff81000010;
	shim.kernel_stack_count = 1;
	world.task.__state = KERNEL_TASK_INTERRUPTIBLE;
	settings.off_cpu_last = UINT32_MAX;
	settings.seen_enabled = 0;
	settings.off_cpu_enabled = 1;
}

static void switch_to(struct task_struct *next, uint64_t is_preempted)
{
	struct bpf_raw_tracepoint_args *ctx = calloc(1, sizeof(*ctx) + 3 * sizeof(ctx->args[0]));
	assert_true(ctx != NULL);
	ctx->args[0] = is_preempted;
	ctx->args[1] = (uintptr_t)shim.task;
	ctx->args[2] = (uintptr_t)next;
	(void)thread_switch(ctx);
	free(ctx);
}

static const void *last_event(void)
{
	assert_true(shim.event_count > 0);
	return shim.events[shim.event_count - 1];
}

static void samples_who_leaves_and_tells_of_the_return(void **state)
{
	(void)state;
	begin();
	shim.clock_step_ns = 5;
	switch_to(&world.parent, 0); /* pid 0: idle */
	assert_int_equal(shim.event_count, 1);
	const struct event_sample *s = last_event();
	assert_int_equal(s->h.type, EVENT_SAMPLE);
	assert_int_equal(event_state(&s->h), THREAD_SLEEPING);
	assert_int_equal(s->h.tid, WORLD_PID);
	assert_int_equal(s->h.stack_end, STACK_END_ROOT);
	assert_int_equal(s->kernel_count, 1);
	assert_int_equal(s->user_count, 2);
	assert_int_equal(user_frame(s, 0), frame_at(0x120));
	assert_int_equal(user_frame(s, 1), frame_at(0x240));
	uint64_t left_ns = s->h.time_ns;
	assert_int_equal(shim.left_count, 1);
	uint64_t run_ns = counted()->run_ns; /* of what it costs, for the limit on that */
	assert_true(run_ns > 0);

	/* Another thread leaves, not sampled; the first comes back. */
	settings.off_cpu_last = 0;
	shim.random = 1;
	shim.pid_tgid++;
	switch_to(&world.task, 0);
	const struct event_resume *r = last_event();
	assert_int_equal(shim.event_count, 2);
	assert_int_equal(r->type, EVENT_RESUME);
	assert_int_equal(r->tid, WORLD_PID);
	assert_int_equal(r->left_ns, left_ns);
	assert_int_equal(shim.left_count, 0);
	assert_int_equal(counted()->off_cpu, 1);
	assert_int_equal(counted()->resumed, 1);
	assert_int_equal(counted()->run_ns, run_ns);
	check_conservation();
	/* And is not told of again. */
	switch_to(&world.task, 0);
	assert_int_equal(shim.event_count, 2);
	world_end();
}

static void tells_states_apart(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t kernel_state;
		uint64_t is_preempted;
		enum thread_state want;
	} cases[] = {
		{ "yields", 0, 0, THREAD_RUNNABLE },
		{ "preempted", 0, 1, THREAD_RUNNABLE },
		{ "preempted on its way to sleep", 1, 1, THREAD_RUNNABLE },
		{ "woken on its way to sleep", 0x200, 0, THREAD_RUNNABLE },
		{ "sleeps", 1, 0, THREAD_SLEEPING },
		{ "blocks", 2, 0, THREAD_BLOCKED },
		{ "killable", 0x102, 0, THREAD_BLOCKED },
		{ "stopped", 4, 0, THREAD_OFF_CPU },
		{ "traced", 8, 0, THREAD_OFF_CPU },
		{ "frozen", 0x8000, 0, THREAD_OFF_CPU },
	};
	for (int new = 0; new < 2; new ++) {
		FOR_EACH_CASE (c, cases) {
			begin();
			shim.has_new_state = new;
			/* Before 5.14 it is a long, which has what lies behind it here. */
			const long kernel_state = c->kernel_state;
			memcpy(&world.task.__state, &kernel_state, sizeof(kernel_state));
			switch_to(&world.parent, c->is_preempted);
			CHECK_CASE(c, shim.event_count == 1);
			const struct event_sample *s = last_event();
			CHECK_CASE(c, event_state(&s->h) == c->want);
			world_end();
		}
	}
}

static void leaves_out_who_does_not_count(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t kernel_state, flags, random, last, only_pid;
		uint64_t tid;
		bool is_stopped;
	} cases[] = {
		{ "idle", 0, 0, 0, UINT32_MAX, 0, 0, false },
		{ "ended", KERNEL_TASK_DEAD, 0, 0, UINT32_MAX, 0, WORLD_PID, false },
		{ "kernel thread", 1, KERNEL_PF_KTHREAD, 0, UINT32_MAX, 0, WORLD_PID, false },
		{ "not chosen", 1, 0, 5, 4, 0, WORLD_PID, false },
		{ "another process", 1, 0, 0, UINT32_MAX, 77777, WORLD_PID, false },
		{ "not begun", 1, 0, 0, UINT32_MAX, 0, WORLD_PID, true },
	};
	FOR_EACH_CASE (c, cases) {
		begin();
		world.task.__state = c->kernel_state;
		world.task.flags = c->flags;
		shim.random = c->random;
		settings.off_cpu_enabled = !c->is_stopped;
		settings.off_cpu_last = c->last;
		config.only_pid = c->only_pid;
		shim.pid_tgid = c->tid << 32 | c->tid;
		switch_to(&world.parent, 0);
		CHECK_CASE(c, shim.event_count == 0 && shim.left_count == 0);
		CHECK_CASE(c, counted()->samples == 0);
		config.only_pid = 0;
		world_end();
	}
}

static void counts_every_loss_off_cpu(void **state)
{
	(void)state;
	begin();
	shim.ring_is_full = true;
	switch_to(&world.parent, 0);
	assert_int_equal(counted()->lost_ring, 1);
	assert_int_equal(shim.left_count, 0); /* nobody waits for an end */
	walk_here()->busy = 1;
	switch_to(&world.parent, 0);
	assert_int_equal(counted()->lost_busy, 1);
	walk_here()->busy = 0;
	shim.ring_is_full = false;
	/* As many threads away as the map holds, then one more. */
	for (uint32_t i = 0; i <= ARRAY_COUNT(shim.left); i++) {
		shim.pid_tgid = (uint64_t)WORLD_PID << 32 | (WORLD_PID + i);
		switch_to(&world.parent, 0);
	}
	assert_int_equal(counted()->lost_off_cpu, 1);
	assert_int_equal(counted()->off_cpu, ARRAY_COUNT(shim.left) + 3);
	check_conservation();
	/* The end of a stay that cannot be told. */
	shim.ring_is_full = true;
	shim.pid_tgid = 0;
	switch_to(&world.task, 0);
	assert_int_equal(counted()->resumed, 1);
	assert_int_equal(counted()->resumed_lost, 1);
	world_end();
}

/* By its hash, with the state that it has this time. */
static void sends_a_stack_once(void **state)
{
	(void)state;
	begin();
	settings.seen_enabled = 1;
	switch_to(&world.parent, 0);
	world.task.__state = KERNEL_TASK_UNINTERRUPTIBLE;
	switch_to(&world.parent, 0);
	const struct event_sample *s = last_event();
	assert_int_equal(shim.event_count, 2);
	assert_int_equal(s->h.type, EVENT_SAMPLE_SEEN);
	assert_int_equal(event_state(&s->h), THREAD_BLOCKED);
	assert_int_equal(counted()->seen, 1);
	check_conservation();
	world_end();
}

TEST_MAIN(cmocka_unit_test(samples_who_leaves_and_tells_of_the_return),
	cmocka_unit_test(tells_states_apart), cmocka_unit_test(leaves_out_who_does_not_count),
	cmocka_unit_test(counts_every_loss_off_cpu), cmocka_unit_test(sends_a_stack_once))
