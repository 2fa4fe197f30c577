/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scripts: a script of known shape, run by each interpreter of a language that this machine has,
 * and sampled: every function and the line of every call, from the outermost one to the innermost.
 * Interpreters of other systems, unpacked into folders, are run there by chroot:
 * FIRN_TEST_ROOTS=DIR:DIR. Include once.
 */
#pragma once

#include "agent/names/codes.h"
#include "agent/sample/sample.h"
#include "live.h"
#include "test.h"

#include <glob.h>

#define SCRIPT_FREQUENCY_HZ 997
#define SCRIPT_SAMPLES_WANTED 300
#define SCRIPT_SAMPLES_NEEDED 100
#define SCRIPT_SECONDS_MAX 20
#define SCRIPT_ROOTS_MAX 8
#define SCRIPT_ANY_LINE UINT32_MAX

/* A frame, from the outermost on. */
struct script_frame {
	const char *name;    /* NULL: it has the file's in it */
	uint32_t first_line; /* 0: it is in no file; SCRIPT_ANY_LINE: it depends on the version */
	uint32_t line;       /* 0: any */
};

struct script {
	const char *interpreters; /* a pattern of paths: "/usr/bin/php[78].*" */
	const char *text;
	const char *const *args; /* between the interpreter and the script */
	const struct script_frame *shape;
	size_t depth;
	uint16_t kind; /* enum runtime_kind */
	/* What the runtime itself has below the script is left out, and what is above it. */
	bool has_runtime_below;
	/* Percent of the samples with frames of the language that must be in the innermost one. */
	unsigned deep;
};

struct script_tally {
	size_t samples, shown, rooted, whole, deep, wrong, unnamed, gaps;
};

/* What firn would show of a function. */
struct script_name {
	char text[1024];
	char file[1024];
	uint32_t first_line;
	uint16_t kind;
	bool found;
};

static struct script_name script_name_of(struct codes *codes, uint32_t pid, uint64_t number)
{
	struct script_name n = { 0 };
	const struct code *c = codes_find(codes, pid, number);
	if (!c)
		return n;
	n.found = true;
	n.kind = c->kind;
	n.first_line = codes_lines(codes, c, FRAME_POSITION_NONE).first;
	(void)snprintf(n.text, sizeof(n.text), "%.*s", STR_ARG(c->name));
	(void)snprintf(n.file, sizeof(n.file), "%.*s", STR_ARG(c->file));
	return n;
}

static bool script_frame_is(const struct script *s, const struct script_name *n, const char *path,
	uint32_t line, size_t at, bool is_innermost)
{
	const struct script_frame *want = &s->shape[at < s->depth ? at : 0];
	if (is_innermost && !n->file[0] && n->kind == s->kind)
		return true; /* a function of the language's library */
	return at < s->depth && n->kind == s->kind &&
	       (!want->name || strcmp(n->text, want->name) == 0) &&
	       (want->first_line == SCRIPT_ANY_LINE || n->first_line == want->first_line) &&
	       (!n->file[0] || !strcmp(n->file, path)) &&
	       (is_innermost || !want->line || line == want->line);
}

static void script_look_at(const struct live *l, struct codes *codes, const struct live_sample *s,
	const struct script *script, const char *path, struct script_tally *t)
{
	const uint64_t *f = live_user_frames(l, s);
	size_t total = 0, n = 0, first_wrong = SIZE_MAX;
	for (size_t i = 0; i < s->user_count; i++)
		total += frame_is_runtime(f[i]) && frame_code(f[i]) & FRAME_CODE_REAL;
	t->samples++;
	for (size_t i = s->user_count; i-- > 0;) {
		if (!frame_is_runtime(f[i]))
			continue;
		if (!(frame_code(f[i]) & FRAME_CODE_REAL)) {
			t->gaps++;
			print_message("gap %" PRIx64 "\n", f[i]);
			continue;
		}
		const struct code *c = codes_find(codes, s->h.pid, frame_code(f[i]));
		struct script_name name = script_name_of(codes, s->h.pid, frame_code(f[i]));
		uint32_t line = c ? codes_lines(codes, c, f[i] & FRAME_POSITION_NONE).line : 0;
		if (c && n == 0 && script->has_runtime_below && strcmp(name.file, path) != 0) {
			total--;
			continue;
		}
		t->unnamed += !c;
		if (!c)
			print_message(
				"untold frame %zu of %zu, sample %zu\n", n, total, t->samples);
		t->rooted += n == 0 && strcmp(name.text, script->shape[0].name) == 0;
		if (c && first_wrong == SIZE_MAX &&
			!script_frame_is(script, &name, path, line, n, n + 1 == total)) {
			first_wrong = n;
			print_message("frame %zu of %zu: %s %s:%u, line %u\n", n, total, name.text,
				name.file, name.first_line, line);
		}
		n++;
	}
	t->shown += n > 0;
	t->whole += n > 0 && stack_end_is_whole(s->h.stack_end);
	t->deep += n >= script->depth;
	t->wrong += first_wrong != SIZE_MAX;
}

