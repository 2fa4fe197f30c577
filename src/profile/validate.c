/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over each table, in the order of references: when a table is checked, the tables that it
 * refers to are known to be valid.
 */
#include "profile/profile.h"

/* `index` must be below `len`. */
static enum status bad_index(struct err *e, const char *table, size_t at, const char *field,
	uint64_t index, uint64_t len)
{
	return err_set(e, E_INVALID, "%s[%zu]: %s %llu is not below %llu", table, at, field,
		(unsigned long long)index, (unsigned long long)len);
}

#define CHECK_INDEX(table, at, field, index, len) \
	if ((index) >= (len))                     \
	return bad_index(e, (table), (at), (field), (index), (len))

static enum status check_nulls(const struct profile *p, struct err *e)
{
	if (!p->strings.len || !p->functions.len || !p->mappings.len || !p->locations.len ||
		!p->stacks.len || !p->label_sets.len || !p->links.len || !p->types.len ||
		!p->heads.len)
		return err_set(e, E_INVALID, "a table without its null element");
	if (p->strings.v[0].len || p->stacks.v[0].count || p->label_sets.v[0].count ||
		p->locations.v[0].line_count)
		return err_set(e, E_INVALID, "a null element that is not empty");
	return OK;
}

static enum status check_symbols(const struct profile *p, struct err *e)
{
	size_t texts = p->strings.len;
	for (size_t i = 0; i < p->functions.len; i++) {
		const struct profile_function *f = &p->functions.v[i];
		CHECK_INDEX("functions", i, "name", f->name, texts);
		CHECK_INDEX("functions", i, "system_name", f->system_name, texts);
		CHECK_INDEX("functions", i, "filename", f->filename, texts);
	}
	for (size_t i = 0; i < p->mappings.len; i++) {
		const struct profile_mapping *m = &p->mappings.v[i];
		CHECK_INDEX("mappings", i, "filename", m->filename, texts);
		CHECK_INDEX("mappings", i, "build_id", m->build_id, texts);
	}
	for (size_t i = 0; i < p->lines.len; i++)
		CHECK_INDEX("lines", i, "function", p->lines.v[i].function, p->functions.len);
	return OK;
}

static enum status check_stacks(const struct profile *p, struct err *e)
{
	for (size_t i = 0; i < p->locations.len; i++) {
		const struct profile_location *l = &p->locations.v[i];
		CHECK_INDEX("locations", i, "mapping", l->mapping, p->mappings.len);
		CHECK_INDEX("locations", i, "kind", l->kind, FRAME_KIND_COUNT);
		CHECK_INDEX("locations", i, "line count", l->line_count, PROFILE_LINES_MAX + 1u);
		CHECK_INDEX("locations", i, "end of lines", (uint64_t)l->line_first + l->line_count,
			p->lines.len + 1);
	}
	uint32_t greatest = 0;
	for (size_t i = 0; i < p->stack_locations.len;
		i++) /* no branch, so that the compiler vectorizes it */
		greatest = MAX(greatest, p->stack_locations.v[i]);
	for (size_t i = 0; greatest >= p->locations.len && i < p->stack_locations.len; i++)
		CHECK_INDEX("stack_locations", i, "location", p->stack_locations.v[i],
			p->locations.len);
	for (size_t i = 0; i < p->stacks.len; i++) {
		const struct profile_stack *s = &p->stacks.v[i];
		CHECK_INDEX("stacks", i, "depth", s->count, PROFILE_STACK_MAX + 1u);
		CHECK_INDEX("stacks", i, "end of locations", (uint64_t)s->first + s->count,
			p->stack_locations.len + 1);
	}
	return OK;
}

static enum status check_labels(const struct profile *p, struct err *e)
{
	for (size_t i = 0; i < p->labels.len; i++) {
		CHECK_INDEX("labels", i, "name", p->labels.v[i].name, p->strings.len);
		CHECK_INDEX("labels", i, "value", p->labels.v[i].value, p->strings.len);
	}
	for (size_t i = 0; i < p->label_sets.len; i++) {
		const struct profile_labels *set = &p->label_sets.v[i];
		CHECK_INDEX("label_sets", i, "count", set->count, PROFILE_LABELS_MAX + 1u);
		CHECK_INDEX("label_sets", i, "end of labels", (uint64_t)set->first + set->count,
			p->labels.len + 1);
		for (uint32_t j = 0; j < set->count; j++) {
			const struct profile_label *l = &p->labels.v[set->first + j];
			if (l->name == 0 || l->value == 0)
				return err_set(e, E_INVALID, "label_sets[%zu]: label %u has no %s",
					i, j, l->name ? "value" : "name");
			if (j && str_cmp(profile_str(p, l[-1].name), profile_str(p, l->name)) >= 0)
				return err_set(e, E_INVALID,
					"label_sets[%zu]: label %u is not in order", i, j);
		}
	}
	return OK;
}

static enum status check_samples(const struct profile *p, struct err *e)
{
	for (size_t i = 0; i < p->types.len; i++) {
		const struct profile_type *t = &p->types.v[i];
		CHECK_INDEX("types", i, "name", t->name, p->strings.len);
		CHECK_INDEX("types", i, "sample_type", t->sample_type, p->strings.len);
		CHECK_INDEX("types", i, "sample_unit", t->sample_unit, p->strings.len);
		CHECK_INDEX("types", i, "period_type", t->period_type, p->strings.len);
		CHECK_INDEX("types", i, "period_unit", t->period_unit, p->strings.len);
	}
	for (size_t i = 0; i < p->heads.len; i++) {
		CHECK_INDEX("heads", i, "type", p->heads.v[i].type, p->types.len);
		if (i && p->heads.v[i].type == 0)
			return err_set(e, E_INVALID, "heads[%zu]: no type", i);
	}
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		CHECK_INDEX("samples", i, "head", s->head, p->heads.len);
		CHECK_INDEX("samples", i, "stack", s->stack, p->stacks.len);
		CHECK_INDEX("samples", i, "resource", s->resource, p->label_sets.len);
		CHECK_INDEX("samples", i, "own", s->own, p->label_sets.len);
		CHECK_INDEX("samples", i, "link", s->link, p->links.len);
		if (s->head == 0)
			return err_set(e, E_INVALID, "samples[%zu]: no head", i);
	}
	return OK;
}

enum status profile_validate(const struct profile *p, struct err *e)
{
	enum status s = check_nulls(p, e);
	if (s == OK)
		s = check_symbols(p, e);
	if (s == OK)
		s = check_stacks(p, e);
	if (s == OK)
		s = check_labels(p, e);
	if (s == OK)
		s = check_samples(p, e);
	return s;
}
