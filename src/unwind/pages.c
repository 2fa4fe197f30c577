/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row with the same rule as the one before it is left out. The rules of the page are numbered by
 * a hash table that is emptied by counting its epoch up. When a page is full of more rules than a
 * byte can number, those of the fewest rows become UNSUPPORTED.
 *
 * While building, blobs lie in one growing buffer, so a page has its blob's offset; pointers are
 * made at the end.
 */
#include "unwind/pages.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES (1u << UNWIND_PAGE_SHIFT)
/* Rows that fit a blob with all rules: more than one in every third byte of text. If a page has
 * more, its rest is UNSUPPORTED. */
#define PAGE_ROWS_MAX \
	((UNWIND_BLOB_BYTES_MAX - UNWIND_DENSE_HEAD_BYTES - UNWIND_RULES_MAX * RULE_BYTES) / 2)
#define OFFSET_MASK (PAGE_BYTES - 1)
#define RULE_BYTES 8
#define BLOB_ALIGN 8
#define HASH_SLOTS (2 * PAGES_RULES_MAX)
#define DENSE_BUCKET_SHIFT 8
#define DENSE_BUCKETS 256
/* Pages of a file of OBJFILE_BYTES_MAX. */
#define PAGES_MAX (OBJFILE_BYTES_MAX >> UNWIND_PAGE_SHIFT)

static_assert(sizeof(struct unwind_rule) == RULE_BYTES, "as rule.h says");

struct page_row {
	uint16_t offset;
	uint16_t rule;
};

struct rule_slot {
	uint32_t epoch;
	uint16_t rule;
};

struct page_made {
	size_t at; /* in blobs */
	uint32_t len;
	uint16_t rule_count;
	uint16_t row_count;
};

struct pages {
	struct buf blobs;
	VEC(struct page_made) made; /* made.v[i] is page first + i */
	uint64_t first;
	bool begun;
	bool failed; /* no memory */
	uint64_t last_offset;
	uint64_t page; /* the page that `rows` belong to */
	uint64_t row_count;
	uint64_t unsupported_rows;
	/* of the page */
	struct unwind_rule carried; /* the rule in force where the page begins */
	uint32_t rows_len;
	uint32_t rules_len;
	uint32_t epoch;
	struct page_row rows[PAGE_ROWS_MAX];
	struct unwind_rule rules[PAGES_RULES_MAX];
	uint32_t uses[PAGES_RULES_MAX];
	uint8_t number[PAGES_RULES_MAX]; /* in the blob */
	struct rule_slot unsupported;
	struct rule_slot slots[HASH_SLOTS];
};

struct pages *pages_new(size_t bytes_max)
{
	struct pages *p = calloc(1, sizeof(*p));
	if (p) {
		buf_init(&p->blobs, MIN(bytes_max, PAGES_BYTES_MAX));
		p->epoch = 1;
	}
	return p;
}

void pages_free(struct pages *p)
{
	if (!p)
		return;
	buf_deinit(&p->blobs);
	VEC_FREE(&p->made);
	free(p);
}

static bool rule_eq(struct unwind_rule a, struct unwind_rule b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static const struct unwind_rule unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED };

static uint32_t add_rule(struct pages *p, struct unwind_rule rule)
{
	p->rules[p->rules_len] = rule;
	return p->rules_len++;
}

/* UNSUPPORTED has a place of its own. */
static uint32_t unsupported_number(struct pages *p)
{
	if (p->unsupported.epoch != p->epoch)
		p->unsupported = (struct rule_slot){ p->epoch, (uint16_t)add_rule(p, unsupported) };
	return p->unsupported.rule;
}

/* The number of a rule in this page; that of UNSUPPORTED, for which the last number is kept, when
 * the page has too many. */
static uint32_t rule_number(struct pages *p, struct unwind_rule rule)
{
	if (rule_eq(rule, unsupported))
		return unsupported_number(p);
	uint64_t key;
	memcpy(&key, &rule, sizeof(key));
	key = hash_u64(key);
	for (uint32_t i = 0; i < PAGES_PROBES_MAX; i++) {
		struct rule_slot *slot = &p->slots[(key + i) % HASH_SLOTS];
		if (slot->epoch == p->epoch && rule_eq(p->rules[slot->rule], rule))
			return slot->rule;
		if (slot->epoch == p->epoch)
			continue;
		if (p->rules_len >= PAGES_RULES_MAX - 1)
			break;
		*slot = (struct rule_slot){ p->epoch, (uint16_t)p->rules_len };
		return add_rule(p, rule);
	}
	return unsupported_number(p);
}

