/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms: names of kernel addresses, from a compact copy of /proc/kallsyms. Private to agent/.
 *
 * About 33 bytes a symbol (4 MB for a common kernel). Not thread safe: the poll thread's.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Beyond these the rest is left out, and counted. */
#define KALLSYMS_SYMBOLS_MAX (4u << 20)
#define KALLSYMS_NAME_BYTES_MAX ((size_t)128 << 20)
/* No function is longer: an address further behind its symbol has no name. */
#define KALLSYMS_SPAN_MAX (1u << 20)

struct kallsyms;

struct kallsyms_symbol {
	struct str name;   /* valid until the next refresh */
	struct str module; /* "" for the kernel itself */
	uint64_t start;
};

/* E_DENIED: the kernel hides addresses (kptr_restrict; needs CAP_SYSLOG), said in the sentence. */
NODISCARD enum status kallsyms_new(struct kallsyms **out, struct err *e);
/* From this file and list of modules, for tests. */
NODISCARD enum status kallsyms_new_from(
	const char *symbols_path, const char *modules_path, struct kallsyms **out, struct err *e);
void kallsyms_free(struct kallsyms *k);

/* False when no symbol covers the address. */
bool kallsyms_find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out);
/* Read the symbols again if modules came or went since, or if `missed` (an address had no name: a
 * BPF program may have been loaded) and the last time is a minute ago. Cheap otherwise. Returns
 * true when they were read again: earlier texts are gone. */
bool kallsyms_refresh(struct kallsyms *k, bool missed);
uint32_t kallsyms_count(const struct kallsyms *k);
