/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of calls: open (load the programs, test what they assume about this kernel, hook
 * processes) -> start (a perf event on each CPU) -> poll, many times -> stop -> close.
 *
 * The reader wakes by its own timer; the program wakes it only when the ring is half full. At 19 Hz
 * most of the cost is the reader's system calls, not the samples.
 *
 * Samples whose stack was sent before in this epoch come without frames; stack_cache.h has kept
 * those. When it has kept enough, the program is told to send all frames until the next epoch.
 */
#include "agent/sample/sampler.h"

#include "agent/sample/cpus.h"
#include "agent/sample/mapsizes.h"
#include "agent/sample/probe.h"
#include "agent/sample/stack_cache.h"
#include "agent/tables/tables.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "os/os.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

/* The skeleton is generated, and casts a const away. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "profiler.skel.h"
#pragma GCC diagnostic pop

#define FREQUENCY_MAX_HZ 10000
#define EVENT_BYTES_MAX                \
	(sizeof(struct event_sample) + \
		(SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX) * sizeof(uint64_t))
#define CPU_CHECK_NS 1000000000LL

struct sampler {
	struct sampler_config config;
	struct sampler_events events;
	struct profiler_bpf *skeleton;
	struct tables *tables;
	struct cpus *cpus;
	struct ring_buffer *ring;
	struct bpf_link *exec_link;
	struct bpf_link *exit_link;
	struct bpf_link *switch_link; /* NULL without off_cpu_probability */
	struct stack_cache seen;
	struct event_sample *restored; /* for a SEEN sample with its frames */
	metric_value lost_seen;
	uint64_t fixed_kernel_bytes; /* maps that do not grow, and programs */
	uint64_t slab_kernel_bytes;  /* of one slab */
	int64_t cpus_checked_ns;
	int stats_fd;
	int possible_cpus;
	bool started;
	bool paused;
	bool polled; /* sampler_poll() has emptied the ring since the last epoch began */
};

/* ---- opening ---- */

static enum status check_config(const struct sampler_config *c, struct err *e)
{
	if (c->frequency_hz < 1 || c->frequency_hz > FREQUENCY_MAX_HZ)
		return err_set(e, E_INVALID, "sampling frequency %u Hz: from 1 to %d is possible",
			c->frequency_hz, FREQUENCY_MAX_HZ);
	if (!(c->off_cpu_probability >= 0 && c->off_cpu_probability <= 1))
		return err_set(e, E_INVALID, "off-CPU probability %g: from 0 to 1 is possible",
			c->off_cpu_probability);
	if (c->ring_bytes && ((c->ring_bytes & (c->ring_bytes - 1)) || c->ring_bytes < 4096))
		return err_set(e, E_INVALID, "ring of %u bytes: a power of two from 4096 on",
			c->ring_bytes);
	return OK;
}

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* The verifier's last message before its statistics. */
static struct str verifier_complaint(const char *log)
{
	struct str text = str_of(log);
	struct str line;
	struct str last = STR("");
	while (str_split(&text, '\n', &line)) {
		if (str_starts(line, STR("processed ")))
			break;
		if (line.len > 0)
			last = line;
	}
	return last;
}

/* The largest of the kernel's random numbers for which a switch is sampled. */
static uint32_t last_chosen(double probability)
{
	return (uint32_t)(probability * UINT32_MAX);
}

