/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event does not survive its CPU going offline: the kernel removes it for good, so it is made
 * anew when the CPU is back. The kernel's list of CPUs shows that. The list is read again and
 * again, not watched, since uevents reach only the initial network namespace. If a CPU goes and
 * comes back between two looks (as all but one do when the host sleeps), the list is unchanged: a
 * dead event is then known by its silence, since live ones fire on idle CPUs, too.
 */
#include "agent/sample/cpus.h"

#include "agent/broker/broker.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "os/os.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ONLINE_PATH "/sys/devices/system/cpu/online"
#define ONLINE_TEXT_MAX 4096

struct cpus {
	const struct bpf_program *program;
	uint32_t frequency_hz;
	uint32_t count;            /* possible CPUs */
	_Atomic uint32_t attached; /* read by any thread */
	metric_value renewed;      /* likewise */
	int online_fd;
	bool paused;
	struct bpf_link **links; /* [count]; NULL: no event */
	int *fds;                /* [count]; the events' descriptors, owned by the links */
	bool *online;            /* [count] */
	uint64_t *fired; /* [count]; how often the event had fired, and since when it has not fired
			    again */
	int64_t *fired_at_ns; /* [count] */
	bool *silent;         /* [count]; the event is dead, and could not be replaced */
	size_t text_len;      /* length of the list's text when it was last read */
	char text[ONLINE_TEXT_MAX];
};

bool cpus_parse(struct str list, bool *out, uint32_t count)
{
	memset(out, 0, count * sizeof(*out));
	list = str_trim(list);
	struct str part;
	while (str_split(&list, ',', &part)) {
		size_t dash = str_index(part, '-');
		uint64_t from, to;
		if (!str_parse_u64(str_sub(part, 0, dash), 10, &from))
			return false;
		to = from;
		if (dash < part.len && !str_parse_u64(str_sub(part, dash + 1, part.len), 10, &to))
			return false;
		if (from > to || to >= count)
			return false;
		for (uint64_t cpu = from; cpu <= to; cpu++)
			out[cpu] = true;
	}
	return true;
}

static void cpus_cleanup(struct cpus **c)
{
	cpus_free(*c);
}

enum status cpus_new(
	const struct bpf_program *program, uint32_t frequency_hz, struct cpus **out, struct err *e)
{
	assert(frequency_hz > 0);
	int count = libbpf_num_possible_cpus();
	if (count <= 0 || count > CPUS_MAX)
		return err_set(e, E_LIMIT, "%d possible CPUs: between 1 and %d are supported",
			count, CPUS_MAX);
	CLEANUP(cpus_cleanup) struct cpus *c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(e, E_NOMEM, "cpus");
	c->online_fd = -1;
	c->program = program;
	c->frequency_hz = frequency_hz;
	c->count = (uint32_t)count;
	c->links = calloc(c->count, sizeof(*c->links));
	c->fds = calloc(c->count, sizeof(*c->fds));
	c->online = calloc(c->count, sizeof(*c->online));
	c->fired = calloc(c->count, sizeof(*c->fired));
	c->fired_at_ns = calloc(c->count, sizeof(*c->fired_at_ns));
	c->silent = calloc(c->count, sizeof(*c->silent));
	if (!c->links || !c->fds || !c->online || !c->fired || !c->fired_at_ns || !c->silent)
		return err_set(e, E_NOMEM, "cpus");
	c->online_fd = open(ONLINE_PATH, O_RDONLY | O_CLOEXEC);
	if (c->online_fd < 0)
		return err_os(e, "open %s", ONLINE_PATH);
	*out = STEAL_PTR(c);
	return OK;
}

/* A silent CPU does not count as attached. */
static void set_silent(struct cpus *c, uint32_t cpu, bool silent)
{
	if (c->silent[cpu] == silent)
		return;
	c->silent[cpu] = silent;
	if (silent)
		atomic_fetch_sub(&c->attached, 1);
	else
		atomic_fetch_add(&c->attached, 1);
}

static void detach(struct cpus *c, uint32_t cpu)
{
	if (!c->links[cpu])
		return;
	set_silent(c, cpu, false);
	(void)bpf_link__destroy(c->links[cpu]);
	c->links[cpu] = NULL;
	atomic_fetch_sub(&c->attached, 1);
}

void cpus_detach(struct cpus *c)
{
	for (uint32_t cpu = 0; cpu < c->count; cpu++)
		detach(c, cpu);
	c->text_len = 0; /* attach again at the next update */
}

void cpus_free(struct cpus *c)
{
	if (!c)
		return;
	if (c->links)
		cpus_detach(c);
	fd_cleanup(&c->online_fd);
	free(c->links);
	free(c->fds);
	free(c->online);
	free(c->fired);
	free(c->fired_at_ns);
	free(c->silent);
	free(c);
}

