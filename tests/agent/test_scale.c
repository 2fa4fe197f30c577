/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's own working together where much happens at once: programs that load and unload code,
 * a thousand new programs a second, tables that are replaced while they are read. Short by default;
 * FIRN_TEST_SECONDS says for how long each goes.
 */
#include "live.h"
#include "test.h"

#include "agent/bpf/layout.h"
#include "host.h"

#define SAMPLES_NEEDED 50
#define LATE_NS (60 * NS_PER_SEC) /* on a busy machine */
#define FREQUENCY_HZ 199 /* so that every stack that needs it is copied: STACK_INTERVAL_NS */

static int64_t duration_ns(int64_t otherwise_s)
{
	const char *text = getenv("FIRN_TEST_SECONDS");
	return (text ? atoll(text) : otherwise_s) * NS_PER_SEC;
}

/* For as long as it should go, and longer where the machine gives it too little to count. */
static bool goes_on(int64_t begin_ns, uint64_t samples)
{
	int64_t spent = clock_monotonic_ns() - begin_ns;
	return spent < duration_ns(4) || (samples < 2 * SAMPLES_NEEDED && spent < LATE_NS);
}

#define NEED_SAMPLING()                             \
	do {                                        \
		struct err need_e_ = { 0 };         \
		if (probe_sampling(&need_e_) != OK) \
			SKIP("%s", need_e_.text);   \
	} while (0)

static const char *workload(const char *name)
{
	static char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", WORKLOADS_DIR, name);
	return path;
}

/* ---- whole stacks of one program ---- */

#define KNOWN_WITHIN_NS (90 * NS_PER_SEC) /* behind the files of all other processes */

struct wholes {
	struct host host;
	int pid;
	char comm[16];       /* of the processes that count */
	const char *through; /* a file: samples count from the first whole stack through it on */
	uint64_t samples, whole;
	uint64_t not_copied; /* until the first that counts */
	uint64_t ends[STACK_END_COUNT];
	uint32_t said;      /* samples that were described */
	uint64_t delivered; /* of all processes */
	uint64_t execs, exits;
	struct sampler_stats stats;
};

static bool goes_through(const struct wholes *w, const struct event_sample *s)
{
	for (uint32_t i = 0; i < s->user_count; i++) {
		uint64_t f = s->frames[s->kernel_count + i];
		struct file_info info;
		if (files_get(w->host.files, (uint32_t)(f >> FRAME_FILE_SHIFT), &info) &&
			str_ends(str_of(info.path), str_of(w->through)))
			return true;
	}
	return false;
}

static void count_whole(void *ctx, const struct event_sample *s)
{
	struct wholes *w = ctx;
	w->delivered++;
	if (strncmp(s->h.comm, w->comm, 15) != 0 || s->h.stack_end == STACK_END_NONE)
		return;
	if (w->through) {
		if (stack_end_is_whole(s->h.stack_end) && goes_through(w, s))
			w->through = NULL;
		return;
	}
	w->samples++;
	w->ends[s->h.stack_end]++;
	if (stack_end_is_whole(s->h.stack_end)) {
		w->whole++;
		return;
	}
	if (w->said++ >= 40)
		return;
	print_message("ends %u:", s->h.stack_end);
	for (uint32_t i = 0; i < s->user_count && i < 12; i++) {
		uint64_t f = s->frames[s->kernel_count + i];
		struct file_info info;
		bool known = files_get(w->host.files, (uint32_t)(f >> FRAME_FILE_SHIFT), &info);
		const char *name = known ? strrchr(info.path, '/') : NULL;
		print_message(" %s+%llx", name ? name + 1 : "?",
			(unsigned long long)(f & FRAME_OFFSET_MASK));
	}
	print_message("%s of %u; kernel %u\n", s->user_count > 12 ? " …" : "", s->user_count,
		s->kernel_count);
}

