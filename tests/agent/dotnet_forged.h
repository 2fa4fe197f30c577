/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of code of a .NET process, in this process' own memory: one heap with code at
 * FORGED_CODE, and one image. Its addresses are none that anything lies at. */
#pragma once

#include <stdint.h>
#include <string.h>

#define FORGED_HEAP 0x700000000000ull
#define FORGED_HEAP_BYTES 0x20000ull
#define FORGED_IMAGE 0x700000040000ull

struct forged_section {
	uint64_t begin, end, flags, manager, module, heap;
};
struct forged_fragment {
	uint64_t next, begin, end, section;
};

static struct forged {
	uint64_t root, levels[5][256];
	struct forged_fragment fragments[2];
	struct forged_section sections[2];
	uint64_t heap[6];
	uint32_t map[FORGED_HEAP_BYTES / 256];
	uint64_t header[16];
	struct {
		uint64_t type, next;
		uint8_t size, count;
		uint16_t range;
		uint32_t pad;
		uint16_t method[32];
	} chunk;
	uint64_t type[8], module[160], assembly[8], import[192];
	uint64_t info[64];
	uint32_t functions[4][3];
	uint64_t buckets[4][8];
	uint8_t metadata[256];
} forged;

static uint64_t forged_at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* The pointer to the header of the code lies 8 bytes in front of it, in memory that is really
 * there: so code of the heap is a distance from `base`, which is put where the heap begins. */
static uint8_t forged_room[2 * FORGED_HEAP_BYTES];

/* The tree's last level has one entry for each FORGED_HEAP_BYTES: the heap lies in one of them,
 * wherever the room was loaded. */
static uint8_t *forged_code(void)
{
	return forged_room + -(uintptr_t)forged_room % FORGED_HEAP_BYTES;
}

static void forged_tree(uint64_t address, const void *fragment)
{
	forged.root = forged_at(forged.levels[0]);
	for (unsigned i = 0; i < 5; i++)
		forged.levels[i][address >> (49 - 8 * i) & 255] =
			forged_at(i < 4 ? (const void *)forged.levels[i + 1] : fragment);
}

static void forged_metadata(void)
{
	static const char head[] = "BSJB\1\0\1\0\0\0\0\0\14\0\0\0v4.0.30319\0\0\0\0\1\0"
				   "\100\0\0\0\100\0\0\0#~\0\0";
	memcpy(forged.metadata, head, sizeof(head) - 1);
	memset(forged.metadata + 64, 'x', 64);
}

/* Code begins at +0x1860 of the heap and is 0x170 bytes long. */
static uint64_t forged_make(unsigned version)
{
	static const struct {
		unsigned assembly, image, buckets;
	} places[] = { { 272, 1152, 448 }, { 280, 984, 448 }, { 216, 704, 376 } };
	memset(&forged, 0, sizeof(forged));
	uint64_t base = forged_at(forged_code());
	forged_tree(base, &forged.fragments[0]);
	forged.fragments[0] = (struct forged_fragment){ 0, base, base + FORGED_HEAP_BYTES,
		forged_at(&forged.sections[0]) };
	forged.sections[0] = (struct forged_section){ .begin = base,
		.end = base + FORGED_HEAP_BYTES,
		.flags = 2,
		.heap = forged_at(forged.heap) };
	const uint64_t heap[] = { 0, 0, base, base + 0x3000, base, forged_at(forged.map) };
	memcpy(forged.heap, heap, sizeof(heap));
	forged.map[0x1860 / 256] = 1u << (28 - 4 * (0x1860 / 32 % 8));
	uint64_t header = forged_at(forged.header);
	memcpy(forged_code() + 0x1858, &header, sizeof(header));
	forged.header[3] = forged_at(&forged.chunk.method[4]);
	const uint32_t unwind[] = { 1, 0x1860, 0x19d0 };
	memcpy(&forged.header[4], unwind, sizeof(unwind));
	forged.chunk.type = forged_at(forged.type);
	forged.chunk.range = 1;
	forged.chunk.method[4] = 0x3000 | 13;
	forged.chunk.method[5] = 1; /* in the chunk */
	forged.type[3] = forged_at(forged.module);
	const unsigned v = version - 8;
	forged.module[places[v].assembly / 8] = forged_at(forged.assembly);
	forged.assembly[3] = forged_at(forged.import);
	forged.import[1464 / 8] = forged_at(forged.metadata);
	forged_metadata();
	forged.module[places[v].image / 8] = forged_at(forged.info);
	forged.info[5] = forged_at(forged.info);
	forged.info[10] = forged_at(forged.functions);
	forged.info[11] = 3;
	forged.info[places[v].buckets / 8] = forged_at(forged.buckets);
	return forged_at(&forged.root);
}
