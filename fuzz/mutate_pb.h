/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutations that leave a protobuf message one: a field somewhere in it is left out, doubled, moved,
 * made anew or given another value, and the lengths around it are written again. One turn in four
 * is libFuzzer's own, which breaks them. Include in a target and write FUZZ_MUTATES_PB(n), where n
 * is how many bytes stand before the message.
 */
#pragma once

#include "fuzz/fuzz.h"

#ifdef FUZZ_LIBFUZZER

#include "pb/pb.h"

#define MUTATE_DEPTH_MAX 8
#define MUTATE_FIELDS_MAX 512
#define MUTATE_BYTES_MAX ((size_t)1 << 20)

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);

struct mutate_field {
	struct str whole; /* tag and value */
	struct pb_field f;
};

static uint32_t mutate_random(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(*seed >> 4) * below >> 28);
}

/* How many fields; 0 when it is no message, or has too many. */
static uint32_t mutate_split(struct str message, struct mutate_field *v)
{
	struct reader r = reader_over(message.p, message.len);
	uint32_t count = 0;
	size_t begin = 0;
	while (count < MUTATE_FIELDS_MAX && pb_next(&r, &v[count].f)) {
		v[count++].whole = str_sub(message, begin, reader_offset(&r));
		begin = reader_offset(&r);
	}
	return r.failed || reader_left(&r) ? 0 : count;
}

static uint64_t mutate_number(uint32_t *seed, uint64_t old)
{
	static const uint64_t odd[] = { 0, 1, 2, 127, 128, 255, 65535, 65536, INT32_MAX,
		(uint64_t)INT32_MAX + 1, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1,
		UINT64_MAX };
	switch (mutate_random(seed, 6)) {
	case 0:
		return odd[mutate_random(seed, ARRAY_COUNT(odd))];
	case 1:
		return old + 1;
	case 2:
		return old - 1;
	case 3:
		return old ^ (uint64_t)1 << mutate_random(seed, 64);
	default:
		return mutate_random(seed, 16);
	}
}

static void mutate_put(struct buf *out, uint32_t number, enum pb_wire wire, uint64_t v)
{
	buf_varint(out, (uint64_t)number << 3 | wire);
	if (wire == PB_VARINT)
		buf_varint(out, v);
	else if (wire == PB_FIXED64)
		buf_u64(out, v);
	else
		buf_u32(out, (uint32_t)v);
}

static void mutate_put_bytes(struct buf *out, uint32_t number, struct str bytes)
{
	buf_varint(out, (uint64_t)number << 3 | PB_BYTES);
	buf_varint(out, bytes.len);
	buf_str(out, bytes);
}

/* The field's value by libFuzzer: text, packed numbers. */
static void mutate_bytes(struct buf *out, const struct pb_field *f, uint32_t *seed)
{
	uint8_t bytes[4096];
	size_t len = MIN(f->bytes.len, sizeof(bytes) / 2);
	if (len)
		memcpy(bytes, f->bytes.p, len);
	len = LLVMFuzzerMutate(bytes, len, MIN(sizeof(bytes), len + 1 + mutate_random(seed, 64)));
	mutate_put_bytes(out, f->number, str_make(bytes, len));
}

static void mutate_new(struct buf *out, uint32_t *seed)
{
	uint32_t number = 1 + mutate_random(seed, 20);
	if (mutate_random(seed, 2))
		mutate_put(out, number, PB_VARINT, mutate_number(seed, 3));
	else
		mutate_put_bytes(out, number, STR(""));
}

static void mutate_message(struct str message, struct buf *out, uint32_t *seed, int depth)
{
	/* One for each depth, kept: a sanitizer's malloc costs more than a mutation. */
	static struct mutate_field fields[MUTATE_DEPTH_MAX + 1][MUTATE_FIELDS_MAX];
	static struct buf inners[MUTATE_DEPTH_MAX + 1];
	struct mutate_field *v = fields[depth];
	uint32_t count = mutate_split(message, v);
	uint32_t chosen = count ? mutate_random(seed, count) : 0;
	uint32_t other = count ? mutate_random(seed, count) : 0;
	uint32_t way = mutate_random(seed, 10);
	for (uint32_t i = 0; i < count; i++) {
		const struct pb_field *f = &v[i].f;
		struct buf *inner = &inners[depth];
		if (i != chosen) {
			buf_str(out, v[way == 1 && i == other ? chosen : i].whole);
			continue;
		}
		switch (way) {
		case 0: /* left out */
			break;
		case 1: /* moved */
			buf_str(out, v[other].whole);
			break;
		case 2: /* doubled */
			buf_str(out, v[i].whole);
			buf_str(out, v[i].whole);
			break;
		case 3:
			buf_str(out, v[i].whole);
			mutate_new(out, seed);
			break;
		default:
			if (f->wire != PB_BYTES) {
				mutate_put(out, f->number, f->wire, mutate_number(seed, f->u64));
				break;
			}
			buf_clear(inner);
			inner->max = MUTATE_BYTES_MAX;
			if (depth < MUTATE_DEPTH_MAX && mutate_random(seed, 8))
				mutate_message(f->bytes, inner, seed, depth + 1);
			if (inner->len)
				mutate_put_bytes(out, f->number, buf_view(inner));
			else
				mutate_bytes(out, f, seed);
		}
	}
	if (count == 0 && message.len == 0)
		mutate_new(out, seed);
}

static size_t mutate_pb(uint8_t *data, size_t size, size_t size_max, unsigned seed, size_t before)
{
	static struct buf out;
	uint32_t s = seed;
	if (size < before || mutate_random(&s, 4) == 0)
		return LLVMFuzzerMutate(data, size, size_max);
	buf_clear(&out);
	out.max = MUTATE_BYTES_MAX;
	mutate_message(str_make(data + before, size - before), &out, &s, 0);
	size_t len = out.failed ? 0 : out.len;
	bool fits = len > 0 && len <= size_max - before;
	if (fits)
		memcpy(data + before, out.data, len);
	return fits ? before + len : LLVMFuzzerMutate(data, size, size_max);
}

#define FUZZ_MUTATES_PB(before)                                                                    \
	size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed) \
	{                                                                                          \
		return mutate_pb(data, size, size_max, seed, before);                              \
	}

#else
#define FUZZ_MUTATES_PB(before)
#endif
