/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_helpers: stands in for libbpf's header of this name, so that the BPF program compiles as
 * ordinary C. What the helpers do is in shim.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name
#define __array(name, value) __typeof__(value) *name[]
#define __noinline __attribute__((noinline))
/* Only BPF needs it: here the sources compile several times as fast without. */
#undef __always_inline
#define __always_inline inline

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, uint64_t flags);
long bpf_map_delete_elem(void *map, const void *key);
uint32_t bpf_get_prandom_u32(void);
long bpf_probe_read_kernel(void *out, uint32_t bytes, const void *from);
long bpf_probe_read_user_str(void *out, uint32_t bytes, const void *from);
long bpf_probe_read_user(void *out, uint32_t bytes, const void *from);
uint64_t bpf_ktime_get_ns(void);
uint64_t bpf_get_current_pid_tgid(void);
uint32_t bpf_get_smp_processor_id(void);
uint64_t bpf_get_current_cgroup_id(void);
uint64_t bpf_get_current_task(void);
void *bpf_get_current_task_btf(void);
long bpf_task_pt_regs(void *task);
long bpf_get_current_comm(void *out, uint32_t bytes);
long bpf_get_stack(void *ctx, void *out, uint32_t bytes, uint64_t flags);
long bpf_ringbuf_output(void *ring, void *data, uint64_t bytes, uint64_t flags);
uint64_t bpf_ringbuf_query(void *ring, uint64_t flags);
