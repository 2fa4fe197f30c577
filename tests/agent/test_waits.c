/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Off-CPU time on the real kernel: of a program that sleeps, waits for a mutex, a pipe and a disk
 * (tests/workloads/waiter.c), against its own clock.
 */
#include "agent/sample/offcpu.h"
#include "live.h"
#include "need_sampling.h"
#include "test.h"

#define SECONDS "4"
#define FUNCTIONS_MAX 5
static const char *const names[FUNCTIONS_MAX] = { "sleeps", "locks", "reads", "syncs", "burns" };

struct stay {
	struct event_header h;
	int64_t away_ns;
	uint32_t first_frame, user_count;
};

struct waits {
	struct live live;
	struct offcpu *offcpu;
	VEC(struct stay) stays;
	VEC(uint64_t) frames; /* of users */
	char json[2048];      /* what the program said */
	double stolen_ns;     /* of all CPUs by the machine below, while it ran */
	int pid;
	uint32_t text_id;
	const char *path;
};

static void on_away(void *ctx, const struct event_sample *s, int64_t away_ns)
{
	struct waits *w = ctx;
	const struct stay stay = { s->h, away_ns, (uint32_t)w->frames.len, s->user_count };
	CHECK(VEC_PUSH(&w->stays, stay));
	CHECK(VEC_RESERVE(&w->frames, w->frames.len + s->user_count));
	memcpy(w->frames.v + w->frames.len, s->frames + s->kernel_count,
		s->user_count * sizeof(uint64_t));
	w->frames.len += s->user_count;
}

/* What live.h kept since the last time, in its order but for the kind. */
static void take_events(struct waits *w)
{
	struct live *l = &w->live;
	CLEANUP(free_cleanup)
	struct event_sample *s =
		calloc(1, sizeof(*s) + (SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX) * 8);
	CHECK(s != NULL);
	for (size_t i = 0; i < l->samples.len; i++) {
		const struct live_sample *from = &l->samples.v[i];
		if (event_state(&from->h) == THREAD_ON_CPU)
			continue;
		*s = (struct event_sample){ .h = from->h,
			.kernel_count = from->kernel_count,
			.user_count = from->user_count };
		memcpy(s->frames, l->frames.v + from->first_frame,
			((size_t)from->kernel_count + from->user_count) * 8);
		offcpu_left(w->offcpu, s);
	}
	for (size_t i = 0; i < l->resumes.len; i++)
		offcpu_resume(w->offcpu, &l->resumes.v[i]);
	VEC_CLEAR(&l->samples);
	VEC_CLEAR(&l->frames);
	VEC_CLEAR(&l->resumes);
}

