/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler on the real kernel, over programs of known shape (tests/workloads). Counts samples,
 * not seconds: on a busy machine it takes longer, and finds the same.
 */
#include "kernel_bytes.h"
#include "live.h"
#include "need_sampling.h"
#include "test.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#define FREQUENCY_HZ 997
#define SAMPLES_WANTED 300
#define SAMPLES_NEEDED 100 /* after SECONDS_MAX; fewer say nothing */
#define SECONDS_MAX 20
/* Of one program: far above what it is (some 312,000 on Linux 6.18), far below the kernel's limit
 * of a million. */
#define VERIFIED_INSNS_ALARM 340000

static const char *workload(const char *name)
{
	static char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", WORKLOADS_DIR, name);
	return path;
}

/* ---- running one program ---- */

struct run {
	struct live live;
	int pid;
	uint32_t text_id; /* of the program's file */
};

static void run_begin(struct run *r, const char *const *args)
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

static void run_until(struct run *r, size_t samples)
{
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (r->live.samples.len < samples && clock_monotonic_ns() < deadline)
		live_poll(&r->live, 50);
}

static void run_end(struct run *r)
{
	live_kill(r->pid);
	live_end(&r->live);
}

/* samples = delivered + seen + losses; and all that was sent was handed over. */
static void check_conservation(const struct live *l)
{
	struct sampler_stats s;
	sampler_read_stats(l->sampler, &s);
	const struct bpf_counters *b = &s.bpf;
	CHECK(b->samples == b->delivered + b->seen + b->lost_ring + b->lost_busy +
				    b->lost_excluded + b->lost_off_cpu);
	CHECK(l->samples.len == b->delivered + b->seen - s.lost_seen);
	CHECK(s.lost_seen == 0 && b->lost_busy == 0);
}

/* Percent of the samples that are whole stacks; prints what is not. */
static double whole_percent(const struct live *l, const char *name)
{
	size_t whole = 0;
	for (size_t i = 0; i < l->samples.len; i++) {
		const struct live_sample *s = &l->samples.v[i];
		if (stack_end_is_whole(s->h.stack_end)) {
			whole++;
			continue;
		}
		const uint64_t *f = live_user_frames(l, s);
		uint64_t last = s->user_count ? f[s->user_count - 1] : 0;
		print_message("[%s] %s ends %u, %u frames, last %" PRIu64 "+%" PRIx64 "\n", name,
			s->h.comm, s->h.stack_end, s->user_count, last >> FRAME_FILE_SHIFT,
			(uint64_t)(last & FRAME_OFFSET_MASK));
	}
	double percent = l->samples.len ? 100.0 * (double)whole / (double)l->samples.len : 0;
	print_message("[%s] %zu samples, %.1f %% whole\n", name, l->samples.len, percent);
	return percent;
}

static double depth_percent(const struct live *l, uint32_t depth)
{
	size_t n = 0;
	for (size_t i = 0; i < l->samples.len; i++)
		n += l->samples.v[i].user_count == depth;
	return l->samples.len ? 100.0 * (double)n / (double)l->samples.len : 0;
}

/* ---- whole stacks, of the depth they have ---- */

/* _start, __libc_start_main (two frames), main; recurse DEPTH + 1 times; leaf. */
#define DEEP_FRAMES(depth) (4 + (depth) + 1 + 1)

/* clang-format off */
static const struct {
	const char *name;
	const char *args[6];
	uint32_t depth;       /* frames of the samples in its loop; 0: not one depth */
	double depth_percent; /* of the samples at least have that depth */
} shapes[] = {
	{ "deep 10", { "deep", "10", "60" }, DEEP_FRAMES(10), 95 },
	{ "deep 100", { "deep", "100", "60" }, DEEP_FRAMES(100), 95 },
	{ "deep 1000", { "deep", "1000", "60" }, DEEP_FRAMES(1000), 95 },
	{ "stripped", { "deep_stripped", "100", "60" }, DEEP_FRAMES(100), 95 },
	{ "static", { "deep_static", "100", "60" }, DEEP_FRAMES(100), 95 },
	{ "static PIE", { "deep_static_pie", "100", "60" }, DEEP_FRAMES(100), 95 },
	{ "dlopen", { "dlopener", WORKLOADS_DIR "/libplugin.so", "60" }, 6, 90 },
	/* handler_leaf, on_signal, the restorer; interrupted, 21 of recurse, main and below. */
	{ "signal on another stack", { "signals", "60" }, 3 + 1 + 21 + 4, 5 },
	/* inner and outer of the machine code, run, main and below. */
	{ "machine code in anonymous memory", { "jit", "60" }, 2 + 1 + 4, 95 },
	{ "storm of mappings", { "storm", "60" }, 0, 0 },
	{ "C++", { "burner", "60" }, 0, 0 },
};
/* clang-format on */

