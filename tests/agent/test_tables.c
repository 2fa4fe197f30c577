/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for tables within a budget, on real eBPF maps: what the program would find for a key is read
 * back through the maps. That it is never wrong while it changes is in test_sampler.c.
 */
#include "agent/broker/slab_grants.h"
#include "agent/sample/probe.h"
#include "agent/tables/slabs.h"
#include "agent/tables/tables.h"
#include "test.h"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BLOB_BYTES 60000

struct fixture {
	struct profiler_settings settings;
	struct tables_maps maps;
	struct tables *tables;
	uint64_t *pages;
	struct file_slot *slots;
	int64_t now_ns;
};

static int make_map(
	enum bpf_map_type type, uint32_t value_bytes, uint32_t entries, uint32_t flags, int inner)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = flags);
	if (inner >= 0)
		options.inner_map_fd = (uint32_t)inner;
	uint32_t key_bytes = type == BPF_MAP_TYPE_HASH ? (uint32_t)sizeof(struct file_key) : 4u;
	int fd = bpf_map_create(type, "test", key_bytes, value_bytes, entries, &options);
	assert_true(fd >= 0);
	return fd;
}

static void begin_with(struct fixture *f, uint32_t slabs_idle, uint32_t slabs)
{
	*f = (struct fixture){ .now_ns = 1000 * NS_PER_SEC };
	int inner = make_map(BPF_MAP_TYPE_ARRAY, SLAB_CHUNK_BYTES, SLAB_CHUNKS, BPF_F_MMAPABLE, -1);
	f->maps = (struct tables_maps){
		.slabs = make_map(BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, slabs, 0, inner),
		.pages = make_map(BPF_MAP_TYPE_ARRAY, 8, TABLE_PAGES_MAX, BPF_F_MMAPABLE, -1),
		.file_slots = make_map(BPF_MAP_TYPE_ARRAY, sizeof(struct file_slot), FILES_MAX,
			BPF_F_MMAPABLE, -1),
		.files = make_map(BPF_MAP_TYPE_HASH, 4, FILES_MAX, 0, -1),
		.runtime_records = make_map(BPF_MAP_TYPE_ARRAY, sizeof(struct runtime_record),
			RUNTIME_RECORDS_MAX, 0, -1),
		.settings = &f->settings,
	};
	(void)close(inner);
	struct err e = { 0 };
	CHECK_OK(tables_new(&f->maps, slabs_idle, slabs, &f->tables, &e), &e);
	f->pages = mmap(NULL, TABLE_PAGES_MAX * 8, PROT_READ, MAP_SHARED, f->maps.pages, 0);
	f->slots = mmap(NULL, FILES_MAX * sizeof(struct file_slot), PROT_READ | PROT_WRITE,
		MAP_SHARED, f->maps.file_slots, 0);
	assert_true(f->pages != MAP_FAILED && f->slots != MAP_FAILED);
}

static void begin(struct fixture *f, uint32_t slabs)
{
	begin_with(f, slabs, slabs);
}

static void end(struct fixture *f)
{
	tables_free(f->tables);
	(void)munmap(f->pages, TABLE_PAGES_MAX * 8);
	(void)munmap(f->slots, FILES_MAX * sizeof(struct file_slot));
	(void)close(f->maps.slabs);
	(void)close(f->maps.pages);
	(void)close(f->maps.file_slots);
	(void)close(f->maps.files);
	(void)close(f->maps.runtime_records);
}

static bool may_use_maps(void)
{
	struct err e = { 0 };
	if (probe_sampling(&e) == OK)
		return true;
	print_message("%s\n", e.text);
	return false;
}

#define NEED_MAPS()                           \
	do {                                  \
		if (!may_use_maps())          \
			SKIP("no eBPF here"); \
	} while (0)

static struct file_key key_of(uint64_t inode)
{
	return (struct file_key){ .inode = inode, .dev = 5 };
}

