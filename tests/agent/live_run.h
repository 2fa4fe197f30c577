/* SPDX-License-Identifier: Apache-2.0 */
/* live_run: one program of tests/workloads on the real kernel, sampled. Include once. */
#pragma once

#include "live.h"
#include "test.h"

#define FREQUENCY_HZ 997
#define SAMPLES_WANTED 300
#define SAMPLES_NEEDED 100 /* after SECONDS_MAX; fewer say nothing */
#define SECONDS_MAX 20

/* _start, __libc_start_main (two frames), main; recurse DEPTH + 1 times; leaf. */
#define DEEP_FRAMES(depth) (4 + (depth) + 1 + 1)

static inline const char *workload(const char *name)
{
	static char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", WORKLOADS_DIR, name);
	return path;
}

struct run {
	struct live live;
	int pid;
	uint32_t text_id; /* of the program's file */
};

static inline void run_begin(struct run *r, const char *const *args)
{
	char path[512];
	(void)snprintf(path, sizeof(path), "%s", workload(args[0]));
	const char *argv[8] = { path };
	for (int i = 1; i < 7 && args[i]; i++)
		argv[i] = args[i];
	r->pid = live_spawn(argv, -1);
	live_begin(&r->live, FREQUENCY_HZ, r->pid);
	r->text_id = live_publish_file(&r->live, path);
	CHECK(r->text_id != 0);
	(void)live_publish_file(&r->live, workload("libplugin.so"));
	live_start(&r->live);
}

static inline void run_until(struct run *r, size_t samples)
{
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (r->live.samples.len < samples && clock_monotonic_ns() < deadline)
		live_poll(&r->live, 50);
}

static inline void run_end(struct run *r)
{
	live_kill(r->pid);
	live_end(&r->live);
}

/* samples = delivered + seen + losses; and all that was sent was handed over. */
static inline void check_conservation(const struct live *l)
{
	struct sampler_stats s;
	sampler_read_stats(l->sampler, &s);
	const struct bpf_counters *b = &s.bpf;
	CHECK(b->samples == b->delivered + b->seen + b->lost_ring + b->lost_busy +
				    b->lost_excluded + b->lost_off_cpu);
	CHECK(l->samples.len == b->delivered + b->seen - s.lost_seen);
	CHECK(s.lost_seen == 0 && b->lost_busy == 0);
}
