/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes a sample on disk, everything in the parts counted: as flushed, times to the microsecond;
 * and merged, times to ten seconds. Beside it gzip'd pprof per batch, of the same samples.
 */
#include "bench_store.h"
#include "codec/codec.h"
#include "pprof/pprof.h"
#include "store/state.h"

enum { BATCHES = 50, SAMPLES = 200 };

static double pprof_bytes(struct fleet *f, bool labels)
{
	uint64_t bytes = 0;
	enum { PROFILES = 20 };
	for (uint32_t i = 0; i < PROFILES; i++) {
		struct profile p;
		struct err e = { 0 };
		CLEANUP(buf_deinit) struct buf raw, packed;
		buf_init(&raw, 64 << 20);
		buf_init(&packed, 64 << 20);
		BENCH_CHECK(profile_init(&p, 64 << 20) == OK);
		fleet_batch(f, &p, i, FLEET_T0, SAMPLES, labels);
		BENCH_OK(pprof_encode(&p, &raw, &e), &e);
		BENCH_CHECK(codec_gzip(raw.data, raw.len, 6, &packed) == OK);
		bytes += packed.len;
		profile_deinit(&p);
	}
	return (double)bytes / (PROFILES * SAMPLES);
}

static void fill(struct store *s, struct fleet *f, bool labels)
{
	for (uint32_t b = 0; b < BATCHES; b++)
		for (uint32_t i = 0; i < FLEET_SERIES; i++) {
			struct profile p;
			struct err e = { 0 };
			BENCH_CHECK(profile_init(&p, 64 << 20) == OK);
			fleet_batch(f, &p, i, FLEET_T0 + b * FLEET_BATCH_NS, SAMPLES, labels);
			BENCH_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
			profile_deinit(&p);
		}
}

static uint64_t part_bytes(struct store *s, uint64_t *rows)
{
	uint64_t bytes = 0;
	*rows = 0;
	for (size_t i = 0; i < s->parts.len; i++) {
		bytes += part_file_bytes(s->parts.v[i]);
		*rows += part_meta(s->parts.v[i])->rows;
	}
	return bytes;
}

static void run(struct fleet *f, bool labels)
{
	char dir[64], note[256];
	struct store *s;
	struct err e = { 0 };
	struct store_config c;
	uint64_t rows;
	bool merged;
	const double samples = (double)BATCHES * SAMPLES * FLEET_SERIES;
	bench_dir(dir);
	store_config_default(&c);
	c.path = dir;
	c.memory_bytes = (uint64_t)2 << 30;
	BENCH_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	pthread_mutex_lock(&s->merge_lock);
	fill(s, f, labels);
	BENCH_OK(store_flush(s, &e), &e);
	double fine = (double)part_bytes(s, &rows) / samples, gz = pprof_bytes(f, labels);
	const char *with = labels ? " with pid, thread_id and cpu beside each" : "";
	snprintf(note, sizeof(note), "%.0f samples%s, %zu part(s), microseconds kept", samples,
		with, s->parts.len);
	bench_report(labels ? "store.bytes_per_sample_fine_labels" : "store.bytes_per_sample_fine",
		fine, "bytes", "gzip'd pprof per batch", fine / gz, note);
	pthread_mutex_unlock(&s->merge_lock);
	do
		BENCH_OK(store_merge_step(s, clock_realtime_ns(), &merged, &e), &e);
	while (merged);
	double small = (double)part_bytes(s, &rows) / samples;
	snprintf(note, sizeof(note), "%.0f samples%s in %llu rows, %zu part(s), times to 10 s",
		samples, with, (unsigned long long)rows, s->parts.len);
	bench_report(
		labels ? "store.bytes_per_sample_merged_labels" : "store.bytes_per_sample_merged",
		small, "bytes", "gzip'd pprof per batch", small / gz, note);
	if (getenv("FIRN_BENCH_INSPECT")) {
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1 << 20);
		BENCH_OK(store_inspect(dir, &out, &e), &e);
		fwrite(out.data, 1, out.len, stderr);
	}
	store_close(s);
	bench_clean(dir);
}

int main(void)
{
	static struct fleet f;
	fleet_init(&f);
	run(&f, false);
	run(&f, true);
	fleet_deinit(&f);
	return 0;
}