static void walks_whole_stacks(void **state)
{
	(void)state;
	NEED_SAMPLING();
	FOR_EACH_CASE (c, shapes) {
		struct run r = { 0 };
		run_begin(&r, c->args);
		run_until(&r, SAMPLES_WANTED);
		live_stop(&r.live);
		CHECK_CASE(c, r.live.samples.len >= SAMPLES_NEEDED);
		CHECK_CASE(c, whole_percent(&r.live, c->name) >= 99);
		if (c->depth)
			CHECK_CASE(c, depth_percent(&r.live, c->depth) >= c->depth_percent);
		check_conservation(&r.live);
		run_end(&r);
	}
}

/* Code that keeps no frame pointer, with a zero in it: nothing says that the stack ends there. */
static void a_zero_in_machine_code_is_no_root(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	run_begin(&r, (const char *const[]){ "jit", "60", "zero", NULL });
	run_until(&r, SAMPLES_WANTED);
	live_stop(&r.live);
	size_t cut = 0;
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		cut += s->h.stack_end == STACK_END_ZERO && s->user_count == 2;
	}
	CHECK(cut * 100 >= r.live.samples.len * 95 && cut >= SAMPLES_NEEDED);
	check_conservation(&r.live);
	run_end(&r);
}

static void cuts_what_is_too_deep(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	run_begin(&r, (const char *const[]){ "deep", "3000", "60", NULL });
	run_until(&r, SAMPLES_WANTED);
	live_stop(&r.live);
	size_t cut = 0;
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		cut += s->h.stack_end == STACK_END_DEPTH && s->user_count == SAMPLE_USER_FRAMES_MAX;
	}
	CHECK(cut * 100 >= r.live.samples.len * 95 && cut >= SAMPLES_NEEDED);
	check_conservation(&r.live);
	run_end(&r);
}

/* The dynamic linker at work for a call of the plugin: what is below _dl_runtime_resolve, which
 * finds its frame by rbx, must find rbx. */
static void walks_through_the_dynamic_linker(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	char plugin[512];
	(void)snprintf(plugin, sizeof(plugin), "%s", workload("liblazy_plugin.so"));
	run_begin(&r, (const char *const[]){ "lazy", plugin, "60", NULL });
	uint32_t plugin_id = live_publish_file(&r.live, plugin);
	uint32_t ld_id = live_publish_file(&r.live, "/lib64/ld-linux-x86-64.so.2");
	CHECK(plugin_id && ld_id);
	run_until(&r, 3 * SAMPLES_WANTED);
	live_stop(&r.live);
	size_t through = 0;
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		const uint64_t *f = live_user_frames(&r.live, s);
		bool found = false;
		for (uint32_t k = 0; k + 1 < s->user_count; k++)
			found = found || (f[k] >> FRAME_FILE_SHIFT == ld_id &&
						 f[k + 1] >> FRAME_FILE_SHIFT == plugin_id);
		through += found && stack_end_is_whole(s->h.stack_end);
	}
	print_message(
		"%zu of %zu samples through the dynamic linker\n", through, r.live.samples.len);
	CHECK(r.live.samples.len >= SAMPLES_NEEDED && through >= 10);
	/* Five standard deviations, where it was few. */
	double missing = (100 - whole_percent(&r.live, "lazy binding")) / 100;
	double over = MAX(0, missing - 0.005) * (double)r.live.samples.len - 1;
	CHECK(over <= 0 || over * over <= 25 * 0.005 * (double)r.live.samples.len);
	run_end(&r);
}

