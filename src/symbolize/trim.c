/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trimmed table has only what the stored samples need; whole tables have names of addresses that
 * may still get samples. When whole tables take more disk than they may, those of programs without
 * samples for the longest time are trimmed, in one pass:
 *
 * 	list   the folders; choose tables whose entry is idle, and open them
 * 	mark   each location of the samples in its table (the store is asked once for all)
 * 	finish write each as trimmed, or remove it where no sample needs it
 *
 * If such a program runs again, a query for an address that is not in its table makes the whole
 * table again. For this the file's descriptor is kept (held.c), like that of an offered file
 * without a table, so that the table can be made when the file is removed.
 */
#include "base/clock.h"
#include "symbolize/disk.h"
#include "symbolize/entries.h"
#include "symbolize/find.h"
#include "symbolize/name.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_NS (60 * NS_PER_SEC)
/* Smaller ones would not take fewer blocks. */
#define TABLE_BYTES_MIN 8192
/* The most bytes of the tables of one pass, which are mapped, with a bit for each range. */
#define PASS_BYTES_MAX ((uint64_t)2 << 30)
#define PASS_TABLES_MAX 4096
#define MAPPINGS_MAX (1u << 19)

struct candidate {
	char id[SYMBOLIZE_ID_MAX + 1];
	uint64_t bytes;
	int64_t idle_since_ns; /* monotonic; 0: since before this process began */
	int64_t used_ns;
	bool is_trimmed; /* already trimmed: it is only checked whether a sample needs it */
	bool is_needed;
	struct debuginfo_table *table; /* NULL: not to be trimmed */
	struct debuginfo_trim *trim;
	char *path; /* path of its file, from the samples */
};

struct told_mapping {
	uint32_t candidate;
	struct profile_mapping mapping;
};

struct pass {
	struct symbolize_tables *t;
	int64_t begun_ns;
	VEC(struct candidate) v;
	struct map index; /* of v, by id */
	VEC(struct told_mapping) mappings;
	uint64_t whole_bytes; /* of the whole tables */
	size_t chosen;
	bool failed;
};

static void pass_deinit(struct pass *p)
{
	for (size_t i = 0; i < p->v.len; i++) {
		debuginfo_trim_free(p->v.v[i].trim);
		debuginfo_table_close(p->v.v[i].table);
		free(p->v.v[i].path);
	}
	VEC_FREE(&p->v);
	VEC_FREE(&p->mappings);
	map_deinit(&p->index);
}

/* ---- choosing ---- */

/* If no sink reports samples, queries show which programs are of interest. */
static int64_t idle_since(const struct symbolize_tables *t, const struct symbolize_entry *en)
{
	return t->config.on_demand ? en->wanted_ns : MAX(en->wanted_ns, en->asked_ns);
}

/* With the lock held. */
static bool is_idle(const struct symbolize_tables *t, const struct symbolize_entry *en, int64_t now)
{
	int64_t since = idle_since(t, en);
	return en->state == ENTRY_IDLE && !(en->open && en->open->refs > 1) &&
	       (since == 0 || now - since >= t->config.trim_idle_ns);
}

static void add_candidate(struct pass *p, const struct symbolize_on_disk *f)
{
	struct symbolize_tables *t = p->t;
	struct candidate c = { .bytes = f->bytes, .used_ns = f->used_ns };
	char path[SYMBOLIZE_PATH_MAX];
	struct str name = str_of(f->name);
	size_t len = name.len - strlen("/.sym");
	if (name.len < strlen("xx/.sym") || len > SYMBOLIZE_ID_MAX)
		return;
	snprintf(c.id, sizeof(c.id), "%.2s%.*s", f->name, (int)len - 2, f->name + 3);
	if (!symbolize_id_is_valid(str_of(c.id)) ||
		!symbolize_disk_path(&t->disk, c.id, false, path))
		return;
	c.is_trimmed = debuginfo_trim_is_done(path);
	p->whole_bytes += c.is_trimmed ? 0 : f->bytes;
	lock_take(&t->lock);
	uint32_t at = symbolize_entry_find(t, str_of(c.id));
	const struct symbolize_entry *en = at == MAP_NONE ? NULL : t->entries.v[at];
	bool idle = !en || is_idle(t, en, p->begun_ns);
	c.idle_since_ns = en ? idle_since(t, en) : 0;
	lock_release(&t->lock);
	if (idle && !VEC_PUSH(&p->v, c))
		p->failed = true;
}

