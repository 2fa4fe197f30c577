/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GCC puts the seldom executed part of a function elsewhere, as NAME.cold, with the cold parts of
 * other functions. The symbol is local: a stripped file has none. But the function jumps into its
 * cold part, by jumps that depend on a condition, which lead to no other function; and the cold
 * part has call frame information of its own, whose index has its bounds. So it is the piece of
 * code to which most jumps out of the function lead, behind its first byte.
 *
 * Code is not decoded: any two bytes that look like such a jump count as one. False ones lead to
 * places all over the file.
 *
 * Source: LSB 5.0 Core, 10.6.2 (.eh_frame_hdr).
 */
#include "runtimes/internal.h"

#include "base/reader.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define LOOP_BYTES_MAX (1u << 20)
#define JUMPS_MAX 16384
#define JUMPS_LEAST 4
#define JUMP_BYTES 6 /* 0f 80 to 0f 8f, and an s32: the distance from its end to its target */
#define CALL 0xe8
#define CALL_BYTES 5 /* and an s32: the distance from its end to its target */
#define JUMP 0xe9    /* the same */
#define CALLEE_BYTES_LEAST 4096
#define CALLEES_MAX 512
#define INDEX_BYTES_MAX (16u << 20)
#define INDEX_HEAD_BYTES 12
#define INDEX_ENTRY_BYTES 8
/* The head of .eh_frame_hdr as all linkers write it: version 1, a pointer of 4 bytes relative to
 * itself, a count of 4 bytes, and a table of pairs of 4 bytes relative to the section. */
static const uint8_t index_head[4] = { 1, 0x1b, 0x03, 0x3b };

/* The functions' first addresses, ascending. */
struct index {
	struct buf bytes;
	uint64_t base;
	size_t count;
};

static bool index_read(const struct objfile *obj, struct index *out)
{
	const struct objfile_section *s = objfile_section(obj, ".eh_frame_hdr");
	buf_init(&out->bytes, INDEX_BYTES_MAX);
	if (!s || objfile_read_section(obj, s, &out->bytes, NULL) != OK ||
		out->bytes.len < INDEX_HEAD_BYTES ||
		memcmp(out->bytes.data, index_head, sizeof(index_head)) != 0)
		return false;
	struct reader r = reader_over(out->bytes.data + 8, 4);
	uint32_t count = reader_u32(&r);
	out->base = s->addr;
	out->count = MIN(count, (out->bytes.len - INDEX_HEAD_BYTES) / INDEX_ENTRY_BYTES);
	return true;
}

static uint64_t index_at(const struct index *x, size_t i)
{
	int32_t distance;
	memcpy(&distance, x->bytes.data + INDEX_HEAD_BYTES + i * INDEX_ENTRY_BYTES,
		sizeof(distance));
	return x->base + (uint64_t)(int64_t)distance;
}

/* The function that has this byte, but not as its first one; x->count: none. */
static size_t index_find(const struct index *x, uint64_t address)
{
	size_t from = 0, to = x->count;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (index_at(x, middle) < address)
			from = middle + 1;
		else
			to = middle;
	}
	if (from == 0 || (from < x->count && index_at(x, from) == address))
		return x->count;
	return from - 1;
}

/* Which functions the jumps in the code of the one at `at` lead into, others than itself. */
static size_t collect(struct str code, uint64_t at, const struct index *x, uint32_t out[JUMPS_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i + JUMP_BYTES <= code.len && n < JUMPS_MAX; i++) {
		int32_t distance;
		if ((uint8_t)code.p[i] != 0x0f || ((uint8_t)code.p[i + 1] & 0xf0) != 0x80)
			continue;
		memcpy(&distance, code.p + i + 2, sizeof(distance));
		uint64_t to = at + i + JUMP_BYTES + (uint64_t)(int64_t)distance;
		size_t found = to - at < code.len ? x->count : index_find(x, to);
		if (found < x->count)
			out[n++] = (uint32_t)found;
	}
	return n;
}

static int compare(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	return a < b ? -1 : a > b;
}

/* The most frequent value; UINT32_MAX: none is frequent enough. */
static uint32_t choose(uint32_t *v, size_t count)
{
	uint32_t chosen = UINT32_MAX;
	size_t most = JUMPS_LEAST - 1;
	qsort(v, count, sizeof(*v), compare);
	for (size_t from = 0, to = 0; from < count; from = to) {
		while (to < count && v[to] == v[from])
			to++;
		if (to - from <= most)
			continue;
		most = to - from;
		chosen = v[from];
	}
	return chosen;
}

static uint32_t find_part(const struct objfile *obj, uint64_t at, size_t len, const struct index *x)
{
	char *code = malloc(len + 1);
	uint32_t *jumps = malloc(JUMPS_MAX * sizeof(*jumps));
	uint32_t found = UINT32_MAX;
	if (code && jumps && bytes_at(obj, at, code, len, NULL) == OK)
		found = choose(jumps, collect(str_make(code, len), at, x, jumps));
	free(code);
	free(jumps);
	return found;
}