/* Sets the sizes of the maps, except the slabs, for this many possible CPUs. */
static enum status size_maps(
	const struct sampler_config *c, struct profiler_bpf *skeleton, uint32_t cpus, struct err *e)
{
	bool is_off_cpu = c->off_cpu_probability > 0;
	struct mapsizes sizes;
	mapsizes_choose(cpus, c->frequency_hz, is_off_cpu, &sizes);
	uint32_t ring = c->ring_bytes ? c->ring_bytes : sizes.ring_bytes;
	skeleton->rodata->config.wake_bytes = ring / 2;
	skeleton->rodata->config.seen_mask = sizes.seen_slots - 1;
	skeleton->rodata->config.stack_mask = sizes.stack_copies - 1;
	skeleton->rodata->config.codes_mask = sizes.codes_told - 1;
	int failed =
		bpf_map__set_max_entries(skeleton->maps.events, ring) |
		bpf_map__set_max_entries(skeleton->maps.seen_hashes, sizes.seen_slots) |
		bpf_map__set_max_entries(skeleton->maps.stack_copies, sizes.stack_copies) |
		bpf_map__set_max_entries(skeleton->maps.codes_told, sizes.codes_told) |
		bpf_map__set_max_entries(skeleton->maps.hotspot_kept_places, sizes.kept_places);
	if (is_off_cpu)
		failed |= bpf_map__set_max_entries(skeleton->maps.off_cpu, OFF_CPU_THREADS_MAX);
	return failed ? err_os(e, "size the eBPF maps") : OK;
}

enum status sampler_kernel_bytes(
	const struct sampler_config *c, uint32_t cpus, uint64_t *out, struct err *e)
{
	struct profiler_bpf *skeleton = profiler_bpf__open();
	if (!skeleton)
		return err_os(e, "open the eBPF programs");
	enum status s = size_maps(c, skeleton, cpus, e);
	if (s == OK)
		*out = mapsizes_estimate(skeleton->obj, cpus);
	profiler_bpf__destroy(skeleton);
	return s;
}

uint32_t sampler_idle_table_bytes(const struct sampler_config *c)
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t bytes;
	if (cpus <= 0 || sampler_kernel_bytes(c, (uint32_t)cpus, &bytes, NULL) != OK)
		return TABLE_BYTES_IDLE_LEAST;
	return mapsizes_idle_table_bytes(bytes);
}

/* Sets the programs' configuration, before they are loaded. */
static enum status set_up(struct sampler *s, struct err *e)
{
	struct profiler_bpf *skeleton = s->skeleton;
	uint32_t interval_ns = (uint32_t)(NS_PER_SEC / s->config.frequency_hz);
	uint64_t seed = 0;
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return err_os(e, "getrandom");
	skeleton->rodata->config.hash_seed = seed;
	skeleton->rodata->config.only_pid = (uint32_t)s->config.only_pid;
	skeleton->rodata->config.stack_interval_ns = MIN(interval_ns, (uint32_t)STACK_INTERVAL_NS);
	skeleton->rodata->config.copy_stacks = s->events.stack != NULL;
	skeleton->rodata->config.keep_interpreters = s->config.keep_interpreters;
	skeleton->rodata->config.walk_runtimes = s->events.code != NULL;
	skeleton->bss->settings.seen_enabled = 1;
	uint32_t slabs = slabs_of_bytes(s->config.table_bytes_max);
	int failed = bpf_map__set_max_entries(skeleton->maps.slabs, slabs);
	if (s->config.off_cpu_probability > 0)
		skeleton->bss->settings.off_cpu_last = last_chosen(s->config.off_cpu_probability);
	else
		failed |= bpf_program__set_autoload(skeleton->progs.thread_switch, false);
	if (failed)
		return err_os(e, "size the eBPF maps");
	enum status status = size_maps(&s->config, skeleton, (uint32_t)s->possible_cpus, e);
	if (status != OK || s->events.code)
		return status;
	/* Without a callback for functions runtimes are not walked. */
	skeleton->rodata->config.codes_mask = 0;
	return bpf_map__set_max_entries(skeleton->maps.codes_told, 1) ||
			       bpf_map__set_max_entries(skeleton->maps.hotspot_kept_places, 1)
		       ? err_os(e, "size the eBPF maps")
		       : OK;
}

/* The verifier gives up when a signal comes (EAGAIN), and libbpf tries five times only. So signals
 * are blocked: a request to stop waits until the programs are loaded. */
static int load_undisturbed(struct bpf_object_skeleton *skeleton)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int rc = bpf_object__load_skeleton(skeleton);
	int error = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return rc;
}

