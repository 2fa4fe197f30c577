/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java program of known shape on the real kernel, on each Java virtual machine of this machine
 * and those below $FIRN_TEST_JVMS, interpreted, compiled by C1 and by both: every method and the
 * line of every call, from main to the innermost one, also of methods that were put into others.
 */
#include "agent/sample/sample.h"
#include "live.h"
#include "test.h"

#include <glob.h>
#include <sys/wait.h>

#define FREQUENCY_HZ 997
#define SAMPLES_WANTED 400
#define SAMPLES_NEEDED 100
#define SECONDS_MAX 20

static const char source[] =
	"import java.util.concurrent.Callable;\n"                           /* 1 */
	"public class FirnWork {\n"                                         /* 2 */
	"  interface Shape { long area(int n) throws Exception; }\n"        /* 3 */
	"  static class Round implements Shape {\n"                         /* 4 */
	"    public long area(int n) throws Exception {\n"                  /* 5 */
	"      return FirnWork.twice(() -> FirnWork.deep(3, n));\n"         /* 6 */
	"    }\n"                                                           /* 7 */
	"  }\n"                                                             /* 8 */
	"  static class Flat implements Shape {\n"                          /* 9 */
	"    public long area(int n) { return n; }\n"                       /* 10 */
	"  }\n"                                                             /* 11 */
	"  static long twice(Callable<Long> c) throws Exception {\n"        /* 12 */
	"    long x = c.call();\n"                                          /* 13 */
	"    return x;\n"                                                   /* 14 */
	"  }\n"                                                             /* 15 */
	"  static long deep(int k, int n) {\n"                              /* 16 */
	"    if (k > 0)\n"                                                  /* 17 */
	"      return deep(k - 1, n) + 1;\n"                                /* 18 */
	"    return leaf(n);\n"                                             /* 19 */
	"  }\n"                                                             /* 20 */
	"  static long leaf(int n) {\n"                                     /* 21 */
	"    long x = 0;\n"                                                 /* 22 */
	"    for (int i = 0; i < n; i++)\n"                                 /* 23 */
	"      x = x * 31 + i;\n"                                           /* 24 */
	"    return x;\n"                                                   /* 25 */
	"  }\n"                                                             /* 26 */
	"  static long run(Shape s) throws Exception {\n"                   /* 27 */
	"    long x = 0;\n"                                                 /* 28 */
	"    for (int i = 0; i < 100; i++)\n"                               /* 29 */
	"      x += s.area(3000);\n"                                        /* 30 */
	"    return x;\n"                                                   /* 31 */
	"  }\n"                                                             /* 32 */
	"  public static void main(String[] a) throws Exception {\n"        /* 33 */
	"    Shape[] shapes = { new Round(), new Flat() };\n"               /* 34 */
	"    for (long i = 0; ; i++)\n"                                     /* 35 */
	"      if (run(shapes[(int)(i % 2)]) == 1) System.out.println();\n" /* 36 */
	"  }\n"                                                             /* 37 */
	"}\n";

static const struct shape {
	const char *name;
	uint32_t line; /* 0: any */
} shape[] = {
	{ "FirnWork.main", 36 },
	{ "FirnWork.run", 30 },
	{ "FirnWork$Round.area", 6 },
	{ "FirnWork.twice", 13 },
	{ "FirnWork$Round$$Lambda.call", 0 },
	{ "FirnWork$Round.lambda$area$0", 6 },
	{ "FirnWork.deep", 18 },
	{ "FirnWork.deep", 18 },
	{ "FirnWork.deep", 18 },
	{ "FirnWork.deep", 19 },
	{ "FirnWork.leaf", 0 },
};
#define DEPTH ARRAY_COUNT(shape)

struct tally {
	size_t samples, java, whole, deep, wrong, unnamed, gaps;
};

static const struct live_code *code_of(const struct live *l, uint32_t pid, uint64_t number)
{
	for (size_t i = 0; i < l->codes.len; i++) {
		if (l->codes.v[i].number == number && l->codes.v[i].pid == pid)
			return &l->codes.v[i];
	}
	return NULL;
}

/* Is this frame, the n-th from main, what it must be? Of the innermost only the name is asked. */
static bool frame_is(const struct event_code *e, uint64_t position, size_t n, bool is_innermost)
{
	struct buf name;
	uint32_t line = 0;
	struct str table = str_make(e->data + e->name_bytes + e->file_bytes, e->lines_bytes);
	struct str file = str_make(e->data + e->name_bytes, e->file_bytes);
	buf_init(&name, 4096);
	hotspot_name(&name, str_make(e->data, e->name_bytes), file);
	bool right = str_eq(buf_view(&name), str_of(shape[n].name));
	if (right && shape[n].line && !is_innermost)
		right = hotspot_line(e->version, table, (uint32_t)position, &line) &&
			line == shape[n].line && str_eq(file, STR("FirnWork.java"));
	if (!right)
		print_message("frame %zu: %.*s:%u (%.*s) at %u\n", n, STR_ARG(buf_view(&name)),
			line, STR_ARG(file), (unsigned)position);
	buf_deinit(&name);
	return right;
}

static bool is_from_java(const struct event_code *e)
{
	struct str name = str_make(e->data, e->name_bytes);
	return e->name_unit == 0 || str_starts(name, STR("java/")) ||
	       str_starts(name, STR("jdk/")) || str_starts(name, STR("sun/")) ||
	       str_starts(name, STR("FirnWork$Flat."));
}