/* recurse 5 * n + 6 times; worker, start_thread, clone3. */
static void tells_threads_apart(void **state)
{
	(void)state;
	NEED_SAMPLING();
	enum { THREADS = 3 };
	size_t of[THREADS] = { 0 }, right[THREADS] = { 0 };
	struct run r = { 0 };
	run_begin(&r, (const char *const[]){ "threads", "3", "60", NULL });
	run_until(&r, 3 * SAMPLES_WANTED);
	live_stop(&r.live);
	CHECK(whole_percent(&r.live, "threads") >= 99);
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		int n = s->h.comm[7] - '0';
		CHECK(s->h.pid == (uint32_t)r.pid);
		if (strncmp(s->h.comm, "worker-", 7) != 0 || n < 0 || n >= THREADS)
			continue;
		CHECK(s->h.tid != s->h.pid);
		of[n]++;
		right[n] += s->user_count == 5 * (uint32_t)n + 6 + 3;
	}
	for (int n = 0; n < THREADS; n++)
		CHECK(of[n] >= SAMPLES_NEEDED / 2 && right[n] * 100 >= of[n] * 95);
	check_conservation(&r.live);
	run_end(&r);
}

static void walks_children_that_live_for_milliseconds(void **state)
{
	(void)state;
	NEED_SAMPLING();
	static const char *const modes[] = { "exec", "fork", "vfork" };
	for (size_t m = 0; m < ARRAY_COUNT(modes); m++) {
		struct live l;
		char path[512];
		(void)snprintf(path, sizeof(path), "%s", workload("forker"));
		live_begin(&l, FREQUENCY_HZ, 0);
		(void)live_publish_file(&l, path);
		live_start(&l);
		int pid = live_spawn((const char *const[]){ path, modes[m], "60", NULL }, -1);
		size_t theirs = 0, whole = 0, seen_until = 0;
		int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
		while (theirs < SAMPLES_WANTED && clock_monotonic_ns() < deadline) {
			live_poll(&l, 50);
			for (; seen_until < l.samples.len; seen_until++) {
				const struct live_sample *s = &l.samples.v[seen_until];
				if (strcmp(s->h.comm, "forker") != 0)
					continue;
				theirs++;
				whole += (size_t)stack_end_is_whole(s->h.stack_end);
			}
		}
		live_stop(&l);
		live_kill(pid);
		print_message("[%s] %zu samples, %.1f %% whole\n", modes[m], theirs,
			100.0 * (double)whole / (double)(theirs ? theirs : 1));
		/* In vfork() itself the return address is in a register: a few of a thousand. */
		CHECK(theirs >= SAMPLES_NEEDED && whole * 100 >= theirs * 98);
		check_conservation(&l);
		live_end(&l);
	}
}

/* The shell itself or its child: others on this host may run programs of the same names. */
static bool is_of(const struct live_sample *s, int shell)
{
	return s->h.pid == (uint32_t)shell || s->ppid == (uint32_t)shell;
}

/* Programs of the system that live for a few milliseconds, their tables there before them: whole
 * from their first instruction in ld.so on. */
static void walks_short_programs_of_the_system(void **state)
{
	(void)state;
	NEED_SAMPLING();
	static const char script[] = "while :; do /bin/true; /bin/ls -l /etc >/dev/null; "
				     "/bin/ls /usr/bin | /usr/bin/sort >/dev/null; done";
	struct live l;
	live_begin(&l, FREQUENCY_HZ, 0);
	live_publish_program(&l, "/bin/true");
	live_publish_program(&l, "/bin/ls");
	live_publish_program(&l, "/usr/bin/sort");
	live_publish_program(&l, "/bin/sh");
	live_start(&l);
	int pid = live_spawn((const char *const[]){ "/bin/sh", "-c", script, NULL }, -1);
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	size_t until = 0, kept = 0, user = 0;
	while (kept < 3 * SAMPLES_WANTED && clock_monotonic_ns() < deadline) {
		live_poll(&l, 50);
		for (; until < l.samples.len; until++)
			kept += is_of(&l.samples.v[until], pid);
	}
	live_stop(&l);
	live_kill(pid);
	check_conservation(&l);
	kept = 0;
	for (size_t i = 0; i < l.samples.len; i++) {
		const struct live_sample *s = &l.samples.v[i];
		if (!is_of(s, pid))
			continue;
		user += s->user_count > 0;
		l.samples.v[kept++] = *s;
	}
	l.samples.len = kept;
	CHECK(kept >= SAMPLES_NEEDED && user > 0);
	CHECK(whole_percent(&l, "churn") >= 97);
	live_end(&l);
}

