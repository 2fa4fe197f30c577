/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of samples that a timer took: each CPU's interrupts lie on a grid of one period, a little
 * late. A time is split into its period and the rest; the rests of one CPU lie close together (a
 * phase). So a time is stored as its phase, its period (ascending: a small difference) and how late
 * it is.
 *
 * The writer finds phases by sorting the rests: a wide gap begins a new one. Several widths are
 * tried; the one with the fewest bits wins. One table for all rows serves a host with many series,
 * a table for each ascending stretch (a series) serves many hosts.
 */
#include "base/radix.h"
#include "store/part/column.h"

#include <stdlib.h>
#include <string.h>

#define PERIODS_MAX  \
	((uint64_t)1 \
		<< 40) /* if a block's times are farther apart than this, no grid is looked for */
#define STRETCH_ROWS_MIN 512 /* for fewer rows a table of their own does not pay */
#define PHASE_BITS 16.0      /* what a phase takes in a table, about */
/* Rows that are examined first, to tell whether there is a grid at all: some spread over all rows,
 * and some stretches. */
#define SAMPLE_ROWS 4096
#define SAMPLE_STRETCHES 4
#define SAMPLE_STRETCH_ROWS 2048
#define GAIN_BITS_MIN 0.25 /* bits of a row that phases must save */

/* ---- writing ---- */

struct phases {
	uint32_t count;
	uint64_t first[COLUMN_PHASES_MAX]; /* ascending, in units */
	double bits;                       /* estimate for all rows */
};

struct ticks {
	const int64_t *v;
	size_t n;
	uint64_t unit;
	uint64_t period_ns;
	uint64_t *periods; /* the period of each row; later its slot */
	uint64_t *rests;   /* in units */
	struct radix_item *sorted, *scratch;
};

