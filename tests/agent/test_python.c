/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python programs of known shape on the real kernel, in each version that this machine has: every
 * function and the line of every call, from the module to the innermost one.
 */
#include "agent/sample/sample.h"
#include "live.h"
#include "test.h"

#include <glob.h>

#define FREQUENCY_HZ 997
#define SAMPLES_WANTED 300
#define SAMPLES_NEEDED 100
#define SECONDS_MAX 20

static const char script[] = "import sys\n"                         /* 1 */
			     "def leaf():\n"                        /* 2 */
			     "    x = 0\n"                          /* 3 */
			     "    for i in range(300):\n"           /* 4 */
			     "        x += i\n"                     /* 5 */
			     "    return x\n"                       /* 6 */
			     "def inner():\n"                       /* 7 */
			     "    y = 1\n"                          /* 8 */
			     "    return leaf() + y\n"              /* 9 */
			     "class Work:\n"                        /* 10 */
			     "    def method(self):\n"              /* 11 */
			     "        return inner()\n"             /* 12 */
			     "def generate():\n"                    /* 13 */
			     "    while True:\n"                    /* 14 */
			     "        yield Work().method()\n"      /* 15 */
			     "def key(v):\n"                        /* 16 */
			     "    return next(numbers) + v\n"       /* 17 */
			     "def main():\n"                        /* 18 */
			     "    while True:\n"                    /* 19 */
			     "        sorted([3, 2, 1], key=key)\n" /* 20 */
			     "numbers = generate()\n"               /* 21 */
			     "main()\n";                            /* 22 */

/* From the module on. `old`: to 3.10 there are no qualified names. */
static const struct shape {
	const char *name, *old;
	uint32_t first_line, line; /* line 0: any of its function */
} shape[] = {
	{ "<module>", "<module>", 1, 22 },
	{ "main", "main", 18, 20 },
	{ "key", "key", 16, 17 },
	{ "generate", "generate", 13, 15 },
	{ "Work.method", "method", 11, 12 },
	{ "inner", "inner", 7, 9 },
	{ "leaf", "leaf", 2, 0 },
};
#define DEPTH ARRAY_COUNT(shape)

struct tally {
	size_t samples, python, whole, deep, wrong, unnamed, gaps;
};

static const struct live_code *code_of(const struct live *l, uint32_t pid, uint64_t number)
{
	for (size_t i = 0; i < l->codes.len; i++) {
		if (l->codes.v[i].number == number && l->codes.v[i].pid == pid)
			return &l->codes.v[i];
	}
	return NULL;
}

/* Is this frame, the n-th from the module, what it must be? */
static bool frame_is(
	const struct live_code *c, const char *path, uint64_t position, size_t n, bool is_innermost)
{
	const struct event_code *e = &c->event;
	const struct shape *want = &shape[n];
	const char *name = e->version <= (3 << 8 | 10) ? want->old : want->name;
	uint32_t line = 0;
	if (!str_eq(str_make(e->data, e->name_bytes), str_of(name)) ||
		!str_eq(str_make(e->data + e->name_bytes, e->file_bytes), str_of(path)) ||
		e->first_line != want->first_line)
		return false;
	if (is_innermost || want->line == 0)
		return true;
	struct str table = str_make(e->data + e->name_bytes + e->file_bytes, e->lines_bytes);
	return cpython_line(e->version, e->first_line, table, (uint32_t)position, &line) &&
	       line == want->line;
}

