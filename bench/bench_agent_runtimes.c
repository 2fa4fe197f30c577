/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a sample in each language's runtime, 10, 30 and 100 calls deep, by the kernel's
 * statistics of BPF programs; a native stack comes first. Needs root; runtimes that are not
 * installed are skipped with a message.
 *
 * Each program is one function that calls itself, and loops in the last call. PROGRAM is the name
 * of an eBPF program that is loaded already (native_tracer_e: OpenTelemetry's profiler); it samples
 * the same thread in the same seconds, and "against" and "ratio" are its cost. Without it they are
 * the cost of a native stack with as many frames, measured directly afterwards.
 *
 * 	bench_agent_runtimes [LANGUAGE|all [PROGRAM]]
 */
#include "contest.h"

#include <dirent.h>

#define ARGS_MAX 6
#define WARM_US 1500000 /* until then the program has reached the end of its recursion */

static const uint32_t depths[] = { 10, 30, 100 };

/* clang-format off */
static const struct language {
	const char *name;
	const char *file;   /* file name of the script */
	const char *script; /* NULL: the one of the row before */
	const char *args[ARGS_MAX]; /* "@" stands for the script; the depth follows */
} languages[] = {
	{ "python", "recurse.py",
		"import sys\n"
		"def recurse(n):\n"
		"    x = 0\n"
		"    if n > 2: recurse(n - 1)\n"
		"    while True: x = (x + n) & 1023\n"
		"recurse(int(sys.argv[1]))\n",
		{ "/usr/bin/python3", "-S", "@" } },
	{ "hotspot", "Recurse.java",
		"class Recurse {\n"
		"  static long recurse(int n, long times) {\n"
		"    if (n > 2) return recurse(n - 1, times) + 1;\n"
		"    long x = 0;\n"
		"    for (long i = 0; i < times; i++) x = (x * 31 + n) ^ i;\n"
		"    return x;\n"
		"  }\n"
		"  public static void main(String[] a) {\n"
		"    int n = Integer.parseInt(a[0]);\n"
		"    for (int i = 0; i < 20000; i++) recurse(n, 10);\n"
		"    System.out.println(recurse(n, Long.MAX_VALUE));\n"
		"  }\n"
		"}\n",
		{ "java", "-cp", "@", "Recurse" } },
	{ "hotspot_interpreted", "Recurse.java", NULL, { "java", "-Xint", "-cp", "@", "Recurse" } },
	{ "v8", "recurse.js",
		"function recurse(n, times) {\n"
		"  if (n > 2) return recurse(n - 1, times) + 1;\n"
		"  let x = 0;\n"
		"  for (let i = 0; i !== times; i = (i + 1) & 1023) x = (x + n) & 1023;\n"
		"  return x;\n"
		"}\n"
		"const n = +process.argv[2];\n"
		"for (let i = 0; i < 20000; i++) recurse(n, 10);\n"
		"recurse(n, -1);\n", /* only numbers for which the code was optimized */
		{ "node", "@" } },
	{ "v8_interpreted", "recurse.js", NULL, { "node", "--no-opt", "--no-sparkplug", "@" } },
	{ "ruby", "recurse.rb",
		"def recurse(n)\n"
		"  recurse(n - 1) if n > 2\n"
		"  x = 0\n"
		"  while true do x = (x + n) & 1023 end\n"
		"end\n"
		"recurse(ARGV[0].to_i)\n",
		{ "ruby", "@" } },
	{ "php", "recurse.php",
		"<?php\n"
		"function recurse($n) {\n"
		"  if ($n > 2) recurse($n - 1);\n"
		"  $x = 0;\n"
		"  while (true) $x = ($x + $n) & 1023;\n"
		"}\n"
		"recurse((int)$argv[1]);\n",
		{ "php", "@" } },
	{ "perl", "recurse.pl",
		"no warnings 'recursion';\n"
		"sub recurse { my $n = shift; recurse($n - 1) if $n > 2; my $x = 0;\n"
		"  while (1) { $x = ($x + $n) & 1023 } }\n"
		"recurse($ARGV[0]);\n",
		{ "perl", "@" } },
	{ "lua", "recurse.lua",
		"local function recurse(n)\n"
		"  if n > 2 then recurse(n - 1) end\n"
		"  local x = 0\n"
		"  while true do x = (x + n) % 1023 end\n"
		"end\n"
		"recurse(tonumber(arg[1]))\n",
		{ "lua5.4", "@" } },
	{ "luajit_interpreted", "recurse.lua", NULL, { "luajit", "-joff", "@" } },
};
/* clang-format on */

/* Writes the script of a language to `folder`, and compiles it if necessary; `out` gets its name
 * for the arguments. False: the runtime is missing. */
static bool prepare(size_t language, const char *folder, char *out, size_t out_bytes)
{
	const struct language *l = &languages[language];
	char path[256], command[600];
	for (size_t i = language; !languages[i].script; i--)
		l = &languages[i - 1];
	(void)snprintf(path, sizeof(path), "%s/%s", folder, l->file);
	FILE *f = fopen(path, "we");
	if (!f || fputs(l->script, f) < 0 || fclose(f) != 0)
		live_fail(path, NULL);
	bool is_java = strstr(l->file, ".java") != NULL;
	(void)snprintf(out, out_bytes, "%s", is_java ? folder : path);
	(void)snprintf(command, sizeof(command),
		is_java ? "javac -d %s %s >/dev/null 2>&1" : "command -v %s >/dev/null",
		is_java ? folder : languages[language].args[0], path);
	return system(command) == 0; /* NOLINT(cert-env33-c): words of this file only */
}

static int start_language(const struct language *l, const char *script, uint32_t depth)
{
	const char *args[ARGS_MAX + 2] = { NULL };
	char number[16];
	size_t count = 0;
	(void)snprintf(number, sizeof(number), "%u", depth);
	for (; count < ARGS_MAX && l->args[count]; count++)
		args[count] = strcmp(l->args[count], "@") == 0 ? script : l->args[count];
	args[count] = number;
	int pid = start_group(args);
	(void)usleep(WARM_US);
	return pid;
}

/* The thread that has used most CPU time: Java's main method does not run in the first thread. */
static int busiest_thread(int pid)
{
	char path[64];
	unsigned long most = 0;
	int found = pid;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		unsigned long user = 0;
		char stat[512];
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(stat, sizeof(stat), "/proc/%d/task/%.32s/stat", pid, e->d_name);
		FILE *f = fopen(stat, "re");
		if (f &&
			fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu",
				&user) == 1 &&
			user > most) {
			most = user;
			found = atoi(e->d_name);
		}
		if (f)
			(void)fclose(f);
	}
	if (d)
		(void)closedir(d);
	return found;
}

