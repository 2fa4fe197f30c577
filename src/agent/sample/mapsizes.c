/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring, and the maps of which each CPU has a copy, grow with the number of CPUs. The reader
 * empties the ring four times a second, and is woken when it is half full: at 19 Hz on 128 CPUs 2
 * MiB hold the samples of about a second at 800 bytes each, and those of a tenth of a second at the
 * largest size.
 *
 * The estimate follows kernel/bpf/arraymap.c (array_map_mem_usage()), hashtab.c
 * (htab_map_mem_usage()) and ringbuf.c (ringbuf_map_mem_usage()) of Linux 6.6; the charges of 5.10
 * are the same but for some pages.
 */
#include "agent/sample/mapsizes.h"

#include "agent/bpf/layout.h"
#include "os/os.h"

#include <bpf/libbpf.h>
#include <stdio.h>

#define PAGE_BYTES 4096
#define LEAST_HZ 19u /* the default; for a higher frequency sizes grow in proportion */
#define RING_BYTES_MIN (512u << 10) /* less than half of it is a stack that is copied */
#define RING_BYTES_MAX (32u << 20)
#define RING_BYTES_LEAST_HZ (2u << 20) /* the most at LEAST_HZ */
#define SEEN_SLOTS_LEAST_HZ 512        /* five times the samples of an epoch */
/* At LEAST_HZ on 192 CPUs 96 CPUs share one; of a thousand copies some 20 find it in use. */
#define STACK_COPIES_LEAST_HZ 2
#define STACK_COPIES_MAX 1024
/* Pairs, for the functions of some 40 Python programs. If three functions share a pair, they are
 * sent again and again. */
#define CODES_TOLD_LEAST_HZ 2048

#define EVENT_BYTES_MAX                \
	(sizeof(struct event_sample) + \
		(SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX) * sizeof(uint64_t))

/* The smallest power of two, from `least` on, that is not below `need`; or the largest up to
 * `most`. */
static uint32_t power_of_two(uint64_t need, uint32_t least, uint64_t most)
{
	uint64_t n = least;
	while (n < need && n * 2 <= most)
		n *= 2;
	return (uint32_t)n;
}

void mapsizes_choose(uint32_t cpus, uint32_t frequency_hz, bool is_off_cpu, struct mapsizes *out)
{
	/* The ring has room for half a second of the largest events; the reader comes earlier. */
	uint64_t ring = (uint64_t)cpus * frequency_hz * EVENT_BYTES_MAX / 2;
	uint64_t ring_max = (uint64_t)RING_BYTES_LEAST_HZ * MAX(frequency_hz, LEAST_HZ) / LEAST_HZ;
	bool is_seldom = frequency_hz <= LEAST_HZ && !is_off_cpu;
	if (is_off_cpu || ring_max > RING_BYTES_MAX)
		ring_max = RING_BYTES_MAX;
	uint64_t copies = (uint64_t)STACK_COPIES_LEAST_HZ * MAX(frequency_hz, LEAST_HZ) / LEAST_HZ;
	*out = (struct mapsizes){
		.ring_bytes = power_of_two(ring, RING_BYTES_MIN, ring_max),
		.seen_slots = is_seldom ? SEEN_SLOTS_LEAST_HZ : SEEN_SLOTS,
		.codes_told = is_seldom ? CODES_TOLD_LEAST_HZ : CODES_TOLD_MAX,
		.stack_copies = power_of_two(MIN(copies, (uint64_t)cpus), 1, STACK_COPIES_MAX),
	};
	out->kept_places = out->codes_told >> KEPT_PLACES_SHIFT;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* struct htab_elem has 48 bytes, and struct bucket 16. */
static uint64_t hash_bytes(
	uint64_t key_bytes, uint64_t value_bytes, uint64_t entries, uint64_t cpus)
{
	uint64_t element = 48 + round_up(key_bytes, 8) + round_up(value_bytes, 8);
	uint64_t buckets = 1;
	while (buckets < entries)
		buckets *= 2;
	return buckets * 16 + (entries + cpus) * element + cpus * sizeof(void *);
}

static uint64_t map_bytes(const struct bpf_map *map, uint64_t cpus)
{
	uint64_t entries = bpf_map__max_entries(map);
	uint64_t value = round_up(bpf_map__value_size(map), 8);
	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_ARRAY:
		return round_up(entries * value, PAGE_BYTES) + PAGE_BYTES;
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return entries * (value * cpus + sizeof(void *)) + PAGE_BYTES;
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
		return hash_bytes(bpf_map__key_size(map), value, entries, cpus);
	case BPF_MAP_TYPE_RINGBUF:
		/* Each page is mapped twice, and three more are in front of them. */
		return entries + 3 * PAGE_BYTES + 2 * (entries / PAGE_BYTES) * sizeof(void *);
	default:
		return entries * sizeof(void *) + PAGE_BYTES; /* of slabs */
	}
}

uint64_t mapsizes_estimate(const struct bpf_object *object, uint32_t cpus)
{
	const struct bpf_map *map;
	uint64_t bytes = 0;
	bpf_object__for_each_map(map, object) bytes += map_bytes(map, cpus);
	return bytes;
}

/* "memlock:" of a map or program: what the kernel charges for it; 0: the kernel does not say. */
static uint64_t kernel_bytes_of(int fd)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 64u << 10);
	struct str text = os_read_file(path, &b, NULL) == OK ? buf_view(&b) : STR("");
	struct str line;
	uint64_t bytes = 0;
	while (str_split(&text, '\n', &line)) {
		struct str name = STR("memlock:");
		if (str_starts(line, name) &&
			str_parse_u64(str_trim(str_sub(line, name.len, line.len)), 10, &bytes))
			return bytes;
	}
	return 0;
}

uint64_t mapsizes_measure(const struct bpf_object *object, uint32_t cpus)
{
	const struct bpf_map *map;
	struct bpf_program *program;
	uint64_t bytes = 0;
	bool is_charged = true;
	bpf_object__for_each_map(map, object)
	{
		uint64_t charged = kernel_bytes_of(bpf_map__fd(map));
		bytes += charged;
		/* Linux 5.11 to 6.3 charge no process, and show unrelated numbers: 0 for a ring. */
		if (bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF)
			is_charged &= charged >= bpf_map__max_entries(map);
	}
	if (!is_charged)
		bytes = mapsizes_estimate(object, cpus);
	bpf_object__for_each_program(program, object) bytes +=
		kernel_bytes_of(bpf_program__fd(program));
	return bytes;
}

uint32_t mapsizes_idle_table_bytes(uint64_t maps_bytes)
{
	uint64_t rest = maps_bytes + KERNEL_PROGRAM_BYTES;
	uint64_t left = rest < KERNEL_BYTES_IDLE ? KERNEL_BYTES_IDLE - rest : 0;
	/* A slab takes a page more than its tables. */
	left = left / (SLAB_BYTES + PAGE_BYTES) * SLAB_BYTES;
	left = MAX(left, (uint64_t)TABLE_BYTES_IDLE_LEAST);
	return (uint32_t)MIN(left, (uint64_t)TABLE_BYTES_IDLE);
}

uint64_t mapsizes_table_bytes(uint64_t host_bytes, uint64_t limit_bytes)
{
	uint64_t bytes = MAX(host_bytes / 100 * TABLE_HOST_PERCENT, (uint64_t)TABLE_BYTES_LEAST);
	return MIN(bytes, limit_bytes / 2);
}