/* ---- shares ---- */

static bool in_function(const char *json, const char *name, uint64_t vaddr, double *out_share)
{
	char want[64];
	(void)snprintf(want, sizeof(want), "{\"name\":\"%s\",", name);
	const char *at = strstr(json, want);
	uint64_t begin = 0, end = 0;
	CHECK(at &&
		sscanf(at + strlen(want), "\"share\":%lf,\"begin\":%" SCNu64 ",\"end\":%" SCNu64,
			out_share, &begin, &end) == 3);
	return vaddr >= begin && vaddr < end;
}

/* The program says at its end how long each function took; so do the samples. */
static void shares_agree_with_the_program(void **state)
{
	(void)state;
	NEED_SAMPLING();
	static const char *const names[] = { "alpha", "beta", "gamma", "delta" };
	char json[1024] = "";
	int out[2];
	struct live l;
	char path[512];
	(void)snprintf(path, sizeof(path), "%s", workload("burner"));
	CHECK(pipe2(out, O_CLOEXEC) == 0);
	live_begin(&l, FREQUENCY_HZ, 0);
	uint32_t id = live_publish_file(&l, path);
	live_start(&l);
	double stolen_ns = live_stolen_ns();
	int pid = live_spawn((const char *const[]){ path, "6", NULL }, out[1]);
	(void)close(out[1]);
	while (waitpid(pid, NULL, WNOHANG) == 0)
		live_poll(&l, 50);
	stolen_ns = live_stolen_ns() - stolen_ns;
	live_stop(&l);
	CHECK(read(out[0], json, sizeof(json) - 1) > 0);
	(void)close(out[0]);

	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open(path, &obj, &e), &e);
	size_t total = 0, hits[ARRAY_COUNT(names)] = { 0 };
	double share[ARRAY_COUNT(names)] = { 0 };
	for (size_t i = 0; i < l.samples.len; i++) {
		const struct live_sample *s = &l.samples.v[i];
		if ((int)s->h.pid != pid)
			continue;
		total++;
		const uint64_t *frames = live_user_frames(&l, s);
		bool in[ARRAY_COUNT(names)] = { false };
		for (uint32_t k = 0; k < s->user_count; k++) {
			struct vaddr at;
			struct fileoff off = { frames[k] & FRAME_OFFSET_MASK };
			if (frames[k] >> FRAME_FILE_SHIFT != id || !objfile_vaddr_of(obj, off, &at))
				continue;
			for (size_t n = 0; n < ARRAY_COUNT(names); n++)
				in[n] |= in_function(json, names[n], at.v, &share[n]);
		}
		for (size_t n = 0; n < ARRAY_COUNT(names); n++)
			hits[n] += in[n];
	}
	objfile_close(obj);
	CHECK(total >= SAMPLES_NEEDED);
	/* What was stolen may have been of one function. */
	double stolen = stolen_ns * FREQUENCY_HZ / 1e9 / (double)total;
	for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
		double sampled = (double)hits[n] / (double)total;
		print_message("%s: %.3f by itself, %.3f by %zu samples; %.3f stolen\n", names[n],
			share[n], sampled, total, stolen);
		/* Five standard deviations of a share of one half of so many samples: chance. */
		double error = MAX(0, __builtin_fabs(sampled - share[n]) - stolen);
		CHECK(error <= 0.02 || error * error * (double)total <= 6.25);
	}
	live_end(&l);
}

/* ---- processes ---- */

