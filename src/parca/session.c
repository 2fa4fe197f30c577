/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schema v1: samples name their stacks by id, and come before them. Until the stacks are known the
 * rows wait in `pending`, with the number of the id in place of the stack; then they are added to
 * the profile.
 */
#include "parca/columns.h"

#include <inttypes.h>

#define UNKNOWN_STACK STR("[unknown stack]")
#define NO_STACK UINT32_MAX /* the stack of an id is not known yet */

struct parca_session {
	struct parca_decoder d;
	struct parca_rows rows;
	size_t memory_bytes;
	struct strtab ids;    /* "" means no stack */
	VEC(uint32_t) stacks; /* of each id */
	VEC(struct profile_sample) pending;
	struct arrow_cursor id_cursor; /* column stacktrace_id */
	bool has_ids;
	uint64_t id_until; /* rows below this have id_now */
	uint32_t id_now;
	bool has_samples;
};

enum status parca_session_new(size_t memory_bytes, struct profile *out,
	struct parca_arrow_stats *stats, struct parca_session **session)
{
	struct parca_session *s = calloc(1, sizeof(*s));
	if (!s)
		return E_NOMEM;
	parca_decoder_init(&s->d, out, stats, memory_bytes, NULL);
	s->memory_bytes = memory_bytes;
	enum status st = strtab_init(&s->ids, memory_bytes);
	if (st == OK && !VEC_PUSH(&s->stacks, 0))
		st = E_NOMEM;
	if (st != OK) {
		parca_session_free(s);
		return st;
	}
	*session = s;
	return OK;
}

void parca_session_free(struct parca_session *s)
{
	if (!s)
		return;
	strtab_deinit(&s->ids);
	VEC_FREE(&s->stacks);
	VEC_FREE(&s->pending);
	parca_decoder_deinit(&s->d);
	free(s);
}

uint64_t parca_session_bytes(const struct parca_session *s)
{
	/* An id takes its element in the table, and two slots of eight bytes in the map. */
	return s->d.arena.used + s->ids.arena.used + s->ids.cap * (sizeof(*s->ids.v) + 16ull) +
	       s->stacks.cap * sizeof(*s->stacks.v) + s->pending.cap * sizeof(*s->pending.v);
}

uint32_t parca_session_stack_count(const struct parca_session *s)
{
	return s->ids.len;
}

struct str parca_session_stack_id(const struct parca_session *s, uint32_t i)
{
	return strtab_get(&s->ids, i);
}

void parca_session_set_stack(struct parca_session *s, uint32_t i, uint32_t stack)
{
	assert(i < s->stacks.len && stack < s->d.out->stacks.len);
	s->stacks.v[i] = stack;
}

bool parca_session_stack(const struct parca_session *s, uint32_t i, uint32_t *out)
{
	assert(i < s->stacks.len);
	if (s->stacks.v[i] == NO_STACK)
		return false;
	*out = s->stacks.v[i];
	return true;
}

/* ---- samples ---- */

static enum status intern_id(struct parca_session *s, struct str id, uint32_t *out)
{
	if (id.len > PARCA_STACK_ID_MAX)
		return err_set(s->d.e, E_LIMIT, "a stacktrace_id of %zu bytes; %d are taken",
			id.len, PARCA_STACK_ID_MAX);
	enum status st = strtab_intern(&s->ids, id, out);
	while (st == OK && s->stacks.len < s->ids.len)
		st = VEC_PUSH(&s->stacks, NO_STACK) ? OK : E_NOMEM;
	return st == OK ? OK : err_set(s->d.e, st, "stacktrace_id: %s", status_text(st));
}

static enum status stack_of(struct parca_rows *rows, uint64_t row, uint32_t *out)
{
	struct parca_session *s = rows->ctx;
	*out = 0;
	if (!s->has_ids)
		return OK;
	if (row >= s->id_until) {
		const struct arrow_value *v = arrow_cursor_at(&s->id_cursor, row);
		s->id_until = s->id_cursor.until;
		s->id_now = 0;
		enum status st = v->array ? intern_id(s, arrow_bytes(v), &s->id_now) : OK;
		if (st != OK)
			return st;
	}
	*out = s->id_now;
	return OK;
}

static enum status add(struct parca_rows *rows, const struct profile_sample *sample)
{
	struct parca_session *s = rows->ctx;
	if (s->pending.len == PROFILE_TABLE_MAX ||
		(s->pending.len + 1) * sizeof(*sample) > s->memory_bytes)
		return err_set(rows->d->e, E_LIMIT, "more than %zu samples", s->pending.len);
	return VEC_PUSH(&s->pending, *sample) ? OK : err_set(rows->d->e, E_NOMEM, "samples");
}

static enum status read_samples(struct parca_session *s, const struct arrow_array *batch)
{
	const struct arrow_array *ids;
	enum status st = parca_column(&s->d, batch, "stacktrace_id", COLUMN_TEXT, false, &ids);
	if (st == OK && arrow_child(batch, STR("stacktrace")))
		st = err_set(s->d.e, E_INVALID,
			"samples of schema v2 (column stacktrace) belong to the call WriteArrow");
	if (st != OK)
		return st;
	s->has_ids = ids != NULL;
	s->id_cursor = arrow_cursor_over(ids);
	s->id_until = 0;
	return parca_read_rows(&s->rows, batch);
}