enum status sampler_load(struct bpf_object_skeleton *skeleton, const char *log, struct err *e)
{
	if (load_undisturbed(skeleton) == 0)
		return OK;
	int error = errno;
	struct str complaint = verifier_complaint(log);
	if (complaint.len > 0)
		return err_set(e, E_UNSUPPORTED,
			"the kernel's verifier refuses the eBPF program: %.*s", STR_ARG(complaint));
	return probe_explain("loading the eBPF programs", error, e);
}

static enum status load_once(struct sampler *s, struct err *e)
{
	CLEANUP(free_cleanup) char *log = calloc(1, SAMPLER_LOG_BYTES);
	if (!log)
		return err_set(e, E_NOMEM, "sampler");
	LIBBPF_OPTS(bpf_object_open_opts, options, .kernel_log_buf = log,
		.kernel_log_size = SAMPLER_LOG_BYTES);
	(void)libbpf_set_print(print_nothing);
	s->skeleton = profiler_bpf__open_opts(&options);
	if (!s->skeleton)
		return err_os(e, "open the eBPF programs");

	enum status status = set_up(s, e);
	return status == OK ? sampler_load(s->skeleton->skeleton, log, e) : status;
}

/* A kernel that refuses the walk of language runtimes still samples: the programs are loaded
 * without it, which then has no code that the verifier sees. */
static enum status load(struct sampler *s, struct err *e)
{
	enum status status = load_once(s, e);
	if (status != E_UNSUPPORTED || !s->events.code)
		return status;
	struct err first = *e;
	profiler_bpf__destroy(STEAL_PTR(s->skeleton));
	s->events.code = NULL;
	status = load_once(s, e);
	if (status == OK)
		log_warn("frames of language runtimes are not walked", "reason=%s",
			LOG_QUOTED(first.text));
	return status;
}

/* The mapping of `address`, as /proc shows it. */
static enum status own_mapping(
	uint64_t address, uint64_t *out_start, uint64_t *out_end, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 16u << 20);
	enum status s = os_read_file("/proc/self/maps", &b, e);
	struct str text = buf_view(&b);
	struct str line;
	while (s == OK && str_split(&text, '\n', &line)) {
		struct str range = str_sub(line, 0, str_index(line, ' '));
		size_t dash = str_index(range, '-');
		uint64_t start, end;
		if (str_parse_u64(str_sub(range, 0, dash), 16, &start) &&
			str_parse_u64(str_sub(range, dash + 1, range.len), 16, &end) &&
			address >= start && address < end) {
			*out_start = start;
			*out_end = end;
			return OK;
		}
	}
	return s != OK ? s : err_set(e, E_NOTFOUND, "/proc/self/maps: own memory is not there");
}

/* Lets the program look up an address of this process, and compares the result with /proc. */
static enum status check_address(struct sampler *s, const void *address, struct err *e)
{
	uint64_t start = 0, end = 0;
	enum status status = own_mapping((uint64_t)(uintptr_t)address, &start, &end, e);
	if (status != OK)
		return status;
	struct profiler_check *c = &s->skeleton->bss->check;
	c->address = (uint64_t)(uintptr_t)address;
	LIBBPF_OPTS(bpf_test_run_opts, run);
	if (bpf_prog_test_run_opts(bpf_program__fd(s->skeleton->progs.check_kernel), &run) != 0)
		return probe_explain("running an eBPF program (BPF_PROG_TEST_RUN)", errno, e);
	/* The heap or stack may have grown since /proc was read: the upper or lower end moves. */
	if (c->vma_start > c->address || c->address >= c->vma_end ||
		(c->vma_start != start && c->vma_end != end))
		return err_set(e, E_UNSUPPORTED,
			"this kernel keeps memory mappings in a form that is not known here: "
			"%llx is in %llx-%llx, but %llx-%llx was found",
			(unsigned long long)c->address, (unsigned long long)start,
			(unsigned long long)end, (unsigned long long)c->vma_start,
			(unsigned long long)c->vma_end);
	return OK;
}

/* Checks the kernel layouts that no BTF describes on this process, before they are used for others.
 */