/* A table of `count` pages of `bytes` each, filled with `fill`. */
static enum status publish(
	struct fixture *f, uint64_t inode, uint32_t count, uint32_t bytes, uint8_t fill)
{
	uint8_t *blob = malloc(bytes);
	struct unwind_table_page *pages = calloc(count, sizeof(*pages));
	assert_true(blob && pages);
	memset(blob, fill, bytes);
	for (uint32_t i = 0; i < count; i++)
		pages[i] = (struct unwind_table_page){ blob, bytes, 3, 7 };
	struct unwind_table t = { .first_page = 2,
		.page_count = count,
		.pages = pages,
		.blob_bytes = (uint64_t)count * bytes };
	struct file_key key = key_of(inode);
	struct err e = { 0 };
	enum status s = tables_publish(f->tables, &key, (uint32_t)inode + 2, &t, &e);
	free(blob);
	free(pages);
	return s;
}

/* The slot the program finds; NULL: none. */
static struct file_slot *look_up(struct fixture *f, uint64_t inode)
{
	struct file_key key = key_of(inode);
	uint32_t i;
	if (bpf_map_lookup_elem(f->maps.files, &key, &i) != 0)
		return NULL;
	CHECK(f->slots[i].key.inode == inode && f->slots[i].is_live);
	return &f->slots[i];
}

/* Every byte of the file's blobs, as the program would reach them. */
static void check_blobs(
	struct fixture *f, uint64_t inode, uint32_t count, uint32_t bytes, uint8_t fill)
{
	static uint8_t chunk[SLAB_CHUNK_BYTES];
	struct file_slot *slot = look_up(f, inode);
	assert_non_null(slot);
	CHECK(slot->value.file_id == inode + 2);
	CHECK(slot->value.page_count == count && slot->value.first_page == 2);
	for (uint32_t i = 0; i < count; i++) {
		struct unwind_page page;
		memcpy(&page, &f->pages[slot->value.page_base + i], sizeof(page));
		CHECK(page.rule_count == 3 && page.row_count == 7);
		uint32_t slab = page.chunk >> SLAB_CHUNK_SHIFT;
		uint32_t in_slab = page.chunk % SLAB_CHUNKS;
		uint32_t id;
		CHECK(bpf_map_lookup_elem(f->maps.slabs, &slab, &id) == 0);
		int fd = bpf_map_get_fd_by_id(id);
		CHECK(fd >= 0 && bpf_map_lookup_elem(fd, &in_slab, chunk) == 0);
		(void)close(fd);
		CHECK(page.off8 * 8u + bytes <= SLAB_CHUNK_BYTES);
		for (uint32_t k = 0; k < bytes; k++)
			CHECK(chunk[page.off8 * 8u + k] == fill);
	}
}

static void publishes_replaces_and_retracts(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct tables_stats stats;
	begin(&f, 1);
	CHECK(publish(&f, 1, 3, 1000, 0x11) == OK);
	CHECK(publish(&f, 2, 1, SLAB_CHUNK_BYTES, 0x22) == OK);
	check_blobs(&f, 1, 3, 1000, 0x11);
	check_blobs(&f, 2, 1, SLAB_CHUNK_BYTES, 0x22);
	/* What the program has found before must not serve it any more. */
	struct file_slot *before = look_up(&f, 1);
	CHECK(publish(&f, 1, 2, 501, 0x33) == OK);
	CHECK(!before->is_live);
	check_blobs(&f, 1, 2, 501, 0x33);
	before = look_up(&f, 1);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.files == 2 && stats.slabs == 1);
	CHECK(stats.bytes == 2 * 504 + SLAB_CHUNK_BYTES);
	struct file_key key = key_of(1);
	tables_retract(f.tables, &key);
	tables_retract(f.tables, &key);
	CHECK(!look_up(&f, 1));
	CHECK(!before->is_live);
	struct err e = { 0 };
	CHECK_OK(tables_publish(f.tables, &key, 9, NULL, &e), &e);
	CHECK(look_up(&f, 1)->value.page_count == 0 && look_up(&f, 1)->value.file_id == 9);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.files == 2 && stats.bytes == SLAB_CHUNK_BYTES);
	end(&f);
}

