/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the instrumented code says of each comparison to libFuzzer costs up to two thirds of a run,
 * and serves to find inputs that reach further. Runs that are there for their number
 * (FIRN_FUZZ_BULK=1) go without: the linker leads the calls here (--wrap in meson.build). A call
 * that is passed on leaves no frame, since libFuzzer keys by the caller's address.
 */
#include "fuzz/fuzz.h"

#define PLAIN __attribute__((no_sanitize("address", "undefined", "coverage")))
#define TRACE_OF(name, type)                                                                  \
	void __real___sanitizer_cov_trace_##name(type a, type b);                             \
	void __wrap___sanitizer_cov_trace_##name(type a, type b);                             \
	PLAIN void __wrap___sanitizer_cov_trace_##name(type a, type b)                        \
	{                                                                                     \
		if (__builtin_expect(!fuzz_bulk, 0))                                          \
			__attribute__((musttail)) return __real___sanitizer_cov_trace_##name( \
				a, b);                                                        \
	}

bool fuzz_bulk;

/* Before any constructor of the program's own that is instrumented. */
__attribute__((constructor(101))) PLAIN static void choose(void)
{
	fuzz_bulk = getenv("FIRN_FUZZ_BULK") != NULL;
}

TRACE_OF(cmp1, uint8_t)
TRACE_OF(cmp2, uint16_t)
TRACE_OF(cmp4, uint32_t)
TRACE_OF(cmp8, uint64_t)
TRACE_OF(const_cmp1, uint8_t)
TRACE_OF(const_cmp2, uint16_t)
TRACE_OF(const_cmp4, uint32_t)
TRACE_OF(const_cmp8, uint64_t)

void __real___sanitizer_cov_trace_switch(uint64_t value, uint64_t *cases);
void __wrap___sanitizer_cov_trace_switch(uint64_t value, uint64_t *cases);
PLAIN void __wrap___sanitizer_cov_trace_switch(uint64_t value, uint64_t *cases)
{
	if (__builtin_expect(!fuzz_bulk, 0))
		__attribute__((musttail)) return __real___sanitizer_cov_trace_switch(value, cases);
}