static enum status check_kernel(struct sampler *s, struct err *e)
{
	int on_stack = 0;
	const void *addresses[] = { &on_stack, (const void *)(uintptr_t)&sampler_open, s,
		(const void *)(uintptr_t)&getrandom, s->skeleton };
	for (size_t i = 0; i < ARRAY_COUNT(addresses); i++) {
		enum status status = check_address(s, addresses[i], e);
		if (status != OK)
			return status;
	}
	const struct profiler_check *c = &s->skeleton->bss->check;
	uint64_t stack = (uint64_t)(uintptr_t)&on_stack;
	uint64_t distance = c->user_sp > stack ? c->user_sp - stack : stack - c->user_sp;
	if (c->thread_size == 0 || distance > (1u << 20))
		return err_set(e, E_UNSUPPORTED,
			"this kernel keeps user registers in a place that is not known here");
	if (c->thread_size != THREAD_SIZE_KNOWN)
		s->skeleton->bss->settings.thread_size = (uint32_t)c->thread_size;
	return OK;
}

static int on_event(void *ctx, void *data, size_t size);

static enum status hook(struct sampler *s, struct err *e)
{
	s->ring = ring_buffer__new(bpf_map__fd(s->skeleton->maps.events), on_event, s, NULL);
	if (!s->ring)
		return err_os(e, "open the eBPF ring buffer");
	s->exec_link = bpf_program__attach(s->skeleton->progs.process_exec);
	if (!s->exec_link)
		return probe_explain("watching sched_process_exec", errno, e);
	s->exit_link = bpf_program__attach(s->skeleton->progs.process_exit);
	if (!s->exit_link)
		return probe_explain("watching sched_process_exit", errno, e);
	/* The attached program does nothing before sampler_start(). */
	if (s->config.off_cpu_probability > 0) {
		s->switch_link = bpf_program__attach(s->skeleton->progs.thread_switch);
		if (!s->switch_link)
			return probe_explain("watching sched_switch", errno, e);
	}
	if (s->config.stats) {
		s->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
		if (s->stats_fd < 0)
			return err_os(e, "measuring eBPF programs needs CAP_SYS_ADMIN");
	}
	return OK;
}

static void sampler_cleanup(struct sampler **s)
{
	sampler_close(*s);
}

enum status sampler_open(const struct sampler_config *c, const struct sampler_events *events,
	struct sampler **out, struct err *e)
{
	enum status status = check_config(c, e);
	if (status == OK)
		status = probe_sampling(e);
	if (status != OK)
		return status;
	CLEANUP(sampler_cleanup) struct sampler *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, E_NOMEM, "sampler");
	s->config = *c;
	s->events = *events;
	s->stats_fd = -1;
	s->possible_cpus = libbpf_num_possible_cpus();
	s->restored = malloc(EVENT_BYTES_MAX);
	if (!s->restored)
		return err_set(e, E_NOMEM, "sampler");
	if (s->possible_cpus <= 0)
		return err_set(e, E_IO, "cannot tell how many CPUs there are");
	status = load(s, e);
	if (status == OK)
		status = check_kernel(s, e);
	if (status != OK)
		return status;
	const struct tables_maps maps = {
		.slabs = bpf_map__fd(s->skeleton->maps.slabs),
		.pages = bpf_map__fd(s->skeleton->maps.pages),
		.file_slots = bpf_map__fd(s->skeleton->maps.file_slots),
		.files = bpf_map__fd(s->skeleton->maps.files),
		.runtime_records = bpf_map__fd(s->skeleton->maps.runtime_records),
		.settings = &s->skeleton->bss->settings,
	};
	uint32_t slabs_max = slabs_of_bytes(c->table_bytes_max);
	uint32_t slabs_idle = MIN(slabs_of_bytes(sampler_idle_table_bytes(c)), slabs_max);
	status = tables_new(&maps, slabs_idle, slabs_max, &s->tables, e);
	if (status == OK)
		status = cpus_new(s->skeleton->progs.sample_cpu, c->frequency_hz, &s->cpus, e);
	if (status == OK)
		status = hook(s, e);
	if (status != OK)
		return status;
	s->fixed_kernel_bytes = mapsizes_measure(s->skeleton->obj, (uint32_t)s->possible_cpus);
	s->slab_kernel_bytes = SLAB_BYTES + 4096;
	*out = STEAL_PTR(s);
	return OK;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	cpus_free(s->cpus);
	(void)bpf_link__destroy(s->exec_link);
	(void)bpf_link__destroy(s->exit_link);
	(void)bpf_link__destroy(s->switch_link);
	ring_buffer__free(s->ring);
	tables_free(s->tables);
	profiler_bpf__destroy(s->skeleton);
	fd_cleanup(&s->stats_fd);
	stack_cache_deinit(&s->seen);
	free(s->restored);
	free(s);
}