static void keeps_the_vdso_apart(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct err e = { 0 };
	uint8_t blob[64] = { 0 };
	struct unwind_table_page page = { blob, sizeof(blob), 1, 1 };
	struct unwind_table t = { 0, 1, &page, sizeof(blob), 0, 0, 0, 0, NULL };
	begin(&f, 1);
	CHECK_OK(tables_publish(f.tables, NULL, FRAME_FILE_VDSO, &t, &e), &e);
	uint32_t first = f.settings.vdso_slot;
	CHECK(first != 0 && f.slots[first].value.page_count == 1);
	CHECK_OK(tables_publish(f.tables, NULL, FRAME_FILE_VDSO, &t, &e), &e);
	CHECK(f.settings.vdso_slot != first && f.settings.vdso_slot != 0);
	end(&f);
}

static void refuses_what_makes_no_sense(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct err e = { 0 };
	struct file_key key = key_of(1);
	struct file_key none = { 0 };
	struct unwind_table_page page = { NULL, UNWIND_BLOB_BYTES_MAX + 1, 1, 1 };
	struct unwind_table t = { 0, 1, &page, 1, 0, 0, 0, 0, NULL };
	begin(&f, 1);
	CHECK(tables_publish(f.tables, &key, FRAME_FILE_ADDRESS, NULL, &e) == E_INVALID);
	CHECK(tables_publish(f.tables, &key, FRAME_FILE_MAX + 1, NULL, &e) == E_INVALID);
	CHECK(tables_publish(f.tables, &none, 5, NULL, &e) == E_INVALID);
	CHECK(tables_publish(f.tables, &key, 5, &t, &e) == E_INVALID);
	t.page_count = 0;
	CHECK(tables_publish(f.tables, &key, 5, &t, &e) == E_INVALID);
	CHECK(!look_up(&f, 1));
	end(&f);
}

static void check_no_room(struct fixture *f, uint64_t inode)
{
	struct unwind_rule rule;
	struct file_key key = key_of(inode);
	struct file_slot *slot = look_up(f, inode);
	assert_non_null(slot);
	CHECK(slot->value.page_count == 0 && slot->value.page_base == FILE_NO_ROOM);
	CHECK(slot->value.file_id == inode + 2);
	CHECK(tables_find_rule(f->tables, &key, 0, &rule) == TABLES_NO_ROOM);
}

/* So many samples in it, if the program knows it. */
static void hit(struct fixture *f, uint64_t inode, uint32_t samples)
{
	struct file_slot *slot = look_up(f, inode);
	if (slot)
		slot->hits += samples;
}

static void hit_all(struct fixture *f, uint64_t first, uint64_t last, uint32_t samples)
{
	for (uint64_t inode = first; inode <= last; inode++)
		hit(f, inode, samples);
}

/* With so many samples in each. */
static void pass_epochs(struct fixture *f, uint32_t epochs, uint64_t inode, uint32_t hits)
{
	for (uint32_t i = 0; i < epochs; i++) {
		hit(f, inode, hits);
		f->settings.epoch++;
		f->now_ns += 5 * NS_PER_SEC;
		tables_next_epoch(f->tables, f->now_ns);
	}
}

/* 32 chunks to a slab, one blob of 60,000 bytes each. */
static void stays_within_the_budget_and_evicts_the_coldest(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct tables_stats stats;
	begin(&f, 4);
	for (uint64_t inode = 1; inode <= 32; inode++)
		CHECK(publish(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode) == OK);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.slabs == 4 && stats.bytes == 128 * PAGE_BLOB_BYTES);
	/* All are in use: the new one is known, but without its table. */
	CHECK(publish(&f, 40, 1, PAGE_BLOB_BYTES, 40) == E_LIMIT);
	check_no_room(&f, 40);
	/* Time goes by; all but 5 and 6 are used again. */
	f.settings.epoch = 3;
	for (uint64_t inode = 1; inode <= 32; inode++)
		look_up(&f, inode)->hits += inode != 5 && inode != 6;
	tables_next_epoch(f.tables, f.now_ns);
	f.settings.epoch = TABLES_EVICT_AGE_EPOCHS;
	CHECK(publish(&f, 41, 4, PAGE_BLOB_BYTES, 41) == OK);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.evicted == 1);
	CHECK(!look_up(&f, 5) != !look_up(&f, 6));
	check_blobs(&f, 41, 4, PAGE_BLOB_BYTES, 41);
	CHECK(publish(&f, 42, 4, PAGE_BLOB_BYTES, 42) == OK);
	CHECK(!look_up(&f, 5) && !look_up(&f, 6));
	CHECK(publish(&f, 43, 4, PAGE_BLOB_BYTES, 43) == E_LIMIT);
	for (uint64_t inode = 7; inode <= 32; inode++)
		check_blobs(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode);
	/* Larger than all there is: nothing else has to go for it. */
	f.settings.epoch = 1000;
	CHECK(publish(&f, 44, 129, SLAB_CHUNK_BYTES, 44) == E_LIMIT);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.evicted == 2 && stats.slabs == 4);
	end(&f);
}

