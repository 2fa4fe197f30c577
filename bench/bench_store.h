/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fleet with which the store is measured: 200 series, 50,000 stacks of about 30 frames that
 * share prefixes, drawn by zipf(1.1) from all of them; each series has a batch each ten seconds.
 *
 * There are two models of times. TICKS, as an agent sends them: each of a host's eight CPUs has a
 * timer of 19 Hz with its own phase, which fires a few microseconds late. RANDOM: any microsecond
 * of the batch.
 */
#pragma once

#include "base/clock.h"
#include "base/hash.h"
#include "os/os.h"
#include "store/store.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLEET_SERIES = 200, FLEET_STACKS = 50000, FLEET_FUNCTIONS = 20000, FLEET_DEPTH_MAX = 63 };
#define FLEET_BATCH_NS (10 * NS_PER_SEC)
#define FLEET_PERIOD_NS 52631578
#define FLEET_CPUS 8
#define FLEET_T0 (472222LL * 3600 * NS_PER_SEC) /* the begin of an hour */
#define FLEET_TYPE "cpu:samples:count:cpu:nanoseconds:delta"

#define BENCH_CHECK(x)                                                          \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			exit(1);                                                \
		}                                                               \
	} while (0)

#define BENCH_OK(call, e)                                                            \
	do {                                                                         \
		enum status bench_s_ = (call);                                       \
		if (bench_s_ != OK) {                                                \
			fprintf(stderr, "%s: %s\n", #call, err_text((e), bench_s_)); \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

enum fleet_times { FLEET_RANDOM, FLEET_TICKS };

struct fleet {
	uint64_t random;
	enum fleet_times times;
	uint16_t (*frames)[FLEET_DEPTH_MAX + 1]; /* root first */
	uint8_t *depth;
	double *zipf; /* cumulated */
	uint32_t *order;
	uint32_t known[FLEET_FUNCTIONS]; /* locations of the current batch */
};

static inline uint64_t fleet_random(struct fleet *f)
{
	return hash_u64(f->random += 0x9E3779B97F4A7C15ull);
}

static inline double fleet_real(struct fleet *f)
{
	return (double)(fleet_random(f) >> 11) * 0x1.0p-53;
}

/* Makes a stack that shares most frames with an earlier one. */
static inline void fleet_make_stack(struct fleet *f, uint32_t i)
{
	uint32_t keep = 0, add = 1;
	if (i) {
		uint32_t from = (uint32_t)(fleet_random(f) % i), cut = 1;
		while (fleet_real(f) < 0.78)
			cut++;
		uint32_t have = f->depth[from];
		keep = cut >= have || fleet_real(f) < 0.01 ? 1 : have - cut;
		memcpy(f->frames[i], f->frames[from], keep * sizeof(uint16_t));
	}
	while (fleet_real(f) < 0.75)
		add++;
	uint32_t target = 22 + (uint32_t)(16 * fleet_real(f));
	if (keep < 8)
		add = target - keep;
	while (add-- && keep < FLEET_DEPTH_MAX) {
		double u = fleet_real(f);
		f->frames[i][keep++] = (uint16_t)(u * u * u * FLEET_FUNCTIONS);
	}
	f->depth[i] = (uint8_t)keep;
}

static inline void fleet_init(struct fleet *f)
{
	*f = (struct fleet){ .random = 1 };
	f->frames = calloc(FLEET_STACKS, sizeof(*f->frames));
	f->depth = calloc(FLEET_STACKS, 1);
	f->zipf = calloc(FLEET_STACKS, sizeof(double));
	f->order = calloc(FLEET_STACKS, sizeof(uint32_t));
	BENCH_CHECK(f->frames && f->depth && f->zipf && f->order);
	double sum = 0;
	for (uint32_t i = 0; i < FLEET_STACKS; i++) {
		fleet_make_stack(f, i);
		f->zipf[i] = sum += pow(i + 1, -1.1);
		f->order[i] = i;
	}
	for (uint32_t i = 0; i < FLEET_STACKS; i++)
		f->zipf[i] /= sum;
	for (uint32_t i = FLEET_STACKS - 1; i; i--) {
		uint32_t j = (uint32_t)(fleet_random(f) % (i + 1)), x = f->order[i];
		f->order[i] = f->order[j];
		f->order[j] = x;
	}
}

static inline void fleet_deinit(struct fleet *f)
{
	free(f->frames);
	free(f->depth);
	free(f->zipf);
	free(f->order);
}

static inline uint32_t fleet_draw(struct fleet *f)
{
	double u = fleet_real(f);
	uint32_t lo = 0, hi = FLEET_STACKS - 1;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (f->zipf[mid] < u)
			lo = mid + 1;
		else
			hi = mid;
	}
	return f->order[lo];
}

static inline uint32_t fleet_text(
	struct profile *p, const char *before, uint32_t i, const char *after)
{
	char text[64];
	uint32_t id;
	snprintf(text, sizeof(text), "%s%u%s", before, i, after);
	BENCH_CHECK(profile_add_string(p, str_of(text), &id) == OK);
	return id;
}

static inline uint32_t fleet_word(struct profile *p, const char *text)
{
	uint32_t id;
	BENCH_CHECK(profile_add_string(p, str_of(text), &id) == OK);
	return id;
}

static inline uint32_t fleet_location(struct profile *p, uint32_t function)
{
	uint32_t file = function % 97;
	struct profile_mapping m = { .filename = fleet_text(p, "/usr/lib/libservice", file, ".so"),
		.build_id = fleet_text(
			p, "00112233445566778899aabbccddeeff000000", 10 + file % 90, "") };
	struct profile_location l = { .address = 0x1000 + (uint64_t)function * 187,
		.kind = FRAME_NATIVE };
	uint32_t id;
	BENCH_CHECK(profile_add_mapping(p, &m, &l.mapping) == OK);
	BENCH_CHECK(profile_add_location(p, &l, NULL, 0, &id) == OK);
	return id;
}

static inline uint32_t fleet_known(struct fleet *f, struct profile *p, uint32_t function)
{
	if (!f->known[function])
		f->known[function] = fleet_location(p, function);
	return f->known[function];
}

/* Chooses a tick of a CPU that this batch does not have yet, and the time at which its interrupt
 * read the clock: mostly a few microseconds late, sometimes much later. */
static inline int64_t fleet_tick(
	struct fleet *f, uint32_t series, int64_t begin, uint8_t *taken, uint32_t *cpu)
{
	uint64_t ticks = FLEET_BATCH_NS / FLEET_PERIOD_NS, slot, probes = 0;
	do
		slot = fleet_random(f) % (ticks * FLEET_CPUS);
	while ((taken[slot / 8] >> slot % 8 & 1) && ++probes < 64);
	taken[slot / 8] |= (uint8_t)(1 << slot % 8);
	*cpu = (uint32_t)(slot % FLEET_CPUS);
	uint64_t phase = hash_u64(series / 4 * FLEET_CPUS + *cpu + 0xC0FFEEull) % FLEET_PERIOD_NS;
	int64_t k = begin / FLEET_PERIOD_NS + 1 + (int64_t)(slot / FLEET_CPUS);
	double late = 2000 - 20000 * log(1 - fleet_real(f));
	if (fleet_random(f) % 50 == 0)
		late *= 10;
	return (k * FLEET_PERIOD_NS + (int64_t)phase + (int64_t)late) / 1000 * 1000;
}

/* Makes a batch of `n` samples of one series; `labels`: each sample has pid, thread and cpu. */
static inline void fleet_batch(
	struct fleet *f, struct profile *p, uint32_t series, int64_t begin, uint32_t n, bool labels)
{
	struct profile_type type = { .delta = true };
	struct profile_head head = {
		.period = FLEET_PERIOD_NS, .time_ns = begin, .duration_ns = FLEET_BATCH_NS
	};
	uint32_t head_id, resource, own = 0;
	type.name = fleet_word(p, "cpu");
	type.sample_type = fleet_word(p, "samples");
	type.sample_unit = fleet_word(p, "count");
	type.period_type = fleet_word(p, "cpu");
	type.period_unit = fleet_word(p, "nanoseconds");
	BENCH_CHECK(profile_add_type(p, &type, &head.type) == OK);
	BENCH_CHECK(profile_add_head(p, &head, &head_id) == OK);
	struct profile_label l[] = { { fleet_word(p, "node"),
					     fleet_text(p, "node-", series / 4, "") },
		{ fleet_word(p, "comm"), fleet_text(p, "service", series % 4, "") } };
	BENCH_CHECK(profile_add_labels(p, l, 2, &resource) == OK);
	memset(f->known, 0, sizeof(f->known));
	uint8_t taken[FLEET_BATCH_NS / FLEET_PERIOD_NS + 1] = { 0 };
	for (uint32_t i = 0; i < n; i++) {
		uint32_t locations[FLEET_DEPTH_MAX], stack, s = fleet_draw(f), depth = f->depth[s];
		uint32_t cpu = (uint32_t)(fleet_random(f) % FLEET_CPUS);
		int64_t time = begin + (int64_t)(fleet_random(f) % (FLEET_BATCH_NS / 1000)) * 1000;
		if (f->times == FLEET_TICKS)
			time = fleet_tick(f, series, begin, taken, &cpu);
		for (uint32_t k = 0; k < depth; k++)
			locations[depth - 1 - k] = fleet_known(f, p, f->frames[s][k]);
		BENCH_CHECK(profile_add_stack(p, locations, depth, &stack) == OK);
		if (labels) {
			uint32_t thread = (uint32_t)(fleet_random(f) % 16);
			struct profile_label o[] = {
				{ fleet_word(p, "thread_id"),
					fleet_text(p, "", series * 100 + thread, "") },
				{ fleet_word(p, "cpu"), fleet_text(p, "", cpu, "") },
				{ fleet_word(p, "pid"), fleet_text(p, "", series * 100, "") }
			};
			BENCH_CHECK(profile_add_labels(p, o, 3, &own) == OK);
		}
		struct profile_sample x = { .value = 1,
			.head = head_id,
			.stack = stack,
			.resource = resource,
			.own = own,
			.time_ns = time };
		BENCH_CHECK(profile_add_sample(p, &x) == OK);
	}
}

/* ---- directories ---- */

static uint64_t bench_bytes;

static inline int bench_remove(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	return remove(path);
}

static inline int bench_count(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)path, (void)f;
	bench_bytes += flag == FTW_F ? (uint64_t)st->st_size : 0;
	return 0;
}

static inline void bench_dir(char out[64])
{
	snprintf(out, 64, "/var/tmp/firn-bench-XXXXXX");
	BENCH_CHECK(mkdtemp(out) != NULL);
}

static inline void bench_clean(const char *dir)
{
	(void)nftw(dir, bench_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static inline uint64_t bench_dir_bytes(const char *dir)
{
	bench_bytes = 0;
	(void)nftw(dir, bench_count, 16, FTW_PHYS);
	return bench_bytes;
}

static inline void bench_report(const char *name, double value, const char *unit,
	const char *against, double ratio, const char *note)
{
	printf("{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"against\":\"%s\",\"ratio\":%.6g,"
	       "\"note\":\"%s\"}\n",
		name, value, unit, against, ratio, note);
	fflush(stdout);
}
