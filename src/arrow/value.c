/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the place of an element's value. arrow_array_read() has checked all offsets and indices
 * used here; loops end because a field's tree is finite.
 */
#include "arrow/internal.h"

const struct arrow_array *arrow_child(const struct arrow_array *a, struct str name)
{
	for (uint32_t i = 0; i < a->child_count; i++)
		if (str_eq(a->field->children[i].name, name))
			return &a->children[i];
	return NULL;
}

const struct arrow_field *arrow_leaf(const struct arrow_field *f)
{
	while (f->type == ARROW_RUNS)
		f = &f->children[1];
	return f;
}

static int64_t run_end(const struct arrow_array *runs, uint64_t i)
{
	const struct arrow_array *ends = &runs->children[0];
	return arrow_load_signed(ends->data, i, ends->field->bits / 8u);
}

/* The run of row `index`: the first whose end is above it. */
static uint64_t run_find(const struct arrow_array *runs, uint64_t index)
{
	uint64_t low = 0, high = runs->children[0].length;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if ((uint64_t)run_end(runs, middle) > index)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static const struct arrow_chunk *chunk_find(const struct arrow_dictionary *d, uint64_t index)
{
	uint32_t low = 0, high = d->chunk_count;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (d->chunks[middle].first <= index)
			low = middle;
		else
			high = middle;
	}
	return &d->chunks[low];
}

struct arrow_value arrow_at(const struct arrow_array *a, uint64_t index)
{
	struct arrow_value v = { 0 };
	for (;;) {
		assert(index < a->length);
		if (a->dictionary) {
			if (arrow_is_null(a, index))
				return v;
			/* it was checked to be below the length, so its sign does not matter */
			uint64_t key = arrow_load(a->data, index, a->field->index_bits / 8u);
			const struct arrow_chunk *chunk = chunk_find(a->dictionary, key);
			if (!v.dictionary) {
				v.dictionary = a->dictionary;
				v.key = key;
			}
			index = key - chunk->first;
			a = &chunk->array;
		}
		if (a->field->type == ARROW_RUNS) {
			index = run_find(a, index);
			a = &a->children[1];
			continue;
		}
		if (a->field->type == ARROW_NULL || a->field->type == ARROW_UNION ||
			arrow_is_null(a, index))
			return v;
		v.array = a;
		v.index = index;
		return v;
	}
}

void arrow_cursor_move(struct arrow_cursor *c, uint64_t row)
{
	const struct arrow_array *a = c->column;
	assert(row < a->length);
	if (a->field->type != ARROW_RUNS || a->dictionary) {
		c->value = arrow_at(a, row);
		c->until = row + 1;
		return;
	}
	if ((uint64_t)run_end(a, c->run) <= row)
		c->run++;
	if ((uint64_t)run_end(a, c->run) <= row)
		c->run = run_find(a, row); /* the row is not in the next run */
	c->value = arrow_at(&a->children[1], c->run);
	c->until = (uint64_t)run_end(a, c->run);
}

int64_t arrow_int(const struct arrow_value *v)
{
	const struct arrow_field *f = v->array->field;
	assert(f->type == ARROW_INT);
	return f->is_signed ? arrow_load_signed(v->array->data, v->index, f->bits / 8u)
			    : (int64_t)arrow_load(v->array->data, v->index, f->bits / 8u);
}

bool arrow_bool(const struct arrow_value *v)
{
	assert(v->array->field->type == ARROW_BOOL);
	return arrow_bit(v->array->data, v->index);
}

static struct str view_bytes(const struct arrow_value *v)
{
	const uint8_t *view = v->array->data + v->index * ARROW_VIEW_BYTES;
	uint32_t len = (uint32_t)arrow_load(view, 0, 4);
	if (len <= ARROW_VIEW_INLINE_MAX)
		return str_make(view + 4, len);
	uint32_t buffer = (uint32_t)arrow_load(view, 2, 4), at = (uint32_t)arrow_load(view, 3, 4);
	return str_make(v->array->buffers[buffer].p + at, len);
}

struct str arrow_bytes(const struct arrow_value *v)
{
	const struct arrow_array *a = v->array;
	unsigned width = a->field->is_large ? 8 : 4;
	uint64_t begin, end;
	switch (a->field->type) {
	case ARROW_FIXED:
		return str_make(a->data + v->index * a->field->width, a->field->width);
	case ARROW_VIEW:
		return view_bytes(v);
	case ARROW_BINARY:
		begin = arrow_load(a->data, v->index, width);
		end = arrow_load(a->data, v->index + 1, width);
		return str_make(a->more.p + begin, end - begin);
	default:
		UNREACHABLE();
	}
}

void arrow_list(const struct arrow_value *v, uint64_t *out_first, uint64_t *out_count)
{
	const struct arrow_array *a = v->array;
	unsigned width = a->field->is_large ? 8 : 4;
	switch (a->field->type) {
	case ARROW_LIST:
		*out_first = arrow_load(a->data, v->index, width);
		*out_count = arrow_load(a->data, v->index + 1, width) - *out_first;
		return;
	case ARROW_LIST_VIEW:
		*out_first = arrow_load(a->data, v->index, width);
		*out_count = arrow_load((const uint8_t *)a->more.p, v->index, width);
		return;
	case ARROW_FIXED_LIST:
		*out_first = v->index * a->field->width;
		*out_count = a->field->width;
		return;
	default:
		UNREACHABLE();
	}
}
