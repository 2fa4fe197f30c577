/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JavaScript program of known shape in Node.js on the real kernel: recursion, a callback through
 * a builtin, a method, an exception that was caught, a generator, a function without a name; in the
 * interpreter. All below it, the modules of Node itself, is left out. More programs than this
 * machine's: FIRN_TEST_NODES=PATH:PATH.
 */
#include "scripts.h"

static const char text[] = "'use strict';\n"                                  /* 1 */
			   "function leaf() {\n"                              /* 2 */
			   "    let x = 0;\n"                                 /* 3 */
			   "    for (let i = 0; i < 3000; i++) { x += i; }\n" /* 4 */
			   "    return x;\n"                                  /* 5 */
			   "}\n"                                              /* 6 */
			   "function thrower() {\n"                           /* 7 */
			   "    try { throw new Error('x'); }\n"              /* 8 */
			   "    catch (e) { return leaf(); }\n"               /* 9 */
			   "}\n"                                              /* 10 */
			   "class Work {\n"                                   /* 11 */
			   "    method() {\n"                                 /* 12 */
			   "        return thrower();\n"                      /* 13 */
			   "    }\n"                                          /* 14 */
			   "}\n"                                              /* 15 */
			   "function *numbers() {\n"                          /* 16 */
			   "    while (true) {\n"                             /* 17 */
			   "        yield new Work().method();\n"             /* 18 */
			   "    }\n"                                          /* 19 */
			   "}\n"                                              /* 20 */
			   "const all = numbers();\n"                         /* 21 */
			   "function again(n) {\n"                            /* 22 */
			   "    if (n) { return again(n - 1); }\n"            /* 23 */
			   "    return [1].map((m) => {\n"                    /* 24 */
			   "        return all.next().value + m;\n"           /* 25 */
			   "    })[0];\n"                                     /* 26 */
			   "}\n"                                              /* 27 */
			   "const nameless = [function () {\n"                /* 28 */
			   "    return again(2);\n"                           /* 29 */
			   "}];\n"                                            /* 30 */
			   "while (true) {\n"                                 /* 31 */
			   "    nameless[0]();\n"                             /* 32 */
			   "}\n";

static const struct script_frame shape[] = {
	{ "(anonymous)", 1, 32 },
	{ "nameless", 28, 29 },
	{ "again", 22, 23 },
	{ "again", 22, 23 },
	{ "again", 22, 24 },
	{ "map", 0, 0 },
	{ "(anonymous)", 24, 25 },
	{ "next", 0, 0 },
	{ "numbers", 16, 18 },
	{ "method", 12, 13 },
	{ "thrower", 7, 0 },
	{ "leaf", 2, 0 },
};

static void shows_functions_and_lines(void **state)
{
	(void)state;
	const struct script script = { .interpreters = "/usr/bin/node",
		.text = text,
		.args = (const char *const[]){ "--jitless", NULL },
		.shape = shape,
		.depth = ARRAY_COUNT(shape),
		.kind = RUNTIME_V8,
		.has_runtime_below = true,
		.deep = 50 };
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	bool found = script_check_all(&script);
	const char *more = getenv("FIRN_TEST_NODES");
	struct str left = str_of(more ? more : ""), one;
	while (left.len && str_split(&left, ':', &one)) {
		char path[256];
		(void)snprintf(path, sizeof(path), "%.*s", STR_ARG(one));
		script_check(&script, "", path);
		found = true;
	}
	if (!found)
		SKIP("no Node.js here");
}

/* As it runs without flags: the interpreter, then code of each compiler, functions put into others,
 * and much memory that the collector moves. Whoever is on the stack calls the next one. */
static const char moving[] =
	"'use strict';\n"                                                       /* 1 */
	"function leaf(n) {\n"                                                  /* 2 */
	"    const all = [];\n"                                                 /* 3 */
	"    for (let i = 0; i < n; i++) { all.push({ i, text: 'x' + i }); }\n" /* 4 */
	"    return all.length;\n"                                              /* 5 */
	"}\n"                                                                   /* 6 */
	"function small(n) { return leaf(n) + 1; }\n"                           /* 7 */
	"class Work { method(n) { return small(n) + 1; } }\n"                   /* 8 */
	"function again(depth, n) {\n"                                          /* 9 */
	"    if (depth) { return again(depth - 1, n) + 1; }\n"                  /* 10 */
	"    return new Work().method(n);\n"                                    /* 11 */
	"}\n"                                                                   /* 12 */
	"let kept = [];\n"                                                      /* 13 */
	"function main() {\n"                                                   /* 14 */
	"    while (true) {\n"                                                  /* 15 */
	"        kept.push(again(1, 500), new Function('return 1'));\n"         /* 16 */
	"        if (kept.length > 2000) { kept = kept.slice(1000); }\n"        /* 17 */
	"    }\n"                                                               /* 18 */
	"}\n"                                                                   /* 19 */
	"main();\n";

static const struct script_frame chain[] = {
	{ "(anonymous)", 1, 20 },
	{ "main", 14, 0 },
	{ "again", 9, 10 },
	{ "again", 9, 11 },
	{ "method", 8, 8 },
	{ "small", 7, 7 },
	{ "leaf", 2, 0 },
};

struct moving_tally {
	bool is_old; /* before Node.js 20 */
	size_t samples, with, deep, wrong, gaps, inlined, lines;
};

