/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of code are sorted by address, except for the newest, which are in a short unsorted tail
 * that is merged from time to time. Pieces may overlap, as memory is reused. So a search goes
 * backwards from the last piece that begins at or before the address, over blocks whose highest end
 * is known. Of all pieces that cover the address it takes the latest that existed at the time. If a
 * process makes all of its code overlap, a search ends after STEPS_MAX.
 */
#include "jit/map.h"

#include <stdlib.h>

#define TAIL_MAX 2048
#define BLOCK_CODES 64
#define STEPS_MAX 4096
/* The most steps of one search for dead code; code that it does not reach is kept. */
#define FORGET_STEPS_MAX (256u * JIT_CODES_MAX)
/* After a search for dead code that found little, both of these must pass before the next one. */
#define FORGET_LITTLE (JIT_CODES_MAX / 8)
#define FORGET_PAUSE_NS ((uint64_t)5 * 1000000000)
#define FORGET_PAUSE_CODES 2048
/* A sample may be a little older than the record of its code, as runtimes write the record
 * later. */
#define EARLY_NS ((uint64_t)1000000000)

struct code {
	uint64_t start, since_ns;
	uint32_t size, name, order;
	uint32_t line_first, line_count;
};

struct block {
	uint64_t end;      /* highest of the block */
	uint64_t end_down; /* highest of this and all blocks before */
};

struct jit_map {
	VEC(struct code) codes;
	size_t sorted; /* codes[0 .. sorted) */
	VEC(struct block) blocks;
	VEC(struct code) merging; /* work space of settle() */
	size_t tail_steps;        /* of searches in the tail since it was last merged */
	VEC(struct line) lines;
	struct strtab texts;
	uint32_t orders;
	uint64_t newest_ns;
	uint64_t forget_ns, forget_refused; /* the next search for dead code comes after both */
	uint64_t bad, refused;
};

static uint64_t end_of(const struct code *c)
{
	return c->start + c->size;
}

static bool covers(const struct code *c, uint64_t address)
{
	return address >= c->start && address - c->start < c->size;
}

/* ---- sorting ---- */

