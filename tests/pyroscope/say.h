/* SPDX-License-Identifier: Apache-2.0 */
/* say: samples as lines "value type duration time {labels} root;…;leaf", in their order; and the
 * smallest pprof file. */
#pragma once

#include "pb/pb.h"
#include "profile/profile.h"

#include <inttypes.h>

static inline void say_labels(struct buf *b, const struct profile *p, uint32_t id)
{
	const struct profile_labels *set = &p->label_sets.v[id];
	for (uint32_t i = 0; i < set->count; i++) {
		const struct profile_label *l = &p->labels.v[set->first + i];
		buf_str(b, profile_str(p, l->name));
		buf_cstr(b, "=");
		buf_str(b, profile_str(p, l->value));
		buf_cstr(b, ",");
	}
}

static inline struct str say(struct buf *b, const struct profile *p)
{
	buf_clear(b);
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_head *h = &p->heads.v[s->head];
		const struct profile_stack *stack = &p->stacks.v[s->stack];
		buf_printf(b, "%" PRId64 " ", s->value);
		profile_type_write(b, p, &p->types.v[h->type]);
		buf_printf(b, " %" PRId64 " %" PRId64 " {", h->duration_ns, s->time_ns);
		say_labels(b, p, s->resource);
		buf_cstr(b, "}{");
		say_labels(b, p, s->own);
		buf_cstr(b, "} ");
		for (uint32_t k = stack->count; k-- > 0;) {
			uint32_t at = p->stack_locations.v[stack->first + k];
			const struct profile_location *l = &p->locations.v[at];
			const struct profile_line *line = &p->lines.v[l->line_first];
			if (l->line_count)
				buf_str(b, profile_str(p, p->functions.v[line->function].name));
			buf_cstr(b, k ? ";" : "");
		}
		buf_cstr(b, "\n");
	}
	return buf_view(b);
}

static inline void say_pair(struct buf *b, uint32_t field, uint64_t x, uint64_t y)
{
	size_t at = pb_begin(b, field);
	pb_put_u64(b, 1, x);
	pb_put_u64(b, 2, y);
	pb_end(b, at);
}

/* One sample in "main", value 5 of type "a" and 7 of type "b", label profile_id=abc. */
struct pprof_example {
	const char *a, *b; /* b NULL: one type only */
	int64_t time_ns, duration_ns;
	bool lost_ids;        /* of functions */
	const char *function; /* NULL: "main" */
};
static inline void say_pprof(struct buf *b, const struct pprof_example *x)
{
	const char *const strings[] = { "", x->a, "count", x->b ? x->b : "", "nanoseconds",
		x->function ? x->function : "main", "profile_id", "abc" };
	uint64_t values[] = { 5, 7 };
	say_pair(b, 1, 1, 2);
	if (x->b)
		say_pair(b, 1, 3, 4);
	size_t at = pb_begin(b, 2);
	pb_put_packed_u64(b, 1, (uint64_t[]){ 1 }, 1);
	pb_put_packed_u64(b, 2, values, x->b ? 2 : 1);
	say_pair(b, 3, 6, 7);
	pb_end(b, at);
	at = pb_begin(b, 4);
	pb_put_u64(b, 1, 1);
	size_t line = pb_begin(b, 4);
	pb_put_u64(b, 1, 1);
	pb_end(b, line);
	pb_end(b, at);
	say_pair(b, 5, x->lost_ids ? 0 : 1, 5);
	for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
		pb_put_str_always(b, 6, str_of(strings[i]));
	pb_put_i64(b, 9, x->time_ns);
	pb_put_i64(b, 10, x->duration_ns);
}