static void look_at(
	const struct live *l, const struct live_sample *s, const char *path, struct tally *t)
{
	const uint64_t *f = live_user_frames(l, s);
	size_t n = 0;
	bool right = true;
	size_t total = 0;
	for (size_t i = 0; i < s->user_count; i++)
		total += frame_is_runtime(f[i]);
	t->samples++;
	for (size_t i = s->user_count; i-- > 0;) {
		if (!frame_is_runtime(f[i]))
			continue;
		if (!(frame_code(f[i]) & FRAME_CODE_REAL)) {
			t->gaps++;
			print_message("gap %" PRIx64 "\n", f[i]);
			continue;
		}
		const struct live_code *c = code_of(l, s->h.pid, frame_code(f[i]));
		n++;
		if (!c)
			t->unnamed++;
		else if (n > DEPTH ||
			 !frame_is(c, path, f[i] & FRAME_POSITION_NONE, n - 1, n == total))
			right = false;
	}
	t->python += n > 0;
	t->whole += n > 0 && stack_end_is_whole(s->h.stack_end);
	t->deep += n == DEPTH;
	t->wrong += !right;
}

static void write_script(char path[64])
{
	(void)snprintf(path, 64, "/tmp/firn-test-python-XXXXXX");
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, script, sizeof(script) - 1) == sizeof(script) - 1);
	close(fd);
}

static void run_until(struct live *l, size_t samples)
{
	int64_t deadline = clock_monotonic_ns() + SECONDS_MAX * 1000000000LL;
	while (l->samples.len < samples && clock_monotonic_ns() < deadline)
		live_poll(l, 50);
}

static void check_program(const char *python)
{
	struct live l;
	struct tally t = { 0 };
	char path[64];
	write_script(path);
	int pid = live_spawn((const char *const[]){ python, path, NULL }, -1);
	live_begin(&l, FREQUENCY_HZ, pid);
	live_publish_program(&l, python);
	usleep(300000); /* it has begun */
	live_publish_process(&l, pid);
	CHECK(l.runtimes == 1);
	live_start(&l);
	run_until(&l, SAMPLES_WANTED);
	live_stop(&l);
	for (size_t i = 0; i < l.samples.len; i++)
		look_at(&l, &l.samples.v[i], path, &t);
	struct sampler_stats s;
	sampler_read_stats(l.sampler, &s);
	print_message(
		"%s: %zu samples, %zu with Python, %zu whole, %zu to the leaf, %zu wrong, %zu "
		"without a name, %zu gaps; %" PRIu64 " functions told\n",
		python, t.samples, t.python, t.whole, t.deep, t.wrong, t.unnamed, t.gaps,
		(uint64_t)s.bpf.codes);
	live_kill(pid);
	live_end(&l);
	(void)unlink(path);
	CHECK(t.samples >= SAMPLES_NEEDED);
	CHECK(t.python * 100 >= t.samples * 95);
	CHECK(t.whole * 100 >= t.python * 99);
	CHECK(t.deep * 100 >= t.python * 70);
	CHECK(t.wrong * 100 <= t.python && t.unnamed == 0 && t.gaps * 100 <= t.python);
}

/* "…/bin/python3.N" without a letter behind it, from 3.7 on. */
static bool is_interpreter(const char *path)
{
	const char *at = strstr(path, "/bin/python3.");
	char *end = NULL;
	unsigned long minor = at ? strtoul(at + strlen("/bin/python3."), &end, 10) : 0;
	return end && *end == 0 && minor >= 7;
}

static void shows_functions_and_lines(void **state)
{
	(void)state;
	struct err e = { 0 };
	if (probe_sampling(&e) != OK)
		SKIP("cannot sample here");
	glob_t g = { 0 };
	size_t found = 0;
	(void)glob("/usr/bin/python3.*", 0, NULL, &g);
	char own[256]; /* interpreters that the user has built */
	const char *home = getenv("HOME");
	snprintf(own, sizeof(own), "%s/.pyenv/versions/*/bin/python3.*", home ? home : "");
	(void)glob(own, GLOB_APPEND, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		if (!is_interpreter(g.gl_pathv[i]))
			continue;
		check_program(g.gl_pathv[i]);
		found++;
	}
	globfree(&g);
	if (!found)
		SKIP("no CPython here");
}

TEST_MAIN(cmocka_unit_test(shows_functions_and_lines))
