/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/problems.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/str.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
	struct problem v[PROBLEMS_MAX];
	uint32_t count;
};

struct problems {
	struct lock lock;
	struct list lists[PROBLEM_KINDS];
};

struct problems *problems_new(void)
{
	struct problems *p = calloc(1, sizeof(*p));
	if (p)
		lock_init(&p->lock, LOCK_PROBLEMS);
	return p;
}

void problems_free(struct problems *p)
{
	if (!p)
		return;
	lock_destroy(&p->lock);
	free(p);
}

static bool is_same(const struct problem *p, const char *what, const char *why)
{
	return strncmp(p->what, what, sizeof(p->what) - 1) == 0 &&
	       strncmp(p->why, why, sizeof(p->why) - 1) == 0;
}

static struct problem *place_for(struct list *l, const char *what, const char *why)
{
	struct problem *oldest = &l->v[0];
	for (uint32_t i = 0; i < l->count; i++) {
		if (is_same(&l->v[i], what, why))
			return &l->v[i];
		if (l->v[i].last_ns < oldest->last_ns)
			oldest = &l->v[i];
	}
	struct problem *at = l->count < PROBLEMS_MAX ? &l->v[l->count++] : oldest;
	*at = (struct problem){ .count = 0 };
	snprintf(at->what, sizeof(at->what), "%s", what);
	snprintf(at->why, sizeof(at->why), "%s", why);
	return at;
}

/* A path such as "/proc/12/map_files/1-2" reveals no folder of a user; one below /proc/PID/root
 * does. */
static bool is_harmless(struct str word)
{
	return str_starts(word, STR("/proc/")) && !memmem(word.p, word.len, "/root/", 6);
}

/* Words may be pieces of a path that has blanks in it: each is cut. */
static void hide_folders(const char *text, char *out, size_t size)
{
	struct str rest = str_of(text), word;
	size_t n = 0;
	out[0] = 0;
	while (n < size && str_split(&rest, ' ', &word)) {
		size_t slash = str_rindex(word, '/');
		if (slash < word.len && !is_harmless(word))
			word = str_sub(word, slash + 1, word.len);
		n += (size_t)snprintf(out + n, size - n, "%s%.*s", n ? " " : "", STR_ARG(word));
	}
}

static const char *last_part(const char *what)
{
	const char *slash = strrchr(what, '/');
	return slash ? slash + 1 : what;
}

void problems_add(
	struct problems *p, enum problem_kind kind, const char *what, const char *long_why)
{
	char why[ERR_TEXT_MAX];
	if (!p)
		return;
	assert(kind < PROBLEM_KINDS);
	what = last_part(what);
	hide_folders(long_why, why, sizeof(why));
	lock_take(&p->lock);
	struct problem *at = place_for(&p->lists[kind], what, why);
	at->count++;
	at->last_ns = clock_monotonic_ns();
	lock_release(&p->lock);
}

static int by_count(const void *a, const void *b)
{
	const struct problem *x = a, *y = b;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->what, y->what);
}

uint32_t problems_list(struct problems *p, enum problem_kind kind, struct problem out[PROBLEMS_MAX])
{
	assert(kind < PROBLEM_KINDS);
	lock_take(&p->lock);
	uint32_t count = p->lists[kind].count;
	memcpy(out, p->lists[kind].v, count * sizeof(out[0]));
	lock_release(&p->lock);
	if (count)
		qsort(out, count, sizeof(out[0]), by_count);
	return count;
}