static void tells_of_exec_and_exit(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	live_begin(&l, 19, 0);
	uint32_t id = live_publish_file(&l, "/bin/true");
	CHECK(id != 0);
	const struct file_key *key = &l.files.v[id - FRAME_FILE_FIRST].key;
	int pid = live_spawn((const char *const[]){ "/bin/true", NULL }, -1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	live_poll(&l, 0);
	const struct event_process *exec = NULL, *end = NULL;
	for (size_t i = 0; i < l.processes.len; i++) {
		const struct event_process *p = &l.processes.v[i];
		if (p->h.pid != (uint32_t)pid)
			continue;
		if (p->h.type == EVENT_EXEC)
			exec = p;
		else
			end = p;
	}
	assert_true(exec && end);
	CHECK(exec->notice.key.inode == key->inode && exec->notice.key.dev == key->dev);
	CHECK(exec->notice.vma_start < exec->notice.vma_end);
	CHECK_STR(str_of(exec->h.comm), "true");
	CHECK(exec->ppid == (uint32_t)getpid());
	CHECK(end->h.type == EVENT_EXIT && end->h.time_ns >= exec->h.time_ns);
	CHECK(exec->h.process_start_ns == end->h.process_start_ns);
	CHECK(exec->h.process_start_ns != 0);
	live_end(&l);
}

/* Of the samples from `from` on, those whose stacks end so after so many frames. Now and then one
 * is in the vDSO or in libc, which are known. */
static size_t count_ends(const struct live *l, size_t from, enum stack_end end, uint32_t frames,
	const struct live_sample **out_last)
{
	size_t n = 0;
	for (size_t i = from; i < l->samples.len; i++) {
		const struct live_sample *s = &l->samples.v[i];
		if (s->h.stack_end != end || s->user_count != frames)
			continue;
		*out_last = s;
		n++;
	}
	return n;
}

/* A file that nobody published: the leaf, why, and how to find the file. */
static void gives_notice_of_unknown_files(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct err e = { 0 };
	int pid = live_spawn((const char *const[]){ workload("deep"), "20", "60", NULL }, -1);
	live_begin(&l, FREQUENCY_HZ, pid);
	live_start(&l);
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (l.samples.len < 20 && clock_monotonic_ns() < deadline)
		live_poll(&l, 20);
	const struct live_sample *s = NULL;
	CHECK(count_ends(&l, 0, STACK_END_NO_FILE, 1, &s) >= 10);
	CHECK(live_user_frames(&l, s)[0] >> FRAME_FILE_SHIFT == FRAME_FILE_ADDRESS);
	const struct file_notice *n = &l.last_notice;
	CHECK(n->key.inode != 0);
	/* By what the notice says it is found, and from then on the stacks are whole. */
	char path[128];
	(void)snprintf(
		path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, n->vma_start, n->vma_end);
	struct objfile *obj = NULL;
	struct unwind_table *table = NULL;
	CHECK_OK(objfile_open(path, &obj, &e), &e);
	CHECK_OK(unwind_table_build(obj, &table, &e), &e);
	CHECK_OK(sampler_publish(l.sampler, &n->key, 4000, table, &e), &e);
	unwind_table_free(table);
	objfile_close(obj);
	live_poll(&l, 0);
	size_t before = l.samples.len;
	deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (l.samples.len < before + 20 && clock_monotonic_ns() < deadline)
		live_poll(&l, 20);
	CHECK(count_ends(&l, before, STACK_END_ROOT, DEEP_FRAMES(20), &s) >= 10);
	CHECK(live_user_frames(&l, s)[0] >> FRAME_FILE_SHIFT == 4000);
	live_end(&l);
	live_kill(pid);
}

/* ---- epochs, replacement, limits ---- */

/* A stack that comes by its hash has the frames it had before; whatever the epochs do. */
static void restores_frames(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	run_begin(&r, (const char *const[]){ "deep", "30", "60", NULL });
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	for (int i = 0; r.live.samples.len < SAMPLES_WANTED && clock_monotonic_ns() < deadline;
		i++) {
		live_poll(&r.live, 10);
		if (i % 3 == 0)
			sampler_next_epoch(r.live.sampler);
		if (i % 7 == 0)
			sampler_next_epoch(r.live.sampler);
	}
	live_stop(&r.live);
	struct sampler_stats stats;
	sampler_read_stats(r.live.sampler, &stats);
	CHECK(stats.bpf.seen > 0 && stats.bpf.delivered > 1);
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *a = &r.live.samples.v[i];
		CHECK(a->h.type == EVENT_SAMPLE);
		for (size_t k = 0; k < i; k++) {
			const struct live_sample *b = &r.live.samples.v[k];
			if (a->hash != b->hash)
				continue;
			size_t count = (size_t)a->kernel_count + a->user_count;
			CHECK(a->user_count == b->user_count);
			CHECK(memcmp(r.live.frames.v + a->first_frame,
				      r.live.frames.v + b->first_frame,
				      count * sizeof(uint64_t)) == 0);
			break;
		}
	}
	check_conservation(&r.live);
	run_end(&r);
}

