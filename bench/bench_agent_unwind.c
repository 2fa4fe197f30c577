/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample costs by the kernel's statistics of BPF programs, beside the kernel's own walk by
 * frame pointers at the same time; how many stacks are whole; how much kernel memory it takes.
 *Needs root.
 *
 * Machines have slow minutes: what is compared runs in the same ones, and of the rounds the median
 * counts.
 *
 *	bench_agent_unwind [frame|python|cold|languages|memory|churn|off_cpu]
 */
#include "live.h"
#include "whole.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "baseline.skel.h"
#pragma GCC diagnostic pop

#define FREQUENCY_HZ 997
#define ROUND_NS 250000000LL
#define ROUNDS 16
#define SWITCH_NS 3000000000LL
#define CHURN_NS 5000000000LL

static const char churn_script[] = "while :; do /bin/true; /bin/ls -l /etc >/dev/null; "
				   "/bin/ls /usr/bin | /usr/bin/sort >/dev/null; done";

static void print_result(const char *name, double value, const char *unit, const char *against,
	double ratio, const char *note)
{
	(void)printf("{\"name\":\"%s\",\"value\":%.3f,\"unit\":\"%s\",\"against\":\"%s\","
		     "\"ratio\":%.3f,\"note\":\"%s\"}\n",
		name, value, unit, against, ratio, note);
	(void)fflush(stdout);
}

/* A group of its own, so that a script dies with all that it started. */
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

/* Before the program looks at the clock for the first time, and after the last. */
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

/* The whole machine, or what the sampler was told to look at. */
static struct measured measure(struct live *l, int64_t duration_ns)
{
	struct sampler_stats a, b;
	sampler_read_stats(l->sampler, &a);
	live_start(l);
	int64_t until = clock_monotonic_ns() + duration_ns;
	while (clock_monotonic_ns() < until)
		live_poll(l, 100);
	live_stop(l);
	sampler_read_stats(l->sampler, &b);
	return measured_between(a, b);
}

/* ---- programs side by side ---- */

enum contender { OURS, GET_STACK, EMPTY, CONTENDERS };

/* What is compared, each on a process of its own. */
struct contest {
	struct live live;
	struct baseline_bpf *baseline;
	int programs[CONTENDERS];
	int pids[CONTENDERS];
};

struct outcome {
	double ns[CONTENDERS]; /* a run, the median of the rounds */
	double kernel_frames;  /* that the kernel's walk found */
	struct measured ours;
};

static uint32_t last_program(void)
{
	uint32_t id = 0;
	while (bpf_prog_get_next_id(id, &id) == 0)
		continue;
	return id;
}

/* The first of this name that was loaded after `id`: numbers ascend. */
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

/* `pid` is ours, `fp_pid` the kernel's: it has frame pointers. */
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
	c->pids[OURS] = pid;
	c->pids[GET_STACK] = fp_pid;
	c->pids[EMPTY] = fp_pid;
}

