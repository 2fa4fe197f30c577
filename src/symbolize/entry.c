/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are never freed before the end: if there are ENTRIES_MAX, the oldest unused one is reused
 * for another build id.
 */
#include "base/map.h"
#include "base/vec.h"
#include "symbolize/entries.h"
#include "symbolize/find.h"
#include "symbolize/tables.h"

#include <stdlib.h>

#define ENTRIES_MAX 65536

struct str symbolize_table_id(struct str build_id, char room[SYMBOLIZE_ID_MAX])
{
	if (build_id.len > SYMBOLIZE_ID_MAX)
		return STR("");
	for (size_t i = 0; i < build_id.len; i++) {
		char c = build_id.p[i];
		room[i] = c >= 'A' && c <= 'F' ? (char)(c + ('a' - 'A')) : c;
	}
	return str_make(room, build_id.len);
}

const struct debuginfo_table *symbolize_ref_table(const struct symbolize_ref *r)
{
	return r->table;
}

static bool id_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct symbolize_tables *t = ctx;
	return str_eq(str_of(t->entries.v[value]->id), *(const struct str *)key);
}

void symbolize_unref(struct symbolize_ref *r)
{
	if (!r || --r->refs)
		return;
	debuginfo_table_close(r->table);
	free(r);
}

void symbolize_entry_close(struct symbolize_tables *t, struct symbolize_entry *en)
{
	if (!en->open)
		return;
	t->open_bytes -= en->open->bytes;
	atomic_fetch_sub(&t->metrics->open_tables, 1);
	symbolize_unref(en->open);
	en->open = NULL;
}

void symbolize_entry_forget(struct symbolize_tables *t, struct symbolize_entry *en)
{
	t->held -= en->state == ENTRY_IDLE && en->fd >= 0;
	t->held -= en->kept_fd >= 0;
	free(en->path);
	free(en->home);
	en->path = en->home = NULL;
	fd_cleanup(&en->fd);
	fd_cleanup(&en->kept_fd);
}

/* The oldest entry not in use, taken out of the index; MAP_NONE when all are in use. */
static uint32_t recycle(struct symbolize_tables *t)
{
	uint32_t oldest = MAP_NONE;
	for (uint32_t i = 0; i < t->entries.len; i++) {
		const struct symbolize_entry *en = t->entries.v[i];
		if (en->state == ENTRY_IDLE && !en->open &&
			(oldest == MAP_NONE || en->last_used < t->entries.v[oldest]->last_used))
			oldest = i;
	}
	if (oldest != MAP_NONE) {
		struct symbolize_entry *en = t->entries.v[oldest];
		map_remove(&t->index, hash64(en->id, strlen(en->id)), oldest);
		symbolize_entry_forget(t, en);
	}
	return oldest;
}

struct symbolize_entry *symbolize_entry_make(struct symbolize_tables *t, struct str id)
{
	uint64_t h = hash64(id.p, id.len);
	uint32_t at = map_find(&t->index, h, id_equal, t, &id);
	if (at == MAP_NONE) {
		if (t->entries.len < ENTRIES_MAX) {
			struct symbolize_entry *fresh = calloc(1, sizeof(*fresh));
			if (!fresh || !VEC_PUSH(&t->entries, fresh)) {
				free(fresh);
				return NULL;
			}
			at = (uint32_t)t->entries.len - 1;
		} else {
			at = recycle(t);
		}
		if (at == MAP_NONE || !map_insert(&t->index, h, at))
			return NULL;
		struct symbolize_entry *en = t->entries.v[at];
		*en = (struct symbolize_entry){ .fd = -1, .kept_fd = -1 };
		memcpy(en->id, id.p, id.len);
	}
	t->entries.v[at]->last_used = ++t->uses;
	return t->entries.v[at];
}

bool symbolize_entry_queue(struct symbolize_tables *t, struct symbolize_entry *en)
{
	if (t->queue_len == SYMBOLIZE_QUEUE_MAX)
		return false;
	t->queue[(t->queue_first + t->queue_len++) % SYMBOLIZE_QUEUE_MAX] = en;
	t->held -= en->state == ENTRY_IDLE && en->fd >= 0;
	en->state = ENTRY_QUEUED;
	pthread_cond_signal(&t->work);
	return true;
}

void symbolize_entry_again(struct symbolize_tables *t, struct symbolize_entry *en)
{
	en->again = false;
	en->not_before_ns = 0;
	t->held += en->fd >= 0;
	if (!symbolize_entry_queue(t, en))
		symbolize_entry_forget(t, en);
}

uint32_t symbolize_entry_find(const struct symbolize_tables *t, struct str id)
{
	return map_find(&t->index, hash64(id.p, id.len), id_equal, t, &id);
}
