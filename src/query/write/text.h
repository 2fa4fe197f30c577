/* SPDX-License-Identifier: Apache-2.0 */
/* text: tables for a terminal. */
#pragma once

#include "query/query.h"

/* A table with aligned columns for a terminal: begin, cells row by row, end. */
#define QUERY_TEXT_COLUMNS_MAX 12
struct query_text {
	struct buf cells; /* texts, NUL after each */
	uint32_t columns;
	bool right[QUERY_TEXT_COLUMNS_MAX]; /* flush right: numbers */
	uint32_t width[QUERY_TEXT_COLUMNS_MAX];
	uint32_t at;     /* column of the next cell */
	uint32_t fit;    /* characters of a line; 0: as they come */
	uint32_t binary; /* the column of long names that may be cut; 0: none */
};
void query_text_begin(struct query_text *t, uint32_t columns, size_t max_bytes);
void query_text_deinit(struct query_text *t);
void query_text_right(struct query_text *t, uint32_t column);
/* Lines of `width` characters (0: no limit): names in the columns of binaries (0: there is none)
 * and functions, the last one, are shortened. Without a limit they are whole, and a long binary
 * pushes the rest of its own line only. */
void query_text_fit(struct query_text *t, uint32_t binary, uint32_t width);
/* A name in at most `width` characters: without folders, then without what is in brackets, then
 * without its middle. Blanks and lines before it stay. */
void query_text_shorten(struct str name, uint32_t width, struct buf *out);
/* Control characters become '?'. */
void query_text_cell(struct query_text *t, struct str s);
/* The binary of a frame; "[cpython]" for a frame of a language runtime, which has none. */
void query_text_binary(struct query_text *t, struct str binary, uint8_t kind);
void query_text_value(struct query_text *t, int64_t value, struct str unit);
void query_text_share(struct query_text *t, int64_t part, int64_t whole); /* "45.6%" */
void query_text_end(struct query_text *t, struct buf *out);
/* "2026-01-02 03:04:05Z" */
void query_text_time(int64_t ns, char out[32]);
/* Text with control characters replaced, so that a name cannot drive the terminal. */
void query_text_clean(struct buf *out, struct str s);