static enum status attach(struct cpus *c, uint32_t cpu, struct err *e)
{
	int fd = broker_perf_event(cpu, c->frequency_hz);
	/* Without a broker this process may be allowed to open the event. With one, the broker may
	 * lack a capability: perf_event_paranoid=3, Debian's default, requires CAP_SYS_ADMIN, which
	 * root still has when sampling begins. */
	int refused = errno;
	if (fd < 0 && (errno == ENOSYS || errno == EACCES || errno == EPERM)) {
		fd = privileged_open_cpu(cpu, c->frequency_hz);
		if (fd < 0 && errno == ENOSYS) /* the sandbox forbids it here */
			errno = refused;
	}
	if (fd < 0 && errno == ENODEV) /* went offline since we read the list */
		return OK;
	if (fd < 0 && errno == EINVAL)
		return err_set(e, E_INVALID,
			"the kernel refuses %u samples a second: see "
			"/proc/sys/kernel/perf_event_max_sample_rate",
			c->frequency_hz);
	if (fd < 0)
		return err_os(e, "perf_event_open on CPU %u", cpu);
	c->links[cpu] = bpf_program__attach_perf_event(c->program, fd); /* owns fd */
	if (!c->links[cpu]) {
		enum status s = err_os(e, "attach the eBPF program on CPU %u", cpu);
		(void)close(fd);
		return s;
	}
	c->fds[cpu] = fd;
	c->fired_at_ns[cpu] = clock_monotonic_ns(); /* it is not late yet */
	if (c->paused)                              /* attaching has enabled it */
		(void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	atomic_fetch_add(&c->attached, 1);
	return OK;
}

void cpus_pause(struct cpus *c, bool paused)
{
	unsigned long what = paused ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE;
	c->paused = paused;
	for (uint32_t cpu = 0; cpu < c->count; cpu++) {
		if (!c->links[cpu])
			continue;
		(void)ioctl(c->fds[cpu], what, 0);
		c->fired_at_ns[cpu] = clock_monotonic_ns();
	}
}

/* A CPU clock event turns its frequency into a period when it is made, and has only the period from
 * then on: kernel/events/core.c, perf_swevent_init_hrtimer(). */
enum status cpus_set_frequency(struct cpus *c, uint32_t frequency_hz, struct err *e)
{
	assert(frequency_hz > 0);
	uint64_t value = NS_PER_SEC / frequency_hz;
	for (uint32_t cpu = 0; cpu < c->count; cpu++)
		if (c->links[cpu] && ioctl(c->fds[cpu], PERF_EVENT_IOC_PERIOD, &value) < 0)
			return err_os(e, "%u samples a second on CPU %u", frequency_hz, cpu);
	c->frequency_hz = frequency_hz;
	return OK;
}

enum status cpus_update(struct cpus *c, struct err *e)
{
	char text[ONLINE_TEXT_MAX];
	ssize_t n = pread(c->online_fd, text, sizeof(text), 0);
	if (n < 0)
		return err_os(e, "read %s", ONLINE_PATH);
	if (c->text_len == (size_t)n && memcmp(text, c->text, (size_t)n) == 0)
		return OK;
	if (!cpus_parse(str_make(text, (size_t)n), c->online, c->count))
		return err_set(
			e, E_INVALID, "%s: not a list of CPUs: %.*s", ONLINE_PATH, (int)n, text);
	enum status s = OK;
	for (uint32_t cpu = 0; cpu < c->count; cpu++) {
		if (!c->online[cpu]) {
			detach(c, cpu);
		} else if (!c->links[cpu]) {
			enum status one = attach(c, cpu, e);
			/* A CPU that may not be sampled now cannot be sampled at the next look
			 * either: that is reported once, and the other CPUs are sampled. */
			if (one != OK && (one != E_DENIED || c->attached == 0))
				return one;
			s = one != OK ? one : s;
		}
	}
	memcpy(c->text, text, (size_t)n);
	c->text_len = (size_t)n;
	return s;
}

/* How long a live event may be silent: a hypervisor may let a CPU wait. */
static int64_t patience_ns(const struct cpus *c)
{
	return MAX(CPUS_SILENCE_NS, CPUS_SILENCE_PERIODS * NS_PER_SEC / c->frequency_hz);
}

/* The old event is removed only once there is a new one: the silence may have been a pause. */
static enum status renew(struct cpus *c, uint32_t cpu, struct err *e)
{
	struct bpf_link *link = c->links[cpu];
	int fd = c->fds[cpu];
	c->links[cpu] = NULL;
	enum status s = attach(c, cpu, e);
	if (!c->links[cpu]) {
		c->links[cpu] = link;
		c->fds[cpu] = fd;
		return s;
	}
	(void)bpf_link__destroy(link);
	atomic_fetch_sub(&c->attached, 1);
	metric_add(&c->renewed, 1);
	return OK;
}

enum status cpus_listen(struct cpus *c, const uint64_t *fired, int64_t now_ns, struct err *e)
{
	enum status s = OK;
	for (uint32_t cpu = 0; cpu < c->count; cpu++) {
		bool has_fired = fired[cpu] != c->fired[cpu];
		if (has_fired)
			set_silent(c, cpu, false);
		if (c->silent[cpu])
			continue;
		bool is_silent = c->links[cpu] && !c->paused && !has_fired;
		if (is_silent && now_ns - c->fired_at_ns[cpu] < patience_ns(c))
			continue;
		c->fired[cpu] = fired[cpu];
		c->fired_at_ns[cpu] = now_ns;
		enum status one = is_silent ? renew(c, cpu, e) : OK;
		if (one == OK)
			continue;
		s = one;
		if (one == E_DENIED) /* it will be refused later, too; that is reported once */
			set_silent(c, cpu, true);
	}
	return s;
}

uint64_t cpus_renewed(const struct cpus *c)
{
	return metric_get(&c->renewed);
}

uint32_t cpus_attached(const struct cpus *c)
{
	return atomic_load(&c->attached);
}