/* ---- running ---- */

static void set_off_cpu_enabled(struct sampler *s)
{
	uint32_t on = s->started && !s->paused;
	__atomic_store_n(&s->skeleton->bss->settings.off_cpu_enabled, on, __ATOMIC_RELAXED);
}

void sampler_set_off_cpu(struct sampler *s, double probability)
{
	__atomic_store_n(&s->skeleton->bss->settings.off_cpu_last, last_chosen(probability),
		__ATOMIC_RELAXED);
}

enum status sampler_start(struct sampler *s, struct err *e)
{
	s->started = true;
	s->cpus_checked_ns = clock_monotonic_ns();
	set_off_cpu_enabled(s);
	return cpus_update(s->cpus, e);
}

void sampler_stop(struct sampler *s)
{
	s->started = false;
	set_off_cpu_enabled(s);
	cpus_detach(s->cpus);
}

void sampler_pause(struct sampler *s, bool paused)
{
	s->paused = paused;
	set_off_cpu_enabled(s);
	cpus_pause(s->cpus, paused);
}

enum status sampler_set_frequency(struct sampler *s, uint32_t frequency_hz, struct err *e)
{
	return cpus_set_frequency(s->cpus, frequency_hz, e);
}

/* Reads the counters of each possible CPU; false: they cannot be read. */
static bool read_counters_each(struct sampler *s, struct bpf_counters *each)
{
	uint32_t zero = 0;
	return bpf_map_lookup_elem(bpf_map__fd(s->skeleton->maps.counters), &zero, each) == 0;
}

bool sampler_works(struct sampler *s)
{
	CLEANUP(free_cleanup)
	struct bpf_counters *each = calloc((size_t)s->possible_cpus, sizeof(*each));
	return each && read_counters_each(s, each);
}

static void set_seen_enabled(struct sampler *s, uint32_t on)
{
	__atomic_store_n(&s->skeleton->bss->settings.seen_enabled, on, __ATOMIC_RELAXED);
}

static void deliver_sample(struct sampler *s, const struct event_sample *sample)
{
	if (sample->h.flags & EVENT_FLAG_KEEP) {
		if (!stack_cache_keep(&s->seen, sample) || stack_cache_is_full(&s->seen))
			set_seen_enabled(s, 0);
	}
	s->events.sample(s->events.ctx, sample);
}

static void deliver_seen(struct sampler *s, const struct event_sample *sample)
{
	const uint64_t *frames;
	const struct cached_stack *stack = stack_cache_find(&s->seen, sample->stack_hash, &frames);
	if (!stack || stack->kernel_count != sample->kernel_count ||
		stack->user_count != sample->user_count) {
		metric_add(&s->lost_seen, 1);
		return;
	}
	size_t count = (size_t)stack->kernel_count + stack->user_count;
	memcpy(s->restored, sample, sizeof(*sample));
	if (count > 0)
		memcpy(s->restored->frames, frames, count * sizeof(*frames));
	s->restored->h.type = EVENT_SAMPLE;
	s->events.sample(s->events.ctx, s->restored);
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct sampler *s = ctx;
	uint16_t type;
	assert(size >= sizeof(type));
	memcpy(&type, data, sizeof(type)); /* what every event begins with */
	switch (type) {
	case EVENT_SAMPLE: {
		const struct event_sample *sample = data;
		assert(size >= sizeof(*sample));
		assert(size - sizeof(*sample) >=
			((size_t)sample->kernel_count + sample->user_count) * sizeof(uint64_t));
		deliver_sample(s, sample);
		break;
	}
	case EVENT_SAMPLE_SEEN:
		assert(size >= sizeof(struct event_sample));
		deliver_seen(s, data);
		break;
	case EVENT_RESUME:
		assert(size >= sizeof(struct event_resume));
		s->events.resume(s->events.ctx, data);
		break;
	case EVENT_CODE: {
		const struct event_code *c = data;
		assert(size >= offsetof(struct event_code, data));
		assert(size - offsetof(struct event_code, data) >=
			(size_t)c->name_bytes + c->file_bytes + c->lines_bytes);
		if (s->events.code)
			s->events.code(s->events.ctx, c);
		break;
	}
	case EVENT_EXEC:
	case EVENT_EXIT:
		assert(size >= sizeof(struct event_process));
		if (s->events.process)
			s->events.process(s->events.ctx, data);
		break;
	case EVENT_STACK: {
		const struct event_stack *stack = data;
		assert(size >= offsetof(struct event_stack, stack));
		assert(size - offsetof(struct event_stack, stack) >= stack->stack_bytes);
		s->events.stack(s->events.ctx, stack);
		break;
	}
	default:
		UNREACHABLE();
	}
	return 0;
}

