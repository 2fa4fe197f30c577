/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of hostile bytes is refused or read, verified, merged and summed without harm. Checksums
 * are all zero in this program, so that changed bytes get past them: the input is a list of edits
 * (offset, byte) of a sound part, or, when its first byte is odd, a file as it is.
 */
#include "fuzz/fuzz.h"

#include "codec/codec.h"
#include "store/merge/merge_cursor.h"
#include "store/read/queries.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY_BYTES ((uint64_t)64 << 20)
#define SAMPLES 200       /* enough of each stack for a total */
#define ROWS_MERGED 10000 /* of a hostile part; there may be many in a few bytes */

/* Instead of codec's. */
uint32_t codec_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	(void)crc, (void)bytes, (void)len;
	return 0;
}

static uint8_t sound[16384];
static size_t sound_len;
static char path[64];
static int file = -1;

static struct memtable *make_samples(void)
{
	struct profile p;
	struct memtable *m = NULL;
	FUZZ_CHECK(profile_init(&p, 1 << 20) == OK);
	FUZZ_CHECK(memtable_new(1 << 20, &m) == OK);
	uint32_t text[4], stack, set;
	static const char *const texts[] = { "cpu", "comm", "pid", "value" };
	for (int i = 0; i < 4; i++)
		FUZZ_CHECK(profile_add_string(&p, str_of(texts[i]), &text[i]) == OK);
	struct profile_type type = { .name = text[0], .delta = true };
	struct profile_head head = { .period = 100 };
	FUZZ_CHECK(profile_add_type(&p, &type, &head.type) == OK);
	uint32_t head_id;
	FUZZ_CHECK(profile_add_head(&p, &head, &head_id) == OK);
	for (uint32_t n = 0; n < SAMPLES; n++) {
		uint32_t i = n % 40;
		struct profile_function f = { .name = text[i % 4] };
		struct profile_mapping map = { .filename = text[3], .start = i % 2 };
		struct profile_line line = { .line = i };
		struct profile_location l = { .address = i * 16 };
		uint32_t frames[3];
		FUZZ_CHECK(profile_add_function(&p, &f, &line.function) == OK);
		FUZZ_CHECK(profile_add_mapping(&p, &map, &l.mapping) == OK);
		for (int k = 0; k < 3; k++) {
			l.address += (uint64_t)k;
			FUZZ_CHECK(profile_add_location(&p, &l, &line, k == 1, &frames[k]) == OK);
		}
		char pid[8]; /* these share their beginnings */
		uint32_t pid_text;
		snprintf(pid, sizeof(pid), "4700%u", i % 10);
		FUZZ_CHECK(profile_add_string(&p, str_of(pid), &pid_text) == OK);
		struct profile_label labels[] = { { text[1], text[i % 4] }, { text[2], pid_text } };
		FUZZ_CHECK(profile_add_labels(&p, labels, 1 + i % 2, &set) == OK);
		FUZZ_CHECK(profile_add_stack(&p, frames, 3, &stack) == OK);
		struct profile_sample s = { .value = 1 + i,
			.time_ns = 50 * n,
			.head = head_id,
			.stack = stack,
			.own = set };
		FUZZ_CHECK(profile_add_sample(&p, &s) == OK);
	}
	struct batch_seen batch = { { 1, 2 }, 3 };
	FUZZ_CHECK(memtable_add(m, STR(""), &p, batch, NULL) == OK);
	profile_deinit(&p);
	return m;
}

static void make_sound_part(void)
{
	char dir[] = "/tmp/firn-fuzz-XXXXXX", name[128];
	FUZZ_CHECK(mkdtemp(dir) != NULL);
	struct memtable *m = make_samples();
	struct memtable_snapshot snap;
	struct canon c;
	struct place *place;
	struct part_writer *w;
	struct part_meta meta = { .order = PART_ORDER_TIME };
	memtable_snapshot(m, &snap);
	FUZZ_CHECK(canon_init(&c, &snap.tabs) == OK);
	FUZZ_CHECK(place_open_directory(dir, &place, NULL) == OK);
	FUZZ_CHECK(part_writer_open(place, 1, &snap.tabs, &c, &w, NULL) == OK);
	FUZZ_CHECK(part_writer_total(w, snap.tabs.node_count, NULL) == OK);
	for (size_t i = 0; i < snap.row_count; i++) {
		struct row r = { m->time_ns.v[i], m->value.v[i], 1, c.series.to[m->series.v[i]],
			c.nodes.to[m->node.v[i]], c.sets.to[m->set.v[i]] };
		FUZZ_CHECK(part_writer_row(w, &r, NULL) == OK);
	}
	FUZZ_CHECK(part_writer_finish(
			   w, &snap.tabs, &c, &meta, m->batches.v, m->batches.len, NULL) == OK);
	part_writer_close(w);
	place_close(place);
	canon_deinit(&c);
	part_meta_deinit(&meta);
	memtable_unref(snap.table);
	memtable_unref(m);
	snprintf(name, sizeof(name), "%s/0000000000000001.part", dir);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, sound, sizeof(sound));
	FUZZ_CHECK(n > 0 && n < (ssize_t)sizeof(sound));
	sound_len = (size_t)n;
	close(fd);
	unlink(name);
	rmdir(dir);
	file = memfd_create("part", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
}

