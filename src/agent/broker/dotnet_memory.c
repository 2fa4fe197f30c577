/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address leads by a tree of five levels to a section of code. Code that was compiled while the
 * program runs: a map of its heap has where pieces of code begin, each 8 bytes behind a pointer to
 * its header, which leads to the method. Code that came compiled: its image has the functions in
 * order, and a hash table from where a method's code begins to the method. A method lies in a chunk
 * of methods of one type, which leads to the module and its metadata.
 *
 * The map has four bits for each 32 bytes of code: 0, or 1 and where in them code begins, in words
 * of 4 bytes. From .NET 10 on, eight of these that would be 0 are a distance to the beginning.
 *
 * Nothing is locked: a table may be changed while it is read. What does not fit is refused.
 */
#include "agent/broker/dotnet_memory.h"

#include "agent/broker/process_memory.h"
#include "base/reader.h"

#include <errno.h>

#define TREE_LEVELS 5
#define TREE_BITS 8
#define TREE_TOP_SHIFT 49
#define FRAGMENTS_MAX 64
#define SECTION_HEAP 2u
#define SECTION_STUBS 4u
#define STUB_KIND_MAX 15 /* in place of the pointer to a header */
#define UNWINDS_MAX 4096
#define MAP_WORDS_MAX (DOTNET_MEMORY_CODE_BYTES_MAX / 256)
#define MAP_READ_WORDS 64
#define FUNCTIONS_BACK_MAX 256
#define PROBES_MAX 64
#define BUCKET_WORDS 8
#define BUCKET_IS_FULL ((uint64_t)1 << 63) /* of the first value: there are more behind it */
#define TOKEN_BITS 12
#define TOKEN_MASK 0xfff
#define METHOD_ALIGN 8
#define CHUNK_BYTES 24
#define CLASS_MASK 7
#define CLASS_DYNAMIC 7
#define METADATA_AT 1464

/* Distances in structures that differ by version. */
static const struct places {
	unsigned assembly; /* of a module: PEAssembly */
	unsigned image;    /* of a module: ReadyToRunInfo */
	unsigned buckets;  /* of that: where its hash table lies */
} places_of[] = { { 272, 1152, 448 }, { 280, 984, 448 }, { 216, 704, 376 } };
static_assert(ARRAY_COUNT(places_of) == DOTNET_VERSION_LAST - DOTNET_VERSION_FIRST + 1, "each");

struct memory {
	int fd;
	unsigned left; /* reads */
	unsigned version;
};

static int fail(int error)
{
	errno = error;
	return -1;
}

static bool get(struct memory *m, uint64_t at, void *out, size_t len)
{
	if (m->left == 0)
		return false;
	m->left--;
	return process_memory_read(m->fd, at, out, len);
}

static bool get_word(struct memory *m, uint64_t at, uint64_t *out)
{
	return get(m, at, out, sizeof(*out));
}

/* ---- the section ---- */

struct section {
	uint64_t begin, end, flags, manager, module, heap;
};

static bool find_section(struct memory *m, uint64_t table, uint64_t address, struct section *out)
{
	uint64_t at, fragment[4]; /* next, begin, end, section */
	if (!get_word(m, table, &at))
		return false;
	for (unsigned level = 0; level < TREE_LEVELS; level++) {
		uint64_t index = address >> (TREE_TOP_SHIFT - TREE_BITS * level) & 0xff;
		if (!get_word(m, at + 8 * index, &at) || at < 2)
			return false;
		at &= ~(uint64_t)1;
	}
	for (unsigned i = 0; i < FRAGMENTS_MAX && at; i++) {
		if (!get(m, at, fragment, sizeof(fragment)))
			return false;
		if (fragment[1] <= address && address < fragment[2])
			return get(m, fragment[3], out, sizeof(*out)) && out->begin <= address &&
			       address < out->end;
		at = fragment[0] & ~(uint64_t)1;
	}
	return false;
}

/* ---- where the code begins ---- */

/* The last beginning in the word of eight fields, at or before the field `last`. */
static bool beginning_in(uint32_t word, unsigned last, uint64_t *out_distance)
{
	for (unsigned i = last + 1; i-- > 0;) {
		unsigned field = word >> (28 - 4 * i) & 15;
		if (field) {
			*out_distance = i * 32 + (field - 1) * 4;
			return true;
		}
	}
	return false;
}

static bool is_distance(unsigned version, uint32_t word)
{
	return version >= 10 && (word & 15) > 8;
}

static uint64_t distance_of(uint32_t word)
{
	return (word & ~15u) + (((word & 15) - 9) << 2);
}

/* `at`: how far behind the heap's base. Is it decided by this word of the map, the `index`-th? */
static bool is_begun_in(
	const struct memory *m, uint32_t word, uint64_t index, uint64_t at, uint64_t *out)
{
	unsigned last = 7;
	uint64_t distance;
	if (is_distance(m->version, word)) {
		*out = distance_of(word);
		return *out <= at;
	}
	if (index == at / 256) {
		last = at / 32 % 8;
		unsigned field = word >> (28 - 4 * last) & 15;
		if (field && (field - 1) * 4 > at % 32) /* begins behind it */
			word &= ~(15u << (28 - 4 * last));
	}
	if (!beginning_in(word, last, &distance))
		return false;
	*out = index * 256 + distance;
	return true;
}

