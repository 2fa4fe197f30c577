/* SPDX-License-Identifier: Apache-2.0 */
/* This file measures for the governor (sample/governor.h), and carries out its decisions. */
#include "agent/pace.h"

#include "base/clock.h"
#include "base/log.h"
#include "os/os.h"

#include <malloc.h>

/* Samples that are in the ring by now were taken at the rate before. */
static void change_frequency(struct agent *a, const struct governor_decision *d)
{
	struct err e = { 0 };
	enum status s = sampler_set_frequency(a->sampler, d->frequency_hz, &e);
	if (s != OK) {
		log_warn("the rate of sampling stays", "err=%s", LOG_QUOTED(err_text(&e, s)));
		return;
	}
	s = sampler_poll(a->sampler, 0, &e);
	if (s != OK)
		log_warn("sampling fails", "err=%s", LOG_QUOTED(err_text(&e, s)));
	(void)batch_finish(a->batch);
	batch_set_frequency(a->batch, d->frequency_hz);
	log_warn(d->frequency_hz < a->frequency_hz ? "sampling less often" : "sampling more often",
		"frequency_hz=%u wanted_hz=%u reason=%s", d->frequency_hz, a->config.frequency_hz,
		LOG_QUOTED(d->why));
	a->frequency_hz = d->frequency_hz;
}

/* Threads that left their CPU before the change are told by their time. */
static void change_off_cpu(struct agent *a, const struct governor_decision *d)
{
	double share = a->config.off_cpu_probability / (1 << d->off_cpu_halvings);
	sampler_set_off_cpu(a->sampler, share);
	offcpu_set_probability(a->offcpu, share, clock_monotonic_ns());
	log_warn(d->off_cpu_halvings > a->off_cpu_halvings
			 ? "sampling less of the time off the CPU"
			 : "sampling more of the time off the CPU",
		"probability=%g wanted=%g reason=%s", share, a->config.off_cpu_probability,
		LOG_QUOTED(d->why));
	a->off_cpu_halvings = d->off_cpu_halvings;
}

/* Building tables has a budget of its own, and sampling less would not make it cheaper. */
static int64_t tables_cpu_ns(const struct agent *a)
{
	return files_work_ns(a->files);
}

void pace_step(struct agent *a)
{
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	const struct governor_usage usage = {
		.now_ns = clock_monotonic_ns(),
		.cpu_ns = os_self_cpu_ns() - tables_cpu_ns(a) + broker_cpu_ns() +
			  (int64_t)stats.bpf.run_ns,
		.resident_bytes = os_self_rss_bytes(),
		.samples = stats.bpf.samples,
		.off_cpu_samples = stats.bpf.off_cpu,
	};
	struct governor_decision d = governor_step(&a->governor, &usage);
	if (d.drop_caches) {
		processes_forget(a->processes);
		malloc_trim(0);
	}
	if (d.paused != a->paused) {
		sampler_pause(a->sampler, d.paused);
		log_info(d.paused ? "this interval is left out" : "this interval is sampled",
			"probability_percent=%u", a->config.chance_percent);
		a->paused = d.paused;
	}
	if (d.frequency_hz != a->frequency_hz)
		change_frequency(a, &d);
	if (d.off_cpu_halvings != a->off_cpu_halvings)
		change_off_cpu(a, &d);
}

void pace_start(struct agent *a)
{
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	const struct governor_config c = {
		.frequency_hz = a->config.frequency_hz,
		.cpus = MAX(stats.cpus, 1u),
		.cpu_share = a->config.cpu_share,
		.memory_bytes = a->config.memory_bytes,
		.chance_ns = a->config.chance_ns,
		.chance_threshold = a->config.chance_percent,
	};
	governor_init(&a->governor, &c);
	a->frequency_hz = c.frequency_hz;
	pace_step(a);
}