/* A daemon that wakes in each epoch does not keep a compiler out. */
static void gives_room_to_the_hottest(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct tables_stats stats;
	begin(&f, 2);
	for (uint64_t inode = 1; inode <= 16; inode++)
		CHECK(publish(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode) == OK);
	CHECK(publish(&f, 40, 8, PAGE_BLOB_BYTES, 40) == E_LIMIT);
	CHECK(publish(&f, 41, 4, PAGE_BLOB_BYTES, 41) == E_LIMIT);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.without_room == 2 && stats.files == 18);
	for (uint32_t epoch = 0; epoch < 3; epoch++) {
		hit_all(&f, 1, 3, 1);
		hit_all(&f, 4, 16, 30);
		pass_epochs(&f, 1, 41, 30);
	}
	/* 41 is as hot as most: one of the cold ones makes room for it. 40 is not met at all. */
	CHECK(!look_up(&f, 41));
	CHECK(!look_up(&f, 1) + !look_up(&f, 2) + !look_up(&f, 3) <= 2);
	check_no_room(&f, 40);
	CHECK(publish(&f, 41, 4, PAGE_BLOB_BYTES, 41) == OK);
	check_blobs(&f, 41, 4, PAGE_BLOB_BYTES, 41);
	/* What is half as hot together, and twice as large, goes for 40. */
	for (uint32_t epoch = 0; epoch < 3 && look_up(&f, 40); epoch++) {
		hit_all(&f, 4, 16, 30);
		hit(&f, 41, 30);
		pass_epochs(&f, 1, 40, 200);
	}
	CHECK(!look_up(&f, 40));
	CHECK(publish(&f, 40, 8, PAGE_BLOB_BYTES, 40) == OK);
	check_blobs(&f, 40, 8, PAGE_BLOB_BYTES, 40);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.without_room == 0 && stats.slabs == 2);
	CHECK(look_up(&f, 41) != NULL);
	/* As hot as those that have room, and no hotter: nothing changes. */
	CHECK(publish(&f, 42, 4, PAGE_BLOB_BYTES, 42) == E_LIMIT);
	uint64_t evicted = stats.evicted;
	for (uint32_t epoch = 0; epoch < 8; epoch++) {
		hit_all(&f, 1, 16, 30);
		hit_all(&f, 40, 41, 30);
		pass_epochs(&f, 1, 42, 30);
	}
	tables_read_stats(f.tables, &stats);
	CHECK(stats.evicted == evicted && stats.without_room == 1);
	end(&f);
}

/* Slabs that the kernel has. */
static uint32_t count_slabs(struct fixture *f, uint32_t max)
{
	uint32_t count = 0;
	for (uint32_t i = 0, id; i < max; i++)
		count += bpf_map_lookup_elem(f->maps.slabs, &i, &id) == 0;
	return count;
}