static void count_process(void *ctx, const struct event_process *p)
{
	struct wholes *w = ctx;
	bool is_ours = strncmp(p->h.comm, w->comm, 15) == 0;
	w->execs += is_ours && p->h.type == EVENT_EXEC;
	w->exits += is_ours && p->h.type == EVENT_EXIT;
}

/* No fewer than this share of the samples is whole, give or take five standard deviations of a
 * sample of that size, and those whose copies were counted as lost: where the machine stands still
 * the ring fills. */
static bool is_whole_share(const struct wholes *w, double share)
{
	double n = (double)w->samples, others = n - (double)w->whole - (double)w->not_copied;
	double allowed = n * (1 - share), over = others - allowed - 1;
	return over <= 0 || over * over <= 25 * allowed;
}

static void wholes_begin(
	struct wholes *w, uint32_t frequency_hz, const char *const *args, int out_fd)
{
	const char *name = strrchr(args[0], '/');
	(void)snprintf(w->comm, sizeof(w->comm), "%s", name ? name + 1 : args[0]);
	w->host.ctx = w;
	w->host.count = count_whole;
	w->host.process = count_process;
	host_begin(&w->host, frequency_hz);
	w->pid = live_spawn(args, out_fd);
}

/* No more samples; what is waiting is counted. Samples taken = samples counted + losses. */
static void wholes_end(struct wholes *w)
{
	sampler_stop(w->host.sampler);
	host_poll(&w->host, true);
	double percent = w->samples ? 100.0 * (double)w->whole / (double)w->samples : 0;
	print_message("[%s] %" PRIu64 " samples, %.2f %% whole\n", w->comm, w->samples, percent);
	sampler_read_stats(w->host.sampler, &w->stats);
	const struct bpf_counters *c = &w->stats.bpf;
	CHECK(c->samples ==
		c->delivered + c->seen + c->lost_ring + c->lost_busy + c->lost_excluded);
	CHECK(c->lost_busy == 0 && w->stats.lost_seen == 0);
	CHECK(w->delivered == c->delivered + c->seen);
	w->not_copied = host_not_copied(&w->host) - w->not_copied;
	print_message("%" PRIu64 " not copied\n", w->not_copied);
	host_end(&w->host);
}

/* Until a whole stack through w->through was seen. */
static void poll_until_known(struct wholes *w)
{
	int64_t deadline = clock_monotonic_ns() + KNOWN_WITHIN_NS;
	while (w->through && clock_monotonic_ns() < deadline)
		host_poll(&w->host, false);
	CHECK(!w->through);
	w->not_copied = host_not_copied(&w->host);
}

static void walks_while_code_comes_and_goes(void **state)
{
	(void)state;
	NEED_SAMPLING();
	/* A file can be opened only while it is mapped: the first tries may come too late. */
	struct wholes w = { .through = "/libplugin.so" };
	char path[512], plugin[512];
	(void)snprintf(path, sizeof(path), "%s", workload("dlstorm"));
	(void)snprintf(plugin, sizeof(plugin), "%s", workload("libplugin.so"));
	wholes_begin(&w, FREQUENCY_HZ, (const char *const[]){ path, plugin, "600", NULL }, -1);
	poll_until_known(&w);
	int64_t begin = clock_monotonic_ns();
	while (goes_on(begin, w.samples))
		host_poll(&w.host, false);
	live_kill(w.pid);
	wholes_end(&w);
	CHECK(w.samples >= SAMPLES_NEEDED && is_whole_share(&w, 0.995));
}

/* ---- a thousand programs a second ---- */

#define STORM_FREQUENCY_HZ 997
#define STORM_PER_SECOND "1000"
#define STORM_RESIDENT_BYTES_MAX (8u << 20)
#define STORM_KERNEL_BYTES_MAX (4 * SLAB_BYTES) /* of other programs' tables */

