/* SPDX-License-Identifier: Apache-2.0 */
/*
 * governor: decides how often to sample, so that the agent stays within its limits of CPU and
 * memory, and whether to sample in this interval. Private to agent/. No I/O: the caller gives the
 * usage.
 *
 * Cost: the CPU time of the agent, of its broker and of its eBPF programs, as a share of all CPUs
 * of the host, over windows of GOVERNOR_WINDOW_NS. Above the limit the rate is halved, down to 1
 * Hz; if the cost at twice the rate would still be below three quarters of the limit, for
 * GOVERNOR_CALM_WINDOWS in a row, the rate is doubled, up to what was asked for. Memory above its
 * limit halves the rate too, and lets the agent drop data that it can read again.
 *
 * There are two rates: the timer's, and the share of threads leaving their CPU that is sampled. The
 * rate that brought most samples of the window is halved. The rate that was halved most often is
 * doubled first.
 *
 * Chance, as parca-agent has it: at the beginning of each interval a number from 0 to 99 is drawn.
 * The host is sampled in the interval if the number is below the threshold.
 */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/metrics.h"

#define GOVERNOR_WINDOW_NS (10 * NS_PER_SEC)
#define GOVERNOR_CALM_WINDOWS 3
#define GOVERNOR_THRESHOLD_MAX 100
/* The share of off-CPU samples is halved at most this often. */
#define GOVERNOR_HALVINGS_MAX 16

struct governor_config {
	uint32_t frequency_hz;
	uint32_t cpus;
	double cpu_share;          /* of all CPUs, 0.01 = 1 %; 0: no limit */
	uint64_t memory_bytes;     /* resident; 0: no limit */
	int64_t chance_ns;         /* the interval */
	uint32_t chance_threshold; /* 100: always */
	uint32_t (*draw)(void);    /* 0 to 99; NULL: the system's random numbers */
};

struct governor_usage {
	int64_t now_ns;
	int64_t cpu_ns; /* since the beginning */
	uint64_t resident_bytes;
	uint64_t samples, off_cpu_samples; /* taken since the beginning: all, and off the CPU */
};

struct governor_decision {
	uint32_t frequency_hz;
	uint32_t off_cpu_halvings; /* how often the share that was asked for was halved */
	bool paused;
	bool drop_caches; /* once for each window above the limit of memory */
	bool changed;     /* rate or pause have changed since the last time */
	const char *why;  /* the reason for a change of the rate */
};

#define GOVERNOR_METRICS(X)                                                                        \
	X(frequency_hz, GAUGE, "firn_agent_sampling_frequency_hz",                                 \
		"Samples a second and CPU that are taken at present.")                             \
	X(wanted_hz, GAUGE, "firn_agent_sampling_frequency_wanted_hz",                             \
		"Samples a second and CPU that were asked for.")                                   \
	X(paused, GAUGE, "firn_agent_sampling_paused",                                             \
		"1 while probabilistic profiling leaves this host out.")                           \
	X(lowered_cpu, COUNTER, "firn_agent_sampling_lowered_total{by=\"cpu\"}",                   \
		"Times that the rate was halved to stay within a limit.")                          \
	X(lowered_memory, COUNTER, "firn_agent_sampling_lowered_total{by=\"memory\"}",             \
		"Times that the rate was halved to stay within a limit.")                          \
	X(lowered_off_cpu, COUNTER, "firn_agent_off_cpu_lowered_total",                            \
		"Times that the share of threads sampled as they leave their CPU was halved, "     \
		"which "                                                                           \
		"the limit names in firn_agent_sampling_lowered_total.")                           \
	X(off_cpu_halvings, GAUGE, "firn_agent_off_cpu_halvings",                                  \
		"How often that share is halved at present.")                                      \
	X(raised, COUNTER, "firn_agent_sampling_raised_total", "Times that it was doubled again.") \
	X(intervals, COUNTER, "firn_agent_probabilistic_intervals_total",                          \
		"Intervals of probabilistic profiling.")                                           \
	X(intervals_left_out, COUNTER, "firn_agent_probabilistic_intervals_left_out_total",        \
		"Those of them in which this host was not sampled.")                               \
	X(used_ppm, GAUGE, "firn_agent_cpu_used_ppm",                                              \
		"Millionths of the host's CPUs that the agent used in the last window.")
struct governor_metrics {
	GOVERNOR_METRICS(METRIC_FIELD)
};

struct governor {
	struct governor_config c;
	struct governor_metrics metrics;
	int64_t window_begin_ns, window_cpu_ns;
	uint64_t window_samples, window_off_cpu;
	int64_t chance_end_ns;
	uint32_t frequency_hz, off_cpu_halvings;
	uint32_t calm_windows;
	bool started, paused;
};

void governor_init(struct governor *g, const struct governor_config *c);
/* To be called now and then, at least once a window. */
struct governor_decision governor_step(struct governor *g, const struct governor_usage *u);
void governor_write_metrics(const struct governor *g, struct buf *out);