/* The walk came to the program's file when that was not known: the first of its frames is there by
 * its address, none by the file. Before it only what the program calls: libc and the vDSO. */
static bool missed_the_file(const struct run *r, const struct live_sample *s)
{
	const uint64_t *f = live_user_frames(&r->live, s);
	if (s->h.stack_end != STACK_END_NO_FILE || s->user_count == 0 ||
		f[s->user_count - 1] >> FRAME_FILE_SHIFT != FRAME_FILE_ADDRESS)
		return false;
	for (uint32_t i = 0; i + 1 < s->user_count; i++) {
		uint64_t file = f[i] >> FRAME_FILE_SHIFT;
		if (file == r->text_id || file == FRAME_FILE_ADDRESS)
			return false;
	}
	return true;
}

/* Tables are replaced and retracted all the time while they are read: a sample may then miss the
 * file, but no stack is ever wrong. */
static void never_reads_a_half_written_table(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct run r = { 0 };
	struct err e = { 0 };
	run_begin(&r, (const char *const[]){ "deep", "100", "60", NULL });
	struct objfile *obj = NULL;
	struct unwind_table *table = NULL;
	CHECK_OK(objfile_open(workload("deep"), &obj, &e), &e);
	CHECK_OK(unwind_table_build(obj, &table, &e), &e);
	const struct file_key key = r.live.files.v[r.text_id - FRAME_FILE_FIRST].key;
	struct sampler_stats before;
	sampler_read_stats(r.live.sampler, &before);
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	uint32_t rounds = 0;
	while (r.live.samples.len < 4 * SAMPLES_WANTED && clock_monotonic_ns() < deadline) {
		for (int i = 0; i < 20; i++) {
			if (++rounds % 5 == 0)
				sampler_retract(r.live.sampler, &key);
			CHECK_OK(sampler_publish(r.live.sampler, &key, r.text_id, table, &e), &e);
		}
		live_poll(&r.live, 1);
	}
	live_stop(&r.live);
	size_t whole = 0, missed_below = 0;
	for (size_t i = 0; i < r.live.samples.len; i++) {
		const struct live_sample *s = &r.live.samples.v[i];
		bool missed = missed_the_file(&r, s);
		bool right = stack_end_is_whole(s->h.stack_end);
		whole += right && s->user_count == DEEP_FRAMES(100);
		missed_below += missed && s->user_count > 1;
		if (!missed && !right)
			print_message("ends %u, %u frames\n", s->h.stack_end, s->user_count);
		CHECK(missed || right);
	}
	print_message("%zu samples, %zu whole, %u publications; %zu missed the file below libc\n",
		r.live.samples.len, whole, rounds, missed_below);
	CHECK(whole >= SAMPLES_NEEDED);
	struct sampler_stats after;
	sampler_read_stats(r.live.sampler, &after);
	CHECK(after.table_bytes == before.table_bytes && after.files == before.files);
	unwind_table_free(table);
	objfile_close(obj);
	check_conservation(&r.live);
	run_end(&r);
}

/* The smallest ring, filled faster than it is read: losses, and each one counted. */
static void counts_what_the_ring_does_not_take(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct err e = { 0 };
	struct live l = { 0 };
	int pid = live_spawn((const char *const[]){ workload("storm"), "60", NULL }, -1);
	const struct sampler_config config = {
		.frequency_hz = 4999, .ring_bytes = 4096, .only_pid = pid
	};
	const struct sampler_events events = { &l, live_on_sample, live_on_process };
	CHECK_OK(sampler_open(&config, &events, &l.sampler, &e), &e);
	live_start(&l);
	struct sampler_stats s = { 0 };
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (s.bpf.lost_ring < 50 && clock_monotonic_ns() < deadline) {
		(void)usleep(20000);
		sampler_read_stats(l.sampler, &s);
	}
	live_stop(&l);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.bpf.lost_ring >= 50 && s.bpf.delivered > 0);
	check_conservation(&l);
	live_kill(pid);
	live_end(&l);
}

