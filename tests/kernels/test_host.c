/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What test_kernels.py runs inside a machine with two CPUs, and room for many more: what the kernel
 * keeps for each possible CPU, a CPU that goes and comes, a host that sleeps. These are not done to
 * the machine that the other tests run on.
 */
#include "agent/agent.h"
#include "kernel_bytes.h"
#include "live.h"
#include "otlp/otlp.h"
#include "test.h"

#include <dirent.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FREQUENCY_HZ 97
#define PATIENCE_NS (120 * NS_PER_SEC)
#define ASLEEP_S 20 /* it must be asleep before it is woken */
#define OFFLINE "/tmp/batches"
#define SOCKET "/tmp/agent.socket"

/* Burns a CPU of its own; goes where it is put when that CPU is away. */
static void put_on(int pid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(sched_setaffinity(pid, sizeof(set), &set) == 0);
}

static int burner_on(int cpu)
{
	int pid = fork();
	if (pid == 0) {
		volatile uint64_t n = 0;
		for (;;)
			n++;
	}
	CHECK(pid > 0);
	put_on(pid, cpu);
	return pid;
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (!ok)
		perror(path);
	if (fd >= 0)
		(void)close(fd);
	return ok;
}

static void takes_as_much_memory_as_is_said(void **state)
{
	(void)state;
	struct live l;
	const struct sampler_config c = { .frequency_hz = 19 };
	live_begin_with(&l, &c);
	live_check_kernel_bytes(&l, &c);
	live_end(&l);
}

/* ---- a CPU that goes and comes ---- */

static size_t samples_on(const struct live *l, uint32_t cpu, size_t from)
{
	size_t n = 0;
	for (size_t i = from; i < l->samples.len; i++)
		n += l->samples.v[i].h.cpu == cpu;
	return n;
}

/* More samples of CPU 1, of a process that is put there; false when none come. */
static bool is_sampled(struct live *l)
{
	int pid = burner_on(1);
	size_t from = l->samples.len;
	int64_t deadline = clock_monotonic_ns() + PATIENCE_NS;
	while (samples_on(l, 1, from) < 20 && clock_monotonic_ns() < deadline)
		live_poll(l, 100);
	live_kill(pid);
	return samples_on(l, 1, from) >= 20;
}

static uint32_t attached_within(struct live *l, uint32_t want)
{
	struct sampler_stats s;
	int64_t deadline = clock_monotonic_ns() + PATIENCE_NS;
	do {
		live_poll(l, 100);
		sampler_read_stats(l->sampler, &s);
	} while (s.cpus != want && clock_monotonic_ns() < deadline);
	return s.cpus;
}

#define CPU_1 "/sys/devices/system/cpu/cpu1/online"

static void follows_a_cpu_that_goes_and_comes(void **state)
{
	(void)state;
	struct live l;
	struct sampler_stats s;
	live_begin(&l, FREQUENCY_HZ, 0);
	live_start(&l);
	CHECK(attached_within(&l, 2) == 2 && is_sampled(&l));
	CHECK(write_file(CPU_1, "0"));
	CHECK(attached_within(&l, 1) == 1);
	CHECK(write_file(CPU_1, "1"));
	CHECK(attached_within(&l, 2) == 2 && is_sampled(&l));
	/* Between two looks at the list, which is as it was. */
	CHECK(write_file(CPU_1, "0") && write_file(CPU_1, "1"));
	CHECK(is_sampled(&l));
	sampler_read_stats(l.sampler, &s);
	print_message("%u CPUs, %" PRIu64 " events made anew\n", s.cpus, s.cpus_renewed);
	CHECK(s.bpf.samples == s.bpf.delivered + s.bpf.seen + s.bpf.lost_ring + s.bpf.lost_busy +
				       s.bpf.lost_excluded);
	live_stop(&l);
	live_end(&l);
}

/* ---- sleep ---- */

