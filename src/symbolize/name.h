/* SPDX-License-Identifier: Apache-2.0 */
/* name: gives locations their lines. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "symbolize/symbolize.h"

/* A mapping of the profile that is being resolved. */
struct symbolize_mapping {
	struct symbolize_ref *ref; /* NULL: no table */
	struct str file;           /* the last part of its path; lives in the profile */
	bool wanted;
	bool pending;
	bool is_trimmed;
	bool lacks; /* the table is trimmed, and lacks an address of this mapping */
};
/* Whether a trimmed table lacks this address of the mapping. */
bool symbolize_lacks(
	const struct profile_mapping *m, const struct debuginfo_table *t, uint64_t address);
/* The virtual address in the ELF file; false: it is not known. */
bool symbolize_file_address(const struct profile_mapping *m, const struct debuginfo_table *t,
	uint64_t address, uint64_t *out);
struct str symbolize_base_name(struct str file);

/* A text of a table that is in the profile already. */
struct symbolize_text {
	const char *from;
	uint32_t plain;
	uint32_t demangled;
	bool has_plain;
	bool has_demangled;
	/* If the text is a function's name: the last function with it. */
	bool has_function;
	const char *file;
	uint32_t start_line;
	uint32_t function;
};

/* Used by one thread. */
struct symbolize_namer {
	struct profile *p;  /* whose locations get lines */
	struct profile *to; /* where strings, functions and lines go: `p`, or `own` if apart */
	struct profile own;
	bool apart;
	const struct symbolize_mapping *mappings;
	enum status status;
	VEC(uint32_t) named; /* locations, when it is apart */
	uint64_t lookups, unknown;
	uint32_t pending;
	struct arena scratch;
	VEC(struct symbolize_text) texts;
	struct map text_index;
	/* The result for the last place. */
	const struct debuginfo_table *last_table;
	uint32_t last_node;
	uint32_t last_count;
	bool last_nameless;
	struct profile_line last_lines[DEBUGINFO_FRAMES_MAX];
};
void symbolize_namer_init(
	struct symbolize_namer *n, struct profile *p, const struct symbolize_mapping *mappings);
void symbolize_namer_deinit(struct symbolize_namer *n);
/* To be called before the first location: names then come into `p` only at symbolize_namer_join().
 */
NODISCARD enum status symbolize_namer_apart(struct symbolize_namer *n);
NODISCARD enum status symbolize_namer_join(struct symbolize_namer *n);
/* Gives a location of `p` that has no lines some. */
NODISCARD enum status symbolize_name(struct symbolize_namer *n, struct profile_location *loc);
