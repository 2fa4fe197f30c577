/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes a sample on disk, everything in the parts counted, in three forms: as flushed every two
 * minutes (young), merged with times to a microsecond (fine), and merged with times to ten seconds.
 * For comparison, the same samples as gzipped pprof for each batch, and as rows with their whole
 * stacks.
 *
 *     bench_store_bytes          the fleet of bench_store.h
 *     bench_store_bytes DIR...   a recording of `firn up --storage-path DIR` before the first merge
 * (the first ten minutes), read from its parts FIRN_BENCH_HOURS=24 bench_store_bytes DIR... repeats
 * the recording for that many hours, each time with other processes and threads, except for those
 * that lived from its first part to its last. A real day would have more distinct stacks.
 *
 * The stores are in memory if possible, since bytes are measured and not the time of a sync.
 */
#include "bench_store.h"
#include "codec/codec.h"
#include "pprof/pprof.h"
#include "store/merge/merge.h"
#include "store/read/remap.h"
#include "store/state/state.h"

#include <dirent.h>

enum { BATCHES = 250, SAMPLES = 200, PROFILES = 20, FLUSH_BATCHES = 12 };
#define ROWS_BYTES ((size_t)64 << 20)
#define ROWS_BLOCK 65536

/* The two stores that get the same samples, and the formats for comparison. */
struct scales {
	const char *suffix;
	char note[192];
	char dirs[2][64];
	struct store *stores[2]; /* fine, merged */
	uint64_t samples;
	uint64_t young_bytes;
	struct buf rows; /* the current block of whole rows */
	uint64_t row_samples, row_count, row_bytes;
	uint64_t pprof_samples, pprof_bytes;
};

static const int64_t resolutions_ns[2] = { 1000, 10 * NS_PER_SEC };

static void memory_dir(char out[64])
{
	snprintf(out, 64, "/dev/shm/firn-bench-XXXXXX");
	if (access("/dev/shm", W_OK) != 0 || !mkdtemp(out))
		bench_dir(out);
}

/* The store's own thread merges whenever it gets to it. */
static void set_merging(struct store *s, bool merges)
{
	lock_take(&s->merge_lock);
	s->merge_retry_ns = merges ? 0 : INT64_MAX;
	lock_release(&s->merge_lock);
}

static void scales_open(struct scales *c, const char *suffix)
{
	*c = (struct scales){ .suffix = suffix };
	buf_init(&c->rows, ROWS_BYTES * 8);
	for (int i = 0; i < 2; i++) {
		struct err e = { 0 };
		struct store_config config;
		memory_dir(c->dirs[i]);
		store_config_default(&config);
		config.path = c->dirs[i];
		config.memory_bytes = (uint64_t)2 << 30;
		config.resolution_ns = resolutions_ns[i];
		BENCH_OK(store_open(&config, NULL, NULL, &c->stores[i], &e), &e);
		set_merging(c->stores[i], false);
	}
}

static void pack_rows(struct scales *c)
{
	CLEANUP(buf_deinit) struct buf packed;
	buf_init(&packed, ROWS_BYTES * 8);
	BENCH_CHECK(codec_zstd_compress(c->rows.data, c->rows.len, 3, &packed) == OK);
	c->row_bytes += packed.len;
	c->row_samples += c->row_count;
	c->row_count = 0;
	buf_clear(&c->rows);
}

/* Adds rows of time, value, series, and every address of the stack, 8 bytes each, in blocks of
 * zstd-3. */
static void add_whole_rows(struct scales *c, const struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *x = &p->samples.v[i];
		const struct profile_stack *st = &p->stacks.v[x->stack];
		buf_u64(&c->rows, (uint64_t)x->time_ns);
		buf_u64(&c->rows, (uint64_t)x->value);
		buf_u64(&c->rows, (uint64_t)x->resource << 32 | x->own);
		buf_u64(&c->rows, st->count);
		for (uint32_t k = 0; k < st->count; k++)
			buf_u64(&c->rows,
				p->locations.v[p->stack_locations.v[st->first + k]].address);
		if (++c->row_count == ROWS_BLOCK)
			pack_rows(c);
	}
}