static bool find_beginning(struct memory *m, uint64_t map, uint64_t at, uint64_t *out)
{
	uint32_t words[MAP_READ_WORDS];
	uint64_t end = at / 256 + 1;
	for (uint64_t done = 0; end && done < MAP_WORDS_MAX; done += MAP_READ_WORDS) {
		uint64_t n = MIN(end, done ? (uint64_t)MAP_READ_WORDS : (uint64_t)2);
		if (!get(m, map + 4 * (end - n), words, n * sizeof(*words)))
			return false;
		for (; n; n--, end--)
			if (is_begun_in(m, words[n - 1], end - 1, at, out))
				return true;
	}
	return false;
}

/* The code of a heap: *out_method is the address of what describes its method. */
static bool find_in_heap(struct memory *m, const struct section *s, uint64_t address,
	struct dotnet_memory_code *out, uint64_t *out_method)
{
	uint64_t heap[6]; /* next, -, start, end, base, map */
	uint64_t at, header, words[2];
	uint32_t unwind[2], first, last; /* of the code from the base on: from, to */
	if (!get(m, s->heap, heap, sizeof(heap)) || address < heap[2] || address >= heap[3] ||
		heap[4] > address || !find_beginning(m, heap[5], address - heap[4], &at))
		return false;
	out->start = heap[4] + at;
	if (!get_word(m, out->start - 8, &header))
		return false;
	out->bytes = address - out->start + 1;
	out->is_stub = header <= STUB_KIND_MAX;
	if (out->is_stub)
		return true;
	if (!get(m, header + 24, words, sizeof(words)) ||
		!get(m, header + 36, unwind, sizeof(unwind)))
		return false;
	*out_method = words[0];
	first = unwind[0];
	last = unwind[1];
	uint64_t count = words[1] & UINT32_MAX;
	if (count > 1 && count <= UNWINDS_MAX &&
		!get(m, header + 36 + 12 * (count - 1) + 4, &last, sizeof(last)))
		return false;
	if (first == at && last > first && last - first >= out->bytes)
		out->bytes = last - first;
	return true;
}

/* ---- code that came compiled ---- */

struct image {
	uint64_t base, functions, buckets;
	uint32_t count;
};

static bool open_image(struct memory *m, const struct section *s, struct image *out)
{
	const struct places *p = &places_of[m->version - DOTNET_VERSION_FIRST];
	uint64_t info, words[2], shared;
	if (!get_word(m, s->module + p->image, &info) || !get_word(m, info + 40, &shared) ||
		!get(m, info + 80, words, sizeof(words)) ||
		!get_word(m, shared + p->buckets, &out->buckets))
		return false;
	out->base = s->begin;
	out->functions = words[0];
	out->count = (uint32_t)words[1];
	return out->buckets && out->count;
}

static bool function_range(struct memory *m, const struct image *i, uint32_t at, uint32_t out[2])
{
	return get(m, i->functions + 12 * (uint64_t)at, out, 8);
}

/* The last function that begins at or before the place. */
static bool find_function(struct memory *m, const struct image *i, uint32_t at, uint32_t *out)
{
	uint32_t low = 0, high = i->count, range[2];
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (!function_range(m, i, middle, range))
			return false;
		if (range[0] <= at)
			low = middle;
		else
			high = middle;
	}
	*out = low;
	return true;
}

static uint64_t look_up(struct memory *m, const struct image *i, uint64_t key)
{
	uint64_t bucket[BUCKET_WORDS]; /* four keys, four values */
	uint32_t size, seed = (uint32_t)(key >> 2);
	if (!get(m, i->buckets, &size, sizeof(size)) || size < 2)
		return 0;
	uint32_t step = 1 + (seed / 32 + 1) % (size - 1);
	for (unsigned n = 0; n < PROBES_MAX; n++, seed += step) {
		if (!get(m, i->buckets + sizeof(bucket) * (1 + (uint64_t)(seed % size)), bucket,
			    sizeof(bucket)))
			return 0;
		for (unsigned k = 0; k < BUCKET_WORDS / 2; k++)
			if (bucket[k] == key)
				return bucket[k + BUCKET_WORDS / 2] << 1;
		if (!(bucket[BUCKET_WORDS / 2] & BUCKET_IS_FULL))
			return 0;
	}
	return 0;
}

