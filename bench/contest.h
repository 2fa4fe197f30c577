/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contest: the cost of the sampler's program for each sample, by the kernel's statistics of BPF
 * programs, compared with others that run on the same machine in the same seconds: the kernel's own
 * walk by frame pointers, an empty program, and, where one is named, a program that is loaded
 * already, such as another profiler's. For benchmarks. Needs root. Include once.
 */
#pragma once

#include "live.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "baseline.skel.h"
#pragma GCC diagnostic pop

#define FREQUENCY_HZ 997
#define ROUND_NS 250000000LL
#define ROUNDS 16
/* Time for another profiler to find the process. */
#define BESIDE_NS 4000000000LL

/* The kernel's name of another program that is measured too; NULL: none. */
static const char *contest_beside;

static void print_result(const char *name, double value, const char *unit, const char *against,
	double ratio, const char *note)
{
	(void)printf("{\"name\":\"%s\",\"value\":%.3f,\"unit\":\"%s\",\"against\":\"%s\","
		     "\"ratio\":%.3f,\"note\":\"%s\"}\n",
		name, value, unit, against, ratio, note);
	(void)fflush(stdout);
}

/* A process group of its own, so that a script is killed with everything that it started. */
static int start_group(const char *const *args)
{
	int pid = fork();
	if (pid < 0)
		live_fail("fork", NULL);
	if (pid > 0) {
		(void)setpgid(pid, pid);
		return pid;
	}
	(void)setpgid(0, 0);
	int null = open("/dev/null", O_RDWR);
	(void)dup2(null, 0);
	(void)dup2(null, 1);
	(void)dup2(null, 2);
	char *argv[16] = { NULL };
	for (int i = 0; args[i] && i < 15; i++)
		argv[i] = strdup(args[i]);
	(void)execvp(argv[0], argv);
	_exit(127);
}

static void kill_group(int pid)
{
	(void)kill(-pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* ---- ours ---- */

struct measured {
	double ns_per_sample; /* by the program's own clock */
	double frames_per_sample;
	double whole_percent; /* of samples with a user stack */
	double kernel_mib;
	double table_mib;
	uint64_t samples;
};

/* Time before the program first reads the clock, and after it last does. */
#define ENTRY_NS 80

static struct measured measured_between(struct sampler_stats a, struct sampler_stats b)
{
	uint64_t turned_away =
		b.bpf.lost_excluded - a.bpf.lost_excluded + b.bpf.lost_busy - a.bpf.lost_busy;
	uint64_t samples = b.bpf.samples - a.bpf.samples - turned_away;
	double frames = (double)(b.bpf.user_frames - a.bpf.user_frames);
	double user = 0, whole = 0;
	for (int end = 1; end < STACK_END_COUNT; end++) {
		double ended = (double)(b.bpf.stack_end[end] - a.bpf.stack_end[end]);
		user += ended;
		whole += stack_end_is_whole((unsigned)end) ? ended : 0;
	}
	double ns = (double)(b.bpf.run_ns - a.bpf.run_ns);
	return (struct measured){
		.ns_per_sample = samples ? ENTRY_NS + ns / (double)samples : 0,
		.frames_per_sample = samples ? frames / (double)samples : 0,
		.whole_percent = user > 0 ? 100 * whole / user : 0,
		.kernel_mib = (double)b.kernel_bytes / (1 << 20),
		.table_mib = (double)b.table_bytes / (1 << 20),
		.samples = samples,
	};
}

/* ---- programs side by side ---- */

enum contender { OURS, GET_STACK, EMPTY, BESIDE, CONTENDERS };

/* The compared programs, each on a process of its own. */
struct contest {
	struct live live;
	struct baseline_bpf *baseline;
	int programs[CONTENDERS]; /* below 0: none */
	int pids[CONTENDERS];
};

struct outcome {
	double ns[CONTENDERS]; /* by contestant: time of a run, the median of the rounds */
	double kernel_frames;  /* frames that the kernel's walk found */
	struct measured ours;
};

static uint32_t last_program(void)
{
	uint32_t id = 0;
	while (bpf_prog_get_next_id(id, &id) == 0)
		continue;
	return id;
}

/* The first program of this name that was loaded after `id`; ids ascend. */
static int program_after(uint32_t id, const char *name)
{
	while (bpf_prog_get_next_id(id, &id) == 0) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);
		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && strcmp(info.name, name) == 0)
			return fd;
		fd_cleanup(&fd);
	}
	live_fail(name, NULL);
	return -1;
}

