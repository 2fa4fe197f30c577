/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What test_kernels.py runs inside a machine with another kernel: the programs load there, and the
 * samples of programs of known shape are right. The machine is emulated, some fifty times slower
 * than a real one, so everything is counted and nothing is timed.
 */
#include "agent/oom/oom.h"
#include "agent/sample/deferred.h"
#include "agent/sample/offcpu.h"
#include "live.h"
#include "test.h"

#define FREQUENCY_HZ 199
#define SAMPLES_WANTED 150
#define SAMPLES_NEEDED 50
#define SECONDS_MAX 60
#define VERIFIED_INSNS_ALARM 340000

/* _start, __libc_start_main (two frames), main; recurse DEPTH + 1 times; leaf. */
#define DEEP_FRAMES(depth) (4 + (depth) + 1 + 1)

static const char *workload(const char *name)
{
	static char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", WORKLOADS_DIR, name);
	return path;
}

static void loads_every_program(void **state)
{
	(void)state;
	struct live l;
	struct sampler_stats s;
	int64_t begin = clock_monotonic_ns();
	live_begin_with(
		&l, &(struct sampler_config){ .frequency_hz = 19, .off_cpu_probability = 1 });
	print_message("loaded in %.1f s\n", (double)(clock_monotonic_ns() - begin) / 1e9);
	sampler_read_stats(l.sampler, &s);
	CHECK(s.program_count == 5);
	CHECK(sampler_walks_runtimes(l.sampler)); /* the verifier took that, too */
	for (uint32_t i = 0; i < s.program_count; i++) {
		print_message("%s: %u instructions verified\n", s.programs[i].name,
			s.programs[i].verified_insns);
		CHECK(s.programs[i].verified_insns < VERIFIED_INSNS_ALARM);
	}
	live_end(&l);
}

#define CGROUP "/sys/fs/cgroup"
#define GO_ON "/tmp/go-on"

/* False where there is no such control. */
static bool write_text(const char *path, const char *text)
{
	CLEANUP(fd_cleanup) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static pid_t start_limited(const char *program, const char *how)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	if (write_text(CGROUP "/oom/cgroup.procs", "0"))
		(void)execl(program, program, how, GO_ON, (char *)NULL);
	_exit(1);
}

static bool find_key(pid_t pid, const char *program, struct file_key *out)
{
	struct err e = { 0 };
	char path[64];
	CLEANUP(buf_deinit) struct buf maps;
	buf_init(&maps, 1 << 20);
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	CHECK_OK(os_read_file(path, &maps, &e), &e);
	struct str text = buf_view(&maps), line;
	while (str_split(&text, '\n', &line)) {
		uint64_t start;
		if (str_ends(line, str_of(program)) &&
			str_parse_u64(str_sub(line, 0, str_index(line, '-')), 16, &start))
			return live_key_at(buf_view(&maps), start, out);
	}
	return false;
}

/* Once it runs its program, that is told to the agent's side. */
static void make_known(struct oom *o, pid_t pid, const char *program)
{
	struct err e = { 0 };
	struct file_key key = { 0 };
	struct objfile *obj;
	CHECK_OK(objfile_open(program, &obj, &e), &e);
	while (!find_key(pid, program, &key))
		usleep(10000);
	oom_know(o, &key, obj, "abcd", program);
	objfile_close(obj);
}

/* A program that says it were Go's, in a control group with little memory. What it has is counted
 * in the kernel; nobody reads the ring. */
static void reads_the_heap_of_a_victim(void **state)
{
	(void)state;
	struct live l;
	struct oom *o;
	struct err e = { 0 };
	struct oom_counters c;
	const char *program = workload("false_heap");
	int status = 0;
	live_begin_with(&l, &(struct sampler_config){ .frequency_hz = 19 });
	CHECK_OK(oom_open(l.sampler, true, &o, &e), &e);
	print_message("oom_signal: %u instructions verified\n", oom_verified_insns(o));
	CHECK(oom_verified_insns(o) < VERIFIED_INSNS_ALARM);
	CHECK(write_text(CGROUP "/cgroup.subtree_control", "+memory"));
	CHECK(mkdir(CGROUP "/oom", 0755) == 0);
	CHECK(write_text(CGROUP "/oom/memory.max", "16777216"));
	pid_t pid = start_limited(program, "deep");
	CHECK(pid > 0);
	make_known(o, pid, program);
	CHECK(write_text(GO_ON, "1"));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	oom_read_counters(o, &c);
	CHECK(c.victims == 1 && c.begun == 1 && c.whole == 1);
	CHECK(c.buckets == 2 && c.sent == 2 && c.deep == 1);
	live_end(&l);
	oom_close(o);
	CHECK(rmdir(CGROUP "/oom") == 0);
}

static double whole_percent(const struct live *l, const char *name)
{
	size_t whole = 0;
	for (size_t i = 0; i < l->samples.len; i++) {
		const struct live_sample *s = &l->samples.v[i];
		whole += stack_end_is_whole(s->h.stack_end);
		if (!stack_end_is_whole(s->h.stack_end))
			print_message("[%s] %s ends %u, %u frames\n", name, s->h.comm,
				s->h.stack_end, s->user_count);
	}
	return l->samples.len ? 100.0 * (double)whole / (double)l->samples.len : 0;
}