static int by_start(const void *a, const void *b)
{
	const struct code *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static bool make_blocks(struct jit_map *m)
{
	size_t count = (m->codes.len + BLOCK_CODES - 1) / BLOCK_CODES;
	if (!VEC_RESERVE(&m->blocks, count))
		return false;
	uint64_t down = 0;
	for (size_t b = 0; b < count; b++) {
		uint64_t end = 0;
		size_t last = MIN((b + 1) * BLOCK_CODES, m->codes.len);
		for (size_t i = b * BLOCK_CODES; i < last; i++)
			end = MAX(end, end_of(&m->codes.v[i]));
		down = MAX(down, end);
		m->blocks.v[b] = (struct block){ end, down };
	}
	m->blocks.len = count;
	return true;
}

/* Merges the tail. Without memory for that it stays, and searches take longer. */
static void settle(struct jit_map *m)
{
	size_t tail = m->codes.len - m->sorted;
	if (tail == 0 || !VEC_RESERVE(&m->merging, tail) ||
		!VEC_RESERVE(&m->blocks, m->codes.len / BLOCK_CODES + 1))
		return;
	struct code *v = m->codes.v, *t = m->merging.v;
	memcpy(t, v + m->sorted, tail * sizeof(*t));
	qsort(t, tail, sizeof(*t), by_start);
	size_t at = m->codes.len, left = m->sorted;
	while (tail) {
		if (left && by_start(&v[left - 1], &t[tail - 1]) > 0)
			v[--at] = v[--left];
		else
			v[--at] = t[--tail];
	}
	m->sorted = m->codes.len;
	m->tail_steps = 0;
	bool made = make_blocks(m);
	assert(made); /* reserved above */
}

/* ---- finding ---- */

struct search {
	uint64_t address, time_ns;
	const struct code *best, *early; /* early: the first one made after the time */
	uint32_t steps;
};

static bool is_later(const struct code *a, const struct code *b)
{
	return a->since_ns != b->since_ns ? a->since_ns > b->since_ns : a->order > b->order;
}

static void consider(struct search *s, const struct code *c)
{
	s->steps++;
	if (!covers(c, s->address))
		return;
	if (c->since_ns <= s->time_ns) {
		if (!s->best || is_later(c, s->best))
			s->best = c;
	} else if (c->since_ns - s->time_ns < EARLY_NS && (!s->early || is_later(s->early, c))) {
		s->early = c;
	}
}

/* The number of sorted pieces that begin at or before the address. */
static size_t count_before(const struct jit_map *m, uint64_t address)
{
	size_t low = 0, high = m->sorted;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->codes.v[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void search_run(const struct jit_map *m, struct search *s)
{
	uint64_t address = s->address;
	for (size_t i = m->codes.len; i-- > m->sorted;)
		consider(s, &m->codes.v[i]);
	s->steps = 0;
	size_t i = count_before(m, address);
	while (i > 0 && s->steps < STEPS_MAX) {
		const struct block *b = &m->blocks.v[(i - 1) / BLOCK_CODES];
		size_t first = (i - 1) / BLOCK_CODES * BLOCK_CODES;
		if (b->end_down <= address)
			break;
		s->steps++;
		if (b->end <= address) {
			i = first;
			continue;
		}
		for (; i > first; i--)
			consider(s, &m->codes.v[i - 1]);
	}
}

static const struct code *find_at(const struct jit_map *m, uint64_t address, uint64_t time_ns)
{
	struct search s = { .address = address, .time_ns = time_ns };
	search_run(m, &s);
	return s.best ? s.best : s.early;
}

static void settle_long_tail(struct jit_map *m)
{
	if (m->codes.len - m->sorted > TAIL_MAX)
		settle(m);
}

bool jit_map_find(struct jit_map *m, uint64_t address, uint64_t time_ns, struct jit_found *out)
{
	/* Each search reads the whole tail: it is merged when that has cost as much as merging. */
	m->tail_steps += m->codes.len - m->sorted;
	if (m->tail_steps > m->codes.len)
		settle(m);
	const struct code *c = find_at(m, address, time_ns);
	if (!c)
		return false;
	*out = (struct jit_found){ .name = strtab_get(&m->texts, c->name), .start = c->start };
	if (c->line_count == 0)
		return true;
	const struct line *lines = m->lines.v + c->line_first;
	uint32_t low = 0, high = c->line_count; /* the result is lines[low - 1] */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (lines[middle].offset <= address - c->start)
			low = middle + 1;
		else
			high = middle;
	}
	if (low) {
		out->file = strtab_get(&m->texts, lines[low - 1].file);
		out->line = lines[low - 1].line;
	}
	return true;
}

/* ---- adding ---- */

/* Whether the code is dead: since JIT_KEEP_NS or longer a newer piece covers the address of its
 * begin. */
static bool is_dead(const struct jit_map *m, const struct code *c, uint32_t *steps)
{
	uint64_t horizon = m->newest_ns > JIT_KEEP_NS ? m->newest_ns - JIT_KEEP_NS : 0;
	if (c->since_ns > horizon || *steps >= FORGET_STEPS_MAX)
		return false;
	struct search s = { .address = c->start, .time_ns = horizon };
	search_run(m, &s);
	*steps += s.steps;
	return s.best && s.best != c && is_later(s.best, c);
}

static void forget_dead(struct jit_map *m)
{
	settle(m);
	if (m->sorted != m->codes.len || !VEC_RESERVE(&m->merging, m->codes.len))
		return;
	size_t kept = 0, before = m->codes.len;
	uint32_t steps = 0;
	for (size_t i = 0; i < m->codes.len; i++)
		if (!is_dead(m, &m->codes.v[i], &steps))
			m->merging.v[kept++] = m->codes.v[i];
	memcpy(m->codes.v, m->merging.v, kept * sizeof(*m->codes.v));
	m->codes.len = m->sorted = kept;
	bool made = make_blocks(m);
	assert(made); /* there are not more than before */
	if (before - kept < FORGET_LITTLE) {
		m->forget_ns = m->newest_ns + FORGET_PAUSE_NS;
		m->forget_refused = m->refused + FORGET_PAUSE_CODES;
	}
}

static bool may_forget(const struct jit_map *m)
{
	return m->newest_ns >= m->forget_ns && m->refused >= m->forget_refused;
}

/* UTF-8 without control characters: others become "?". */
static enum status intern(struct jit_map *m, struct str s, uint32_t *out)
{
	char clean[JIT_NAME_BYTES_MAX];
	s = str_sub(s, 0, sizeof(clean));
	bool is_text = str_is_utf8(s);
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];
		clean[i] = c < ' ' || c == 0x7f || (c >= 0x80 && !is_text) ? '?' : s.p[i];
	}
	return strtab_intern(&m->texts, str_make(clean, s.len), out);
}

