/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search is the BPF program's, step for step, on the same bytes. It trusts them:
 * unwind_table_check() makes sure that bytes from a file can be trusted.
 */
#include "base/reader.h"
#include "unwind/pages.h"

#include <stdlib.h>

#define RULE_BYTES 8

void unwind_table_free(struct unwind_table *t)
{
	if (!t)
		return;
	free(t->pages);
	free(t->memory);
	free(t);
}

static uint32_t u16_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8;
}

static struct unwind_rule rule_at(const uint8_t *rules, uint32_t index)
{
	struct unwind_rule rule;
	memcpy(&rule, rules + index * RULE_BYTES, sizeof(rule));
	return rule;
}

static struct unwind_rule dense_find(const struct unwind_table_page *page, uint32_t offset)
{
	const uint8_t *rules = page->blob + UNWIND_DENSE_HEAD_BYTES;
	const uint8_t *rows = rules + page->rule_count * RULE_BYTES;
	uint32_t bucket = offset >> 8;
	uint32_t from = u16_at(page->blob + bucket * 2);
	uint32_t to = u16_at(page->blob + bucket * 2 + 2);
	while (from < to) {
		uint32_t middle = (from + to) / 2;
		if (rows[middle * 2] <= (offset & 0xff))
			from = middle + 1;
		else
			to = middle;
	}
	return rule_at(rules, rows[(from - 1) * 2 + 1]);
}

static struct unwind_rule sparse_find(const struct unwind_table_page *page, uint32_t offset)
{
	const uint8_t *pcs = page->blob + page->rule_count * RULE_BYTES;
	uint32_t from = 0;
	uint32_t to = page->row_count;
	while (from < to) {
		uint32_t middle = (from + to) / 2;
		if (u16_at(pcs + middle * 2) <= offset)
			from = middle + 1;
		else
			to = middle;
	}
	return rule_at(page->blob, pcs[page->row_count * 2 + from - 1]);
}

struct unwind_rule unwind_page_find(const struct unwind_table_page *p, uint32_t offset)
{
	return p->row_count ? sparse_find(p, offset) : dense_find(p, offset);
}

struct unwind_rule unwind_table_find(const struct unwind_table *t, uint64_t file_offset)
{
	struct unwind_rule none = { .cfa = UNWIND_CFA_NONE };
	uint64_t page = file_offset >> UNWIND_PAGE_SHIFT;
	if (page < t->first_page || page - t->first_page >= t->page_count)
		return none;
	const struct unwind_table_page *p = &t->pages[page - t->first_page];
	if (!p->blob)
		return none;
	uint32_t offset = file_offset & (UNWIND_BLOB_BYTES_MAX - 1);
	return unwind_page_find(p, offset);
}

/* ---- check ---- */

static enum status page_broken(uint32_t page, const char *what, struct err *e)
{
	return err_set(e, E_CORRUPT, "unwind table: page %u: %s", page, what);
}

static enum status check_rules(const uint8_t *rules, uint32_t count, uint32_t page, struct err *e)
{
	for (uint32_t i = 0; i < count; i++) {
		struct unwind_rule rule = rule_at(rules, i);
		if (rule.cfa >= UNWIND_CFA_COUNT || (rule.fp & UNWIND_FP_MASK) >= UNWIND_FP_COUNT ||
			(rule.fp & UNWIND_BX_MASK) > UNWIND_BX_SAVED ||
			rule.fp & ~(UNWIND_FP_MASK | UNWIND_BX_MASK | UNWIND_FP_NO_END))
			return page_broken(page, "a rule of no known kind", e);
	}
	return OK;
}

static enum status check_dense(const struct unwind_table_page *p, uint32_t page, struct err *e)
{
	if (p->blob_len < UNWIND_DENSE_HEAD_BYTES)
		return page_broken(page, "cut short", e);
	uint32_t row_count = u16_at(p->blob + (UNWIND_DENSE_STARTS - 1) * 2);
	if (row_count == 0 || p->blob_len != pages_blob_len(p->rule_count, 0, row_count))
		return page_broken(page, "its length is not that of its rows", e);
	const uint8_t *rules = p->blob + UNWIND_DENSE_HEAD_BYTES;
	const uint8_t *rows = rules + p->rule_count * RULE_BYTES;
	if (u16_at(p->blob) != 0 || rows[0] != 0 || u16_at(p->blob + 2) == 0)
		return page_broken(page, "no row at its beginning", e);
	for (uint32_t bucket = 0; bucket + 1 < UNWIND_DENSE_STARTS; bucket++) {
		uint32_t from = u16_at(p->blob + bucket * 2);
		uint32_t to = u16_at(p->blob + bucket * 2 + 2);
		if (from > to || to > row_count)
			return page_broken(page, "buckets are not in order", e);
		for (uint32_t i = from; i < to; i++) {
			if (i > from && rows[i * 2] <= rows[i * 2 - 2])
				return page_broken(page, "rows are not in order", e);
			if (rows[i * 2 + 1] >= p->rule_count)
				return page_broken(page, "a row of no rule", e);
		}
	}
	return check_rules(rules, p->rule_count, page, e);
}

static enum status check_sparse(const struct unwind_table_page *p, uint32_t page, struct err *e)
{
	if (p->row_count > UNWIND_SPARSE_ROWS_MAX ||
		p->blob_len != pages_blob_len(p->rule_count, p->row_count, 0))
		return page_broken(page, "its length is not that of its rows", e);
	const uint8_t *pcs = p->blob + p->rule_count * RULE_BYTES;
	const uint8_t *numbers = pcs + p->row_count * 2;
	if (u16_at(pcs) != 0)
		return page_broken(page, "no row at its beginning", e);
	for (uint32_t i = 0; i < p->row_count; i++) {
		if (i && u16_at(pcs + i * 2) <= u16_at(pcs + i * 2 - 2))
			return page_broken(page, "rows are not in order", e);
		if (numbers[i] >= p->rule_count)
			return page_broken(page, "a row of no rule", e);
	}
	return check_rules(p->blob, p->rule_count, page, e);
}

enum status unwind_table_check(const struct unwind_table *t, struct err *e)
{
	for (uint32_t i = 0; i < t->page_count; i++) {
		const struct unwind_table_page *p = &t->pages[i];
		if (!p->blob) {
			if (p->blob_len || p->rule_count || p->row_count)
				return page_broken(i, "counts without bytes", e);
			continue;
		}
		if (p->rule_count == 0 || p->rule_count > UNWIND_RULES_MAX)
			return page_broken(i, "number of rules", e);
		enum status s = p->row_count ? check_sparse(p, i, e) : check_dense(p, i, e);
		if (s != OK)
			return s;
	}
	return OK;
}

/* The length of each page's blob comes first, so that tables that divide the same bytes into pages
 * differently have different hashes. */
struct hash128 unwind_table_hash(const struct unwind_table *t)
{
	struct hash128 h = { t->first_page, t->page_count };
	for (uint32_t i = 0; i < t->page_count; i++) {
		const struct unwind_table_page *p = &t->pages[i];
		struct hash128 blob = { 0 };
		if (p->blob_len)
			blob = hash128(p->blob, p->blob_len);
		const uint64_t all[] = { h.lo, h.hi, blob.lo, blob.hi, p->blob_len, p->rule_count,
			p->row_count };
		h = hash128(all, sizeof(all));
	}
	return h;
}
