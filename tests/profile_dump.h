/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_dump: a profile as sorted lines of text, one for each distinct sample with the sum of its
 * values, that do not depend on the order of any table: equal text means equal content. The
 * checkers in Python (tests/otlp, tests/pprof) print the same form.
 */
#pragma once

#include "profile/profile.h"

#include <inttypes.h>
#include <stdlib.h>

#define DUMP_BYTES_MAX ((size_t)1 << 30)

struct dump_line {
	char *text;
	int64_t value;
};

static inline void dump_labels(struct buf *b, const struct profile *p, uint32_t set)
{
	const struct profile_labels *s = &p->label_sets.v[set];
	buf_cstr(b, " {");
	for (uint32_t i = 0; i < s->count; i++) {
		const struct profile_label *l = &p->labels.v[s->first + i];
		buf_str(b, profile_str(p, l->name));
		buf_cstr(b, "=");
		buf_str(b, profile_str(p, l->value));
		buf_cstr(b, ",");
	}
	buf_cstr(b, "}");
}

static inline void dump_location(struct buf *b, const struct profile *p, uint32_t id)
{
	const struct profile_location *l = &p->locations.v[id];
	const struct profile_mapping *m = &p->mappings.v[l->mapping];
	buf_printf(b, " %" PRIx64 "@%" PRIx64 "-%" PRIx64 "+%" PRIx64 ",", l->address, m->start,
		m->limit, m->offset);
	buf_str(b, profile_str(p, m->filename));
	buf_cstr(b, ",");
	buf_str(b, profile_str(p, m->build_id));
	buf_printf(b, "/%s(", frame_kind_name((enum frame_kind)l->kind));
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *line = &p->lines.v[l->line_first + i];
		const struct profile_function *f = &p->functions.v[line->function];
		if (line->function == 0)
			continue;
		buf_str(b, profile_str(p, f->name));
		buf_cstr(b, "|");
		buf_str(b, profile_str(p, f->system_name));
		buf_cstr(b, "|");
		buf_str(b, profile_str(p, f->filename));
		buf_printf(b, "|%u:%u:%u;", f->start_line, line->line, line->column);
	}
	buf_cstr(b, ")");
}

static inline void dump_sample(
	struct buf *b, const struct profile *p, const struct profile_sample *s)
{
	const struct profile_head *h = &p->heads.v[s->head];
	const struct profile_link *link = &p->links.v[s->link];
	const struct profile_stack *stack = &p->stacks.v[s->stack];
	profile_type_write(b, p, &p->types.v[h->type]);
	buf_printf(b, " period=%" PRId64 " duration=%" PRId64 " time=%" PRId64, h->period,
		h->duration_ns, s->time_ns);
	dump_labels(b, p, s->resource);
	dump_labels(b, p, s->own);
	buf_cstr(b, " link=");
	for (size_t i = 0; i < 16 && s->link; i++)
		buf_printf(b, "%02x", link->trace_id[i]);
	for (size_t i = 0; i < 8 && s->link; i++)
		buf_printf(b, "%02x", link->span_id[i]);
	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t id = p->stack_locations.v[stack->first + i];
		if (id != 0)
			dump_location(b, p, id);
	}
}

static inline int dump_compare(const void *a, const void *b)
{
	return strcmp(((const struct dump_line *)a)->text, ((const struct dump_line *)b)->text);
}

/* Lines "value sample\n", sorted; samples of value 0 are left out. False: no memory. */
static inline bool profile_dump(const struct profile *p, struct buf *out)
{
	struct dump_line *lines = calloc(p->samples.len + 1, sizeof(*lines));
	struct buf b;
	buf_init(&b, DUMP_BYTES_MAX);
	for (size_t i = 0; i < p->samples.len; i++) {
		buf_clear(&b);
		dump_sample(&b, p, &p->samples.v[i]);
		buf_u8(&b, 0);
		assert(buf_status(&b) == OK);
		lines[i] = (struct dump_line){ strdup((char *)b.data), p->samples.v[i].value };
	}
	buf_deinit(&b);
	qsort(lines, p->samples.len, sizeof(*lines), dump_compare);
	for (size_t i = 0; i < p->samples.len;) {
		uint64_t sum = 0;
		size_t j = i;
		for (; j < p->samples.len && dump_compare(&lines[i], &lines[j]) == 0; j++)
			sum += (uint64_t)lines[j].value;
		if (sum)
			buf_printf(out, "%" PRId64 " %s\n", (int64_t)sum, lines[i].text);
		i = j;
	}
	for (size_t i = 0; i < p->samples.len; i++)
		free(lines[i].text);
	free(lines);
	return buf_status(out) == OK;
}