/* What is used stays, wherever it lies, and is right at each moment. */
static void gives_memory_back_when_idle(void **state)
{
	(void)state;
	NEED_MAPS();
	enum { FILES = 64, SLABS = 8, IDLE = 2 };
	struct fixture f;
	struct tables_stats stats;
	begin_with(&f, IDLE, SLABS);
	for (uint64_t inode = 1; inode <= FILES; inode++)
		CHECK(publish(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode) == OK);
	CHECK(count_slabs(&f, SLABS) == SLABS);
	/* Every eighth is used, so that each slab holds some of them. */
	for (uint32_t epoch = 0; epoch < TABLES_IDLE_EPOCHS - 1; epoch++) {
		for (uint64_t inode = 8; inode <= FILES; inode += 8)
			look_up(&f, inode)->hits++;
		pass_epochs(&f, 1, 0, 0);
	}
	tables_read_stats(f.tables, &stats);
	CHECK(stats.files == FILES && stats.evicted == 0);
	uint32_t before = SLABS;
	int64_t turn_ns = slab_grants_turn_ns(SLABS);
	for (uint32_t epoch = 0; epoch < 200 && count_slabs(&f, SLABS) > IDLE; epoch++) {
		int64_t last_ns = f.now_ns;
		for (uint64_t inode = 8; inode <= FILES; inode += 8)
			look_up(&f, inode)->hits++;
		pass_epochs(&f, 1, 0, 0);
		uint32_t now = count_slabs(&f, SLABS);
		CHECK(now == before || now == before - 1);
		CHECK(now == before || f.now_ns >= last_ns);
		before = now;
		for (uint64_t inode = 8; inode <= FILES; inode += 8)
			check_blobs(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode);
	}
	tables_read_stats(f.tables, &stats);
	CHECK(count_slabs(&f, SLABS) == IDLE && stats.slabs == IDLE);
	CHECK(f.now_ns >= 1000 * NS_PER_SEC + (SLABS - IDLE - 1) * turn_ns);
	/* No more went than had to. */
	CHECK(stats.bytes > SLAB_BYTES && stats.files > FILES / 8);
	pass_epochs(&f, 2 * TABLES_IDLE_EPOCHS, 0, 0);
	tables_read_stats(f.tables, &stats);
	CHECK(stats.slabs == IDLE && stats.bytes > SLAB_BYTES);
	/* And it comes again when it is needed. */
	for (uint64_t inode = 101; inode <= 100 + FILES - 16; inode++)
		CHECK(publish(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode) == OK);
	CHECK(count_slabs(&f, SLABS) >= SLABS - 1);
	for (uint64_t inode = 101; inode <= 100 + FILES - 16; inode++)
		check_blobs(&f, inode, 4, PAGE_BLOB_BYTES, (uint8_t)inode);
	end(&f);
}

static void makes_room_for_more_files_than_there_are_slots(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	struct err e = { 0 };
	struct tables_stats stats;
	begin(&f, 1);
	for (uint64_t inode = 1; inode < FILES_MAX; inode++) {
		struct file_key key = key_of(inode);
		CHECK_OK(tables_publish(f.tables, &key, 5, NULL, &e), &e);
	}
	struct file_key more = key_of(100000);
	CHECK(tables_publish(f.tables, &more, 6, NULL, &e) == E_UNAVAILABLE);
	CHECK(!look_up(&f, 100000));
	f.settings.epoch = TABLES_EVICT_AGE_EPOCHS;
	CHECK_OK(tables_publish(f.tables, &more, 6, NULL, &e), &e);
	CHECK(look_up(&f, 100000)->value.file_id == 6);
	tables_read_stats(f.tables, &stats);
	/* Also one without a table: it is to be published again when it is met. */
	CHECK(stats.files == FILES_MAX - 1 && stats.evicted == 1);
	end(&f);
}

