/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer over the CPU time of each thread sends SIGPROF to that thread. The handler walks its own
 * stack by the unwind tables (libgcc's _Unwind_Backtrace(), which finds them without a lock) and
 * writes it into a slot; it allocates nothing and never waits. The thread that takes the profile
 * moves the slots into the profile every tenth of a second; equal stacks are joined there.
 *
 * A slot is FREE, then WRITING (a handler owns it), then FULL, then FREE again. When no slot is
 * free the sample is counted as lost.
 *
 * The handler is never uninstalled: a signal that is pending when the last timer is deleted must
 * not end the process. While nothing is profiled it returns at once.
 */
#include "self/self.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "base/clock.h"
#include "os/os.h"
#include "self/objects.h"

#define THREAD_CPU_CLOCK(tid) \
	((clockid_t)((~(unsigned)(tid) << 3) | 6)) /* clock_getcpuclockid(3) */
#define ABOVE_MAX 8                                /* frames of the handler itself */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { FREE, WRITING, FULL };
struct slot {
	atomic_int state;
	int tid;
	int64_t count; /* number of periods */
	uint32_t frames;
	uintptr_t pc[SELF_FRAMES_MAX];
};

static struct {
	atomic_bool on;
	atomic_uint next;
	atomic_uint_fast64_t lost;
	struct slot *_Atomic slots;
} shared;
static atomic_bool taken; /* a profile is being taken: one at a time */
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct timer {
	int tid;
	timer_t id;
	bool seen;
};

struct self_cpu {
	VEC(struct timer) timers;
	struct profile profile;
	struct objects objects;
	int64_t begun_ns, begun_mono_ns;
	uint32_t head_count, head_time;
};

/* ---- the handler ---- */

struct walk {
	struct slot *slot;
	uintptr_t begin; /* where the thread was interrupted: frames above are the handler's */
	uint32_t above;
	bool found;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *c, void *ctx)
{
	struct walk *w = ctx;
	uintptr_t pc = _Unwind_GetIP(c);
	if (!w->found && pc != w->begin)
		return ++w->above < ABOVE_MAX ? _URC_NO_REASON : _URC_END_OF_STACK;
	if (!pc || w->slot->frames == SELF_FRAMES_MAX)
		return _URC_END_OF_STACK;
	/* A caller's address is after its call. */
	w->slot->pc[w->slot->frames++] = pc - w->found;
	w->found = true;
	return _URC_NO_REASON;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	struct slot *slots = atomic_load(&shared.slots);
	int was = errno;
	(void)number;
	if (!atomic_load(&shared.on) || !slots || info->si_code != SI_TIMER)
		return;
	struct slot *s = &slots[atomic_fetch_add(&shared.next, 1) % SELF_SLOTS];
	int expected = FREE;
	if (!atomic_compare_exchange_strong(&s->state, &expected, WRITING)) {
		atomic_fetch_add(&shared.lost, 1);
		return;
	}
	struct walk w = { .slot = s, .begin = (uintptr_t)u->uc_mcontext.gregs[REG_RIP] };
	s->tid = (int)syscall(SYS_gettid);
	s->count = 1 + info->si_overrun;
	s->frames = 0;
	(void)_Unwind_Backtrace(step, &w);
	if (!w.found) {
		s->frames = 1;
		s->pc[0] = w.begin;
	}
	atomic_store_explicit(&s->state, FULL, memory_order_release);
	errno = was;
}

static _Unwind_Reason_Code nothing(struct _Unwind_Context *c, void *ctx)
{
	(void)c;
	(void)ctx;
	return _URC_NO_REASON;
}

static void install(void)
{
	struct sigaction a = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	(void)_Unwind_Backtrace(nothing, NULL); /* its first call initializes it */
	sigfillset(&a.sa_mask);
	atomic_store(&shared.slots, calloc(SELF_SLOTS, sizeof(struct slot)));
	(void)sigaction(SIGPROF, &a, NULL);
}

/* ---- timers ---- */

static void add_timer(struct self_cpu *c, int tid)
{
	const struct itimerspec every = { .it_interval.tv_nsec = SELF_PERIOD_NS,
		.it_value.tv_nsec = SELF_PERIOD_NS };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct timer t = { .tid = tid, .seen = true };
	event.sigev_notify_thread_id = tid;
	/* A thread that has ended meanwhile gets no timer. */
	if (timer_create(THREAD_CPU_CLOCK(tid), &event, &t.id) != 0)
		return;
	if (timer_settime(t.id, 0, &every, NULL) != 0 || !VEC_PUSH(&c->timers, t))
		timer_delete(t.id);
}

static enum status find_threads(struct self_cpu *c, struct err *e)
{
	DIR *d = opendir("/proc/self/task");
	if (!d)
		return err_os(e, "/proc/self/task");
	for (size_t i = 0; i < c->timers.len; i++)
		c->timers.v[i].seen = false;
	for (struct dirent *x; (x = readdir(d));) {
		uint64_t number;
		size_t i = 0;
		if (!str_parse_u64(str_of(x->d_name), 10, &number)) /* "." and ".." */
			continue;
		int tid = (int)number;
		while (i < c->timers.len && c->timers.v[i].tid != tid)
			i++;
		if (i < c->timers.len)
			c->timers.v[i].seen = true;
		else if (c->timers.len < SELF_THREADS_MAX)
			add_timer(c, tid);
	}
	closedir(d);
	for (size_t i = c->timers.len; i > 0; i--)
		if (!c->timers.v[i - 1].seen) {
			timer_delete(c->timers.v[i - 1].id);
			c->timers.v[i - 1] = c->timers.v[--c->timers.len];
		}
	return OK;
}

/* ---- the profile ---- */

static enum status add_type(struct self_cpu *c, const char *type, const char *unit, uint32_t *out)
{
	struct profile *p = &c->profile;
	struct profile_type t = { .delta = true };
	struct profile_head h = { .period = SELF_PERIOD_NS, .time_ns = c->begun_ns };
	enum status s = profile_add_name(p, STR("process_cpu"), &t.name);
	if (s == OK)
		s = profile_add_type_part(p, str_of(type), &t.sample_type);
	if (s == OK)
		s = profile_add_type_part(p, str_of(unit), &t.sample_unit);
	if (s == OK)
		s = profile_add_type_part(p, STR("cpu"), &t.period_type);
	if (s == OK)
		s = profile_add_type_part(p, STR("nanoseconds"), &t.period_unit);
	if (s == OK)
		s = profile_add_type(p, &t, &h.type);
	return s == OK ? profile_add_head(p, &h, out) : s;
}

static enum status add_stack(struct self_cpu *c, const struct slot *x, uint32_t *out)
{
	uint32_t locations[SELF_FRAMES_MAX], count = 0;
	for (uint32_t i = 0; i < x->frames; i++) {
		const struct object *o = objects_of(&c->objects, x->pc[i]);
		struct profile_location l = { .address = x->pc[i], .kind = FRAME_NATIVE };
		l.mapping = o ? o->mapping : 0;
		enum status s = profile_add_location(&c->profile, &l, NULL, 0, &locations[count]);
		if (s != OK)
			return s;
		count++;
	}
	return profile_add_stack(&c->profile, locations, count, out);
}

static enum status add_thread(struct self_cpu *c, int tid, uint32_t *out)
{
	CLEANUP(buf_deinit) struct buf name;
	struct profile_label l;
	char path[64];
	buf_init(&name, 64);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
	if (os_read_file(path, &name, NULL) != OK)
		buf_cstr(&name, "?"); /* the thread has ended */
	enum status s = profile_add_name(&c->profile, STR("thread_name"), &l.name);
	if (s == OK)
		s = profile_add_string(&c->profile, str_trim(buf_view(&name)), &l.value);
	return s == OK ? profile_add_labels(&c->profile, &l, 1, out) : s;
}

static enum status add_sample(struct self_cpu *c, const struct slot *x)
{
	struct profile_sample sample = {
		.value = x->count, .time_ns = c->begun_ns, .head = c->head_count
	};
	enum status s = add_stack(c, x, &sample.stack);
	if (s == OK)
		s = add_thread(c, x->tid, &sample.own);
	if (s == OK)
		s = profile_add_sample(&c->profile, &sample);
	sample.head = c->head_time;
	sample.value *= SELF_PERIOD_NS;
	return s == OK ? profile_add_sample(&c->profile, &sample) : s;
}

enum status self_cpu_look(struct self_cpu *c, struct err *e)
{
	struct slot *slots = atomic_load(&shared.slots);
	enum status s = OK;
	for (size_t i = 0; i < SELF_SLOTS; i++) {
		if (atomic_load_explicit(&slots[i].state, memory_order_acquire) != FULL)
			continue;
		if (s == OK)
			s = add_sample(c, &slots[i]);
		atomic_store(&slots[i].state, FREE);
	}
	return s == OK ? find_threads(c, e) : err_set(e, s, "samples");
}

/* ---- life ---- */

enum status self_cpu_start(struct self_cpu **out, struct err *e)
{
	if (atomic_exchange(&taken, true))
		return err_set(e, E_EXISTS, "a CPU profile is being taken already");
	pthread_once(&once, install);
	struct self_cpu *c = calloc(1, sizeof(*c));
	if (!c || !atomic_load(&shared.slots)) {
		free(c);
		atomic_store(&taken, false);
		return err_set(e, E_NOMEM, "CPU profile");
	}
	c->begun_ns = clock_realtime_ns();
	c->begun_mono_ns = clock_monotonic_ns();
	enum status s = profile_init(&c->profile, SELF_BYTES_MAX);
	if (s == OK)
		s = objects_find(&c->objects, &c->profile, e);
	if (s == OK)
		s = add_type(c, "samples", "count", &c->head_count);
	if (s == OK)
		s = add_type(c, "cpu", "nanoseconds", &c->head_time);
	atomic_store(&shared.lost, 0);
	atomic_store(&shared.on, true);
	if (s == OK)
		s = find_threads(c, e);
	if (s != OK) {
		self_cpu_free(c);
		return err_set(e, s, "CPU profile");
	}
	*out = c;
	return OK;
}

static void stop(struct self_cpu *c)
{
	for (size_t i = 0; i < c->timers.len; i++)
		timer_delete(c->timers.v[i].id);
	VEC_FREE(&c->timers);
	atomic_store(&shared.on, false);
}

enum status self_cpu_stop(
	struct self_cpu *c, struct profile *out, uint64_t *out_lost, struct err *e)
{
	int64_t took = clock_monotonic_ns() - c->begun_mono_ns;
	enum status s = self_cpu_look(c, e);
	stop(c);
	for (size_t i = 1; i < c->profile.heads.len; i++)
		c->profile.heads.v[i].duration_ns = MAX(took, (int64_t)1);
	if (s != OK)
		return s;
	*out_lost = atomic_load(&shared.lost);
	profile_deinit(out);
	*out = c->profile;
	memset(&c->profile, 0, sizeof(c->profile));
	return OK;
}

void self_cpu_free(struct self_cpu *c)
{
	if (!c)
		return;
	stop(c);
	/* Samples written since slots were last emptied are dropped. A handler that still writes
	 * keeps its slot until the next profile begins. */
	struct slot *slots = atomic_load(&shared.slots);
	for (size_t i = 0; slots && i < SELF_SLOTS; i++) {
		int full = FULL;
		(void)atomic_compare_exchange_strong(&slots[i].state, &full, FREE);
	}
	profile_deinit(&c->profile);
	free(c);
	atomic_store(&taken, false);
}