static void script_run_until(struct live *l, size_t samples)
{
	int64_t deadline = clock_monotonic_ns() + SCRIPT_SECONDS_MAX * 1000000000LL;
	while (l->samples.len < samples && clock_monotonic_ns() < deadline)
		live_poll(l, 50);
}

/* `root`: "" or the folder to run in. */
static void script_check(const struct script *s, const char *root, const char *interpreter)
{
	struct live l;
	struct script_tally t = { 0 };
	struct codes *codes = NULL;
	char path[256];
	(void)snprintf(path, sizeof(path), "%s/tmp/firn-test-script-XXXXXX", root);
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, s->text, strlen(s->text)) == (ssize_t)strlen(s->text));
	CHECK(fchmod(fd, 0644) == 0);
	close(fd);
	const char *args[16] = { NULL };
	size_t n = 0;
	if (root[0]) {
		args[n++] = "chroot";
		args[n++] = root;
	}
	args[n++] = interpreter + strlen(root);
	for (size_t i = 0; s->args && s->args[i]; i++)
		args[n++] = s->args[i];
	args[n++] = path + strlen(root);
	int pid = live_spawn(args, -1);
	live_begin(&l, SCRIPT_FREQUENCY_HZ, pid);
	usleep(500000); /* it has begun */
	live_publish_process(&l, pid);
	if (l.runtimes != 1)
		print_error("%s: %u files with a runtime\n", interpreter, l.runtimes);
	CHECK(l.runtimes == 1);
	live_start(&l);
	script_run_until(&l, SCRIPT_SAMPLES_WANTED);
	live_stop(&l);
	CHECK_OK(codes_new(CODES_BYTES_MAX, &codes, NULL), NULL);
	for (size_t i = 0; i < l.codes.len; i++)
		codes_add(codes, &l.codes.v[i].event);
	for (size_t i = 0; i < l.samples.len; i++)
		script_look_at(&l, codes, &l.samples.v[i], s, path + strlen(root), &t);
	print_message("%s: %zu samples, %zu shown, %zu from the outermost function, %zu whole, "
		      "%zu to the innermost, %zu wrong, %zu without a name, %zu gaps\n",
		interpreter, t.samples, t.shown, t.rooted, t.whole, t.deep, t.wrong, t.unnamed,
		t.gaps);
	live_kill(pid);
	live_end(&l);
	codes_free(codes);
	(void)unlink(path);
	CHECK(t.samples >= SCRIPT_SAMPLES_NEEDED);
	CHECK(t.shown * 100 >= t.samples * 99 && t.rooted * 100 >= t.samples * 99);
	CHECK(t.whole * 100 >= t.shown * 99);
	CHECK(t.deep * 100 >= t.shown * s->deep);
	CHECK(t.wrong * 100 <= t.shown && t.unnamed == 0 && t.gaps * 100 <= t.shown);
}

static size_t script_check_in(const struct script *s, const char *root)
{
	char pattern[512];
	glob_t g = { 0 };
	(void)snprintf(pattern, sizeof(pattern), "%s%s", root, s->interpreters);
	(void)glob(pattern, 0, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++)
		script_check(s, root, g.gl_pathv[i]);
	size_t found = g.gl_pathc;
	globfree(&g);
	return found;
}

/* Each interpreter that is found; false: there is none. */
static bool script_check_all(const struct script *s)
{
	size_t found = script_check_in(s, "");
	const char *roots = getenv("FIRN_TEST_ROOTS");
	struct str left = str_of(roots ? roots : ""), one;
	while (left.len && str_split(&left, ':', &one)) {
		char root[256];
		(void)snprintf(root, sizeof(root), "%.*s", STR_ARG(one));
		found += script_check_in(s, root);
	}
	return found > 0;
}