static void contest_end(struct contest *c)
{
	fd_cleanup(&c->programs[OURS]);
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

/* One round: ns a run of each; 0: it did not run. */
static void contest_round(struct contest *c, double ns[CONTENDERS])
{
	struct bpf_prog_info before[CONTENDERS];
	int events[CONTENDERS];
	for (int i = 0; i < CONTENDERS; i++) {
		struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
			.size = sizeof(attr),
			.config = PERF_COUNT_SW_CPU_CLOCK,
			.freq = 1,
			/* Not all at the same moments. */
			.sample_freq = FREQUENCY_HZ + 12u * (unsigned)i };
		before[i] = program_info(c->programs[i]);
		events[i] = (int)syscall(
			SYS_perf_event_open, &attr, c->pids[i], -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (events[i] < 0 || ioctl(events[i], PERF_EVENT_IOC_SET_BPF, c->programs[i]) != 0)
			live_fail("perf_event_open", NULL);
	}
	int64_t until = clock_monotonic_ns() + ROUND_NS;
	while (clock_monotonic_ns() < until)
		live_poll(&c->live, 50);
	for (int i = 0; i < CONTENDERS; i++) {
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
	sampler_read_stats(c->live.sampler, &a);
	for (int n = 0; n < rounds; n++) {
		contest_round(c, round);
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

/* The same program, without frame pointers for us and with them for the kernel. */
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

static void bench_frame(void)
{
	static const uint32_t depths[] = { 10, 126, 1006 };
	char name[64], note[256], against[256];
	for (size_t i = 0; i < ARRAY_COUNT(depths); i++) {
		struct outcome o = contest_deep(depths[i]);
		if (o.ours.samples == 0) { /* another agent began in the same second */
			(void)fprintf(stderr, "skipped: no sample of %u frames\n", depths[i]);
			continue;
		}
		double frames = o.ours.frames_per_sample;
		double each = frames > 0 ? o.ns[OURS] / frames : 0;
		/* Its walk ends at 127. */
		double kernel_each = o.kernel_frames > 0 ? o.ns[GET_STACK] / o.kernel_frames : 0;
		(void)snprintf(against, sizeof(against),
			"a frame of bpf_get_stack by frame pointers at the same time: %.0f ns for "
			"%.0f frames; an empty program: %.0f ns",
			o.ns[GET_STACK], o.kernel_frames, o.ns[EMPTY]);
		(void)snprintf(note, sizeof(note),
			"no frame pointers, %llu samples of %.1f frames, %.1f ns a frame with all "
			"that a sample takes; %.1f %% whole",
			(unsigned long long)o.ours.samples, frames, each, o.ours.whole_percent);
		(void)snprintf(name, sizeof(name), "agent.us_per_sample_%u", depths[i]);
		double ratio = kernel_each > 0 ? each / kernel_each : 0;
		print_result(name, o.ns[OURS] / 1000, "us", against, ratio, note);
		if (i + 1 == ARRAY_COUNT(depths))
			print_result("agent.ns_per_frame", each, "ns", against, ratio, note);
	}
}

/* Recurses to this depth, and stays there. */
static const char python_script[] = "import sys\n"
				    "def recurse(n):\n"
				    "    x = 0\n"
				    "    if n > 2: recurse(n - 1)\n"
				    "    while True: x = (x + n) & 1023\n"
				    "recurse(int(sys.argv[1]))\n";

/* CPython's functions, one for each, beside a native stack of as many frames as the whole has. */
static void bench_python(void)
{
	static const uint32_t depths[] = { 10, 30, 100 };
	char name[64], note[256], against[256], depth[16];
	for (size_t i = 0; i < ARRAY_COUNT(depths); i++) {
		struct contest c;
		(void)snprintf(depth, sizeof(depth), "%u", depths[i]);
		int pid = start_group((const char *const[]){
			"/usr/bin/python3", "-S", "-c", python_script, depth, NULL });
		(void)usleep(300000);
		contest_begin(&c, pid, pid);
		live_publish_program(&c.live, "/usr/bin/python3");
		struct sampler_stats s;
		struct outcome o = contest_run(&c, ROUNDS);
		sampler_read_stats(c.live.sampler, &s);
		kill_group(pid);
		contest_end(&c);
		if (o.ours.samples == 0 || s.bpf.runtime_frames == 0) {
			(void)fprintf(stderr, "skipped: no sample of %u functions\n", depths[i]);
			continue;
		}
		uint32_t frames = (uint32_t)(o.ours.frames_per_sample + 0.5);
		struct outcome native = contest_deep(frames);
		(void)snprintf(against, sizeof(against),
			"a native stack of %.1f frames, in the seconds after: %.2f us",
			native.ours.frames_per_sample, native.ns[OURS] / 1000);
		(void)snprintf(note, sizeof(note),
			"%llu samples of %.1f frames, %.1f of them Python's; %.1f %% whole",
			(unsigned long long)o.ours.samples, o.ours.frames_per_sample,
			(double)s.bpf.runtime_frames / (double)s.bpf.runtime_samples,
			o.ours.whole_percent);
		(void)snprintf(name, sizeof(name), "runtimes.python_us_per_sample_%u", depths[i]);
		print_result(name, o.ns[OURS] / 1000, "us", against,
			native.ns[OURS] > 0 ? o.ns[OURS] / native.ns[OURS] : 0, note);
	}
}

/* A source that keeps the compiler busy for half a minute. False: no room for it. */
static bool write_source(char *path, size_t path_bytes)
{
	(void)snprintf(path, path_bytes, "/tmp/bench_agent_XXXXXX.cc");
	int fd = mkstemps(path, 3);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f) {
		fd_cleanup(&fd);
		return false;
	}
	(void)fputs("#include <array>\n#include <map>\n#include <regex>\n#include <string>\n", f);
	for (int i = 1; i <= 200; i++)
		(void)fprintf(f,
			"int f%d(const std::string &s) { std::map<std::array<int, %d>, std::regex> "
			"m;"
			" m.emplace(std::array<int, %d>{}, s); int n = 0; for (auto &e : m)"
			" n += std::regex_match(s, e.second) + e.first[0]; return n; }\n",
			i, i, i);
	return fclose(f) == 0;
}

static bool compiler_path(char *path)
{
	FILE *f = popen("c++ -print-prog-name=cc1plus", "r");
	bool found = f && fscanf(f, "%255s", path) == 1 && access(path, X_OK) == 0;
	if (f)
		(void)pclose(f);
	return found;
}

/* Code that is mostly not in the caches: a compiler at work, 35 MB of text. */
static void bench_cold(void)
{
	char note[256], against[256], source[64], compiler[256];
	if (!compiler_path(compiler) || !write_source(source, sizeof(source))) {
		(void)fprintf(stderr, "skipped: no C++ compiler to profile\n");
		return;
	}
	/* Without its garbage collector, which recurses more than 1,024 deep. */
	int pid = start_group((const char *const[]){ compiler, "-quiet", "-O2", "--param",
		"ggc-min-heapsize=10000000", "-D_GNU_SOURCE", "-imultiarch", MULTIARCH, source,
		"-o", "/dev/null", NULL });
	(void)usleep(1000000);
	struct contest c;
	contest_begin(&c, pid, pid);
	live_publish_program(&c.live, compiler);
	struct outcome o = contest_run(&c, 2 * ROUNDS);
	kill_group(pid);
	(void)unlink(source);
	contest_end(&c);
	if (o.ours.samples == 0) {
		(void)fprintf(stderr, "skipped: no sample of the C++ compiler\n");
		return;
	}
	(void)snprintf(against, sizeof(against),
		"bpf_get_stack by frame pointers at the same time: %.2f us, %.1f frames, wrong "
		"here",
		o.ns[GET_STACK] / 1000, o.kernel_frames);
	(void)snprintf(note, sizeof(note),
		"cc1plus -O2: %llu samples of %.1f user frames, %.2f %% whole",
		(unsigned long long)o.ours.samples, o.ours.frames_per_sample, o.ours.whole_percent);
	print_result("agent.us_per_sample_cold", o.ns[OURS] / 1000, "us", against,
		o.ns[GET_STACK] > 0 ? o.ns[OURS] / o.ns[GET_STACK] : 0, note);
}

/* ---- what is hard of each language ---- */

#define LANGUAGE_SAMPLES 5000
#define LANGUAGE_NS 4000000000LL
#define LANGUAGE_LEAST 200 /* fewer say nothing */

/* clang-format off */
static const struct {
	const char *name;
	const char *file;
	const char *args[3];
} programs[] = {
	{ "C++ without frame pointers", "burner", { "60" } },
	{ "PLT", "lazy", { WORKLOADS_DIR "/liblazy_plugin.so", "60" } },
	{ "signals on another stack", "signals", { "60" } },
	{ "static", "deep_static", { "100", "60" } },
	{ "static PIE", "deep_static_pie", { "100", "60" } },
	{ "JIT", "jit", { "60" } },
	{ "musl", "language_musl", { "60" } },
	{ "musl, static", "language_musl_static", { "60" } },
	{ "Rust", "language_rust", { "60" } },
	{ "Go", "language_go", { "60" } },
	{ "Go, stripped", "language_go_stripped", { "60" } },
};
/* clang-format on */

/* The share of each program's stacks that reaches the root; the lowest of them is the figure. */
static void bench_languages(void)
{
	char note[1024] = "";
	double lowest = 100;
	size_t len = 0, samples = 0;
	for (size_t i = 0; i < ARRAY_COUNT(programs); i++) {
		char path[512];
		struct whole w;
		(void)snprintf(path, sizeof(path), "%s/%s", WORKLOADS_DIR, programs[i].file);
		if (access(path, X_OK) != 0) {
			(void)fprintf(stderr, "skipped: no compiler for %s\n", programs[i].name);
			continue;
		}
		const char *const args[] = { path, programs[i].args[0], programs[i].args[1], NULL };
		whole_run(&w, args, FREQUENCY_HZ, LANGUAGE_SAMPLES, LANGUAGE_NS);
		live_end(&w.live);
		if (w.samples < LANGUAGE_LEAST) {
			(void)fprintf(stderr, "skipped: %zu samples of %s\n", w.samples,
				programs[i].name);
			continue;
		}
		double percent = 100 * (double)w.whole / (double)w.samples;
		lowest = MIN(lowest, percent);
		samples += w.samples;
		int n = snprintf(note + len, sizeof(note) - len, "%s%s %.2f", len ? ", " : "",
			programs[i].name, percent);
		len = MIN(len + (size_t)MAX(n, 0), sizeof(note) - 1);
	}
	if (samples == 0)
		return;
	char against[96];
	(void)snprintf(against, sizeof(against),
		"all %zu samples with a user stack: the program with the fewest", samples);
	print_result("agent.whole_stacks", lowest, "%", against, lowest / 100, note);
}

/* As it runs by default, at 19 Hz, with the tables of what an ordinary process has mapped. */
static void bench_memory(void)
{
	struct live l;
	char note[256];
	live_begin(&l, 19, 0);
	for (int pid = 1; pid < 40000; pid++)
		live_publish_process(&l, pid);
	struct sampler_stats s;
	sampler_read_stats(l.sampler, &s);
	double tables = (double)s.table_bytes / (1 << 20);
	double value = (double)s.kernel_bytes / (1 << 20);
	(void)snprintf(note, sizeof(note),
		"all maps and programs at 19 Hz; %.2f MiB of unwind tables in it: %llu rows of "
		"%zu files, %.2f bytes a row",
		tables, (unsigned long long)l.rows, l.files.len,
		l.rows ? (double)s.table_bytes / (double)l.rows : 0);
	print_result("agent.kernel_maps_mib", value, "MiB",
		"the layout of 16 hashes of arrays: 95 MiB before the first process", value / 95,
		note);
	live_end(&l);
}

static void bench_churn(void)
{
	struct live l;
	char note[256];
	live_begin(&l, FREQUENCY_HZ, 0);
	live_publish_program(&l, "/bin/true");
	live_publish_program(&l, "/bin/ls");
	live_publish_program(&l, "/usr/bin/sort");
	live_publish_program(&l, "/bin/sh");
	int pid = start_group((const char *const[]){ "/bin/sh", "-c", churn_script, NULL });
	struct measured m = measure(&l, CHURN_NS);
	kill_group(pid);
	/* Only theirs: what else runs here has no tables. */
	double theirs = 0, whole = 0;
	for (size_t i = 0; i < l.samples.len; i++) {
		const struct live_sample *s = &l.samples.v[i];
		if (s->h.stack_end == STACK_END_NONE ||
			(strcmp(s->h.comm, "ls") != 0 && strcmp(s->h.comm, "sort") != 0 &&
				strcmp(s->h.comm, "true") != 0 && strcmp(s->h.comm, "sh") != 0))
			continue;
		theirs++;
		whole += stack_end_is_whole(s->h.stack_end);
	}
	(void)snprintf(note, sizeof(note),
		"true, ls, sort, sh in a loop: %.0f samples, %.2f us each", theirs,
		m.ns_per_sample / 1000);
	print_result("agent.whole_stacks_churn", theirs > 0 ? 100 * whole / theirs : 0, "%",
		"all samples with a user stack", theirs > 0 ? whole / theirs : 0, note);
	live_end(&l);
}

/* Two processes that wake each other without pause, on one CPU. */
static int start_ping_pong(void)
{
	int pid = fork();
	if (pid != 0) {
		(void)setpgid(pid, pid);
		return pid;
	}
	int a[2], b[2];
	char c = 0;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	(void)setpgid(0, 0);
	(void)sched_setaffinity(0, sizeof(set), &set);
	if (pipe(a) != 0 || pipe(b) != 0)
		_exit(1);
	bool is_first = fork() > 0;
	int out = is_first ? a[1] : b[1], in = is_first ? b[0] : a[0];
	bool go_on = !is_first || write(out, &c, 1) == 1;
	while (go_on)
		go_on = read(in, &c, 1) == 1 && write(out, &c, 1) == 1;
	_exit(0);
}

static struct sampler_program switch_program(const struct live *l)
{
	struct sampler_stats s;
	sampler_read_stats(l->sampler, &s);
	for (uint32_t i = 0; i < s.program_count; i++) {
		if (strcmp(s.programs[i].name, "thread_switch") == 0)
			return s.programs[i];
	}
	live_fail("thread_switch", NULL);
	return s.programs[0];
}

/* What a context switch costs more, where one in a hundred is sampled, and where all are. */
static void bench_off_cpu(void)
{
	static const double probabilities[] = { 0.01, 1 };
	double ns[2], switches[2];
	char note[256];
	for (size_t i = 0; i < ARRAY_COUNT(probabilities); i++) {
		struct live l;
		int pid = start_ping_pong();
		live_begin_with(&l, &(struct sampler_config){ .frequency_hz = 19,
					    .off_cpu_probability = probabilities[i] });
		struct sampler_program a = switch_program(&l);
		live_start(&l);
		int64_t until = clock_monotonic_ns() + SWITCH_NS;
		while (clock_monotonic_ns() < until)
			live_poll(&l, 100);
		live_stop(&l);
		struct sampler_program b = switch_program(&l);
		kill_group(pid);
		switches[i] = (double)(b.run_count - a.run_count);
		ns[i] = switches[i] > 0 ? (double)(b.run_ns - a.run_ns) / switches[i] : 0;
		live_end(&l);
	}
	(void)snprintf(note, sizeof(note),
		"one switch in a hundred sampled, of %.0f; all sampled: %.0f ns, of %.0f; "
		"--off-cpu-threshold 0: the program is not loaded",
		switches[0], ns[1], switches[1]);
	print_result("agent.off_cpu_ns_per_switch", ns[0], "ns", "all switches sampled",
		ns[1] > 0 ? ns[0] / ns[1] : 0, note);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "frame", bench_frame }, { "python", bench_python }, { "cold", bench_cold },
		{ "languages", bench_languages }, { "memory", bench_memory },
		{ "churn", bench_churn }, { "off_cpu", bench_off_cpu } };
	struct err e = { 0 };
	if (probe_sampling(&e) != OK) {
		(void)fprintf(stderr, "skipped: %s\n", e.text);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		if (argc < 2 || strcmp(argv[1], cases[i].name) == 0)
			cases[i].run();
	}
	return 0;
}
