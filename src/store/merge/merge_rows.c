/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap of cursors, the one with the least row first. Its rows are taken as long as those of the
 * others come later, which are long stretches if the parts follow each other in time. Each row is
 * compared with the one before it, which finds equal rows, and rows that are out of order.
 */
#include "store/merge/merge_rows.h"

#include <stdlib.h>

#define GO_ON_ROWS 65536
#define ROWS_AT_ONCE 1024

/* Rows on their way into the new part: those before the last are whole; equal ones may follow it.
 */
struct outgoing {
	struct row rows[ROWS_AT_ONCE]; /* of one series and slice */
	size_t count;
	struct merge_key key; /* of the last */
	uint64_t taken;
};

static enum status start_cursors(struct merge_rows *m, struct err *e)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->count; i++) {
		enum status s = merge_cursor_next(m->cursors[i], e);
		m->failed = m->cursors[i]->part;
		if (s != OK)
			return s;
		if (!m->cursors[i]->done)
			m->cursors[kept++] = m->cursors[i];
	}
	m->count = kept;
	return OK;
}

static void sift_down(struct merge_rows *m, size_t i)
{
	for (;;) {
		size_t least = i, child = 2 * i + 1;
		for (size_t k = child; k < child + 2 && k < m->count; k++)
			if (merge_key_compare(&m->cursors[k]->key, &m->cursors[least]->key) < 0)
				least = k;
		if (least == i)
			return;
		struct merge_cursor *c = m->cursors[i];
		m->cursors[i] = m->cursors[least];
		m->cursors[least] = c;
		i = least;
	}
}

static enum status write_out(struct outgoing *o, struct part_writer *w, struct err *e)
{
	size_t n = o->count;
	o->count = 0;
	return n ? part_writer_rows(w, o->rows, n, e) : OK;
}

static enum status take_row(
	struct outgoing *o, const struct merge_cursor *c, struct part_writer *w, struct err *e)
{
	enum status s = OK;
	struct row *last = &o->rows[o->count - (o->count > 0)];
	int order = o->count ? merge_key_compare(&o->key, &c->key) : -1;
	if (order > 0)
		return err_set(e, E_UNSUPPORTED, "%s: its rows are not in the order of META",
			part_path(c->part));
	if (order == 0) {
		last->value = (int64_t)((uint64_t)last->value + (uint64_t)c->head.value);
		last->count = (int64_t)((uint64_t)last->count + (uint64_t)c->head.count);
		return OK;
	}
	if (o->count == ROWS_AT_ONCE ||
		(o->count && (last->series != c->head.series || o->key.w[0] != c->key.w[0])))
		s = write_out(o, w, e);
	o->rows[o->count++] = c->head;
	o->key = c->key;
	return s;
}

/* The rows of the first cursor, as long as the others' come later. */
static enum status take_rows(
	struct merge_rows *m, struct outgoing *o, struct part_writer *w, struct err *e)
{
	struct merge_cursor *c = m->cursors[0];
	const struct merge_key *until = NULL;
	for (size_t i = 1; i < 3 && i < m->count; i++)
		if (!until || merge_key_compare(&m->cursors[i]->key, until) < 0)
			until = &m->cursors[i]->key;
	enum status s = OK;
	m->failed = c->part;
	do {
		s = take_row(o, c, w, e);
		if (s != OK)
			return s;
		s = merge_cursor_next(c, e);
		if (++o->taken % GO_ON_ROWS == 0 && s == OK)
			s = m->go_on(m->ctx, part_writer_bytes(w), e);
	} while (s == OK && !c->done && (!until || merge_key_compare(&c->key, until) <= 0));
	if (c->done)
		m->cursors[0] = m->cursors[--m->count];
	sift_down(m, 0);
	return s;
}

enum status merge_rows_write(struct merge_rows *m, struct part_writer *w, struct err *e)
{
	CLEANUP(free_cleanup) struct outgoing *o = calloc(1, sizeof(*o));
	if (!o)
		return err_set(e, E_NOMEM, "merging");
	enum status s = start_cursors(m, e);
	for (size_t i = m->count; i-- > 0 && s == OK;)
		sift_down(m, i);
	while (s == OK && m->count)
		s = take_rows(m, o, w, e);
	if (s != OK)
		return s;
	m->failed = NULL;
	return write_out(o, w, e);
}