static void refuses_what_cannot_be(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct sampler *s = NULL;
	struct err e = { 0 };
	const struct sampler_events events = { 0 };
	struct sampler_config config = { .frequency_hz = 0 };
	CHECK(sampler_open(&config, &events, &s, &e) == E_INVALID);
	config.frequency_hz = 10001;
	CHECK(sampler_open(&config, &events, &s, &e) == E_INVALID);
	config.frequency_hz = 19;
	config.ring_bytes = 5000;
	CHECK(sampler_open(&config, &events, &s, &e) == E_INVALID);
	CHECK(s == NULL);
}

/* Of each program, as the kernel counted them; all are there. */
static void is_verified_with_ease(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin_with(
		&l, &(struct sampler_config){ .frequency_hz = 19, .off_cpu_probability = 1 });
	sampler_read_stats(l.sampler, &s);
	CHECK(s.program_count == 5);
	for (uint32_t i = 0; i < s.program_count; i++) {
		print_message("%s: %u instructions verified\n", s.programs[i].name,
			s.programs[i].verified_insns);
		CHECK(s.programs[i].verified_insns < VERIFIED_INSNS_ALARM);
	}
	live_end(&l);
}

static void stays_small(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin(&l, 19, 0);
	live_start(&l);
	sampler_read_stats(l.sampler, &s);
	print_message("%.1f MiB in the kernel, %u CPUs, %u files\n",
		(double)s.kernel_bytes / (1 << 20), s.cpus, s.files);
	CHECK(s.kernel_bytes > 0 && s.kernel_bytes < 16u << 20);
	live_check_kernel_bytes(&l, &(struct sampler_config){ .frequency_hz = 19 });
	CHECK(s.cpus == (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	CHECK(s.files >= 2 && s.table_bytes > 0);
	sampler_stop(l.sampler);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.cpus == 0);
	live_end(&l);
}

/* Nothing to do costs nothing: one system call a second and a little. */
static void costs_next_to_nothing_when_idle(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	const int64_t spent_ns = 3 * NS_PER_SEC;
	int pid = live_spawn((const char *const[]){ "sleep", "600", NULL }, -1);
	live_begin(&l, 19, pid);
	live_start(&l);
	live_poll(&l, 500);
	struct rusage before, after;
	CHECK(getrusage(RUSAGE_THREAD, &before) == 0);
	double stolen_ns = live_stolen_ns();
	int64_t cpu = clock_thread_cpu_ns(), begin = clock_monotonic_ns();
	int polls = 0;
	while (clock_monotonic_ns() - begin < spent_ns) {
		live_poll(&l, 500);
		polls++;
	}
	double used_ns = (double)(clock_thread_cpu_ns() - cpu);
	stolen_ns = live_stolen_ns() - stolen_ns;
	CHECK(getrusage(RUSAGE_THREAD, &after) == 0);
	print_message("%.4f %% of a CPU, %d polls, %ld times asleep\n",
		used_ns * 100 / (double)spent_ns, polls, after.ru_nvcsw - before.ru_nvcsw);
	/* It sleeps for as long as it may; the bound is for what a fault would take. */
	CHECK(polls <= 7);
	CHECK(used_ns <= 0.03 * (double)spent_ns + stolen_ns);
	live_kill(pid);
	live_end(&l);
}

/* ---- CPUs ---- */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	fd_cleanup(&fd);
	return ok;
}

static uint32_t attached_within(struct live *l, uint32_t want)
{
	struct sampler_stats s = { 0 };
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	do {
		live_poll(l, 100);
		sampler_read_stats(l->sampler, &s);
	} while (s.cpus != want && clock_monotonic_ns() < deadline);
	return s.cpus;
}