/* Until the load ends by itself. */
static void poll_until_over(struct wholes *w)
{
	int status = 0;
	int64_t deadline = clock_monotonic_ns() + duration_ns(4) + LATE_NS;
	while (waitpid(w->pid, &status, WNOHANG) == 0) {
		CHECK(clock_monotonic_ns() < deadline);
		host_poll(&w->host, false);
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Or as many as the machine starts: whole, nothing lost that is not counted, no program unseen, and
 * nothing that grows with their number. */
static void walks_a_thousand_programs_a_second(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct wholes w = { .through = "/execstorm" };
	struct sampler_stats first = { 0 };
	char path[512], seconds[32], said[256] = "";
	int out[2];
	long started = 0;
	(void)snprintf(path, sizeof(path), "%s", workload("execstorm"));
	(void)snprintf(seconds, sizeof(seconds), "%lld", duration_ns(4) / NS_PER_SEC);
	CHECK(pipe2(out, O_CLOEXEC) == 0);
	wholes_begin(&w, STORM_FREQUENCY_HZ, (const char *const[]){ path, "50", "600", NULL }, -1);
	poll_until_known(&w);
	live_kill(w.pid);
	sampler_read_stats(w.host.sampler, &first);
	uint64_t first_resident = os_self_rss_bytes();
	w.execs = w.exits = 0;
	w.pid = live_spawn((const char *const[]){ path, STORM_PER_SECOND, seconds, NULL }, out[1]);
	(void)close(out[1]);
	poll_until_over(&w);
	uint64_t resident = os_self_rss_bytes();
	wholes_end(&w);
	CHECK(read(out[0], said, sizeof(said) - 1) > 0 && sscanf(said, "%ld", &started) == 1);
	(void)close(out[0]);
	const struct bpf_counters *c = &w.stats.bpf;
	print_message("%s%llu of %llu samples lost, %llu of %llu process events; resident memory "
		      "grew by %lld KiB, the kernel's by %lld KiB\n",
		said, (unsigned long long)c->lost_ring, (unsigned long long)c->samples,
		(unsigned long long)c->notices_lost, (unsigned long long)(w.execs + w.exits),
		((long long)resident - (long long)first_resident) / 1024,
		((long long)w.stats.kernel_bytes - (long long)first.kernel_bytes) / 1024);
	CHECK(w.samples >= SAMPLES_NEEDED && is_whole_share(&w, 0.99));
	CHECK(w.execs + c->notices_lost >= (uint64_t)started);
	CHECK(w.exits + c->notices_lost >= (uint64_t)started);
	CHECK(w.stats.kernel_bytes <= first.kernel_bytes + STORM_KERNEL_BYTES_MAX);
	if (!SANITIZED)
		CHECK(resident <= first_resident + STORM_RESIDENT_BYTES_MAX);
}

/* ---- tables replaced while they are read ---- */

#define RELOAD_EVERY_NS (10 * NS_PER_MS)

/* Outermost frames of a thread; equal in every whole stack of it. */
#define ROOT_FRAMES_MAX 40
struct root {
	const char *comm;
	uint32_t count;
	uint64_t frames[ROOT_FRAMES_MAX];
	bool known;
	uint64_t whole, missed, wrong;
};

static struct root *root_of(struct root *roots, const char *comm)
{
	for (; roots->comm; roots++) {
		if (strncmp(roots->comm, comm, 15) == 0)
			return roots;
	}
	return NULL;
}

static void check_root(struct root *r, const struct live_sample *s, const uint64_t *frames)
{
	if (s->h.stack_end == STACK_END_NO_FILE) {
		r->missed++;
	} else if (!stack_end_is_whole(s->h.stack_end) || s->user_count < r->count) {
		r->wrong++;
		print_message("%s ends %u, %u frames\n", r->comm, s->h.stack_end, s->user_count);
	} else {
		const uint64_t *root = frames + s->user_count - r->count;
		if (!r->known)
			memcpy(r->frames, root, r->count * sizeof(*root));
		r->known = true;
		bool equal = memcmp(r->frames, root, r->count * sizeof(*root)) == 0;
		r->whole += equal;
		r->wrong += !equal;
	}
}

struct table {
	struct file_key key; /* inode 0: the vDSO */
	uint32_t id;
	struct unwind_table *table;
};

/* The tables of all that was published, built once more. */
static size_t build_tables(const struct live *l, struct table *out, size_t max)
{
	size_t n = 0;
	struct err e = { 0 };
	for (size_t i = 0; i < l->files.len && n < max; i++) {
		struct objfile *obj = NULL;
		out[n] = (struct table){ l->files.v[i].key, (uint32_t)i + FRAME_FILE_FIRST, NULL };
		if (objfile_open(l->files.v[i].path, &obj, &e) == OK &&
			unwind_table_build(obj, &out[n].table, &e) == OK)
			n++;
		objfile_close(obj);
	}
	return n;
}

static void sees_no_wrong_stack_while_tables_change(void **state)
{
	(void)state;
	NEED_SAMPLING();
	/* 30 calls, main, two of libc, _start; and those that begin a thread. Their start-up
	 * is over when sampling begins. */
	struct root roots[] = { { .comm = "storm", .count = 34 },
		{ .comm = "storm-mapper", .count = 2 }, { .comm = NULL } };
	struct live l;
	struct err e = { 0 };
	struct table tables[32];
	char path[512];
	(void)snprintf(path, sizeof(path), "%s", workload("storm"));
	int pid = live_spawn((const char *const[]){ path, "600", NULL }, -1);
	live_begin(&l, 3989, pid);
	live_publish_program(&l, path);
	size_t count = build_tables(&l, tables, ARRAY_COUNT(tables));
	CHECK(count >= 3);
	live_start(&l);
	int64_t all_begin = clock_monotonic_ns();
	uint32_t rounds = 0;
	size_t checked = 0;
	int64_t spent_ns = 0;
	while (goes_on(all_begin, MIN(roots[0].whole, roots[1].whole))) {
		int64_t begin = clock_monotonic_ns();
		for (size_t i = 0; i < count; i++) {
			if (rounds % 4 == 0)
				sampler_retract(l.sampler, &tables[i].key);
			CHECK_OK(sampler_publish(l.sampler, &tables[i].key, tables[i].id,
					 tables[i].table, &e),
				&e);
		}
		rounds++;
		int64_t took_ns = clock_monotonic_ns() - begin;
		int64_t left_ms = (RELOAD_EVERY_NS - took_ns) / NS_PER_MS;
		spent_ns += took_ns;
		live_poll(&l, left_ms > 0 ? (int)left_ms : 0);
		for (; checked < l.samples.len; checked++) {
			const struct live_sample *s = &l.samples.v[checked];
			struct root *r = root_of(roots, s->h.comm);
			if (r)
				check_root(r, s, live_user_frames(&l, s));
		}
	}
	live_stop(&l);
	print_message("%u reloads of %zu tables, %.1f ms each\n", rounds, count,
		(double)spent_ns / 1e6 / rounds);
	for (struct root *r = roots; r->comm; r++) {
		print_message("[%s] %" PRIu64 " whole, %" PRIu64 " missed a file, %" PRIu64
			      " wrong\n",
			r->comm, r->whole, r->missed, r->wrong);
		CHECK(r->wrong == 0 && r->whole >= SAMPLES_NEEDED);
	}
	for (size_t i = 0; i < count; i++)
		unwind_table_free(tables[i].table);
	live_kill(pid);
	live_end(&l);
}

TEST_MAIN(cmocka_unit_test(walks_while_code_comes_and_goes),
	cmocka_unit_test(walks_a_thousand_programs_a_second),
	cmocka_unit_test(sees_no_wrong_stack_while_tables_change))
