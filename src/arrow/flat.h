/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow/flat: FlatBuffers (flatbuffers.dev/internals), written from the front to the back: a table
 * comes before what it refers to, and the references are filled in afterwards.
 *
 * Private to arrow/. Positions are offsets in the buf; the FlatBuffer begins at `base`, to which
 * all alignment is relative.
 */
#pragma once

#include "base/buf.h"

#define FLAT_FIELDS_MAX 8

/* A field of a table: in slot number `slot`, of `size` bytes; a reference has size 4 and is filled
 * in by flat_link() at its place. */
struct flat_field {
	uint8_t slot;
	uint8_t size; /* 1, 2, 4, 8 */
	uint64_t value;
};

/* begin: the root's reference. */
size_t flat_begin(struct buf *b);
/* Writes a table with its vtable, and returns its position; the positions of the fields go to at[]
 * (may be NULL). */
size_t flat_table(
	struct buf *b, size_t base, const struct flat_field *fields, uint32_t count, size_t *at);
/* The reference at `place` points to `target`, which comes later. */
void flat_link(struct buf *b, size_t place, size_t target);
size_t flat_string(struct buf *b, size_t base, struct str s);
/* A vector of `count` elements, zero so far, aligned to `align`; position of the first element in
 * *out_first. */
size_t flat_vector(struct buf *b, size_t base, size_t count, size_t element_size, size_t align,
	size_t *out_first);
void flat_u32(struct buf *b, size_t place, uint32_t v);
void flat_u64(struct buf *b, size_t place, uint64_t v);