static void follows_cpus_that_come_and_go(void **state)
{
	(void)state;
	NEED_SAMPLING();
	const char *path = "/sys/devices/system/cpu/cpu1/online";
	if (!getenv("FIRN_TEST_HOTPLUG"))
		SKIP("takes a CPU from the whole machine for a second; set FIRN_TEST_HOTPLUG=1");
	if (access(path, W_OK) != 0)
		SKIP("CPU 1 cannot be taken offline here");
	struct live l;
	uint32_t all = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	live_begin(&l, FREQUENCY_HZ, 0);
	live_start(&l);
	bool off = write_file(path, "0");
	uint32_t fewer = off ? attached_within(&l, all - 1) : all;
	bool on = write_file(path, "1");
	uint32_t again = attached_within(&l, all);
	CHECK(off && on && fewer == all - 1 && again == all);
	/* And the new event works. */
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
	size_t before = l.samples.len;
	int64_t until = clock_monotonic_ns() + 200000000;
	while (clock_monotonic_ns() < until)
		;
	live_stop(&l);
	size_t on_1 = 0;
	for (size_t i = before; i < l.samples.len; i++)
		on_1 += l.samples.v[i].h.cpu == 1;
	CHECK(on_1 > 10);
	live_end(&l);
}

/* Turn the perf events of this process off behind its back. */
static uint32_t silence_events(void)
{
	uint32_t count = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
		char path[300], target[64] = "";
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, target, sizeof(target) - 1) > 0 &&
			strstr(target, "[perf_event]") &&
			ioctl(atoi(entry->d_name), PERF_EVENT_IOC_DISABLE, 0) == 0)
			count++;
	}
	(void)closedir(d);
	return count;
}

/* What has not fired yet is not dead: at one sample a second the first look comes sooner. */
static void waits_for_the_first_time(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin(&l, 1, 0);
	sampler_pause(l.sampler, true); /* as the agent, until it knows its files */
	live_start(&l);
	(void)usleep(1200000);
	sampler_pause(l.sampler, false);
	int64_t until = clock_monotonic_ns() + 500 * NS_PER_MS; /* one look, at once */
	while (clock_monotonic_ns() < until)
		live_poll(&l, 50);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.cpus > 0 && s.cpus_renewed == 0);
	live_stop(&l);
	live_end(&l);
}

/* As those of a CPU that went and came between two looks: the kernel has forgotten them. */
static void renews_events_that_are_silent(void **state)
{
	(void)state;
	NEED_SAMPLING();
	struct live l;
	struct sampler_stats s;
	live_begin(&l, FREQUENCY_HZ, 0);
	live_start(&l);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.cpus > 0 && s.cpus_renewed == 0);
	CHECK(silence_events() == s.cpus);
	uint64_t before = s.bpf.samples + s.bpf.idle;
	int64_t deadline = clock_monotonic_ns() + 60 * NS_PER_SEC;
	uint32_t cpus = s.cpus;
	do {
		live_poll(&l, 100);
		sampler_read_stats(l.sampler, &s);
	} while ((s.cpus_renewed < cpus || s.bpf.samples + s.bpf.idle < before + 100) &&
		 clock_monotonic_ns() < deadline);
	CHECK(s.cpus_renewed >= cpus && s.cpus == cpus);
	CHECK(s.bpf.samples + s.bpf.idle >= before + 100);
	live_stop(&l);
	live_end(&l);
}

TEST_MAIN(cmocka_unit_test(refuses_what_cannot_be), cmocka_unit_test(stays_small),
	cmocka_unit_test(is_verified_with_ease), cmocka_unit_test(walks_whole_stacks),
	cmocka_unit_test(a_zero_in_machine_code_is_no_root),
	cmocka_unit_test(cuts_what_is_too_deep), cmocka_unit_test(walks_through_the_dynamic_linker),
	cmocka_unit_test(tells_threads_apart),
	cmocka_unit_test(walks_children_that_live_for_milliseconds),
	cmocka_unit_test(walks_short_programs_of_the_system),
	cmocka_unit_test(shares_agree_with_the_program), cmocka_unit_test(tells_of_exec_and_exit),
	cmocka_unit_test(gives_notice_of_unknown_files), cmocka_unit_test(restores_frames),
	cmocka_unit_test(never_reads_a_half_written_table),
	cmocka_unit_test(counts_what_the_ring_does_not_take),
	cmocka_unit_test(costs_next_to_nothing_when_idle),
	cmocka_unit_test(waits_for_the_first_time), cmocka_unit_test(renews_events_that_are_silent),
	cmocka_unit_test(follows_cpus_that_come_and_go))