/* A frame of the script, in the order of the calls. False: it is not who is to be there. */
static bool take_frame(const struct code_frame *f, const char *path, bool is_innermost, size_t *n,
	struct moving_tally *t)
{
	const struct code *c = f->function;
	char file[256];
	(void)snprintf(file, sizeof(file), "%.*s", STR_ARG(c ? c->file : STR("?")));
	if (strcmp(file, path) != 0)
		return true; /* Node's own, and builtins */
	size_t at = (*n)++;
	t->lines += f->lines.line != 0;
	if (at >= ARRAY_COUNT(chain) || !str_eq(c->name, str_of(chain[at].name)) ||
		f->lines.first != chain[at].first_line ||
		(!is_innermost && f->lines.line && chain[at].line &&
			f->lines.line != chain[at].line)) {
		print_message("frame %zu: %.*s:%u, line %u\n", at, STR_ARG(c->name), f->lines.first,
			f->lines.line);
		return false;
	}
	return true;
}

static void look_at_moving(const struct live *l, struct codes *codes, const struct live_sample *s,
	const char *path, struct moving_tally *t)
{
	const uint64_t *f = live_user_frames(l, s);
	size_t n = 0, last = 0;
	bool right = true;
	/* Before 20 V8 notes no place for the calls with which compiled code asks for memory, so
	 * the function that has called the collector has the line of another place
	 * (docs/runtimes.md). */
	while (t->is_old && last < s->user_count && !frame_is_runtime(f[last]))
		last++;
	for (size_t i = s->user_count; i-- > 0 && right;) {
		struct code_frame frames[CODE_FRAMES_MAX];
		if (!frame_is_runtime(f[i]))
			continue;
		t->gaps += !(frame_code(f[i]) & FRAME_CODE_REAL);
		const struct code *c = codes_find(codes, s->h.pid, frame_code(f[i]));
		if (!c)
			continue;
		size_t count = codes_frames(codes, c, f[i] & FRAME_POSITION_NONE, frames);
		t->inlined += count > 1;
		for (size_t k = count; k-- > 0 && right;)
			right = take_frame(&frames[k], path, i == last && k == 0, &n, t);
	}
	t->samples++;
	t->with += n > 0;
	t->deep += n == ARRAY_COUNT(chain);
	t->wrong += !right;
}

/* 0: it does not say. */
static int major_version(const char *node)
{
	char command[300];
	int major = 0;
	(void)snprintf(command, sizeof(command), "'%s' --version", node);
	FILE *out = popen(command, "r");
	if (out) {
		if (fscanf(out, "v%d", &major) != 1)
			major = 0;
		(void)pclose(out);
	}
	return major;
}

static void check_moving(const char *node)
{
	struct live l;
	struct moving_tally t = { 0 };
	struct codes *codes = NULL;
	char path[] = "/tmp/firn-test-script-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, moving, strlen(moving)) == (ssize_t)strlen(moving));
	close(fd);
	int version = major_version(node);
	t.is_old = version && version < 20;
	/* Before 20 functions that were inlined into a loop which is compiled while it runs are a
	 * gap (docs/runtimes.md). */
	const char *osr = t.is_old ? "--no-use-osr" : "--use-osr";
	const char *args[] = { node, "--max-semi-space-size=1", osr, path, NULL };
	int pid = live_spawn(args, -1);
	live_begin(&l, SCRIPT_FREQUENCY_HZ, pid);
	usleep(500000);
	live_publish_process(&l, pid);
	live_start(&l);
	script_run_until(&l, SCRIPT_SAMPLES_WANTED);
	live_stop(&l);
	CHECK_OK(codes_new(CODES_BYTES_MAX, &codes, NULL), NULL);
	for (size_t i = 0; i < l.codes.len; i++)
		codes_add(codes, &l.codes.v[i].event);
	for (size_t i = 0; i < l.samples.len; i++) {
		if (l.samples.v[i].h.tid == l.samples.v[i].h.pid)
			look_at_moving(&l, codes, &l.samples.v[i], path, &t);
	}
	print_message("%s: %zu samples, %zu of the program, %zu to the innermost, %zu wrong, %zu "
		      "gaps, %zu frames with others in them, %zu with a line\n",
		node, t.samples, t.with, t.deep, t.wrong, t.gaps, t.inlined, t.lines);
	live_kill(pid);
	live_end(&l);
	codes_free(codes);
	(void)unlink(path);
	CHECK(t.samples >= SCRIPT_SAMPLES_NEEDED && t.with * 100 >= t.samples * 95);
	CHECK(t.wrong * 100 <= t.samples && t.gaps * 100 <= t.samples);
	size_t least = t.samples / (t.is_old ? 8 : 4);
	CHECK(t.inlined > least && t.deep > least);
}

static void shows_functions_in_others_while_objects_move(void **state)
{
	(void)state;
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	if (access("/usr/bin/node", X_OK) != 0 && !getenv("FIRN_TEST_NODES"))
		SKIP("no Node.js here");
	if (access("/usr/bin/node", X_OK) == 0)
		check_moving("/usr/bin/node");
	const char *more = getenv("FIRN_TEST_NODES");
	struct str left = str_of(more ? more : ""), one;
	while (left.len && str_split(&left, ':', &one)) {
		char path[256];
		(void)snprintf(path, sizeof(path), "%.*s", STR_ARG(one));
		check_moving(path);
	}
}

TEST_MAIN(cmocka_unit_test(shows_functions_and_lines),
	cmocka_unit_test(shows_functions_in_others_while_objects_move))