static struct unwind_rule rule_in_force(const struct pages *p)
{
	return p->rows_len ? p->rules[p->rows[p->rows_len - 1].rule] : p->carried;
}

static void add_row(struct pages *p, uint32_t offset, struct unwind_rule rule)
{
	uint32_t number = rule_number(p, rule);
	p->rows[p->rows_len++] = (struct page_row){ (uint16_t)offset, (uint16_t)number };
}

/* ---- a page to its blob ---- */

static int uses_descending(const void *a, const void *b, void *ctx)
{
	const uint32_t *uses = ctx;
	uint16_t x = *(const uint16_t *)a;
	uint16_t y = *(const uint16_t *)b;
	if (uses[x] != uses[y])
		return uses[x] > uses[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Give the rules their numbers in the blob, the most used first; those without a number get that of
 * UNSUPPORTED. Writes the dictionary; returns its length. */
static uint32_t number_rules(struct pages *p, struct unwind_rule dictionary[UNWIND_RULES_MAX])
{
	uint16_t order[PAGES_RULES_MAX];
	memset(p->uses, 0, p->rules_len * sizeof(p->uses[0]));
	for (uint32_t i = 0; i < p->rows_len; i++)
		p->uses[p->rows[i].rule]++;
	for (uint32_t i = 0; i < p->rules_len; i++)
		order[i] = (uint16_t)i;
	qsort_r(order, p->rules_len, sizeof(order[0]), uses_descending, p->uses);
	/* The last place is for UNSUPPORTED, unless all fit. */
	uint32_t used = 0;
	while (used < p->rules_len && p->uses[order[used]])
		used++;
	uint32_t count = MIN(used, (uint32_t)UNWIND_RULES_MAX);
	if (used > UNWIND_RULES_MAX)
		dictionary[--count] = unsupported;
	for (uint32_t i = 0; i < used; i++) {
		p->number[order[i]] = (uint8_t)MIN(i, count);
		if (i < count)
			dictionary[i] = p->rules[order[i]];
	}
	return used > UNWIND_RULES_MAX ? count + 1 : count;
}

/* Rows that became the same by number_rules() are one; returns how many are left. */
static uint32_t merge_rows(struct pages *p, const struct unwind_rule *dictionary)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < p->rows_len; i++) {
		uint8_t number = p->number[p->rows[i].rule];
		if (kept && p->rows[kept - 1].rule == number)
			continue;
		p->rows[kept++] = (struct page_row){ p->rows[i].offset, number };
		p->unsupported_rows += dictionary[number].cfa == UNWIND_CFA_UNSUPPORTED;
	}
	return kept;
}

uint32_t pages_blob_len(uint32_t rule_count, uint32_t row_count, uint32_t dense_rows)
{
	uint32_t rules = rule_count * RULE_BYTES;
	uint32_t len = row_count ? rules + row_count * 3
				 : UNWIND_DENSE_HEAD_BYTES + rules + dense_rows * 2;
	return rule_count <= UNWIND_RULES_MAX && len <= UNWIND_BLOB_BYTES_MAX ? len : 0;
}

static void put_u16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)v;
	at[1] = (uint8_t)(v >> 8);
}

static void write_dense(const struct pages *p, uint32_t rows, const struct unwind_rule *dictionary,
	uint32_t rule_count, uint8_t *out)
{
	uint32_t row = 0;
	memset(out, 0, UNWIND_DENSE_HEAD_BYTES);
	for (uint32_t bucket = 0; bucket <= DENSE_BUCKETS; bucket++) {
		while (row < rows && p->rows[row].offset >> DENSE_BUCKET_SHIFT < bucket)
			row++;
		put_u16(out + bucket * 2, row);
	}
	out += UNWIND_DENSE_HEAD_BYTES;
	memcpy(out, dictionary, rule_count * RULE_BYTES);
	out += rule_count * RULE_BYTES;
	for (uint32_t i = 0; i < rows; i++) {
		out[i * 2] = (uint8_t)p->rows[i].offset;
		out[i * 2 + 1] = (uint8_t)p->rows[i].rule;
	}
}

static void write_sparse(const struct pages *p, uint32_t rows, const struct unwind_rule *dictionary,
	uint32_t rule_count, uint8_t *out)
{
	memcpy(out, dictionary, rule_count * RULE_BYTES);
	out += rule_count * RULE_BYTES;
	for (uint32_t i = 0; i < rows; i++) {
		put_u16(out + i * 2, p->rows[i].offset);
		out[rows * 2 + i] = (uint8_t)p->rows[i].rule;
	}
}

