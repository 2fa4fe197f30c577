/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There are two kinds of records. A `binding` is a kernel key (device, inode). A `known_file` is a
 * content: keys with the same build id, size, first and last bytes and unwind table are the same
 * file, and have one id.
 *
 * When there are too many files the least recently used one is forgotten: it is retracted from the
 * sampler and its keys are dropped. Its id rests for a while, because samples on their way still
 * name it.
 */
#include "agent/files/known_files.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* A longer path is cut in file_info. */
#define PATH_BYTES_MAX 255
/* Keys among which the oldest is looked for. */
#define LOOKED_AT_MAX 256u

/* ---- bindings ---- */

static uint64_t key_hash(const struct file_key *key)
{
	return hash_u64(key->inode ^ hash_u64(key->dev));
}

static bool key_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct known_files *f = ctx;
	const struct file_key *a = &f->bindings.v[value].key;
	const struct file_key *b = key;
	return a->inode == b->inode && a->dev == b->dev;
}

uint32_t known_files_find(const struct known_files *f, const struct file_key *key)
{
	return map_find(&f->by_key, key_hash(key), key_equal, f, key);
}

void known_files_unbind(struct known_files *f, uint32_t i)
{
	struct binding *b = &f->bindings.v[i];
	map_remove(&f->by_key, key_hash(&b->key), i);
	b->state = BINDING_FREE;
	f->binding_count--;
}

/* Forgets failed ones that may be tried again: they are as good as new. */
static void bindings_sweep(struct known_files *f, int64_t now)
{
	for (uint32_t i = 0; i < f->bindings.len; i++) {
		const struct binding *b = &f->bindings.v[i];
		if (b->state == BINDING_FAILED && b->retry_ns <= now)
			known_files_unbind(f, i);
	}
}

/* Copies of one file have many keys and one content. Of the next few keys the least recently used
 * is removed; it is added again when it is met. */
static void bindings_drop_one(struct known_files *f)
{
	const struct binding *oldest = NULL;
	for (uint32_t n = 0; n < MIN(LOOKED_AT_MAX, f->bindings.len); n++) {
		const struct binding *b = &f->bindings.v[f->drop_hint++ % f->bindings.len];
		if (b->state == BINDING_BOUND && (!oldest || b->retry_ns < oldest->retry_ns))
			oldest = b;
	}
	if (!oldest)
		return;
	sampler_retract(f->sampler, &oldest->key);
	known_files_unbind(f, (uint32_t)(oldest - f->bindings.v));
}

uint32_t known_files_bind(struct known_files *f, const struct file_key *key, int64_t now)
{
	if (f->binding_count >= f->limits.keys)
		bindings_sweep(f, now);
	if (f->binding_count >= f->limits.keys)
		bindings_drop_one(f);
	if (f->binding_count >= f->limits.keys)
		return MAP_NONE;
	uint32_t i = (uint32_t)f->bindings.len;
	if (f->binding_count < f->bindings.len) {
		i = f->binding_hint % (uint32_t)f->bindings.len;
		while (f->bindings.v[i].state != BINDING_FREE)
			i = (i + 1) % (uint32_t)f->bindings.len;
		f->binding_hint = i + 1;
	} else if (!VEC_PUSH(&f->bindings, (struct binding){ 0 })) {
		return MAP_NONE;
	}
	f->bindings.v[i] = (struct binding){ .key = *key };
	if (!map_insert(&f->by_key, key_hash(key), i))
		return MAP_NONE; /* FREE still */
	f->binding_count++;
	return i;
}

/* ---- known files ---- */

static bool identity_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct known_files *f = ctx;
	return strcmp(f->known.v[value].identity, key) == 0;
}

static uint32_t known_find(struct known_files *f, const char *identity)
{
	return map_find(
		&f->by_identity, hash64(identity, strlen(identity)), identity_equal, f, identity);
}

static void known_clear(struct known_file *k)
{
	free(k->identity);
	free(k->build_id);
	free(k->path);
	free(k->segments);
	*k = (struct known_file){ .used_ns = k->used_ns, .owner = k->owner };
}

static void known_forget(struct known_files *f, uint32_t id, int64_t now)
{
	struct known_file *k = &f->known.v[id];
	for (uint32_t i = 0; i < f->bindings.len; i++) {
		struct binding *b = &f->bindings.v[i];
		if (b->state == BINDING_FREE || b->file_id != id)
			continue;
		sampler_retract(f->sampler, &b->key);
		b->file_id = 0;
		if (b->state == BINDING_BOUND) /* else the worker is at it */
			known_files_unbind(f, i);
	}
	map_remove(&f->by_identity, hash64(k->identity, strlen(k->identity)), id);
	f->live_count--;
	metric_add(&f->metrics->forgotten, 1);
	metric_set(&f->metrics->known, f->live_count);
	metric_set(&f->metrics->tables, metric_get(&f->metrics->tables) - k->has_table);
	metric_set(&f->metrics->rows, metric_get(&f->metrics->rows) - k->rows);
	known_clear(k);
	k->used_ns = now;
}

static void known_forget_longest_unused(struct known_files *f, int64_t now)
{
	uint32_t oldest = MAP_NONE;
	for (uint32_t i = FRAME_FILE_FIRST; i < f->known.len; i++) {
		const struct known_file *k = &f->known.v[i];
		if (k->live && (oldest == MAP_NONE || k->used_ns < f->known.v[oldest].used_ns))
			oldest = i;
	}
	if (oldest != MAP_NONE)
		known_forget(f, oldest, now);
}

