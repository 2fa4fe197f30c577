/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a sample by the kernel's statistics of BPF programs, compared with the kernel's own
 * walk by frame pointers at the same time; the share of complete stacks; the kernel memory. Needs
 * root.
 *
 * A machine's speed changes, so compared programs run at the same time, and the result is the
 * median of the rounds.
 *
 * 	bench_agent_unwind [frame|cold|languages|memory|churn|off_cpu]
 */
#include "contest.h"
#include "whole.h"

#include <sched.h>

#define SWITCH_NS 3000000000LL
#define CHURN_NS 5000000000LL

static const char churn_script[] = "while :; do /bin/true; /bin/ls -l /etc >/dev/null; "
				   "/bin/ls /usr/bin | /usr/bin/sort >/dev/null; done";

/* Measures the whole machine, or the processes that the sampler was configured for. */
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
		/* The kernel's walk ends at 127 frames. */
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

/* Writes a source that keeps the compiler busy for half a minute. False: no disk space. */
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

/* Code that is mostly not in the processor's caches: a compiler at work, with 35 MB of text. */
static void bench_cold(void)
{
	char note[256], against[256], source[64], compiler[256];
	if (!compiler_path(compiler) || !write_source(source, sizeof(source))) {
		(void)fprintf(stderr, "skipped: no C++ compiler to profile\n");
		return;
	}
	/* The compiler runs without its garbage collector, which recurses more than 1,024 deep. */
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
#define LANGUAGE_LEAST 200 /* fewer samples mean nothing */

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

/* The share of each program's stacks that reach the root; the result is the lowest. */
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

/* Memory as by default, at 19 Hz, with the tables of the files that an ordinary process maps. */
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
	/* Only stacks of these programs: others have no tables. */
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

/* Starts two processes that wake each other without pause, on one CPU. */
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

/* The additional cost of a context switch if one in a hundred is sampled, and if all are. */
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
	} cases[] = { { "frame", bench_frame }, { "cold", bench_cold },
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