static double metric(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = SOCKET };
	static char text[1 << 20];
	const char *ask = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	size_t len = 0;
	ssize_t n = 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
		  write(fd, ask, strlen(ask)) > 0;
	while (ok && len < sizeof(text) - 1 &&
		(n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	if (fd >= 0)
		(void)close(fd);
	char line[128];
	(void)snprintf(line, sizeof(line), "\n%s ", name);
	const char *found = strstr(text, line);
	return found ? atof(found + strlen(line)) : -1;
}

static bool metric_reaches(const char *name, double least)
{
	int64_t deadline = clock_monotonic_ns() + PATIENCE_NS;
	while (metric(name) < least && clock_monotonic_ns() < deadline)
		(void)usleep(200000);
	double at = metric(name);
	print_message("%s %g\n", name, at);
	return at >= least;
}

static int start_agent(void)
{
	static const char *const argv[] = { "/firn", "agent",
		"--offline-mode-storage-path=" OFFLINE, "--spool-path=/tmp/spool",
		"--cache-path=/tmp/cache", "--http-address=unix:" SOCKET,
		"--profiling-cpu-sampling-frequency=97", "--profiling-duration=1s",
		"--metadata-disable-containers", NULL };
	int pid = fork();
	if (pid == 0) {
		(void)execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}

struct span {
	int64_t begin_ns, end_ns; /* by the wall clock */
	int64_t awake_ns;         /* of that, on the way to sleep and back */
};

/* Until the clock of the machine wakes it. */
static struct span sleep_deeply(void)
{
	char text[32];
	(void)snprintf(text, sizeof(text), "+%d", ASLEEP_S);
	CHECK(write_file("/sys/class/rtc/rtc0/wakealarm", text));
	int64_t asleep = clock_boottime_ns() - clock_monotonic_ns();
	struct span s = { .begin_ns = clock_realtime_ns() };
	CHECK(write_file("/sys/power/state", "mem"));
	s.end_ns = clock_realtime_ns();
	asleep = clock_boottime_ns() - clock_monotonic_ns() - asleep;
	print_message("asleep for %.2f s, %.2f by the wall clock\n", (double)asleep / 1e9,
		(double)(s.end_ns - s.begin_ns) / 1e9);
	CHECK(asleep >= NS_PER_SEC);
	s.awake_ns = s.end_ns - s.begin_ns - asleep + NS_PER_SEC / 2;
	return s;
}

struct counts {
	uint32_t before[2], within, after[2], late;
};

/* The value of its label `cpu`. */
static struct str cpu_of(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_labels *set = &p->label_sets.v[s->own];
	for (uint32_t i = set->first; i < set->first + set->count; i++) {
		const struct profile_label *l = &p->labels.v[i];
		if (str_eq(strtab_get(&p->strings, l->name), STR("cpu")))
			return strtab_get(&p->strings, l->value);
	}
	return STR("");
}

/* Its samples by when they were taken, and of which CPU. */
static void count_batch(const char *path, const struct span *s, struct counts *c)
{
	CLEANUP(buf_deinit) struct buf message;
	CLEANUP(profile_deinit) struct profile p;
	struct otlp_rejects rejects = { 0 };
	struct err e = { 0 };
	buf_init(&message, AGENT_BATCH_BYTES_MAX);
	CHECK_OK(profile_init(&p, (size_t)64 << 20), &e);
	CHECK_OK(agent_read_batch(path, &message, &e), &e);
	CHECK_OK(otlp_decode(buf_view(&message), &p, &rejects, &e), &e);
	int64_t now = clock_realtime_ns();
	bool is_before = false, is_after = false;
	for (size_t i = 0; i < p.samples.len; i++) {
		const struct profile_sample *sample = &p.samples.v[i];
		struct str cpu = cpu_of(&p, sample);
		uint32_t k = str_eq(cpu, STR("1"));
		c->before[k] += sample->time_ns <= s->begin_ns;
		c->after[k] += sample->time_ns >= s->end_ns;
		c->within += sample->time_ns > s->begin_ns + s->awake_ns &&
			     sample->time_ns < s->end_ns - s->awake_ns;
		c->late += sample->time_ns > now;
		is_before |= sample->time_ns <= s->begin_ns;
		is_after |= sample->time_ns >= s->end_ns;
	}
	CHECK(!(is_before && is_after)); /* they are of two batches */
}

static void goes_on_after_a_sleep(void **state)
{
	(void)state;
	struct counts c = { 0 };
	int burners[2] = { burner_on(0), burner_on(1) };
	int agent = start_agent();
	CHECK(metric_reaches("firn_agent_samples_total", 200));
	struct span s = sleep_deeply();
	put_on(burners[0], 0);
	put_on(burners[1], 1);
	CHECK(metric_reaches("firn_agent_clock_steps_total", 1));
	CHECK(metric_reaches("firn_agent_cpu_events_renewed_total", 1));
	CHECK(metric_reaches("firn_agent_samples_total", metric("firn_agent_samples_total") + 500));
	CHECK(kill(agent, SIGTERM) == 0);
	int status = -1;
	CHECK(waitpid(agent, &status, 0) == agent && status == 0);
	live_kill(burners[0]);
	live_kill(burners[1]);
	DIR *d = opendir(OFFLINE);
	assert_non_null(d);
	for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
		char path[512];
		(void)snprintf(path, sizeof(path), OFFLINE "/%s", entry->d_name);
		if (str_ends(str_of(path), STR(".batch")))
			count_batch(path, &s, &c);
	}
	(void)closedir(d);
	print_message("samples of both CPUs: %u, %u before, %u, %u after; %u within, %u too late\n",
		c.before[0], c.before[1], c.after[0], c.after[1], c.within, c.late);
	CHECK(c.before[0] > 0 && c.before[1] > 0 && c.after[0] >= 50 && c.after[1] >= 50);
	CHECK(c.within == 0 && c.late == 0);
}

TEST_MAIN(cmocka_unit_test(takes_as_much_memory_as_is_said),
	cmocka_unit_test(follows_a_cpu_that_goes_and_comes),
	cmocka_unit_test(goes_on_after_a_sleep))
