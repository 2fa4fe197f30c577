/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ksymbols: the kernel tells of each BPF program that is loaded: where it lies, its length, its
 * name. Private to agent/. Not thread safe: the poll thread's.
 *
 * Opening needs CAP_PERFMON; for a CPU that comes online later the broker has it. All other
 * functions need no privilege. Source: PERF_RECORD_KSYMBOL, include/uapi/linux/perf_event.h (5.1).
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Data of one CPU: about 90 programs that are loaded on it between two looks; more are lost. A
 * power of two. */
#define KSYMBOLS_RING_PAGES 2

struct ksymbol {
	uint64_t start;
	uint32_t len;
	uint64_t time;   /* of being loaded, by a clock of all CPUs */
	struct str name; /* valid during the call */
};
typedef void ksymbol_fn(void *ctx, const struct ksymbol *s);

struct ksymbols;

NODISCARD enum status ksymbols_open(struct ksymbols **out, struct err *e);
void ksymbols_close(struct ksymbols *k); /* NULL is fine */
/* Looks for CPUs that came online or went. One read of a file when nothing changed. */
NODISCARD enum status ksymbols_update(struct ksymbols *k, struct err *e);
/* The same with a list of the kernel's form. */
NODISCARD enum status ksymbols_update_to(struct ksymbols *k, struct str online, struct err *e);
/* Events may have died with their CPUs: they are made anew; where that fails the old ones stay. */
NODISCARD enum status ksymbols_renew(struct ksymbols *k, struct err *e);
/* Calls `fn` for each symbol that was told since the last call, of each CPU in its order. False:
 * some were lost, or may have been while a CPU came or went. Costs one look at memory a CPU when
 * there is nothing. */
bool ksymbols_take(struct ksymbols *k, ksymbol_fn *fn, void *ctx);
