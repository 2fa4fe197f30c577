/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture: a store in a directory of its own, profiles from a small description, and a model of
 * what was stored that answers by looking at every sample.
 */
#pragma once

#include "store/merge/merge.h"
#include "store/read/queries.h"
#include "store/read/read.h"
#include "store/retain/retain.h"
#include "store/state/state.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SEC 1000000000LL
#define T0 (1700000000LL * SEC)

/* ---- a directory that goes with the test ---- */

static inline int fixture_remove(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	return remove(path);
}

static inline void fixture_clean(const char *path)
{
	(void)nftw(path, fixture_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* The log of each store takes 16 MiB ahead, and many tests run at a time. */
static inline bool fixture_has_room(const char *path)
{
	struct statvfs v;
	return access(path, W_OK) == 0 && statvfs(path, &v) == 0 &&
	       (uint64_t)v.f_bavail * v.f_frsize >= (uint64_t)1 << 30;
}

/* In memory where that is possible: most tests do not care what a sync costs. */
static inline void fixture_dir(char out[64])
{
	const char *base = fixture_has_room("/dev/shm") ? "/dev/shm" : "/tmp";
	snprintf(out, 64, "%s/firn-store-XXXXXX", base);
	CHECK(mkdtemp(out) != NULL);
}

static inline void fixture_disk_dir(char out[64])
{
	snprintf(out, 64, "/tmp/firn-store-XXXXXX");
	CHECK(mkdtemp(out) != NULL);
}

/* Of parts, in that directory. */
static inline struct place *fixture_place(const char *dir)
{
	struct place *p = NULL;
	struct err e = { 0 };
	CHECK_OK(place_open_directory(dir, &p, &e), &e);
	return p;
}

/* ---- notices ---- */

struct notices {
	pthread_mutex_t lock;
	int count;
	char last[512];
	char all[8192];
};

static inline void fixture_notice(void *ctx, const char *sentence)
{
	struct notices *n = ctx;
	pthread_mutex_lock(&n->lock);
	n->count++;
	snprintf(n->last, sizeof(n->last), "%s", sentence);
	size_t len = strlen(n->all);
	snprintf(n->all + len, sizeof(n->all) - len, "%s\n", sentence);
	pthread_mutex_unlock(&n->lock);
}

/* A segment is preallocated, and read whole at each start: thousands of times in these tests. */
#define FIXTURE_SEGMENT_BYTES ((uint64_t)256 << 10)

/* Threads of all stores of a test; none where FIXTURE_FORKS is defined: a child has no threads of
 * its parent's pool. */
static inline struct os_pool *fixture_pool(void)
{
	static struct os_pool *pool;
#ifndef FIXTURE_FORKS
	struct err e = { 0 };
	if (!pool)
		CHECK_OK(os_pool_new(2, "query", &pool, &e), &e);
#endif
	return pool;
}

static inline struct store_config fixture_config(const char *dir)
{
	struct store_config c;
	store_config_default(&c);
	c.path = dir;
	c.flush_interval_ns = 3600 * SEC; /* tests flush when they want to */
	c.log_segment_bytes = FIXTURE_SEGMENT_BYTES;
	c.pool = fixture_pool();
	c.wait_ns = SEC / 2; /* for memory that does not come */
	return c;
}

/* ---- the store's own thread ---- */

/* It loads labels ahead and merges, whenever it gets to it: before, between or behind what a test
 * does. From now on nobody merges, neither it nor store_merge_step(). */
static inline void fixture_stop_merging(struct store *s)
{
	lock_take(&s->merge_lock);
	s->merge_retry_ns = INT64_MAX;
	lock_release(&s->merge_lock);
}

/* Until it is through with what it does first: it has looked at the clock. */
static inline void fixture_wait_started(struct store *s)
{
	for (bool started = false; !started;) {
		lock_take(&s->lock);
		started = s->age.looked;
		lock_release(&s->lock);
		if (!started)
			usleep(1000);
	}
}

/* A merge takes some out and puts one in. */
static inline size_t fixture_part_count(struct store *s)
{
	lock_take(&s->lock);
	size_t n = s->parts.len;
	lock_release(&s->lock);
	return n;
}

/* A store_io_hook: no byte can be written while the atomic_bool `ctx` is set. */
static inline int fixture_full_disk(void *ctx, const char *operation)
{
	return atomic_load((atomic_bool *)ctx) && strcmp(operation, "write") == 0 ? ENOSPC : 0;
}

/* ---- deterministic random numbers ---- */

static inline uint64_t rnd(uint64_t *state)
{
	*state += 0x9E3779B97F4A7C15ull;
	return hash_u64(*state);
}

static inline uint64_t rnd_below(uint64_t *state, uint64_t n)
{
	return rnd(state) % n;
}

/* ---- profiles ---- */

static inline uint32_t fx_string(struct profile *p, const char *s)
{
	uint32_t id;
	CHECK(profile_add_string(p, str_of(s), &id) == OK);
	return id;
}

/* A native frame of file `binary` at `address`. */
static inline uint32_t fx_frame(struct profile *p, const char *binary, uint64_t address)
{
	struct profile_mapping m = { .filename = fx_string(p, binary),
		.build_id = fx_string(p, "00ff00ff") };
	struct profile_location l = { .address = address, .kind = FRAME_NATIVE };
	uint32_t id;
	CHECK(profile_add_mapping(p, &m, &l.mapping) == OK);
	CHECK(profile_add_location(p, &l, NULL, 0, &id) == OK);
	return id;
}

/* A frame with names: "function@file:line", twice inlined when `inlined` is given. */
static inline uint32_t fx_named(
	struct profile *p, const char *function, uint32_t line, const char *inlined)
{
	struct profile_function f = { .name = fx_string(p, function),
		.system_name = fx_string(p, function),
		.filename = fx_string(p, "a.c"),
		.start_line = 7 };
	struct profile_line lines[2];
	struct profile_location l = { .kind = FRAME_CPYTHON };
	uint32_t n = 0, id;
	if (inlined) {
		struct profile_function g = { .name = fx_string(p, inlined) };
		CHECK(profile_add_function(p, &g, &lines[n].function) == OK);
		lines[n].line = line + 100;
		lines[n++].column = 3;
	}
	CHECK(profile_add_function(p, &f, &lines[n].function) == OK);
	lines[n].line = line;
	lines[n++].column = 0;
	CHECK(profile_add_location(p, &l, lines, n, &id) == OK);
	return id;
}

static inline uint32_t fx_head(struct profile *p, const char *name, bool delta, int64_t period)
{
	struct profile_type t = { .name = fx_string(p, name),
		.sample_type = fx_string(p, "samples"),
		.sample_unit = fx_string(p, "count"),
		.period_type = fx_string(p, "cpu"),
		.period_unit = fx_string(p, "nanoseconds"),
		.delta = delta };
	struct profile_head h = { .period = period, .time_ns = T0, .duration_ns = 10 * SEC };
	uint32_t id;
	CHECK(profile_add_type(p, &t, &h.type) == OK);
	CHECK(profile_add_head(p, &h, &id) == OK);
	return id;
}

/* name, value, name, value, …, NULL */
static inline uint32_t fx_labels(struct profile *p, const char *const *pairs)
{
	struct profile_label l[PROFILE_LABELS_MAX];
	uint32_t n = 0, id;
	for (; pairs[0]; pairs += 2) {
		l[n].name = fx_string(p, pairs[0]);
		l[n++].value = fx_string(p, pairs[1]);
	}
	CHECK(profile_add_labels(p, l, n, &id) == OK);
	return id;
}

static inline void fx_sample(struct profile *p, int64_t time_ns, int64_t value, uint32_t head,
	uint32_t stack, uint32_t resource, uint32_t own)
{
	struct profile_sample s = { .value = value,
		.time_ns = time_ns,
		.head = head,
		.stack = stack,
		.resource = resource,
		.own = own };
	CHECK(profile_add_sample(p, &s) == OK);
}

/* ---- queries ---- */

struct fx_query {
	struct arena arena;
	struct selector selector;
	struct samples_query q;
};

static inline struct samples_query *fx_query(
	struct fx_query *f, const char *text, int64_t from, int64_t to)
{
	struct err e = { 0 };
	arena_init(&f->arena, 16 << 20);
	CHECK_OK(selector_parse(str_of(text), &f->arena, &f->selector, &e), &e);
	f->q = (struct samples_query){ .selector = &f->selector, .from_ns = from, .to_ns = to };
	return &f->q;
}

static inline void fx_query_end(struct fx_query *f)
{
	selector_deinit(&f->selector);
	arena_deinit(&f->arena);
}

/* One stack of a tree as text, root first: "binary+addr;…" or "function:line;…". */
static inline void fx_location_text(const struct profile *p, uint32_t location, struct buf *out)
{
	const struct profile_location *l = &p->locations.v[location];
	if (l->line_count == 0) {
		struct str file = profile_str(p, p->mappings.v[l->mapping].filename);
		buf_printf(out, "%.*s+%llx", STR_ARG(file), (unsigned long long)l->address);
		return;
	}
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *x = &p->lines.v[l->line_first + i];
		struct str name = profile_str(p, p->functions.v[x->function].name);
		buf_printf(out, "%s%.*s:%u", i ? "<" : "", STR_ARG(name), x->line);
	}
}