void place_cold(const struct objfile *obj, const struct runtime_symbol *of, uint32_t out[2])
{
	struct index x;
	bool is_read = index_read(obj, &x);
	if (is_read && of->address && of->size <= LOOP_BYTES_MAX) {
		uint32_t i = find_part(obj, of->address, of->size, &x);
		if (i < x.count - 1 && x.count > 1) {
			struct runtime_symbol cold = { .address = index_at(&x, i) };
			cold.size = index_at(&x, i + 1) - cold.address;
			place_function(obj, &cold, out);
		}
	}
	buf_deinit(&x.bytes);
}

uint64_t function_bytes(const struct objfile *obj, uint64_t address)
{
	struct index x;
	uint64_t bytes = 0;
	if (index_read(obj, &x)) {
		size_t i = index_find(&x, address + 1);
		if (i < x.count && x.count - i > 1 && index_at(&x, i) == address)
			bytes = index_at(&x, i + 1) - address;
	}
	buf_deinit(&x.bytes);
	return bytes;
}

/* The functions found so far, in the order of finding, each once. */
struct met {
	struct runtime_symbol v[CALLEES_MAX];
	size_t count;
};

static void meet(struct met *m, const struct index *x, uint64_t address)
{
	size_t found = index_find(x, address + 1);
	if (found >= x->count - 1 || x->count < 2 || index_at(x, found) != address)
		return;
	for (size_t i = 0; i < m->count; i++) {
		if (m->v[i].address == address)
			return;
	}
	if (m->count < CALLEES_MAX)
		m->v[m->count++] = (struct runtime_symbol){ .address = address,
			.size = index_at(x, found + 1) - address };
}

/* The functions that `of` calls; with `jumps` also the functions that it ends by a jump to. */
static void meet_callees(const struct objfile *obj, const struct index *x,
	const struct runtime_symbol *of, bool jumps, struct met *m)
{
	size_t len = (size_t)MIN(of->size, (uint64_t)LOOP_BYTES_MAX);
	uint8_t *code = malloc(len + 1);
	if (code && bytes_at(obj, of->address, code, len, NULL) == OK) {
		for (size_t i = 0; i + CALL_BYTES <= len; i++) {
			int32_t distance;
			if (code[i] != CALL && (!jumps || code[i] != JUMP))
				continue;
			memcpy(&distance, code + i + 1, sizeof(distance));
			meet(m, x, of->address + i + CALL_BYTES + (uint64_t)(int64_t)distance);
		}
	}
	free(code);
}

static struct runtime_symbol longest_of(const struct met *m, size_t from)
{
	struct runtime_symbol best = { .size = CALLEE_BYTES_LEAST - 1 };
	for (size_t i = from; i < m->count; i++) {
		if (m->v[i].size > best.size)
			best = m->v[i];
	}
	return best;
}

void place_largest_callee(
	const struct objfile *obj, const struct runtime_symbol *of, uint32_t out[2])
{
	struct index x;
	struct met *m = calloc(1, sizeof(*m));
	if (index_read(obj, &x) && m) {
		meet_callees(obj, &x, of, false, m);
		struct runtime_symbol best = longest_of(m, 0);
		if (best.address)
			place_function(obj, &best, out);
	}
	free(m);
	buf_deinit(&x.bytes);
}

struct runtime_symbol largest_called(
	const struct objfile *obj, const struct runtime_symbol *of, unsigned calls)
{
	struct index x;
	struct runtime_symbol best = { .address = 0 };
	struct met *m = calloc(1, sizeof(*m));
	if (index_read(obj, &x) && m) {
		size_t from = 0;
		m->v[m->count++] = *of;
		for (unsigned i = 0; i < calls; i++) {
			size_t to = m->count;
			for (; from < to; from++)
				meet_callees(obj, &x, &m->v[from], true, m);
		}
		best = longest_of(m, 1);
	}
	free(m);
	buf_deinit(&x.bytes);
	return best;
}

struct runtime_symbol called_inside(
	const struct objfile *obj, const struct runtime_symbol *of, uint64_t least)
{
	struct index x;
	struct runtime_symbol found = { .address = 0 };
	size_t len = (size_t)MIN(of->size, (uint64_t)LOOP_BYTES_MAX);
	uint8_t *code = malloc(len + 1);
	if (index_read(obj, &x) && code && bytes_at(obj, of->address, code, len, NULL) == OK) {
		for (size_t i = 0; i + CALL_BYTES <= len && !found.address; i++) {
			int32_t distance;
			if (code[i] != CALL && code[i] != JUMP)
				continue;
			memcpy(&distance, code + i + 1, sizeof(distance));
			size_t f = index_find(
				&x, of->address + i + CALL_BYTES + (uint64_t)(int64_t)distance);
			if (x.count < 2 || f >= x.count - 1 ||
				index_at(&x, f + 1) - index_at(&x, f) < least)
				continue;
			found.address = index_at(&x, f);
			found.size = index_at(&x, f + 1) - found.address;
		}
	}
	free(code);
	buf_deinit(&x.bytes);
	return found;
}