/* The waiter, from its first to its last measured moment. */
static void run_waiter(struct waits *w, double probability)
{
	static char path[512], file[] = "/var/tmp/firn-test-waits-XXXXXX";
	struct err e = { 0 };
	int in[2], out[2], fd = mkstemp(file);
	(void)snprintf(path, sizeof(path), "%s/waiter", WORKLOADS_DIR);
	CHECK(fd >= 0 && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	(void)close(fd);
	*w = (struct waits){ .path = path };
	const struct offcpu_config c = { 0, 1, on_away, w };
	CHECK_OK(offcpu_new(&c, &w->offcpu, &e), &e);
	w->pid = fork();
	CHECK(w->pid >= 0);
	if (w->pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)execl(path, path, SECONDS, file, NULL);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	live_begin_with(&w->live, &(struct sampler_config){ .frequency_hz = 19,
					  .only_pid = w->pid,
					  .off_cpu_probability = probability });
	w->text_id = live_publish_file(&w->live, path);
	live_publish_program(&w->live, path);
	live_start(&w->live);
	double stolen_before_ns = live_stolen_ns();
	(void)close(in[1]); /* go */
	while (waitpid(w->pid, NULL, WNOHANG) == 0) {
		live_poll(&w->live, 20);
		take_events(w);
	}
	w->stolen_ns = live_stolen_ns() - stolen_before_ns;
	live_stop(&w->live);
	take_events(w);
	CHECK(read(out[0], w->json, sizeof(w->json) - 1) > 0);
	(void)close(out[0]);
	(void)unlink(file);
	(void)snprintf(file, sizeof(file), "/var/tmp/firn-test-waits-XXXXXX");
}

static void end_waiter(struct waits *w)
{
	offcpu_free(w->offcpu);
	VEC_FREE(&w->stays);
	VEC_FREE(&w->frames);
	live_end(&w->live);
}

struct function {
	double share; /* as the program says */
	uint64_t begin, end;
	double away_ns; /* as sampled */
	size_t stays;
	size_t in_state[THREAD_STATE_COUNT];
};

/* Sums of the main thread's stays by function, and in all but the last, which does not wait. */
static double sum_up(struct waits *w, struct function out[FUNCTIONS_MAX], double *out_own_ns)
{
	struct err e = { 0 };
	struct objfile *obj = NULL;
	CHECK_OK(objfile_open(w->path, &obj, &e), &e);
	CHECK(sscanf(w->json, "{\"off_cpu_ns\":%lf", out_own_ns) == 1);
	for (size_t n = 0; n < FUNCTIONS_MAX; n++) {
		char want[64];
		(void)snprintf(want, sizeof(want), "{\"name\":\"%s\",", names[n]);
		const char *at = strstr(w->json, want);
		out[n] = (struct function){ 0 };
		CHECK(at && sscanf(at + strlen(want),
				    "\"share\":%lf,\"begin\":%" SCNu64 ",\"end\":%" SCNu64,
				    &out[n].share, &out[n].begin, &out[n].end) == 3);
	}
	double total = 0;
	for (size_t i = 0; i < w->stays.len; i++) {
		const struct stay *s = &w->stays.v[i];
		if ((int)s->h.tid != w->pid)
			continue;
		for (uint32_t k = 0; k < s->user_count; k++) {
			uint64_t frame = w->frames.v[s->first_frame + k];
			struct fileoff off = { frame & FRAME_OFFSET_MASK };
			struct vaddr at;
			if (frame >> FRAME_FILE_SHIFT != w->text_id ||
				!objfile_vaddr_of(obj, off, &at))
				continue;
			for (size_t n = 0; n < FUNCTIONS_MAX; n++) {
				if (at.v < out[n].begin || at.v >= out[n].end)
					continue;
				out[n].away_ns += (double)s->away_ns;
				out[n].stays++;
				total += n + 1 < FUNCTIONS_MAX ? (double)s->away_ns : 0;
				out[n].in_state[event_state(&s->h)]++;
			}
		}
	}
	objfile_close(obj);
	return total;
}

static const struct sampler_program *program_of(const struct sampler_stats *s, const char *name)
{
	for (uint32_t i = 0; i < s->program_count; i++) {
		if (strcmp(s->programs[i].name, name) == 0)
			return &s->programs[i];
	}
	return NULL;
}

static void agrees_with_the_programs_clock(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct waits w;
	struct function f[FUNCTIONS_MAX];
	double own_ns;
	run_waiter(&w, 1);
	double total = sum_up(&w, f, &own_ns);
	CHECK(total > 0);
	for (size_t n = 0; n < FUNCTIONS_MAX; n++) {
		double share = f[n].away_ns / total;
		print_message("%s: %.3f by itself, %.3f by %zu stays (%zu runnable, %zu sleeping, "
			      "%zu blocked)\n",
			names[n], f[n].share, share, f[n].stays, f[n].in_state[THREAD_RUNNABLE],
			f[n].in_state[THREAD_SLEEPING], f[n].in_state[THREAD_BLOCKED]);
		CHECK(__builtin_fabs(share - f[n].share) <= 0.02 + w.stolen_ns / total ||
			n + 1 == FUNCTIONS_MAX);
	}
	print_message("%.3f s by itself, %.3f s sampled, %.2f s stolen\n", own_ns / 1e9,
		total / 1e9, w.stolen_ns / 1e9);
	/*
	 * What is stolen while a thread runs is no CPU time of its clock, and no stay either: the
	 * kernel saw no switch.
	 */
	CHECK(total - own_ns <= 0.02 * own_ns);
	CHECK(own_ns - total <= 0.02 * own_ns + w.stolen_ns);
	CHECK(f[0].in_state[THREAD_SLEEPING] * 2 > f[0].stays && f[0].stays > 0);
	CHECK(f[4].in_state[THREAD_SLEEPING] + f[4].in_state[THREAD_BLOCKED] == 0);
	struct sampler_stats s;
	sampler_read_stats(w.live.sampler, &s);
	const struct offcpu_metrics *m = offcpu_metrics(w.offcpu);
	CHECK(s.bpf.resumed_lost == 0 && metric_get(&m->lost) == 0);
	CHECK(s.bpf.off_cpu > 0 &&
		s.bpf.off_cpu == metric_get(&m->stays) + metric_get(&m->waiting));
	CHECK(s.bpf.samples == s.bpf.delivered + s.bpf.seen + s.bpf.lost_excluded);
	const struct sampler_program *p = program_of(&s, "thread_switch");
	CHECK(p && p->run_count > s.bpf.off_cpu);
	print_message("%.0f ns a switch of %" PRIu64 ", of which %" PRIu64 " were sampled\n",
		(double)p->run_ns / (double)p->run_count, p->run_count, (uint64_t)s.bpf.off_cpu);
	end_waiter(&w);
}

/* A quarter of the switches stands for all: each four times. */
static void stands_for_all_by_its_probability(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct waits w;
	struct function f[FUNCTIONS_MAX];
	double own_ns;
	run_waiter(&w, 0.25);
	double total = 4 * sum_up(&w, f, &own_ns);
	size_t n = 0;
	double squares = 0;
	for (size_t i = 0; i < w.stays.len; i++) {
		double away = (double)w.stays.v[i].away_ns;
		n += (int)w.stays.v[i].h.tid == w.pid;
		squares += (int)w.stays.v[i].h.tid == w.pid ? away * away : 0;
	}
	/* The variance of the sum: (1 - p) / p^2 of the squares that were taken. */
	double deviation = __builtin_sqrt(0.75 * squares) * 4;
	print_message("%.3f s by itself, %.3f s +- %.3f s by %zu stays\n", own_ns / 1e9,
		total / 1e9, deviation / 1e9, n);
	CHECK(n > 20 && total - own_ns <= 5 * deviation);
	CHECK(own_ns - total <= 5 * deviation + w.stolen_ns);
	end_waiter(&w);
}

static void is_not_there_unless_asked_for(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin(&l, 97, 0);
	live_start(&l);
	live_poll(&l, 300);
	live_stop(&l);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.program_count == 4 && !program_of(&s, "thread_switch"));
	CHECK(s.bpf.off_cpu == 0 && l.resumes.len == 0);
	live_end(&l);
}

TEST_MAIN(cmocka_unit_test(agrees_with_the_programs_clock),
	cmocka_unit_test(stands_for_all_by_its_probability),
	cmocka_unit_test(is_not_there_unless_asked_for))
