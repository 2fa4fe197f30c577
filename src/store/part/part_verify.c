/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every byte of a part is read: each section's checksum, each block's rows against the bounds of
 * its entry, each total against the sum of its blocks, the lists of kinds against the series, the
 * order of profiles.
 */
#include "store/part/part_verify.h"

#include "store/part/block_keep.h"
#include "store/part/part_table.h"

#include <stdlib.h>

#define SECTION_BYTES_MAX ((size_t)1 << 30)
#define VERIFY_GROUPS (PART_LOAD_ALL | PART_LOAD_INDEX | PART_LOAD_KINDS)

static enum status verify_blocks(struct part *p, const struct tabs *t, struct err *e)
{
	CLEANUP(part_rows_deinit) struct part_rows rows;
	part_rows_init(&rows);
	uint64_t total = 0, samples = 0;
	size_t n;
	const struct part_block *blocks = part_blocks(p, &n);
	for (size_t i = 0; i < n; i++) {
		enum status s = part_read_block(p, t, &blocks[i], ~0u, &rows, e);
		if (s != OK)
			return s;
		total += rows.count;
		for (size_t j = 0; j < rows.count; j++) {
			samples += (uint64_t)rows.n[j];
			if (rows.n[j] < 1)
				return err_set(e, E_CORRUPT,
					"%s: block %zu, row %zu stands for %lld samples", p->path,
					i, j, (long long)rows.n[j]);
			if (rows.time_ns[j] < blocks[i].time_min ||
				rows.time_ns[j] > blocks[i].time_max ||
				rows.series[j] < blocks[i].series_min ||
				rows.series[j] > blocks[i].series_max ||
				rows.node[j] < blocks[i].node_min ||
				rows.node[j] > blocks[i].node_max)
				return err_set(e, E_CORRUPT,
					"%s: block %zu, row %zu is outside "
					"the block's bounds",
					p->path, i, j);
		}
	}
	if (total != p->meta.rows || samples != p->meta.samples)
		return err_set(e, E_CORRUPT,
			"%s: %llu rows of %llu samples, META says %llu of %llu", p->path,
			(unsigned long long)total, (unsigned long long)samples,
			(unsigned long long)p->meta.rows, (unsigned long long)p->meta.samples);
	return OK;
}

static enum status verify_totals(struct part *p, const struct tabs *t, struct err *e)
{
	CLEANUP(part_rows_deinit) struct part_rows rows;
	CLEANUP(free_cleanup) int64_t *want = calloc(MAX(t->node_count, 1u), sizeof(*want));
	CLEANUP(free_cleanup) int64_t *got = calloc(MAX(t->node_count, 1u), sizeof(*got));
	size_t n, block_count;
	const struct part_total *totals = part_totals(p, &n);
	const struct part_block *blocks = part_blocks(p, &block_count);
	part_rows_init(&rows);
	if (!want || !got)
		return err_set(e, E_NOMEM, "%s: totals of %u stacks", p->path, t->node_count);
	for (size_t i = 0; i < n; i++) {
		uint64_t samples = 0, ignored = 0;
		memset(want, 0, t->node_count * sizeof(*want));
		memset(got, 0, t->node_count * sizeof(*got));
		enum status s = part_sum_block(p, t, &totals[i].sums, &rows, got, &ignored, e);
		for (size_t k = 0; k < totals[i].count && s == OK; k++)
			s = part_sum_block(
				p, t, &blocks[totals[i].first + k], &rows, want, &samples, e);
		if (s != OK)
			return s;
		if (samples != totals[i].samples ||
			memcmp(want, got, t->node_count * sizeof(*got)) != 0)
			return err_set(e, E_CORRUPT,
				"%s: the total of blocks %zu to %zu is not what their rows sum up "
				"to",
				p->path, totals[i].first, totals[i].first + totals[i].count - 1);
	}
	return OK;
}

/* The kind of a series, where its rows of KIND_NAMES and KIND_VALUES have the label. */
static bool kind_has(const struct tabs *t, const struct tab_kind *x, const struct profile_label *l)
{
	for (uint32_t i = x->name_first; i < x->name_first + x->name_count; i++) {
		const struct tab_kind_name *n = &t->kind_names[i];
		uint32_t lo = 0, hi = n->value_count;
		if (n->name != l->name)
			continue;
		while (lo < hi) {
			uint32_t mid = (lo + hi) / 2;
			if (t->kind_values[n->value_first + mid] < l->value)
				lo = mid + 1;
			else
				hi = mid;
		}
		return lo < n->value_count && t->kind_values[n->value_first + lo] == l->value;
	}
	return false;
}

/* Ascending lists, whose pairs are as many as series have different ones. */
static bool lists_ascend(const struct tabs *t, const struct tab_kind *x)
{
	for (uint32_t i = x->name_first; i < x->name_first + x->name_count; i++) {
		const struct tab_kind_name *n = &t->kind_names[i];
		if (n->value_count == 0 || (i > x->name_first && n[-1].name >= n->name))
			return false;
		for (uint32_t k = n->value_first + 1; k < n->value_first + n->value_count; k++)
			if (t->kind_values[k - 1] >= t->kind_values[k])
				return false;
	}
	return true;
}