static enum status listen_to_cpus(struct sampler *s, int64_t now_ns, struct err *e)
{
	size_t count = (size_t)s->possible_cpus;
	CLEANUP(free_cleanup) struct bpf_counters *each = calloc(count, sizeof(*each));
	CLEANUP(free_cleanup) uint64_t *fired = calloc(count, sizeof(*fired));
	if (!each || !fired || !read_counters_each(s, each))
		return OK;
	for (size_t i = 0; i < count; i++)
		fired[i] = each[i].samples - each[i].off_cpu + each[i].idle;
	return cpus_listen(s->cpus, fired, now_ns, e);
}

void sampler_ask_codes(struct sampler *s)
{
	uint32_t *epoch = &s->skeleton->bss->settings.codes_epoch;
	__atomic_store_n(epoch, *epoch + 1, __ATOMIC_RELAXED);
}

enum status sampler_poll(struct sampler *s, int timeout_ms, struct err *e)
{
	struct epoll_event event;
	if (timeout_ms != 0 &&
		epoll_wait(ring_buffer__epoll_fd(s->ring), &event, 1, timeout_ms) < 0 &&
		errno != EINTR)
		return err_os(e, "wait for samples");
	int n = ring_buffer__consume(s->ring);
	if (n < 0) {
		errno = -n;
		return err_os(e, "read samples");
	}
	s->polled = true;
	int64_t now = clock_monotonic_ns();
	if (!s->started || now - s->cpus_checked_ns < CPU_CHECK_NS)
		return OK;
	s->cpus_checked_ns = now;
	enum status status = cpus_update(s->cpus, e);
	return status == OK ? listen_to_cpus(s, now, e) : status;
}

enum status sampler_read_too(struct sampler *s, int ring_fd,
	int (*handle)(void *ctx, void *data, size_t size), void *ctx, struct err *e)
{
	if (ring_buffer__add(s->ring, ring_fd, handle, ctx) != 0)
		return err_os(e, "open another eBPF ring buffer");
	return OK;
}

void sampler_next_epoch(struct sampler *s)
{
	struct profiler_settings *settings = &s->skeleton->bss->settings;
	__atomic_store_n(&settings->epoch, settings->epoch + 1, __ATOMIC_RELAXED);
	/* Hashes of the epoch before the last are forgotten only if none of them can be in the
	 * ring. */
	if (s->polled)
		stack_cache_turn(&s->seen);
	s->polled = false;
	if (!stack_cache_is_full(&s->seen))
		set_seen_enabled(s, 1);
	tables_next_epoch(s->tables, clock_monotonic_ns());
}

/* ---- files ---- */

enum status sampler_publish(struct sampler *s, const struct file_key *key, uint32_t file_id,
	const struct unwind_table *t, struct err *e)
{
	return tables_publish(s->tables, key, file_id, t, e);
}

void sampler_retract(struct sampler *s, const struct file_key *key)
{
	tables_retract(s->tables, key);
}