static void add_pprof(struct scales *c, const struct profile *p)
{
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf raw, packed;
	buf_init(&raw, 64 << 20);
	buf_init(&packed, 64 << 20);
	BENCH_OK(pprof_encode(p, &raw, &e), &e);
	BENCH_CHECK(codec_gzip(raw.data, raw.len, 6, &packed) == OK);
	c->pprof_bytes += packed.len;
	c->pprof_samples += p->samples.len;
}

static void scales_add(struct scales *c, const struct profile *p, bool yardsticks)
{
	struct err e = { 0 };
	for (int i = 0; i < 2; i++)
		BENCH_OK(store_append(c->stores[i], STR(""), p, (struct hash128){ 0 }, &e), &e);
	c->samples += p->samples.len;
	if (yardsticks) {
		add_whole_rows(c, p);
		add_pprof(c, p);
	}
}

static void scales_flush(struct scales *c)
{
	struct err e = { 0 };
	for (int i = 0; i < 2; i++)
		BENCH_OK(store_flush(c->stores[i], &e), &e);
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

static void report(const struct scales *c, const char *form, double bytes, const char *note)
{
	char name[96], text[384];
	double gz = (double)c->pprof_bytes / (double)MAX(c->pprof_samples, 1ull);
	snprintf(name, sizeof(name), "store.bytes_per_sample_%s%s", form, c->suffix);
	snprintf(text, sizeof(text), "%s: %s", c->note, note);
	bench_report(name, bytes, "bytes", "gzip'd pprof for each batch", bytes / gz, text);
}

static void inspect(const char *dir)
{
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 24);
	if (getenv("FIRN_BENCH_INSPECT")) {
		BENCH_OK(store_inspect(dir, &out, &e), &e);
		fwrite(out.data, 1, out.len, stderr);
	}
}

static double merge_all(struct scales *c, int i, char *note, size_t len)
{
	struct store *s = c->stores[i];
	struct err e = { 0 };
	uint64_t rows;
	bool merged;
	set_merging(s, true);
	do
		BENCH_OK(store_merge_step(
				 s, clock_realtime_ns() + 48 * 3600 * NS_PER_SEC, &merged, &e),
			&e);
	while (merged);
	double bytes = (double)part_bytes(s, &rows) / (double)c->samples;
	snprintf(note, len, "%llu rows in %zu part(s), times to %s", (unsigned long long)rows,
		s->parts.len, i ? "10 s" : "1 us");
	inspect(c->dirs[i]);
	return bytes;
}

static void scales_close(struct scales *c)
{
	char note[128];
	uint64_t rows;
	struct store *fine = c->stores[0];
	double young = (double)part_bytes(fine, &rows) / (double)c->samples, merged[2];
	snprintf(note, sizeof(note), "%zu part(s) as flushed, times as they came", fine->parts.len);
	report(c, "young", young, note);
	for (int i = 0; i < 2; i++) {
		merged[i] = merge_all(c, i, note, sizeof(note));
		report(c, i ? "merged" : "fine", merged[i], note);
	}
	if (c->row_count)
		pack_rows(c);
	double gz = (double)c->pprof_bytes / (double)MAX(c->pprof_samples, 1ull);
	double whole = (double)c->row_bytes / (double)MAX(c->row_samples, 1ull);
	report(c, "pprof", gz, "gzip -6, one file for each batch");
	report(c, "whole_rows", whole, "each row with its addresses, zstd-3 of 65536 rows");
	fprintf(stderr,
		"%s\n  merged, times to 10 s   %9.3f bytes a sample\n"
		"  merged, times to 1 us   %9.3f\n  as flushed              %9.3f\n"
		"  gzip'd pprof            %9.3f\n  whole stacks in rows    %9.3f\n",
		c->note, merged[1], merged[0], young, gz, whole);
	for (int i = 0; i < 2; i++) {
		store_close(c->stores[i]);
		bench_clean(c->dirs[i]);
	}
	buf_deinit(&c->rows);
}