static void write_blob(struct pages *p, struct page_made *made)
{
	struct unwind_rule dictionary[UNWIND_RULES_MAX];
	uint32_t rules = number_rules(p, dictionary);
	uint32_t rows = merge_rows(p, dictionary);
	bool sparse = rows <= UNWIND_SPARSE_ROWS_MAX;
	made->rule_count = (uint16_t)rules;
	made->row_count = sparse ? (uint16_t)rows : 0;
	made->len = pages_blob_len(rules, made->row_count, rows);
	assert(made->len);
	buf_align(&p->blobs, BLOB_ALIGN);
	made->at = p->blobs.len;
	uint8_t *out = buf_extend(&p->blobs, made->len);
	if (!out)
		return;
	if (sparse)
		write_sparse(p, rows, dictionary, rules, out);
	else
		write_dense(p, rows, dictionary, rules, out);
	p->row_count += rows;
}

static void end_page(struct pages *p)
{
	struct page_made made = { 0 };
	struct unwind_rule carried = rule_in_force(p);
	bool is_empty = p->rows_len == 1 && p->rules[p->rows[0].rule].cfa == UNWIND_CFA_NONE;
	if (!is_empty)
		write_blob(p, &made);
	p->failed = p->failed || !VEC_PUSH(&p->made, made);
	p->carried = carried;
	p->rows_len = 0;
	p->rules_len = 0;
	p->epoch++;
}

/* ---- rows in ---- */

/* The first row of a page is at its offset 0. */
static void begin_row_zero(struct pages *p)
{
	if (p->rows_len == 0)
		add_row(p, 0, p->carried);
}

static void go_to_page(struct pages *p, uint64_t page)
{
	if (!p->begun) {
		p->begun = true;
		p->first = page;
		p->page = page;
	}
	while (p->page < page && !p->failed) {
		begin_row_zero(p);
		end_page(p);
		p->page++;
	}
}

void pages_put(struct pages *p, uint64_t offset, struct unwind_rule rule)
{
	assert(offset >= p->last_offset);
	assert(offset >> UNWIND_PAGE_SHIFT <= PAGES_MAX);
	if (p->failed || p->blobs.failed)
		return;
	p->last_offset = offset;
	if (!p->begun && rule.cfa == UNWIND_CFA_NONE)
		return;
	go_to_page(p, offset >> UNWIND_PAGE_SHIFT);
	uint32_t in_page = offset & OFFSET_MASK;
	if (p->rows_len && p->rows[p->rows_len - 1].offset == in_page)
		p->rows_len--; /* overruled */
	if (pages_full(p))
		rule = (struct unwind_rule){ .cfa = UNWIND_CFA_NONE };
	else if (p->rows_len >= PAGE_ROWS_MAX - 1)
		rule = unsupported;
	if (rule_eq(rule_in_force(p), rule))
		return;
	if (in_page)
		begin_row_zero(p);
	add_row(p, in_page, rule);
}

bool pages_full(const struct pages *p)
{
	return p->row_count + p->rows_len >= UNWIND_ROWS_MAX;
}

enum status pages_finish(struct pages *p, struct unwind_table *out)
{
	if (p->begun && (p->rows_len || p->carried.cfa != UNWIND_CFA_NONE)) {
		begin_row_zero(p);
		end_page(p);
	}
	if (p->failed)
		return E_NOMEM;
	if (buf_status(&p->blobs) != OK)
		return buf_status(&p->blobs);
	size_t blobs_len;
	uint8_t *blobs = buf_steal(&p->blobs, &blobs_len);
	uint8_t *shrunk = blobs ? realloc(blobs, blobs_len) : NULL;
	out->memory = shrunk ? shrunk : blobs;
	out->pages = calloc(p->made.len + 1, sizeof(*out->pages));
	if (!out->pages)
		return E_NOMEM;
	out->first_page = (uint32_t)p->first;
	out->page_count = (uint32_t)p->made.len;
	out->row_count = p->row_count;
	out->unsupported_rows = p->unsupported_rows;
	for (size_t i = 0; i < p->made.len; i++) {
		const struct page_made *made = &p->made.v[i];
		if (made->len == 0)
			continue;
		out->pages[i] = (struct unwind_table_page){
			(const uint8_t *)out->memory + made->at,
			made->len,
			made->rule_count,
			made->row_count,
		};
		out->blob_bytes += made->len;
	}
	return OK;
}