static unsigned bits_of(uint64_t v)
{
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

/* Phases of sorted rests that are separated by `gap`; false: too many. */
static bool find_phases(const struct radix_item *rests, size_t n, uint64_t gap, struct phases *out)
{
	size_t begin = 0;
	out->count = 0;
	out->bits = 0;
	for (size_t i = 1; i <= n; i++) {
		if (i < n && rests[i].key - rests[i - 1].key < gap)
			continue;
		if (out->count == COLUMN_PHASES_MAX)
			return false;
		out->first[out->count++] = rests[begin].key;
		/* Few rows are very late: the rest at three quarters shows the width of most. */
		uint64_t middle = rests[begin + (i - begin) * 3 / 4].key - rests[begin].key;
		out->bits += (bits_of(middle) + 1) * (double)(i - begin) + PHASE_BITS;
		begin = i;
	}
	out->bits += bits_of(out->count - 1) * (double)n;
	return true;
}

/* The cheapest phases of n rows, each `step` after the one before. */
static void best_phases_of(struct ticks *t, size_t from, size_t step, size_t n, struct phases *best)
{
	for (size_t i = 0; i < n; i++)
		t->sorted[i] = (struct radix_item){ t->rests[from + i * step], 0 };
	radix_sort(t->sorted, t->scratch, n);
	uint64_t period = t->period_ns / t->unit;
	bool any = find_phases(t->sorted, n, period + 2, best); /* one for all */
	assert(any);
	for (uint64_t parts = 16; parts <= 4096; parts *= 4) {
		struct phases p;
		if (period / parts && find_phases(t->sorted, n, period / parts, &p) &&
			p.bits < best->bits)
			*best = p;
	}
}

/* The cheapest phases of rows [from, to). */
static void best_phases(struct ticks *t, size_t from, size_t to, struct phases *best)
{
	best_phases_of(t, from, 1, to - from, best);
}

static uint32_t phase_of(const struct phases *p, uint64_t rest)
{
	uint32_t lo = 0, hi = p->count - 1;
	while (lo < hi) {
		uint32_t mid = (lo + hi + 1) / 2;
		if (p->first[mid] <= rest)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

/* Rows [from, to) by one table. */
static void add_table(
	struct ticks *t, size_t from, size_t to, const struct phases *p, struct buf *tables)
{
	uint64_t slot = 0, before = 0;
	buf_varint(tables, to - from);
	buf_varint(tables, p->count);
	for (uint32_t i = 0; i < p->count; i++) {
		buf_varint(tables, p->first[i] - before);
		before = p->first[i];
	}
	for (size_t i = from; i < to; i++) {
		uint32_t j = phase_of(p, t->rests[i]);
		uint64_t at = t->periods[i] * p->count + j;
		int64_t d = (int64_t)(at - slot);
		slot = at;
		t->periods[i] = (uint64_t)d << 1 ^ (uint64_t)(d >> 63);
		t->rests[i] -= p->first[j];
	}
}

static size_t stretch_end(const struct ticks *t, size_t from)
{
	size_t to = from + 1;
	while (to < t->n && (t->v[to] >= t->v[to - 1] || to - from < STRETCH_ROWS_MIN))
		to++;
	return t->n - to < STRETCH_ROWS_MIN ? t->n : to;
}

/* Estimated bits of a row if all n rows used one table, from a sample of the rows. */
static double sample_bits(struct ticks *t, size_t from, size_t step, size_t some, size_t n)
{
	struct phases p;
	best_phases_of(t, from, step, some, &p);
	double tables = PHASE_BITS * p.count;
	return (p.bits - tables) / (double)some + tables / (double)n;
}

/* Whether phases may be worth it: sorting all rows of times without a grid would be most of the
 * work of writing them. */
static bool may_have_phases(struct ticks *t)
{
	double plain = bits_of(t->period_ns / t->unit) + 1 - GAIN_BITS_MIN;
	if (t->n <= 2 * SAMPLE_ROWS ||
		sample_bits(t, 0, t->n / SAMPLE_ROWS, SAMPLE_ROWS, t->n) < plain)
		return true;
	double bits = 0, rows = 0;
	for (size_t k = 0; k < SAMPLE_STRETCHES; k++) {
		size_t from = t->n / SAMPLE_STRETCHES * k;
		while (from && from < t->n && t->v[from] >= t->v[from - 1])
			from++;
		if (t->n - from < STRETCH_ROWS_MIN)
			continue;
		size_t all = stretch_end(t, from) - from;
		size_t some = MIN(all, (size_t)SAMPLE_STRETCH_ROWS);
		bits += sample_bits(t, from, 1, some, all) * (double)some;
		rows += (double)some;
	}
	return rows == 0 || bits / rows < plain;
}

/* Finds the phases of each stretch, and returns their cost in bits. */
static double find_stretches(struct ticks *t, struct phases *each)
{
	double bits = 0;
	for (size_t from = 0, to; from < t->n; from = to, each++) {
		to = stretch_end(t, from);
		best_phases(t, from, to, each);
		bits += each->bits;
	}
	return bits;
}

static void add_stretches(struct ticks *t, const struct phases *each, struct buf *tables)
{
	for (size_t from = 0, to; from < t->n; from = to, each++) {
		to = stretch_end(t, from);
		add_table(t, from, to, each, tables);
	}
}

bool column_ticks(const int64_t *v, size_t n, int64_t min, int64_t max, uint64_t unit,
	uint64_t period_ns, struct radix_item *scratch, uint64_t *slots, uint64_t *rests,
	struct buf *tables)
{
	uint64_t range = (uint64_t)max - (uint64_t)min;
	if (n < STRETCH_ROWS_MIN || unit >= period_ns / 16 || range / PERIODS_MAX >= period_ns)
		return false;
	struct ticks t = { v, n, unit, period_ns, slots, rests, scratch, scratch + n };
	for (size_t i = 0; i < n; i++) {
		/* The last period whose begin, in whole units, is not later. */
		uint64_t late = (uint64_t)v[i] - (uint64_t)min;
		slots[i] = (late + unit - 1) / period_ns;
		rests[i] = late / unit - slots[i] * period_ns / unit;
	}
	if (!may_have_phases(&t))
		return false;
	struct phases all;
	best_phases(&t, 0, n, &all);
	bool one = stretch_end(&t, 0) == n;
	CLEANUP(free_cleanup)
	struct phases *each = one ? NULL : malloc(n / STRETCH_ROWS_MIN * sizeof(*each));
	if (!one && !each)
		return false; /* another encoding takes less memory */
	one = one || all.bits <= find_stretches(&t, each);
	buf_varint(tables, period_ns);
	if (one)
		add_table(&t, 0, n, &all, tables);
	else
		add_stretches(&t, each, tables);
	return true;
}

/* ---- reading ---- */

struct table {
	uint64_t rows;
	uint32_t count;
	uint64_t first[COLUMN_PHASES_MAX];
};

static bool read_table(struct reader *r, struct table *t)
{
	t->rows = reader_varint(r);
	uint64_t count = reader_varint(r), at = 0;
	if (r->failed || t->rows == 0 || count == 0 || count > COLUMN_PHASES_MAX)
		return false;
	t->count = (uint32_t)count;
	for (uint32_t i = 0; i < t->count; i++)
		t->first[i] = at += reader_varint(r);
	return !r->failed;
}

/* Division by one number again and again: a multiplication by 2^64 / by, rounded up, is exact for
 * numbers up to `most`. */
struct divisor {
	uint64_t by, magic, most;
};

static struct divisor divisor_of(uint64_t by)
{
	return (struct divisor){ by, by == 1 ? 0 : UINT64_MAX / by + 1, UINT64_MAX / by };
}

static inline uint64_t divide(uint64_t x, const struct divisor *d)
{
	if (x > d->most)
		return x / d->by;
	return d->magic ? (uint64_t)((unsigned __int128)x * d->magic >> 64) : x;
}

static uint64_t planes_at(const uint8_t *const *p, unsigned width, size_t i)
{
	uint64_t u = 0;
	for (unsigned j = 0; j < width; j++)
		u |= (uint64_t)p[j][i] << (8 * j);
	return u;
}

bool column_ticks_decode(
	const struct column *c, const struct column_streams *s, size_t rows, int64_t *out)
{
	struct reader r = reader_over(s->p[0], s->len[0]);
	unsigned rest_width = c->stream_count - 1u - c->width;
	const uint8_t *const *rests = s->p + 1, *const *slots = rests + rest_width;
	uint64_t period = reader_varint(&r), unit = c->unit;
	struct table t;
	if (unit == 0)
		return false;
	struct divisor by_unit = divisor_of(unit);
	for (size_t i = 0, end = 0; i < rows; i = end) {
		if (!read_table(&r, &t) || t.rows > rows - i)
			return false;
		end = i + (size_t)t.rows;
		struct divisor by_count = divisor_of(t.count);
		uint64_t slot = 0;
		for (size_t k = i; k < end; k++) {
			uint64_t u = planes_at(slots, c->width, k);
			slot += u >> 1 ^ -(u & 1);
			uint64_t which = divide(slot, &by_count);
			uint64_t a = divide(which * period, &by_unit) +
				     t.first[slot - which * t.count] +
				     planes_at(rests, rest_width, k);
			out[k] = (int64_t)((uint64_t)c->base + unit * a);
		}
	}
	return reader_done(&r) && !r.failed;
}