static int longest_idle_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->is_trimmed != y->is_trimmed)
		return x->is_trimmed - y->is_trimmed;
	if (x->idle_since_ns != y->idle_since_ns)
		return x->idle_since_ns < y->idle_since_ns ? -1 : 1;
	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static bool open_candidate(const struct symbolize_tables *t, struct candidate *c)
{
	char path[SYMBOLIZE_PATH_MAX];
	return symbolize_disk_path(&t->disk, c->id, false, path) &&
	       debuginfo_table_open(path, &c->table, NULL) == OK &&
	       debuginfo_trim_new(c->table, &c->trim, NULL) == OK;
}

/* Opens tables to be trimmed, until `bytes` would become free. A damaged table is left alone: the
 * next query that opens it deals with it. */
static void choose(struct pass *p, uint64_t bytes)
{
	uint64_t opened = 0;
	if (p->v.len)
		qsort(p->v.v, p->v.len, sizeof(p->v.v[0]), longest_idle_first);
	for (size_t i = 0; i < p->v.len; i++) {
		struct candidate *c = &p->v.v[i];
		if (!map_insert(&p->index, hash64(c->id, strlen(c->id)), (uint32_t)i))
			p->failed = true;
		if (c->is_trimmed || c->bytes <= TABLE_BYTES_MIN || opened >= bytes ||
			opened + c->bytes > PASS_BYTES_MAX || p->chosen == PASS_TABLES_MAX)
			continue;
		opened += c->bytes;
		p->chosen += open_candidate(p->t, c);
	}
}

/* ---- marking ---- */

static bool id_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct pass *p = ctx;
	return str_eq(str_of(p->v.v[value].id), *(const struct str *)key);
}

static uint32_t take_mapping(
	void *ctx, struct str sent_id, struct str path, const struct profile_mapping *m)
{
	struct pass *p = ctx;
	char room[SYMBOLIZE_ID_MAX];
	struct str id = symbolize_table_id(sent_id, room);
	uint32_t at = map_find(&p->index, hash64(id.p, id.len), id_equal, p, &id);
	if (at == MAP_NONE || p->failed)
		return PROFILE_LOCATIONS_NONE;
	struct candidate *c = &p->v.v[at];
	c->is_needed = true;
	if (!c->trim)
		return PROFILE_LOCATIONS_NONE;
	if (!c->path)
		c->path = strndup(path.p ? path.p : "", path.len);
	if (p->mappings.len == MAPPINGS_MAX ||
		!VEC_PUSH(&p->mappings, (struct told_mapping){ at, *m })) {
		p->failed = true;
		return PROFILE_LOCATIONS_NONE;
	}
	return (uint32_t)p->mappings.len - 1;
}

static void take_location(void *ctx, uint32_t mapping, uint64_t address)
{
	struct pass *p = ctx;
	const struct told_mapping *m = &p->mappings.v[mapping];
	const struct candidate *c = &p->v.v[m->candidate];
	uint64_t vaddr;
	if (symbolize_file_address(&m->mapping, c->table, address, &vaddr))
		debuginfo_trim_keep(c->trim, vaddr);
}

/* ---- finishing ---- */

/* Trims or removes a table; returns the freed bytes. */
static uint64_t rewrite(struct pass *p, const struct candidate *c)
{
	struct symbolize_tables *t = p->t;
	char path[SYMBOLIZE_PATH_MAX];
	struct stat before, after;
	if (!symbolize_disk_path(&t->disk, c->id, false, path) || lstat(path, &before) < 0)
		return 0;
	if (!c->is_needed) {
		if (unlink(path) < 0)
			return 0;
		metric_add(&t->metrics->needless, 1);
		return (uint64_t)before.st_blocks * 512;
	}
	if (debuginfo_trim_write(c->trim, path, NULL) != OK || lstat(path, &after) < 0) {
		metric_add(&t->metrics->trim_failed, 1);
		return 0;
	}
	metric_add(&t->metrics->trimmed, 1);
	return (uint64_t)(MAX(before.st_blocks, after.st_blocks) - after.st_blocks) * 512;
}