static bool owner_has_room(const struct known_files *f, uint64_t owner, int64_t now)
{
	uint32_t count = 0;
	if (f->known.len < f->limits.owner_ids)
		return true;
	for (uint32_t i = FRAME_FILE_FIRST; i < f->known.len; i++) {
		const struct known_file *k = &f->known.v[i];
		count += k->owner == owner && (k->live || now - k->used_ns < FILES_ID_REST_NS);
	}
	return count < f->limits.owner_ids;
}

/* An id that nothing names; MAP_NONE: all are in use or rest. */
static uint32_t known_new_id(struct known_files *f, int64_t now)
{
	if (f->live_count >= f->limits.known)
		known_forget_longest_unused(f, now);
	bool some_rest = f->live_count + FRAME_FILE_FIRST < f->known.len;
	for (uint32_t i = FRAME_FILE_FIRST; some_rest && i < f->known.len; i++) {
		const struct known_file *k = &f->known.v[i];
		if (!k->live && now - k->used_ns >= FILES_ID_REST_NS)
			return i;
	}
	if (f->known.len > FRAME_FILE_MAX || !VEC_PUSH(&f->known, (struct known_file){ 0 }))
		return MAP_NONE;
	return (uint32_t)f->known.len - 1;
}

static uint32_t exec_segments(const struct objfile *obj, struct objfile_segment *out)
{
	uint32_t count, kept = 0;
	const struct objfile_segment *segments = objfile_segments(obj, &count);
	for (uint32_t i = 0; i < count && kept < FILES_SEGMENTS_MAX; i++) {
		if ((segments[i].flags & PF_X) && segments[i].file_size)
			out[kept++] = segments[i];
	}
	return kept;
}

/* Fill a new record. False: no memory. */
static bool known_fill(
	struct known_files *f, uint32_t id, const struct known_file_content *c, int64_t now)
{
	struct known_file *k = &f->known.v[id];
	struct objfile_segment segments[FILES_SEGMENTS_MAX];
	*k = (struct known_file){ .used_ns = now, .owner = c->owner };
	k->segment_count = c->obj ? exec_segments(c->obj, segments) : 0;
	k->identity = strdup(c->identity);
	k->build_id = strdup(c->build_id);
	k->path = strndup(c->path, PATH_BYTES_MAX);
	k->segments = calloc(k->segment_count + 1, sizeof(*k->segments));
	if (!k->identity || !k->build_id || !k->path || !k->segments ||
		!map_insert(&f->by_identity, hash64(c->identity, strlen(c->identity)), id)) {
		known_clear(k);
		return false;
	}
	memcpy(k->segments, segments, k->segment_count * sizeof(segments[0]));
	k->live = true;
	f->live_count += id >= FRAME_FILE_FIRST;
	metric_set(&f->metrics->known, f->live_count);
	return true;
}

enum status known_files_know(struct known_files *f, const struct known_file_content *c, int64_t now,
	uint32_t *out_id, bool *out_is_new, struct err *e)
{
	uint32_t id = known_find(f, c->identity);
	bool is_new = id == MAP_NONE;
	if (is_new && !owner_has_room(f, c->owner, now))
		return err_set(e, E_LIMIT, "%s: too many files of this user came lately", c->path);
	if (is_new) {
		id = known_new_id(f, now);
		if (id == MAP_NONE || !known_fill(f, id, c, now))
			return err_set(e, E_LIMIT, "%s: no file id is free", c->path);
	}
	f->known.v[id].used_ns = now;
	*out_id = id;
	*out_is_new = is_new;
	return OK;
}

bool known_files_know_vdso(struct known_files *f, const struct known_file_content *c)
{
	return f->known.v[FRAME_FILE_VDSO].live || known_fill(f, FRAME_FILE_VDSO, c, 0);
}

struct known_file *known_files_get(struct known_files *f, uint32_t id)
{
	return id < f->known.len && f->known.v[id].live ? &f->known.v[id] : NULL;
}

void known_files_set_table(struct known_files *f, uint32_t id, bool has_table, uint64_t rows)
{
	struct known_file *k = known_files_get(f, id);
	if (!k) /* forgotten since */
		return;
	struct files_metrics *m = f->metrics;
	metric_set(&m->tables, metric_get(&m->tables) + has_table - k->has_table);
	metric_set(&m->rows, metric_get(&m->rows) + rows - k->rows);
	k->has_table = has_table;
	k->rows = rows;
}

/* ---- life ---- */

enum status known_files_init(
	struct known_files *f, struct sampler *sampler, struct files_metrics *metrics)
{
	*f = (struct known_files){
		.limits = { FILES_KEYS_MAX, FILES_KNOWN_MAX, FILES_OWNER_IDS_MAX },
		.sampler = sampler,
		.metrics = metrics,
	};
	for (uint32_t i = 0; i < FRAME_FILE_FIRST; i++) {
		if (!VEC_PUSH(&f->known, (struct known_file){ 0 }))
			return E_NOMEM;
	}
	return OK;
}

void known_files_deinit(struct known_files *f)
{
	for (size_t i = 0; i < f->known.len; i++)
		known_clear(&f->known.v[i]);
	VEC_FREE(&f->known);
	VEC_FREE(&f->bindings);
	map_deinit(&f->by_key);
	map_deinit(&f->by_identity);
}