bool sampler_walks_runtimes(const struct sampler *s)
{
	return s->events.code != NULL;
}

enum status sampler_set_runtime(struct sampler *s, const struct file_key *key,
	const struct runtime_record *r, struct err *e)
{
	if (!sampler_walks_runtimes(s))
		return OK;
	if (r->kind == RUNTIME_HOTSPOT || r->kind == RUNTIME_V8 || r->kind == RUNTIME_BEAM)
		s->skeleton->bss->settings.has_code_runtimes = 1;
	if (r->kind == RUNTIME_RUBY)
		s->skeleton->bss->settings.has_ruby = 1;
	if (r->kind == RUNTIME_PHP)
		s->skeleton->bss->settings.has_php = 1;
	return tables_set_runtime(s->tables, key, r, e);
}

enum status sampler_set_thread_context(
	struct sampler *s, uint32_t pid, const struct thread_context_place *place)
{
	int map = bpf_map__fd(s->skeleton->maps.thread_contexts);
	if (!sampler_walks_runtimes(s) || (!place && !s->skeleton->bss->settings.has_contexts))
		return OK;
	if (!place) {
		(void)bpf_map_delete_elem(map, &pid); /* mostly there is no such entry */
		return OK;
	}
	if (bpf_map_update_elem(map, &pid, place, BPF_ANY) != 0)
		return E_LIMIT;
	s->skeleton->bss->settings.has_contexts = 1;
	return OK;
}

bool sampler_knows(struct sampler *s, const struct file_key *key)
{
	return tables_know(s->tables, key);
}

enum tables_found sampler_find_rule(struct sampler *s, const struct file_key *key,
	uint64_t file_offset, struct unwind_rule *out)
{
	return tables_find_rule(s->tables, key, file_offset, out);
}

void sampler_rest(struct sampler *s)
{
	tables_rest(s->tables);
}

/* ---- counters ---- */

static void read_counters(struct sampler *s, struct bpf_counters *out)
{
	size_t count = (size_t)s->possible_cpus;
	CLEANUP(free_cleanup) struct bpf_counters *each = calloc(count, sizeof(*each));
	memset(out, 0, sizeof(*out));
	if (!each || !read_counters_each(s, each))
		return;
	for (size_t i = 0; i < count; i++) {
#define ADD(name, help) out->name += each[i].name;
		BPF_COUNTER_LIST(ADD)
#undef ADD
		for (size_t k = 0; k < ARRAY_COUNT(out->stack_end); k++)
			out->stack_end[k] += each[i].stack_end[k];
	}
}

static void read_program(const struct bpf_program *program, struct sampler_program *out)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	(void)snprintf(out->name, sizeof(out->name), "%s", bpf_program__name(program));
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) != 0)
		return;
	out->run_count = info.run_cnt;
	out->run_ns = info.run_time_ns;
	out->verified_insns = info.verified_insns;
}

void sampler_read_stats(struct sampler *s, struct sampler_stats *out)
{
	memset(out, 0, sizeof(*out));
	read_counters(s, &out->bpf);
	struct tables_stats tables;
	tables_read_stats(s->tables, &tables);
	out->lost_seen = metric_get(&s->lost_seen);
	out->cpus = cpus_attached(s->cpus);
	out->cpus_renewed = cpus_renewed(s->cpus);
	out->files = tables.files;
	out->without_room = tables.without_room;
	out->table_bytes = tables.bytes;
	out->evicted_tables = tables.evicted;
	out->slab_bytes = tables.slabs * s->slab_kernel_bytes;
	out->kernel_bytes = s->fixed_kernel_bytes + out->slab_bytes;
	struct bpf_program *p;
	bpf_object__for_each_program(p, s->skeleton->obj)
	{
		if (bpf_program__fd(p) < 0 || out->program_count == SAMPLER_PROGRAMS_MAX)
			continue; /* not loaded */
		struct sampler_program *program = &out->programs[out->program_count++];
		read_program(p, program);
		if (p == s->skeleton->progs.sample_cpu) {
			out->run_count = program->run_count;
			out->run_ns = program->run_ns;
		}
	}
}