static void run_fleet(
	struct fleet *f, enum fleet_times times, bool labels, uint32_t batches, const char *suffix)
{
	struct scales c;
	f->times = times;
	scales_open(&c, suffix);
	for (uint32_t b = 0; b < batches; b++) {
		for (uint32_t i = 0; i < FLEET_SERIES; i++) {
			struct profile p;
			BENCH_CHECK(profile_init(&p, 64 << 20) == OK);
			fleet_batch(f, &p, i, FLEET_T0 + b * FLEET_BATCH_NS, SAMPLES, labels);
			scales_add(&c, &p, b == 0 || i < PROFILES / 4);
			profile_deinit(&p);
		}
		if (b % FLUSH_BATCHES == FLUSH_BATCHES - 1)
			scales_flush(&c);
	}
	scales_flush(&c);
	snprintf(c.note, sizeof(c.note), "%llu samples of the fleet%s, %s",
		(unsigned long long)c.samples,
		labels ? " with pid, thread_id and cpu beside each" : "",
		times == FLEET_TICKS ? "from timers of 19 Hz a CPU"
				     : "at random microseconds, which no timer makes");
	scales_close(&c);
}

/* ---- a recording ---- */

/* Numbers of processes and threads in the first part, and those that are also in the last. */
struct lasting {
	VEC(uint64_t) first;
	VEC(uint64_t) both;
};

static bool lasts(const struct lasting *l, uint64_t number)
{
	for (size_t i = 0; i < l->both.len; i++)
		if (l->both.v[i] == number)
			return true;
	return false;
}

