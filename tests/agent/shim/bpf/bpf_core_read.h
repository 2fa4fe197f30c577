/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_core_read: stands in for libbpf's header of this name. Kernel memory is read through the
 * shim's checks; what differs between kernels is what the test says.
 *
 * Addresses are computed as numbers: the pointers that the program follows may be wild, and a
 * sanitizer should speak only when one is dereferenced.
 */
#pragma once

#include "bpf/bpf_helpers.h"

#define SHIM_READ(from, field)                                                           \
	({                                                                               \
		__typeof__((from)->field) shim_v_;                                       \
		__builtin_memset((void *)&shim_v_, 0, sizeof(shim_v_));                  \
		(void)bpf_probe_read_kernel((void *)&shim_v_, sizeof(shim_v_),           \
			(const void *)((uintptr_t)(from) +                               \
				       __builtin_offsetof(__typeof__(*(from)), field))); \
		shim_v_;                                                                 \
	})
#define SHIM_READ_1(from, a) SHIM_READ(from, a)
#define SHIM_READ_2(from, a, b)                                     \
	({                                                          \
		__typeof__((from)->a) shim_p_ = SHIM_READ(from, a); \
		SHIM_READ(shim_p_, b);                              \
	})
#define SHIM_PICK(from, a, b, name, ...) name
#define BPF_CORE_READ(...) SHIM_PICK(__VA_ARGS__, SHIM_READ_2, SHIM_READ_1, 0)(__VA_ARGS__)

int shim_field_exists(const char *field);
size_t shim_field_offset(const char *field, size_t in_shim);
int shim_helper_exists(const char *helper);
#define bpf_core_field_exists(type, field) shim_field_exists(#field)
#define bpf_core_field_offset(type, field) shim_field_offset(#field, offsetof(type, field))
#define bpf_core_type_size(type) sizeof(type)
#define bpf_core_enum_value_exists(type, value) shim_helper_exists(#value)
