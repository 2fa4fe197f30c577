/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo/symtab/format: the bytes of a symbol table, as docs/formats/symtab.md says. Private to
 * debuginfo/.
 */
#pragma once

#include "base/status.h"

#define SYMTAB_MAGIC "FIRNSYM"
#define SYMTAB_VERSION 1
#define SYMTAB_BUILD_ID_MAX 64
/* A region spans at most this many bytes of addresses. */
#define SYMTAB_REGION_BYTES_MAX ((uint64_t)1 << 32)
#define SYMTAB_SHIFT_MIN 4
#define SYMTAB_SHIFT_MAX 31
/* In a trimmed table: the line of each place that was left out. */
#define SYMTAB_LEFT_OUT UINT32_MAX

/* clang-format off */
#define SYMTAB_SECTIONS(X)                                  \
	X(SEGMENTS,       struct symtab_segment,  "segments")       \
	X(REGIONS,        struct symtab_region,   "regions")        \
	X(BUCKETS,        uint32_t,               "buckets")        \
	X(STARTS,         uint32_t,               "starts")         \
	X(PLACES,         struct symtab_place,    "places")         \
	X(NODES,          struct symtab_node,     "nodes")          \
	X(FUNCTIONS,      struct symtab_function, "functions")      \
	X(STRING_OFFSETS, uint32_t,               "string offsets") \
	X(STRINGS,        char,                   "strings")
/* clang-format on */
enum symtab_section {
#define SYMTAB_SECTION_ENUM(name, type, text) SYMTAB_##name,
	SYMTAB_SECTIONS(SYMTAB_SECTION_ENUM)
#undef SYMTAB_SECTION_ENUM
		SYMTAB_SECTION_COUNT
};

enum symtab_flag {
	SYMTAB_DWARF = 1u << 0,
	SYMTAB_SYMTAB = 1u << 1,
	SYMTAB_DYNSYM = 1u << 2,
	SYMTAB_MINIDEBUGINFO = 1u << 3,
	SYMTAB_PLT = 1u << 4,
	SYMTAB_GOPCLNTAB = 1u << 5,
	SYMTAB_DWARF_CUT = 1u << 6,
	SYMTAB_DWARF_DAMAGED = 1u << 7,
	SYMTAB_EH_FRAME = 1u << 8,
	SYMTAB_TRIMMED = 1u << 9,
};

struct symtab_extent {
	uint64_t offset;
	uint64_t count;
};

struct symtab_header {
	char magic[8];
	uint32_t version;
	uint32_t zero;
	uint64_t file_bytes;
	uint64_t checksum; /* of everything after this field */
	uint32_t build_id_len;
	uint32_t flags;
	uint8_t build_id[SYMTAB_BUILD_ID_MAX];
	struct symtab_extent sections[SYMTAB_SECTION_COUNT];
	uint64_t zero2;
};
#define SYMTAB_CHECKSUM_FROM offsetof(struct symtab_header, build_id_len)

struct symtab_segment {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t size;
};

struct symtab_region {
	uint64_t base;
	uint64_t end;
	uint32_t first_range;
	uint32_t range_count;
	uint32_t first_bucket;
	uint32_t shift;
};

struct symtab_place {
	uint32_t node;
	uint32_t line;
};

struct symtab_node {
	uint32_t function;
	uint32_t file;
	uint32_t call_line;
	uint32_t parent;
};

struct symtab_function {
	uint32_t name;
	uint32_t file;
	uint32_t line;
};

_Static_assert(sizeof(struct symtab_header) == 256, "as documented");
_Static_assert(SYMTAB_CHECKSUM_FROM == 32, "as documented");
_Static_assert(sizeof(struct symtab_segment) == 24, "as documented");
_Static_assert(sizeof(struct symtab_region) == 32, "as documented");
_Static_assert(sizeof(struct symtab_place) == 8, "as documented");
_Static_assert(sizeof(struct symtab_node) == 16, "as documented");
_Static_assert(sizeof(struct symtab_function) == 12, "as documented");

/* Buckets of a region that spans `span` > 0 bytes. */
static inline uint64_t symtab_bucket_count(uint64_t span, uint32_t shift)
{
	return ((span - 1) >> shift) + 2;
}