bool jit_map_add_place(struct jit_map *m, const struct jit_place *p, uint64_t base)
{
	struct line l = { .offset = (uint32_t)(p->address - base), .line = p->line };
	if (p->address < base) /* BEAM's first place belongs to the function before */
		return true;
	if (p->address - base >= JIT_CODE_BYTES_MAX) {
		m->bad++;
		return false;
	}
	if (m->lines.len >= JIT_LINES_MAX || intern(m, p->file, &l.file) != OK ||
		!VEC_PUSH(&m->lines, l)) {
		m->refused++;
		return false;
	}
	return true;
}

void jit_map_shift_places(struct jit_map *m, uint32_t first, uint32_t count, uint32_t ahead)
{
	for (uint32_t i = first; i < first + count; i++)
		m->lines.v[i].offset -= MIN(m->lines.v[i].offset, ahead);
}

uint32_t jit_map_place_count(const struct jit_map *m)
{
	return (uint32_t)m->lines.len;
}

void jit_map_drop_places(struct jit_map *m, uint32_t first)
{
	m->lines.len = first;
}

static int by_offset(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Adds a piece of code; its lines are sorted. */
static bool add_code(
	struct jit_map *m, const struct jit_code *c, uint32_t line_first, uint32_t line_count)
{
	if (c->size == 0 || c->size > JIT_CODE_BYTES_MAX || c->start + c->size < c->start ||
		c->name.len == 0) {
		m->bad++;
		return false;
	}
	struct code new = { .start = c->start,
		.since_ns = c->since_ns,
		.size = (uint32_t)c->size,
		.order = m->orders,
		.line_first = line_first,
		.line_count = line_count };
	m->newest_ns = MAX(m->newest_ns, c->since_ns);
	if (m->codes.len >= JIT_CODES_MAX && may_forget(m))
		forget_dead(m);
	if (m->codes.len >= JIT_CODES_MAX || m->orders == UINT32_MAX ||
		intern(m, c->name, &new.name) != OK || !VEC_PUSH(&m->codes, new)) {
		m->refused++;
		return false;
	}
	m->orders++;
	settle_long_tail(m);
	return true;
}

bool jit_map_add_lines(
	struct jit_map *m, const struct jit_code *c, uint32_t line_first, uint32_t line_count)
{
	if (line_count)
		qsort(m->lines.v + line_first, line_count, sizeof(*m->lines.v), by_offset);
	return add_code(m, c, line_first, line_count);
}

bool jit_map_add(struct jit_map *m, const struct jit_code *c)
{
	uint32_t first = (uint32_t)m->lines.len;
	uint64_t refused = m->refused;
	for (uint32_t i = 0; i < c->place_count && m->refused == refused; i++)
		(void)jit_map_add_place(m, &c->places[i], c->start);
	if (m->refused != refused)
		jit_map_drop_places(m, first);
	return jit_map_add_lines(m, c, first, (uint32_t)m->lines.len - first);
}

void jit_map_add_bad(struct jit_map *m)
{
	m->bad++;
}

bool jit_map_add_moved(struct jit_map *m, uint64_t from, const struct jit_code *to)
{
	const struct code *c = find_at(m, from, to->since_ns);
	if (!c || c->start != from) {
		m->bad++;
		return false;
	}
	struct jit_code moved = *to;
	struct code was = *c;
	moved.name = strtab_get(&m->texts, was.name);
	return add_code(m, &moved, was.line_first, was.line_count);
}

/* ---- life ---- */

enum status jit_map_new(struct jit_map **out)
{
	struct jit_map *m = calloc(1, sizeof(*m));
	if (!m)
		return E_NOMEM;
	enum status s = strtab_init(&m->texts, JIT_TEXT_BYTES_MAX);
	if (s != OK) {
		free(m);
		return s;
	}
	*out = m;
	return OK;
}

void jit_map_free(struct jit_map *m)
{
	if (!m)
		return;
	VEC_FREE(&m->codes);
	VEC_FREE(&m->blocks);
	VEC_FREE(&m->merging);
	VEC_FREE(&m->lines);
	strtab_deinit(&m->texts);
	free(m);
}

size_t jit_map_bytes(const struct jit_map *m)
{
	return m->codes.cap * sizeof(*m->codes.v) + m->merging.cap * sizeof(*m->merging.v) +
	       m->blocks.cap * sizeof(*m->blocks.v) + m->lines.cap * sizeof(*m->lines.v) +
	       m->texts.cap * (sizeof(struct str) + 32) + m->texts.arena.used;
}

uint32_t jit_map_len(const struct jit_map *m)
{
	return (uint32_t)m->codes.len;
}

uint64_t jit_map_bad(const struct jit_map *m)
{
	return m->bad;
}

uint64_t jit_map_refused(const struct jit_map *m)
{
	return m->refused;
}