static void find_lasting(struct lasting *l, struct part *first, struct part *last)
{
	struct part *parts[] = { first, last };
	for (int k = 0; k < 2; k++) {
		struct tabs t;
		struct err e = { 0 };
		uint64_t number;
		BENCH_OK(part_pin(parts[k], PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
		for (uint32_t i = 0; i < t.sample_string_count; i++) {
			if (!str_parse_u64(t.sample_strings[i], 10, &number))
				continue;
			if (k == 0)
				BENCH_CHECK(VEC_PUSH(&l->first, number));
			for (size_t j = 0; k == 1 && j < l->first.len; j++)
				if (l->first.v[j] == number)
					BENCH_CHECK(VEC_PUSH(&l->both, number));
		}
		part_unpin(parts[k], PART_LOAD_ALL);
	}
}

struct replay {
	const struct tabs *t;
	const struct lasting *lasting;
	struct profile p;
	struct remap remap;
	uint32_t head, resource;
	uint32_t series;
	int64_t window;
	bool open;
	uint32_t turn; /* number of the repetition */
	int64_t later_ns;
};

/* In later repetitions a process or thread gets another number with as many digits. */
static uint32_t replay_value(struct replay *r, struct str name, struct str value)
{
	uint64_t number;
	uint32_t id;
	char text[32];
	bool moves = str_eq(name, STR("pid")) || str_eq(name, STR("thread_id"));
	if (r->turn && moves && str_parse_u64(value, 10, &number) && !lasts(r->lasting, number)) {
		snprintf(text, sizeof(text), "%llu",
			(unsigned long long)((number + r->turn * 7919ull) % 4000000));
		value = str_of(text);
	}
	BENCH_CHECK(profile_add_string(&r->p, value, &id) == OK);
	return id;
}

static uint32_t replay_labels(
	struct replay *r, const struct profile_label *l, uint32_t n, const struct str *texts)
{
	struct profile_label added[2 * PROFILE_LABELS_MAX];
	uint32_t id;
	for (uint32_t i = 0; i < n; i++) {
		BENCH_CHECK(profile_add_string(&r->p, texts[l[i].name], &added[i].name) == OK);
		BENCH_CHECK(profile_add_string(&r->p, texts[l[i].value], &added[i].value) == OK);
	}
	BENCH_CHECK(profile_add_labels(&r->p, added, n, &id) == OK);
	return id;
}

static void replay_begin(struct replay *r, uint32_t series, int64_t window)
{
	static struct budget budget = { .limit = (uint64_t)1 << 40 };
	const struct tab_series *x = &r->t->series[series];
	struct profile_type type = { .delta = x->delta != 0 };
	struct profile_head head = { .period = x->period,
		.time_ns = window * FLEET_BATCH_NS,
		.duration_ns = FLEET_BATCH_NS };
	uint32_t *parts[] = { &type.name, &type.sample_type, &type.sample_unit, &type.period_type,
		&type.period_unit };
	struct err e = { 0 };
	BENCH_CHECK(profile_init(&r->p, 64 << 20) == OK);
	for (int i = 0; i < TABLES_TYPE_PARTS; i++)
		BENCH_CHECK(
			profile_add_string(&r->p, r->t->label_strings[x->type[i]], parts[i]) == OK);
	BENCH_CHECK(profile_add_type(&r->p, &type, &head.type) == OK);
	BENCH_CHECK(profile_add_head(&r->p, &head, &r->head) == OK);
	r->resource = replay_labels(
		r, &r->t->labels[x->label_first], x->label_count, r->t->label_strings);
	BENCH_OK(remap_init(&r->remap, r->t, &r->p, &budget, &e), &e);
	r->series = series;
	r->window = window;
	r->open = true;
}

static void replay_end(struct replay *r, struct scales *c)
{
	if (!r->open)
		return;
	scales_add(c, &r->p, r->turn == 0);
	remap_deinit(&r->remap);
	profile_deinit(&r->p);
	r->open = false;
}

static uint32_t replay_set(struct replay *r, uint32_t set)
{
	const struct tabs *t = r->t;
	const uint32_t *values = t->sets + (size_t)set * (1 + t->name_count) + 1;
	struct profile_label l[TABLES_NAMES_MAX];
	uint32_t n = 0, id;
	for (uint32_t k = 0; k < t->name_count; k++) {
		if (!values[k])
			continue;
		BENCH_CHECK(profile_add_string(&r->p, t->names[k], &l[n].name) == OK);
		l[n++].value = replay_value(r, t->names[k], t->sample_strings[values[k]]);
	}
	BENCH_CHECK(profile_add_labels(&r->p, l, n, &id) == OK);
	return id;
}

static void replay_row(struct replay *r, const struct part_rows *rows, size_t i)
{
	uint32_t locations[PROFILE_STACK_MAX], depth = 0;
	struct profile_sample x = { .head = r->head,
		.resource = r->resource,
		.own = replay_set(r, rows->set[i]),
		.time_ns = rows->time_ns[i] + r->later_ns,
		.value = rows->value[i] / rows->n[i] };
	for (uint32_t n = rows->node[i]; n; n = r->t->parent[n])
		BENCH_CHECK(remap_location(
				    &r->remap, r->t->node_location[n], &locations[depth++]) == OK);
	BENCH_CHECK(profile_add_stack(&r->p, locations, depth, &x.stack) == OK);
	for (int64_t k = 0; k < rows->n[i]; k++)
		BENCH_CHECK(profile_add_sample(&r->p, &x) == OK);
}

static void replay_part(struct part *part, const struct lasting *lasting, struct scales *c,
	uint32_t turn, int64_t later_ns)
{
	struct tabs t;
	struct err e = { 0 };
	struct part_rows rows;
	struct replay r = { .t = &t, .lasting = lasting, .turn = turn, .later_ns = later_ns };
	size_t n;
	BENCH_OK(part_pin(part, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	const struct part_block *blocks = part_blocks(part, &n);
	part_rows_init(&rows);
	for (size_t b = 0; b < n; b++) {
		BENCH_OK(part_read_block(part, &t, &blocks[b], ~0u, &rows, &e), &e);
		for (size_t i = 0; i < rows.count; i++) {
			int64_t window = (rows.time_ns[i] + later_ns) / FLEET_BATCH_NS;
			if (!r.open || r.series != rows.series[i] || r.window != window) {
				replay_end(&r, c);
				replay_begin(&r, rows.series[i], window);
			}
			replay_row(&r, &rows, i);
		}
	}
	replay_end(&r, c);
	part_rows_deinit(&rows);
	part_unpin(part, PART_LOAD_ALL);
}

static int part_files_only(const struct dirent *d)
{
	size_t n = strlen(d->d_name);
	return n > 5 && strcmp(d->d_name + n - 5, ".part") == 0;
}

enum { PARTS_MAX = 64 };

static size_t open_parts(const char *dir, struct part *parts[PARTS_MAX])
{
	struct dirent **names;
	char path[STORE_PATH_MAX];
	snprintf(path, sizeof(path), "%s/parts", dir);
	int n = scandir(path, &names, part_files_only, alphasort);
	BENCH_CHECK(n > 0 && n <= PARTS_MAX);
	for (int i = 0; i < n; i++) {
		struct err e = { 0 };
		snprintf(path, sizeof(path), "%s/parts/%s", dir, names[i]->d_name);
		free(names[i]);
		BENCH_OK(part_open(path, &parts[i], &e), &e);
		if (part_meta(parts[i])->resolution_ns > resolutions_ns[0]) {
			fprintf(stderr, "%s was merged: its times are gone\n", path);
			exit(1);
		}
	}
	free(names);
	return (size_t)n;
}

static void run_recording(const char *dir, int64_t hours)
{
	struct scales c;
	struct part *parts[PARTS_MAX];
	int64_t first = INT64_MAX, last = INT64_MIN;
	size_t n = open_parts(dir, parts);
	for (size_t i = 0; i < n; i++) {
		first = MIN(first, part_meta(parts[i])->first_ns);
		last = MAX(last, part_meta(parts[i])->last_ns);
	}
	int64_t span = last - first + NS_PER_SEC;
	int64_t turns = MAX(hours * 3600 * NS_PER_SEC / span, (int64_t)1);
	struct lasting lasting = { 0 };
	find_lasting(&lasting, parts[0], parts[n - 1]);
	scales_open(&c, hours ? "_recording_long" : "_recording");
	for (int64_t turn = 0; turn < turns; turn++)
		for (size_t i = 0; i < n; i++) {
			replay_part(parts[i], &lasting, &c, (uint32_t)turn, turn * span);
			scales_flush(&c);
		}
	VEC_FREE(&lasting.first);
	VEC_FREE(&lasting.both);
	for (size_t i = 0; i < n; i++)
		part_unref(parts[i]);
	snprintf(c.note, sizeof(c.note), "%llu samples of a host in %.0f s%s",
		(unsigned long long)c.samples, (double)(turns * span) * 1e-9,
		turns > 1 ? ", its recording again and again by other processes" : "");
	scales_close(&c);
}

int main(int argc, char **argv)
{
	static struct fleet f;
	const char *hours = getenv("FIRN_BENCH_HOURS");
	for (int i = 1; i < argc; i++)
		run_recording(argv[i], hours ? atoi(hours) : 0);
	if (argc > 1)
		return 0;
	fleet_init(&f);
	const char *text = getenv("FIRN_BENCH_BATCHES"); /* fewer batches, for a quick run */
	uint32_t batches = text ? (uint32_t)atoi(text) : BATCHES, few = MIN(batches, 60u);
	run_fleet(&f, FLEET_TICKS, false, batches, "");
	run_fleet(&f, FLEET_TICKS, true, few, "_labels");
	run_fleet(&f, FLEET_RANDOM, false, few, "_random");
	fleet_deinit(&f);
	return 0;
}