/* `pid` is sampled by the sampler, `fp_pid`, which has frame pointers, by the kernel's walk. */
static void contest_begin(struct contest *c, int pid, int fp_pid)
{
	uint32_t before = last_program();
	live_begin(&c->live, 1, pid);
	c->baseline = baseline_bpf__open_and_load();
	if (!c->baseline)
		live_fail("baseline", NULL);
	c->programs[OURS] = program_after(before, "sample_cpu");
	c->programs[GET_STACK] = bpf_program__fd(c->baseline->progs.baseline_get_stack);
	c->programs[EMPTY] = bpf_program__fd(c->baseline->progs.baseline_empty);
	c->programs[BESIDE] = contest_beside ? program_after(0, contest_beside) : -1;
	c->pids[OURS] = pid;
	c->pids[BESIDE] = pid;
	c->pids[GET_STACK] = fp_pid;
	c->pids[EMPTY] = fp_pid;
}

static void contest_end(struct contest *c)
{
	fd_cleanup(&c->programs[OURS]);
	fd_cleanup(&c->programs[BESIDE]);
	baseline_bpf__destroy(c->baseline);
	live_end(&c->live);
}

static struct bpf_prog_info program_info(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &len) != 0)
		live_fail("bpf_prog_info", NULL);
	return info;
}

/* Measures for `duration_ns`. ns[]: time of a run of each; 0: it did not run. */
static void contest_round(struct contest *c, int64_t duration_ns, double ns[CONTENDERS])
{
	struct bpf_prog_info before[CONTENDERS];
	int events[CONTENDERS];
	for (int i = 0; i < CONTENDERS; i++) {
		if (c->programs[i] < 0)
			continue;
		struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
			.size = sizeof(attr),
			.config = PERF_COUNT_SW_CPU_CLOCK,
			.freq = 1,
			/* Different frequencies, so that not all run at the same moments. */
			.sample_freq = FREQUENCY_HZ + 12u * (unsigned)i };
		before[i] = program_info(c->programs[i]);
		events[i] = (int)syscall(
			SYS_perf_event_open, &attr, c->pids[i], -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (events[i] < 0 || ioctl(events[i], PERF_EVENT_IOC_SET_BPF, c->programs[i]) != 0)
			live_fail("perf_event_open", NULL);
	}
	int64_t until = clock_monotonic_ns() + duration_ns;
	while (clock_monotonic_ns() < until)
		live_poll(&c->live, 50);
	for (int i = 0; i < CONTENDERS; i++) {
		ns[i] = 0;
		if (c->programs[i] < 0)
			continue;
		fd_cleanup(&events[i]);
		struct bpf_prog_info info = program_info(c->programs[i]);
		uint64_t runs = info.run_cnt - before[i].run_cnt;
		uint64_t run_ns = info.run_time_ns - before[i].run_time_ns;
		ns[i] = runs ? (double)run_ns / (double)runs : 0;
	}
	live_poll(&c->live, 0);
}

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static struct outcome contest_run(struct contest *c, int rounds)
{
	double ns[CONTENDERS][2 * ROUNDS], round[CONTENDERS];
	struct outcome o = { 0 };
	struct sampler_stats a, b;
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (contest_beside)
		contest_round(c, BESIDE_NS, round);
	sampler_read_stats(c->live.sampler, &a);
	for (int n = 0; n < rounds; n++) {
		contest_round(c, ROUND_NS, round);
		for (int i = 0; i < CONTENDERS; i++)
			ns[i][n] = round[i];
	}
	sampler_read_stats(c->live.sampler, &b);
	fd_cleanup(&stats);
	for (int i = 0; i < CONTENDERS; i++) {
		qsort(ns[i], (size_t)rounds, sizeof(double), compare_doubles);
		o.ns[i] = ns[i][rounds / 2];
	}
	uint64_t walks = c->baseline->bss->walks;
	o.kernel_frames = walks ? (double)c->baseline->bss->frames / (double)walks : 0;
	o.ours = measured_between(a, b);
	return o;
}

/* ---- the cases ---- */

/* _start, __libc_start_main (two frames), main, leaf, and one of recurse more than its argument. */
#define DEEP_FRAMES_BESIDE 6

static int start_deep(const char *program, uint32_t frames)
{
	char depth[16];
	(void)snprintf(depth, sizeof(depth), "%u", frames - DEEP_FRAMES_BESIDE);
	int pid = start_group((const char *const[]){ program, depth, "60", NULL });
	(void)usleep(200000);
	return pid;
}

/* The same program, without frame pointers for the sampler, and with them for the kernel. */
static struct outcome contest_deep(uint32_t frames)
{
	struct contest c;
	int pid = start_deep(WORKLOAD_DEEP, frames);
	int fp_pid = start_deep(WORKLOAD_DEEP_FP, frames);
	contest_begin(&c, pid, fp_pid);
	(void)live_publish_file(&c.live, WORKLOAD_DEEP);
	struct outcome o = contest_run(&c, ROUNDS);
	kill_group(pid);
	kill_group(fp_pid);
	contest_end(&c);
	return o;
}