/* Parts of a method that catch exceptions are functions of their own behind it. */
static bool find_in_image(struct memory *m, const struct section *s, uint64_t address,
	struct dotnet_memory_code *out, uint64_t *out_method)
{
	struct image i;
	uint32_t at, range[2], end[2];
	if (!open_image(m, s, &i) || !find_function(m, &i, (uint32_t)(address - i.base), &at) ||
		!function_range(m, &i, at, end) || address - i.base >= end[1])
		return false;
	for (unsigned back = 0; back < FUNCTIONS_BACK_MAX && back <= at; back++) {
		if (!function_range(m, &i, at - back, range))
			return false;
		*out_method = look_up(m, &i, i.base + range[0]);
		if (*out_method) {
			out->start = i.base + range[0];
			out->bytes = end[1] > range[0] ? end[1] - range[0] : 1;
			return address - out->start < out->bytes;
		}
	}
	return false;
}

/* ---- the method ---- */

static bool describe(struct memory *m, uint64_t method, struct dotnet_memory_code *out)
{
	const struct places *p = &places_of[m->version - DOTNET_VERSION_FIRST];
	uint16_t head[4], range; /* rest of the token; index in the chunk; -; class */
	uint64_t type, module, at;
	if (!get(m, method, head, sizeof(head)))
		return false;
	if ((head[3] & CLASS_MASK) == CLASS_DYNAMIC)
		return true;
	uint64_t chunk = method - (uint64_t)(uint8_t)head[1] * METHOD_ALIGN - CHUNK_BYTES;
	if (!get(m, chunk + 18, &range, sizeof(range)) || !get_word(m, chunk, &type) ||
		!get_word(m, type + 24, &module) || !get_word(m, module + p->assembly, &at) ||
		!get_word(m, at + 24, &at) || !get_word(m, at + METADATA_AT, &at))
		return false;
	out->method = (uint32_t)(range & TOKEN_MASK) << TOKEN_BITS | (head[0] & TOKEN_MASK);
	out->metadata = out->method ? at : 0;
	return true;
}

int dotnet_memory_find(
	int pid, unsigned version, uint64_t table, uint64_t address, struct dotnet_memory_code *out)
{
	struct dotnet_memory_code code = { 0 };
	struct section s;
	uint64_t method = 0;
	if (version < DOTNET_VERSION_FIRST || version > DOTNET_VERSION_LAST)
		return fail(EPROTO);
	CLEANUP(fd_cleanup) int fd = process_memory_open(pid);
	if (fd < 0)
		return -1;
	struct memory m = { fd, DOTNET_MEMORY_READS_MAX, version };
	if (!find_section(&m, table, address, &s))
		return fail(EPROTO);
	if (s.flags & SECTION_STUBS)
		code = (struct dotnet_memory_code){ .start = address, .bytes = 1, .is_stub = 1 };
	else if (s.flags & SECTION_HEAP ? !find_in_heap(&m, &s, address, &code, &method)
					: !find_in_image(&m, &s, address, &code, &method))
		return fail(EPROTO);
	if (!code.is_stub && !describe(&m, method, &code))
		return fail(EPROTO);
	*out = code;
	return 0;
}

/* ---- metadata ---- */

#define VERSION_TEXT "v4.0.30319"
#define STREAMS_MAX 8
#define STREAM_NAME_MAX 32

/* How many bytes they are, 0: none. */
static uint64_t metadata_bytes(struct memory *m, uint64_t at)
{
	uint8_t head[16 + 16 + 4 + STREAMS_MAX * (8 + STREAM_NAME_MAX)] = { 0 };
	uint64_t end = 0;
	if (at > INT64_MAX || pread(m->fd, head, sizeof(head), (off_t)at) < 64)
		return 0;
	struct reader r = reader_over(head, sizeof(head));
	bool is_root = memcmp(head, "BSJB", 4) == 0;
	reader_seek(&r, 12);
	uint32_t version_bytes = reader_u32(&r);
	struct str version = reader_str(&r, MIN(version_bytes, (uint32_t)16));
	if (!is_root || !str_starts(version, STR(VERSION_TEXT)))
		return 0;
	(void)reader_u16(&r);
	unsigned streams = reader_u16(&r);
	for (unsigned i = 0; i < MIN(streams, (unsigned)STREAMS_MAX) && !r.failed; i++) {
		uint64_t from = reader_u32(&r), len = reader_u32(&r);
		end = MAX(end, from + len);
		size_t name = 0;
		while (!r.failed && reader_u8(&r))
			name++;
		(void)reader_bytes(&r, 3 - name % 4);
	}
	return end <= DOTNET_MEMORY_METADATA_BYTES_MAX ? end : 0;
}

ssize_t dotnet_memory_read(int pid, uint64_t metadata, uint64_t offset, void *out, size_t len)
{
	CLEANUP(fd_cleanup) int fd = process_memory_open(pid);
	if (fd < 0)
		return -1;
	struct memory m = { .fd = fd };
	uint64_t bytes = metadata_bytes(&m, metadata);
	if (!bytes)
		return fail(EPROTO);
	if (offset >= bytes)
		return 0;
	return pread(
		fd, out, (size_t)MIN((uint64_t)len, bytes - offset), (off_t)(metadata + offset));
}