typedef enum status batch_fn(struct parca_session *s, const struct arrow_array *batch);

static enum status each_batch(struct parca_session *s, struct str ipc, batch_fn *fn, struct err *e)
{
	struct err none;
	struct arrow_stream stream;
	struct arrow_array batch;
	bool more = true;
	s->d.e = e ? e : &none;
	enum status st = arrow_stream_open(&stream, ipc, s->memory_bytes, s->d.e);
	if (st != OK)
		return st;
	parca_decoder_forget(&s->d);
	while (st == OK && more) {
		st = arrow_stream_next(&stream, &batch, &more, s->d.e);
		if (st == OK && more)
			st = fn(s, &batch);
	}
	arrow_stream_close(&stream);
	return st;
}

enum status parca_session_samples(struct parca_session *s, struct str ipc, struct err *e)
{
	assert(!s->has_samples);
	s->has_samples = true;
	s->rows = (struct parca_rows){ &s->d, stack_of, add, s };
	return each_batch(s, ipc, read_samples, e);
}

/* ---- stacks ---- */

enum status parca_session_ask(
	const struct parca_session *s, struct buf *out, bool *out_any, struct err *e)
{
	VEC(struct str) ids = { 0 };
	bool full = false;
	for (uint32_t i = 0; i < s->stacks.len; i++)
		if (s->stacks.v[i] == NO_STACK)
			full |= !VEC_PUSH(&ids, strtab_get(&s->ids, i));
	*out_any = ids.len != 0;
	enum status st = full ? err_set(e, E_NOMEM, "stacks") : OK;
	if (st == OK && ids.len) {
		struct arrow_writer w;
		arrow_write_begin(&w, ids.len, ARROW_WRITE_PLAIN, out->max);
		arrow_write_metadata(&w, STR("parca_write_schema_version"), STR("v1"));
		arrow_write_column(&w, &(struct arrow_write_column){ .name = STR("stacktrace_id"),
					       .kind = ARROW_WRITE_BINARY,
					       .texts = ids.v,
					       .text_count = ids.len });
		st = arrow_write_end(&w, true, out, e);
	}
	VEC_FREE(&ids);
	return st;
}

static enum status read_stack(struct parca_session *s, const struct arrow_array *ids,
	const struct arrow_array *complete, const struct arrow_array *locations, uint64_t row)
{
	struct arrow_value id = arrow_at(ids, row), list = arrow_at(locations, row);
	bool whole = true;
	if (complete) {
		struct arrow_value v = arrow_at(complete, row);
		whole = !v.array || arrow_bool(&v);
	}
	if (!id.array || !list.array || !whole)
		return OK; /* the stack stays unknown */
	uint32_t i = strtab_find(&s->ids, arrow_bytes(&id));
	if (i == MAP_NONE || s->stacks.v[i] != NO_STACK)
		return OK;
	uint64_t first, count;
	arrow_list(&list, &first, &count);
	return parca_stack(&s->d, &list.array->children[0], first, count, &s->stacks.v[i]);
}

static enum status read_stacks(struct parca_session *s, const struct arrow_array *batch)
{
	const struct arrow_array *ids, *complete, *locations;
	enum status st = parca_column(&s->d, batch, "stacktrace_id", COLUMN_TEXT, true, &ids);
	if (st == OK)
		st = parca_column(&s->d, batch, "is_complete", COLUMN_BOOL, false, &complete);
	if (st == OK)
		st = parca_column(&s->d, batch, "locations", COLUMN_LIST, true, &locations);
	if (st == OK)
		st = parca_check_locations(&s->d, &arrow_leaf(locations->field)->children[0]);
	for (uint64_t row = 0; st == OK && row < batch->length; row++) {
		st = read_stack(s, ids, complete, locations, row);
		if (st != OK)
			err_prefix(s->d.e, st, "row %" PRIu64, row);
	}
	return st;
}

enum status parca_session_stacks(struct parca_session *s, struct str ipc, struct err *e)
{
	assert(s->has_samples);
	return each_batch(s, ipc, read_stacks, e);
}

/* ---- the end ---- */

enum status parca_session_finish(struct parca_session *s, struct err *e)
{
	struct profile *p = s->d.out;
	uint32_t marker, unknown;
	size_t before = p->samples.len;
	enum status st = profile_add_marker(p, UNKNOWN_STACK, &marker);
	if (st == OK)
		st = profile_add_stack(p, &marker, 1, &unknown);
	for (size_t i = 0; st == OK && i < s->pending.len; i++) {
		struct profile_sample sample = s->pending.v[i];
		sample.stack = s->stacks.v[sample.stack];
		if (sample.stack == NO_STACK) {
			s->d.stats->no_stack++;
			sample.stack = unknown;
		}
		st = profile_add_sample(p, &sample);
	}
	if (st == OK)
		return OK;
	p->samples.len = before;
	return err_set(e, st, "samples: %s", status_text(st));
}
