/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a decoder, and translation of columns' texts to ids of the profile. */
#include "parca/columns.h"

#include <inttypes.h>

void parca_decoder_init(struct parca_decoder *d, struct profile *out,
	struct parca_arrow_stats *stats, size_t memory_bytes, struct err *e)
{
	*d = (struct parca_decoder){ .out = out, .stats = stats, .e = e };
	arena_init(&d->arena, memory_bytes);
}

void parca_decoder_forget(struct parca_decoder *d)
{
	arena_clear(&d->arena);
	for (int i = 0; i < MEMO_KINDS; i++)
		VEC_CLEAR(&d->memos[i]);
	d->location.of = d->line.of = NULL;
}

void parca_decoder_deinit(struct parca_decoder *d)
{
	for (int i = 0; i < MEMO_KINDS; i++)
		VEC_FREE(&d->memos[i]);
	VEC_FREE(&d->stack);
	arena_deinit(&d->arena);
}

uint32_t *parca_memo(struct parca_decoder *d, enum memo_kind kind, const struct arrow_value *v)
{
	if (!v->dictionary)
		return NULL;
	uint32_t serial = v->dictionary->serial;
	while (d->memos[kind].len <= serial)
		if (!VEC_PUSH(&d->memos[kind], (struct memo){ 0 }))
			return NULL;
	struct memo *m = &d->memos[kind].v[serial];
	if (v->key >= m->count) { /* new, or grown by a delta */
		uint32_t *ids = ARENA_ARRAY(&d->arena, uint32_t, v->dictionary->length);
		if (!ids)
			return NULL;
		if (m->count)
			memcpy(ids, m->ids, m->count * sizeof(*ids));
		*m = (struct memo){ ids, v->dictionary->length };
	}
	return &m->ids[v->key];
}

static enum status make(struct parca_decoder *d, enum memo_kind kind, struct str s, uint32_t *out)
{
	switch (kind) {
	case MEMO_NAME:
		return profile_add_name(d->out, s, out);
	case MEMO_TYPE_PART:
		return profile_add_type_part(d->out, s, out);
	case MEMO_BUILD_ID:
		return profile_add_build_id(d->out, s, out);
	case MEMO_FRAME_KIND:
		*out = (uint32_t)parca_frame_kind(s);
		return OK;
	case MEMO_STRING:
	default:
		return profile_add_string(d->out, s, out);
	}
}

enum status parca_text(
	struct parca_decoder *d, enum memo_kind kind, const struct arrow_value *v, uint32_t *out)
{
	*out = 0;
	if (!v->array)
		return OK;
	uint32_t *id = parca_memo(d, kind, v);
	if (id && *id) {
		*out = *id - 1;
		return OK;
	}
	enum status s = make(d, kind, arrow_bytes(v), out);
	if (s != OK)
		return err_set(d->e, s, "texts: %s", status_text(s));
	if (id)
		*id = *out + 1;
	return OK;
}

static bool is_kind(const struct arrow_field *f, enum column_kind kind)
{
	switch (kind) {
	case COLUMN_TEXT:
		return arrow_is_bytes(f);
	case COLUMN_INT:
		return f->type == ARROW_INT;
	case COLUMN_BOOL:
		return f->type == ARROW_BOOL;
	case COLUMN_LIST:
		return arrow_is_list(f);
	case COLUMN_STRUCT:
		return f->type == ARROW_STRUCT;
	}
	return false;
}

enum status parca_column(struct parca_decoder *d, const struct arrow_array *batch, const char *name,
	enum column_kind kind, bool needed, const struct arrow_array **out)
{
	static const char *const kinds[] = { "text", "integer", "bool", "list", "struct" };
	const struct arrow_array *a = arrow_child(batch, str_of(name));
	if (!a && needed)
		return err_set(d->e, E_INVALID, "column %s is missing", name);
	/* A column of only nulls may have any type. */
	if (a && arrow_leaf(a->field)->type == ARROW_NULL)
		a = NULL;
	else if (a && !is_kind(arrow_leaf(a->field), kind))
		return err_set(d->e, E_INVALID, "column %s is not of type %s", name, kinds[kind]);
	if (!a && needed)
		return err_set(d->e, E_INVALID, "column %s has no values", name);
	*out = a;
	return OK;
}