/* With the lock held. */
static void wait_again(
	struct symbolize_tables *t, struct symbolize_entry *en, int at_path, char **path)
{
	CLEANUP(fd_cleanup) int fd = at_path;
	bool is_found = fd >= 0;
	en->is_done = en->wanted = false;
	en->is_left = true;
	en->wants = 0;
	en->whole_after_ns = 0;
	if (en->fd >= 0 || !t->config.on_demand)
		return;
	if (!is_found && en->kept_fd >= 0) {
		fd = STEAL_FD(en->kept_fd);
		t->held--;
	}
	if (fd < 0 || t->held >= SYMBOLIZER_HELD_MAX)
		return;
	en->fd = STEAL_FD(fd);
	en->is_found = is_found;
	t->held++;
	free(en->path);
	en->path = STEAL_PTR(*path);
}

/* Its entry counts as being built meanwhile, so that no other thread builds it. */
static void finish_candidate(struct pass *p, struct candidate *c)
{
	struct symbolize_tables *t = p->t;
	if (c->is_trimmed && c->is_needed)
		return;
	lock_take(&t->lock);
	struct symbolize_entry *en = symbolize_entry_make(t, str_of(c->id));
	bool idle = en && is_idle(t, en, p->begun_ns) && idle_since(t, en) <= p->begun_ns;
	if (idle)
		en->state = ENTRY_BUILDING;
	lock_release(&t->lock);
	if (!idle)
		return;
	symbolize_disk_freed(&t->disk, rewrite(p, c));
	int fd = t->config.local_files && c->path ? symbolize_file_open(c->path, c->id) : -1;
	lock_take(&t->lock);
	symbolize_entry_close(t, en);
	en->state = ENTRY_IDLE;
	if (en->again) {
		fd_cleanup(&fd);
		symbolize_entry_again(t, en);
	} else {
		wait_again(t, en, fd, &c->path);
	}
	t->ended++;
	pthread_cond_broadcast(&t->done);
	lock_release(&t->lock);
}

/* ---- one pass; the lock is not held ---- */

static void run_pass(
	struct pass *p, uint64_t whole_max, bool sweep, const struct symbolizer_samples *samples)
{
	static const struct profile_locations to = { take_mapping, take_location };
	struct symbolize_tables *t = p->t;
	struct symbolize_listing all = { 0 };
	p->failed = symbolize_disk_list(&t->disk, &all, NULL) != OK;
	for (size_t i = 0; i < all.files.len && !t->stop; i++)
		add_candidate(p, &all.files.v[i]);
	VEC_FREE(&all.files);
	choose(p, p->whole_bytes > whole_max ? p->whole_bytes - whole_max / 4 * 3 : 0);
	if (!p->failed && !t->stop && (p->chosen || sweep))
		p->failed = samples->locations(samples->ctx, &to, p, NULL) != OK || p->failed;
	if (p->failed)
		metric_add(&t->metrics->trim_failed, 1);
	for (size_t i = 0; i < p->v.len && !p->failed && !t->stop; i++)
		if (p->v.v[i].trim || (p->v.v[i].is_trimmed && sweep))
			finish_candidate(p, &p->v.v[i]);
}

void symbolize_trim(struct symbolize_tables *t)
{
	CLEANUP(pass_deinit) struct pass p = { .t = t, .begun_ns = clock_monotonic_ns() };
	struct symbolizer_samples samples = t->samples;
	if (!samples.locations || p.begun_ns < t->trim_at_ns)
		return;
	t->trim_at_ns = p.begun_ns + MIN(LOOK_NS, t->config.trim_idle_ns);
	bool sweep = p.begun_ns >= t->sweep_at_ns;
	if (sweep)
		t->sweep_at_ns = p.begun_ns + t->config.sweep_ns;
	lock_release(&t->lock);
	uint64_t most = MAX(samples.bytes(samples.ctx), t->config.whole_bytes);
	if (symbolize_disk_bytes(&t->disk) > most)
		run_pass(&p, most, sweep, &samples);
	lock_take(&t->lock);
}