static bool same_kind(const struct tab_kind *x, const struct tab_series *s)
{
	return x->tenant == s->tenant && memcmp(x->type, s->type, sizeof(x->type)) == 0 &&
	       x->delta == s->delta;
}

static uint32_t kind_pairs(const struct tabs *t, const struct tab_kind *x)
{
	uint32_t n = 0;
	for (uint32_t i = x->name_first; i < x->name_first + x->name_count; i++)
		n += t->kind_names[i].value_count;
	return n;
}

static int by_pair(const void *a, const void *b)
{
	const struct profile_label *x = a, *y = b;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* Different pairs of labels of series[from .. to) that have rows; UINT32_MAX: no memory. */
static uint32_t series_pairs(const struct tabs *t, uint32_t from, uint32_t to)
{
	uint32_t n = 0, different = 0;
	CLEANUP(free_cleanup)
	struct profile_label *v = malloc(((size_t)t->label_count + 1) * sizeof(*v));
	if (!v)
		return UINT32_MAX;
	for (uint32_t i = from; i < to; i++) {
		const struct tab_series *s = &t->series[i];
		if (!s->rows)
			continue;
		memcpy(v + n, t->labels + s->label_first, s->label_count * sizeof(*v));
		n += s->label_count;
	}
	if (n)
		qsort(v, n, sizeof(*v), by_pair);
	for (uint32_t i = 0; i < n; i++)
		different += i == 0 || by_pair(&v[i - 1], &v[i]) != 0;
	return different;
}

/* The series of one kind, from series[*at] on; *at goes behind the last of them. */
static bool verify_kind(const struct tabs *t, const struct tab_kind *x, uint32_t *at)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	uint32_t from = *at, i = from;
	bool good = lists_ascend(t, x);
	for (; i < t->series_count && (!t->series[i].rows || same_kind(x, &t->series[i])); i++) {
		const struct tab_series *s = &t->series[i];
		if (!s->rows)
			continue;
		first = MIN(first, s->first_ns);
		last = MAX(last, s->last_ns);
		for (uint32_t k = 0; k < s->label_count && good; k++)
			good = kind_has(t, x, &t->labels[s->label_first + k]);
	}
	*at = i;
	return good && first == x->first_ns && last == x->last_ns &&
	       kind_pairs(t, x) == series_pairs(t, from, i);
}

static enum status verify_kinds(struct part *p, const struct tabs *t, struct err *e)
{
	uint32_t at = 0, i = 0;
	while (i < t->kind_count && verify_kind(t, &t->kinds[i], &at))
		i++;
	while (at < t->series_count && !t->series[at].rows)
		at++;
	if (i < t->kind_count || at < t->series_count)
		return err_set(e, E_CORRUPT,
			"%s: kind %u: its labels and times are not those of its series", p->path,
			i);
	return OK;
}

static enum status verify_profiles(struct part *p, const struct tabs *t, struct err *e)
{
	for (uint32_t i = 1; i < t->profile_count; i++) {
		const struct tab_profile *x = &t->profiles[i - 1], *y = &t->profiles[i];
		if (x->series > y->series || (x->series == y->series && x->time_ns >= y->time_ns))
			return err_set(e, E_CORRUPT, "%s: profile %u: not in order", p->path, i);
	}
	return OK;
}

static enum status verify_sections(struct part *p, struct err *e)
{
	for (size_t i = 0; i < p->section_count; i++) {
		if (p->sections[i].flags & PART_FLAG_PIECEWISE)
			continue;
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, SECTION_BYTES_MAX);
		enum status s = part_section_read(p, (enum part_section)p->sections[i].kind, &b, e);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status verify(struct part *p, uint64_t limit_bytes, bool batches_too, struct err *e)
{
	struct tabs t;
	enum status s = verify_sections(p, e);
	if (s == OK)
		s = part_pin(p, VERIFY_GROUPS, limit_bytes, &t, e);
	if (s != OK)
		return s;
	for (uint32_t i = 0; i < t.node_count && s == OK; i++)
		if (t.node_location[i] >= t.location_count)
			s = err_set(e, E_CORRUPT, "%s: trie node %u: location %u", p->path, i,
				t.node_location[i]);
	struct batch_seen *batches = NULL;
	size_t n;
	if (s == OK)
		s = verify_blocks(p, &t, e);
	if (s == OK)
		s = verify_totals(p, &t, e);
	if (s == OK)
		s = verify_kinds(p, &t, e);
	if (s == OK)
		s = verify_profiles(p, &t, e);
	if (s == OK && batches_too)
		s = part_read_batches(p, &batches, &n, e);
	free(batches);
	part_unpin(p, VERIFY_GROUPS);
	return s;
}

enum status part_verify(struct part *p, struct err *e)
{
	return verify(p, UINT64_MAX, true, e);
}

enum status part_verify_import(struct part *p, uint64_t limit_bytes, struct err *e)
{
	return verify(p, limit_bytes, false, e);
}