static void put_file(const void *bytes, size_t len)
{
	FUZZ_CHECK(ftruncate(file, 0) == 0);
	FUZZ_CHECK(pwrite(file, bytes, len, 0) == (ssize_t)len);
}

/* The rows, in slices that are not the part's, and in its own. */
static void merge_rows(struct merge_cursor *c, const struct tabs *t, const struct tabs *merged)
{
	uint8_t *delta = calloc(merged->series_count + 1, 1);
	uint8_t *keep_time = calloc(merged->set_count + 1, 1);
	FUZZ_CHECK(delta && keep_time);
	c->tabs = *t;
	c->blocks = part_blocks(c->part, &c->block_count);
	c->delta = delta;
	c->keep_time = keep_time;
	c->order = PART_ORDER_STACK;
	merge_cursor_begin(c);
	enum status s = OK;
	for (int i = 0; i < ROWS_MERGED && s == OK && !c->done; i++)
		s = merge_cursor_next(c, NULL);
	free(delta);
	free(keep_time);
}

static void merge(struct part *p)
{
	struct tabs t;
	struct tables tables;
	struct canon canon;
	struct merge_cursor c = { .part = part_ref(p) };
	part_rows_init(&c.rows);
	if (part_pin(p, PART_LOAD_ALL, MEMORY_BYTES, &t, NULL) == OK) {
		FUZZ_CHECK(tables_init(&tables, 8 << 20, t.names, t.name_count) == OK);
		if (merge_tables_add(&tables, &t, &c, NULL) == OK) {
			struct tabs merged;
			tables_view(&tables, &merged);
			FUZZ_CHECK(canon_init(&canon, &merged) == OK);
			FUZZ_CHECK(canon.nodes.count == merged.node_count);
			canon_deinit(&canon);
			if (part_meta(p)->rows <= ROWS_MERGED)
				merge_rows(&c, &t, &merged);
		}
		tables_deinit(&tables);
		part_unpin(p, PART_LOAD_ALL);
	}
	merge_cursor_deinit(&c);
}

static void query(struct part *p)
{
	static struct store store;
	struct source source = { .part = part_ref(p), .first_ns = 0, .last_ns = 19999 };
	struct store_view v = { .store = &store, .sources = &source, .source_count = 1 };
	struct samples_query q = {
		.from_ns = 0, .to_ns = 20000, .memory_bytes = MEMORY_BYTES, .durations = true
	};
	struct samples_tree tree;
	struct arena a;
	struct str *texts;
	struct samples_type *types;
	size_t n;
	v.tenant = STR("");
	query_memory_init(&v.memory, &store);
	static bool ready;
	if (!ready)
		memory_share_init(&store.queries_memory, MEMORY_BYTES);
	ready = true;
	lock_init(&store.lock, LOCK_STORE);
	arena_init(&a, 1 << 20);
	store.config.memory_bytes = MEMORY_BYTES;
	if (store_sum_stacks(&v, &q, &tree, NULL) == OK) {
		for (size_t i = 1; i < tree.nodes.len; i++)
			FUZZ_CHECK(tree.nodes.v[i].parent < i &&
				   tree.nodes.v[i].location < tree.tables.locations.len);
		FUZZ_CHECK(profile_validate(&tree.tables, NULL) == OK);
		samples_tree_deinit(&tree);
	}
	struct samples_series *series;
	(void)!store_sum_series(&v, &q, NULL, 0, 5000, &a, &series, &n, NULL, NULL, NULL);
	(void)!store_label_names(&v, &q, &a, &texts, &n, NULL);
	(void)!store_label_values(&v, &q, STR("pid"), &a, &texts, &n, NULL);
	(void)!store_label_values(&v, &q, STR("comm"), &a, &texts, &n, NULL);
	(void)!store_types(&v, q.from_ns, q.to_ns, &a, &types, &n, NULL);
	arena_deinit(&a);
	view_release(&v);
	query_memory_deinit(&v.memory);
	if (v.source_count) /* else it was found damaged, and let go */
		part_unref(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[sizeof(sound)];
	if (file < 0)
		make_sound_part();
	if (size && data[0] & 1) {
		put_file(data + 1, size - 1);
	} else {
		memcpy(bytes, sound, sound_len);
		for (size_t i = 1; i + 3 <= size; i += 3) {
			size_t at = (size_t)data[i] | (size_t)data[i + 1] << 8;
			bytes[at % sound_len] ^= data[i + 2];
		}
		put_file(bytes, sound_len);
	}
	struct part *p;
	if (part_open(path, &p, NULL) != OK)
		return 0;
	struct tabs t;
	struct batch_seen *batches = NULL;
	size_t n;
	if (part_pin(p, PART_LOAD_ALL, MEMORY_BYTES, &t, NULL) == OK) {
		part_unpin(p, PART_LOAD_ALL);
		(void)!part_verify(
			p, NULL); /* column_decode(), part_blocks_parse(), part_totals_parse() */
	}
	(void)!part_read_batches(p, &batches, &n, NULL);
	free(batches);
	merge(p);
	query(p);
	part_unref(p);
	return 0;
}