/* Room is never lost, and no two blobs ever lie over each other. */
static void survives_a_long_life(void **state)
{
	(void)state;
	NEED_MAPS();
	enum { FILES = 40, STEPS = 1500 };
	struct fixture f;
	struct {
		uint32_t pages, bytes;
		uint8_t fill;
	} now[FILES + 1] = { { 0 } };
	uint32_t seed = 3;
	begin(&f, 1);
	for (int step = 0; step < STEPS; step++) {
		seed = seed * 1664525u + 1013904223u;
		uint32_t inode = 1 + (seed >> 16) % FILES;
		uint32_t count = 1 + (seed >> 8 & 3);
		uint32_t bytes = 8 + (seed >> 4) % 30000;
		struct file_key key = key_of(inode);
		if (now[inode].pages && seed >> 31) {
			tables_retract(f.tables, &key);
			now[inode].pages = 0;
		} else if (publish(&f, inode, count, bytes, (uint8_t)step) == OK) {
			now[inode].pages = count;
			now[inode].bytes = bytes;
			now[inode].fill = (uint8_t)step;
		} else {
			now[inode].pages = 0; /* known, without a table */
		}
	}
	uint64_t total = 0;
	for (uint32_t inode = 1; inode <= FILES; inode++) {
		if (now[inode].pages)
			check_blobs(&f, inode, now[inode].pages, now[inode].bytes, now[inode].fill);
		total += now[inode].pages * (((uint64_t)now[inode].bytes + 7) & ~7ull);
	}
	struct tables_stats stats;
	tables_read_stats(f.tables, &stats);
	CHECK(stats.bytes == total && total > 0);
	for (uint32_t inode = 1; inode <= FILES; inode++) {
		struct file_key key = key_of(inode);
		tables_retract(f.tables, &key);
	}
	CHECK(publish(&f, 99, SLAB_CHUNKS, SLAB_CHUNK_BYTES, 9) == OK); /* all of it */
	end(&f);
}

/* ---- runtimes ---- */

static enum status set_runtime(struct fixture *f, uint64_t inode, uint64_t delta)
{
	struct file_key key = key_of(inode);
	const struct runtime_record r = { .kind = RUNTIME_CPYTHON, .delta = delta };
	return tables_set_runtime(f->tables, &key, &r, NULL);
}

static void keeps_a_record_for_each_build(void **state)
{
	(void)state;
	NEED_MAPS();
	struct fixture f;
	begin(&f, 1);
	CHECK(set_runtime(&f, 1, 100) == OK &&
		!look_up(&f, 1)); /* not published: nothing is done */
	for (uint64_t inode = 1; inode <= RUNTIME_RECORDS_MAX + 2; inode++)
		CHECK(publish(&f, inode, 1, 64, 1) == OK);
	/* Two files of one build share a record. */
	CHECK(set_runtime(&f, 1, 100) == OK && set_runtime(&f, 2, 100) == OK);
	uint32_t index = look_up(&f, 1)->value.runtime - 1u;
	CHECK(look_up(&f, 2)->value.runtime == index + 1);
	struct runtime_record r;
	CHECK(bpf_map_lookup_elem(f.maps.runtime_records, &index, &r) == 0 && r.delta == 100);
	for (uint64_t inode = 3; inode <= RUNTIME_RECORDS_MAX + 1; inode++)
		CHECK(set_runtime(&f, inode, 100 * inode) == OK);
	CHECK(set_runtime(&f, RUNTIME_RECORDS_MAX + 2, 7) == E_LIMIT);
	CHECK(look_up(&f, RUNTIME_RECORDS_MAX + 2)->value.runtime == 0);
	/* A record goes with the last file that has it, once nobody can be reading it. */
	struct file_key one = key_of(1), three = key_of(3);
	tables_retract(f.tables, &one);
	tables_retract(f.tables, &three);
	for (uint64_t inode = 5000; inode < 5000 + 1024; inode++) {
		CHECK(publish(&f, inode, 1, 64, 1) == OK);
		struct file_key key = key_of(inode);
		tables_retract(f.tables, &key);
	}
	CHECK(set_runtime(&f, RUNTIME_RECORDS_MAX + 2, 7) == OK);
	CHECK(look_up(&f, 2)->value.runtime == index + 1);
	end(&f);
}

TEST_MAIN(cmocka_unit_test(keeps_a_record_for_each_build),
	cmocka_unit_test(publishes_replaces_and_retracts), cmocka_unit_test(keeps_the_vdso_apart),
	cmocka_unit_test(refuses_what_makes_no_sense),
	cmocka_unit_test(stays_within_the_budget_and_evicts_the_coldest),
	cmocka_unit_test(gives_room_to_the_hottest), cmocka_unit_test(gives_memory_back_when_idle),
	cmocka_unit_test(makes_room_for_more_files_than_there_are_slots),
	cmocka_unit_test(survives_a_long_life))