static void look_at(const struct live *l, const struct live_sample *s, struct tally *t)
{
	const uint64_t *f = live_user_frames(l, s);
	size_t n = 0, total = 0, strangers = 0;
	bool right = true;
	for (size_t i = 0; i < s->user_count; i++)
		total += frame_is_runtime(f[i]);
	for (size_t i = s->user_count; i-- > 0;) {
		if (!frame_is_runtime(f[i]))
			continue;
		if (!(frame_code(f[i]) & FRAME_CODE_REAL)) {
			t->gaps++;
			continue;
		}
		const struct live_code *c = code_of(l, s->h.pid, frame_code(f[i]));
		if (!c)
			t->unnamed++;
		strangers += c && is_from_java(&c->event);
		if (!c || strangers) /* a thread of its own, or what a method calls */
			continue;
		n++;
		if (n > DEPTH ||
			!frame_is(&c->event, f[i] & FRAME_POSITION_NONE, n - 1, n == total))
			right = false;
	}
	t->java += n > 0;
	t->whole += n > 0 && stack_end_is_whole(s->h.stack_end);
	t->deep += n == DEPTH;
	t->wrong += n > 0 && !right;
}

static void run_until(struct live *l, size_t samples)
{
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (l->samples.len < samples && clock_monotonic_ns() < deadline)
		live_poll(l, 50);
}

static void check_program(
	const char *java, const char *library, const char *folder, const char *mode)
{
	struct live l;
	struct tally t = { 0 };
	int pid = live_spawn((const char *const[]){ java, mode, "-XX:+UnlockDiagnosticVMOptions",
				     "-XX:+DebugNonSafepoints", "-cp", folder, "FirnWork", NULL },
		-1);
	live_begin(&l, FREQUENCY_HZ, pid);
	live_publish_program(&l, library);
	usleep(1500000); /* it has begun, and most is compiled */
	live_publish_process(&l, pid);
	CHECK(l.runtimes == 1);
	live_start(&l);
	run_until(&l, SAMPLES_WANTED);
	live_stop(&l);
	t.samples = l.samples.len;
	for (size_t i = 0; i < l.samples.len; i++)
		look_at(&l, &l.samples.v[i], &t);
	struct sampler_stats stats;
	sampler_read_stats(l.sampler, &stats);
	double taken = (double)MAX(stats.bpf.delivered + stats.bpf.seen, (uint64_t)1);
	print_message("%s %s: %.1f us a sample, %.1f frames; %zu samples, %zu of main, %zu whole, "
		      "%zu to the leaf, %zu wrong, "
		      "%zu without a name, %zu gaps\n",
		java, mode, (double)stats.bpf.run_ns / 1e3 / taken,
		(double)stats.bpf.user_frames / taken, t.samples, t.java, t.whole, t.deep, t.wrong,
		t.unnamed, t.gaps);
	live_kill(pid);
	live_end(&l);
	CHECK(t.samples >= SAMPLES_NEEDED);
	CHECK(t.java * 100 >= t.samples * 50); /* the rest: compilers, the collector */
	CHECK(t.whole * 100 >= t.java * 98);
	CHECK(t.deep * 100 >= t.java * 70);
	CHECK(t.wrong * 100 <= t.java * 2 && t.unnamed == 0 && t.gaps * 100 <= t.java * 2);
}

static bool compile(const char *javac, const char *folder)
{
	char command[1024], path[256];
	(void)snprintf(path, sizeof(path), "%s/FirnWork.java", folder);
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(source, f) >= 0 && fclose(f) == 0);
	(void)snprintf(command, sizeof(command), "%s -d %s %s", javac, folder, path);
	return system(command) == 0;
}

static void remove_folder(const char *folder)
{
	char command[256];
	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(system(command) == 0);
}

/* …/bin/javac, with its virtual machine. False: it has none that runs here. */
static bool check_jdk(const char *javac)
{
	static const char *const modes[] = { "-Xint", "-XX:TieredStopAtLevel=1",
		"-XX:+TieredCompilation" };
	static const char *const libraries[] = { "lib/server/libjvm.so",
		"jre/lib/amd64/server/libjvm.so" };
	char folder[] = "/tmp/firn-test-hotspot-XXXXXX", java[512], library[512];
	int home = (int)(strlen(javac) - strlen("/bin/javac"));
	(void)snprintf(java, sizeof(java), "%.*s/bin/java", home, javac);
	for (size_t i = 0; i < ARRAY_COUNT(libraries); i++) {
		(void)snprintf(library, sizeof(library), "%.*s/%s", home, javac, libraries[i]);
		if (access(library, R_OK) == 0)
			break;
	}
	if (access(library, R_OK) != 0 || access(java, X_OK) != 0)
		return false;
	CHECK(mkdtemp(folder));
	bool compiled = compile(javac, folder);
	for (size_t i = 0; compiled && i < ARRAY_COUNT(modes); i++)
		check_program(java, library, folder, modes[i]);
	remove_folder(folder);
	return compiled;
}

static void shows_methods_and_lines(void **state)
{
	(void)state;
	struct err e = { 0 };
	if (probe_sampling(&e) != OK)
		SKIP("cannot sample here");
	glob_t g = { 0 };
	char more[512];
	size_t found = 0;
	(void)glob("/usr/lib/jvm/*/bin/javac", 0, NULL, &g);
	const char *others = getenv("FIRN_TEST_JVMS");
	(void)snprintf(more, sizeof(more), "%s/*/bin/javac", others ? others : "");
	if (others)
		(void)glob(more, GLOB_APPEND, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		char real[PATH_MAX];
		bool is_link = !realpath(g.gl_pathv[i], real) ||
			       strcmp(real, g.gl_pathv[i]) != 0; /* met as itself, too */
		if (!is_link)
			found += check_jdk(g.gl_pathv[i]);
	}
	globfree(&g);
	if (!found)
		SKIP("no JDK here");
}

TEST_MAIN(cmocka_unit_test(shows_methods_and_lines))