/* clang-format off */
static const struct {
	const char *name;
	const char *args[4];
	uint32_t depth; /* frames of the samples in its loop; 0: not one depth */
} shapes[] = {
	{ "10 deep", { "deep", "10", "600" }, DEEP_FRAMES(10) },
	{ "100 deep", { "deep", "100", "600" }, DEEP_FRAMES(100) },
	{ "1000 deep", { "deep", "1000", "600" }, DEEP_FRAMES(1000) },
	{ "static", { "deep_static", "100", "600" }, DEEP_FRAMES(100) },
	{ "a plugin", { "dlopener", WORKLOADS_DIR "/libplugin.so", "600" }, 6 },
	{ "machine code in anonymous memory", { "jit", "600" }, 2 + 1 + 4 },
	{ "signals", { "signals", "600" }, 0 },
	{ "threads", { "threads", "3", "600" }, 0 },
	{ "a storm of mappings", { "storm", "600" }, 0 },
	{ "C++", { "burner", "600" }, 0 },
};
/* clang-format on */

static void walks_whole_stacks(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, shapes) {
		struct live l;
		struct sampler_stats s;
		char path[512];
		(void)snprintf(path, sizeof(path), "%s", workload(c->args[0]));
		const char *argv[] = { path, c->args[1], c->args[2], NULL };
		int pid = live_spawn(argv, -1);
		live_begin(&l, FREQUENCY_HZ, pid);
		(void)live_publish_file(&l, path);
		(void)live_publish_file(&l, workload("libplugin.so"));
		live_start(&l);
		int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * NS_PER_SEC;
		while (l.samples.len < SAMPLES_WANTED && clock_monotonic_ns() < deadline)
			live_poll(&l, 50);
		live_stop(&l);
		size_t deep = 0;
		for (size_t i = 0; i < l.samples.len; i++)
			deep += l.samples.v[i].user_count == c->depth;
		double whole = whole_percent(&l, c->name);
		print_message("[%s] %zu samples, %.1f %% whole, %zu of depth %u\n", c->name,
			l.samples.len, whole, deep, c->depth);
		sampler_read_stats(l.sampler, &s);
		CHECK_CASE(c, s.bpf.samples == s.bpf.delivered + s.bpf.seen + s.bpf.lost_ring +
						       s.bpf.lost_busy + s.bpf.lost_excluded);
		CHECK_CASE(c, l.samples.len >= SAMPLES_NEEDED && whole >= 98);
		CHECK_CASE(c, !c->depth || deep * 100 >= l.samples.len * 90);
		live_kill(pid);
		live_end(&l);
	}
}

/* ---- off the CPU ---- */

static struct {
	double away_ns;
	uint64_t stays, whole;
	uint64_t ends[STACK_END_COUNT];
} told;

static void on_away(void *ctx, const struct event_sample *s, int64_t away_ns)
{
	const int *pid = ctx;
	/* What it was preempted for while it burned it does not count itself. */
	if ((int)s->h.tid != *pid || event_state(&s->h) == THREAD_RUNNABLE)
		return;
	told.ends[s->h.stack_end]++;
	told.away_ns += (double)away_ns;
	told.stays++;
	told.whole += stack_end_is_whole(s->h.stack_end);
}

struct watcher {
	struct live live;
	struct offcpu *offcpu;
};

static void on_sample(void *ctx, const struct event_sample *s)
{
	struct watcher *w = ctx;
	if (event_state(&s->h) != THREAD_ON_CPU)
		offcpu_left(w->offcpu, s);
}

static void on_resume(void *ctx, const struct event_resume *r)
{
	struct watcher *w = ctx;
	offcpu_resume(w->offcpu, r);
}

static void measures_time_off_the_cpu(void **state)
{
	(void)state;
	struct watcher w = { .offcpu = NULL };
	struct err e = { 0 };
	int pid = 0, in[2], out[2];
	char path[512], said[1024] = "";
	double own_ns = 0;
	const struct offcpu_config oc = { 0, 1, on_away, &pid };
	(void)snprintf(path, sizeof(path), "%s", workload("waiter"));
	CHECK_OK(offcpu_new(&oc, &w.offcpu, &e), &e);
	CHECK(pipe(in) == 0 && pipe(out) == 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		(void)close(in[1]);
		(void)execl(path, path, "6", "/tmp/waiter", NULL);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	const struct sampler_config c = { .frequency_hz = 19,
		.table_bytes_max = 64u << 20,
		.only_pid = pid,
		.off_cpu_probability = 1 };
	const struct sampler_events events = { &w, on_sample, NULL, NULL, on_resume };
	CHECK_OK(sampler_open(&c, &events, &w.live.sampler, &e), &e);
	live_publish_vdso(&w.live);
	live_publish_process(&w.live, getpid()); /* which has the same libraries */
	(void)live_publish_file(&w.live, path);
	live_start(&w.live);
	(void)close(in[1]);
	while (waitpid(pid, NULL, WNOHANG) == 0)
		live_poll(&w.live, 50);
	live_stop(&w.live);
	CHECK(read(out[0], said, sizeof(said) - 1) > 0);
	(void)close(out[0]);
	CHECK(sscanf(said, "{\"off_cpu_ns\":%lf", &own_ns) == 1);
	print_message("%.3f s by itself, %.3f s by %" PRIu64 " stays, %" PRIu64 " of them whole\n",
		own_ns / 1e9, told.away_ns / 1e9, told.stays, told.whole);
	for (size_t i = 0; i < STACK_END_COUNT; i++) {
		if (told.ends[i])
			print_message("end %zu: %" PRIu64 "\n", i, told.ends[i]);
	}
	CHECK(__builtin_fabs(told.away_ns - own_ns) <= 0.1 * own_ns);
	CHECK(told.stays >= 20 && told.whole * 100 >= told.stays * 98);
	offcpu_free(w.offcpu);
	live_end(&w.live);
}

TEST_MAIN(cmocka_unit_test(loads_every_program), cmocka_unit_test(reads_the_heap_of_a_victim),
	cmocka_unit_test(walks_whole_stacks), cmocka_unit_test(measures_time_off_the_cpu))
