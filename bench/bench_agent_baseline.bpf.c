/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bench_agent_baseline: programs for comparison with the sampling program at the same interrupts:
 * an empty one, and the kernel's own walk by frame pointers.
 */
#include <linux/types.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define FRAMES_MAX 127

struct frames {
	__u64 v[FRAMES_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct frames);
} scratch SEC(".maps");

__u64 walks = 0;
__u64 frames = 0;

SEC("perf_event")
int baseline_empty(void *ctx)
{
	return 0;
}

SEC("perf_event")
int baseline_get_stack(void *ctx)
{
	__u32 zero = 0;
	struct frames *f = bpf_map_lookup_elem(&scratch, &zero);
	if (!f || (__u32)bpf_get_current_pid_tgid() == 0)
		return 0;
	(void)bpf_get_stack(ctx, f, sizeof(*f), 0);
	long bytes = bpf_get_stack(ctx, f, sizeof(*f), BPF_F_USER_STACK);
	if (bytes <= 0)
		return 0;
	__sync_fetch_and_add(&walks, 1);
	__sync_fetch_and_add(&frames, bytes / sizeof(__u64));
	return 0;
}