static void print_outcome(const char *name, uint32_t depth, const struct outcome *o,
	double runtime_frames, const char *against, double against_ns)
{
	char full[64], note[256];
	(void)snprintf(full, sizeof(full), "runtimes.%s_us_per_sample_%u", name, depth);
	(void)snprintf(note, sizeof(note),
		"%llu samples of %.1f frames, %.1f of them the runtime's; %.1f %% whole",
		(unsigned long long)o->ours.samples, o->ours.frames_per_sample, runtime_frames,
		o->ours.whole_percent);
	print_result(full, o->ns[OURS] / 1000, "us", against,
		against_ns > 0 ? o->ns[OURS] / against_ns : 0, note);
}

static void print_beside(const char *name, uint32_t depth, const struct outcome *o, double frames)
{
	char against[128];
	(void)snprintf(against, sizeof(against), "%s, same thread, same seconds: %.2f us",
		contest_beside, o->ns[BESIDE] / 1000);
	print_outcome(name, depth, o, frames, against, o->ns[BESIDE]);
}

static void bench_language(const struct language *l, const char *script, uint32_t depth)
{
	struct contest c;
	struct sampler_stats s;
	char against[128];
	int pid = start_language(l, script, depth);
	contest_begin(&c, pid, pid);
	c.pids[OURS] = c.pids[BESIDE] = busiest_thread(pid);
	live_publish_process(&c.live, pid);
	struct outcome o = contest_run(&c, ROUNDS);
	sampler_read_stats(c.live.sampler, &s);
	kill_group(pid);
	contest_end(&c);
	if (o.ours.samples == 0 || s.bpf.runtime_samples == 0) {
		(void)fprintf(stderr, "skipped: no sample of %s\n", l->name);
		return;
	}
	double frames = (double)s.bpf.runtime_frames / (double)s.bpf.runtime_samples;
	if (contest_beside) {
		print_beside(l->name, depth, &o, frames);
		return;
	}
	struct outcome native = contest_deep((uint32_t)(o.ours.frames_per_sample + 0.5));
	(void)snprintf(against, sizeof(against),
		"a native stack of %.1f frames, in the seconds after: %.2f us",
		native.ours.frames_per_sample, native.ns[OURS] / 1000);
	print_outcome(l->name, depth, &o, frames, against, native.ns[OURS]);
}

static void bench_native(void)
{
	for (size_t i = 0; i < ARRAY_COUNT(depths); i++) {
		struct outcome o = contest_deep(depths[i]);
		if (contest_beside)
			print_beside("native", depths[i], &o, 0);
		else
			print_outcome("native", depths[i], &o, 0, "", 0);
	}
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 && strcmp(argv[1], "all") != 0 ? argv[1] : NULL;
	char folder[] = "/tmp/bench_runtimes_XXXXXX", script[256], command[64];
	struct err e = { 0 };
	contest_beside = argc > 2 ? argv[2] : NULL;
	if (probe_sampling(&e) != OK) {
		(void)fprintf(stderr, "skipped: %s\n", e.text);
		return 0;
	}
	if (!mkdtemp(folder))
		live_fail(folder, NULL);
	if (!only || strcmp(only, "native") == 0)
		bench_native();
	for (size_t i = 0; i < ARRAY_COUNT(languages); i++) {
		if (only && strcmp(only, languages[i].name) != 0)
			continue;
		if (!prepare(i, folder, script, sizeof(script))) {
			(void)fprintf(stderr, "skipped: no %s\n", languages[i].args[0]);
			continue;
		}
		for (size_t n = 0; n < ARRAY_COUNT(depths); n++)
			bench_language(&languages[i], script, depths[n]);
	}
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) == 0 ? 0 : 1; /* NOLINT(cert-env33-c) */
}
