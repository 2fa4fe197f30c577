/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms: names of kernel addresses, from a compact copy of /proc/kallsyms. Private to agent/.
 *
 * About 33 bytes a symbol (4 MB for a common kernel). The kernel reports BPF programs that are
 * loaded later (ksymbols.h). Not thread safe: the poll thread's.
 */
#pragma once

#include "agent/names/ksymbols.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

/* Beyond these the rest is left out, and counted. */
#define KALLSYMS_SYMBOLS_MAX (4u << 20)
#define KALLSYMS_NAME_BYTES_MAX ((size_t)128 << 20)
/* No function is longer: an address further behind its symbol has no name. */
#define KALLSYMS_SPAN_MAX (1u << 20)
/* BPF programs that may be loaded after the file was read. If there are more, the file is read
 * again. */
#define KALLSYMS_LATER_MAX 8192
/* If an address has no name, the file is read again after so long. The pause doubles each time that
 * this finds no name either. */
#define KALLSYMS_PAUSE_MIN_NS (60 * NS_PER_SEC)
#define KALLSYMS_PAUSE_MAX_NS (3600 * NS_PER_SEC)

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

/* Takes BPF programs that are loaded from now on from `loaded`, which stays the caller's. NULL:
 * from nowhere. */
void kallsyms_watch(struct kallsyms *k, struct ksymbols *loaded);
/* A BPF program that was loaded after the file was read; a ksymbol_fn, ctx being the kallsyms. */
void kallsyms_add(void *ctx, const struct ksymbol *s);
/* False when no symbol covers the address. */
bool kallsyms_find(struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out);
/* Take what the kernel has told meanwhile; cheap, to be called some times a second. */
void kallsyms_take(struct kallsyms *k);
/* Read the symbols again if modules came or went since, or if `missed` (an address had no name) or
 * something was lost, and the last time is KALLSYMS_PAUSE_MIN_NS ago, or more where that does not
 * help. Cheap otherwise. Returns true when they were read again: earlier texts are gone. */
bool kallsyms_refresh(struct kallsyms *k, int64_t now_ns, bool missed);
uint32_t kallsyms_count(const struct kallsyms *k);
