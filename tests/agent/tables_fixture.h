/* SPDX-License-Identifier: Apache-2.0 */
/* tables_fixture: tables of unwind rows on real eBPF maps, and what the program would find there.
 */
#pragma once

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

static inline int make_map(
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

static inline void begin_with(struct fixture *f, uint32_t slabs_idle, uint32_t slabs)
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

static inline void begin(struct fixture *f, uint32_t slabs)
{
	begin_with(f, slabs, slabs);
}

static inline void end(struct fixture *f)
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

static inline bool may_use_maps(void)
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

static inline struct file_key key_of(uint64_t inode)
{
	return (struct file_key){ .inode = inode, .dev = 5 };
}

/* A table of `count` pages of `bytes` each, filled with `fill`. */
static inline enum status publish(
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
static inline struct file_slot *look_up(struct fixture *f, uint64_t inode)
{
	struct file_key key = key_of(inode);
	uint32_t i;
	if (bpf_map_lookup_elem(f->maps.files, &key, &i) != 0)
		return NULL;
	CHECK(f->slots[i].key.inode == inode && f->slots[i].is_live);
	return &f->slots[i];
}

/* Every byte of the file's blobs, as the program would reach them. */
static inline void check_blobs(
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

static inline void check_no_room(struct fixture *f, uint64_t inode)
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
static inline void hit(struct fixture *f, uint64_t inode, uint32_t samples)
{
	struct file_slot *slot = look_up(f, inode);
	if (slot)
		slot->hits += samples;
}

static inline void hit_all(struct fixture *f, uint64_t first, uint64_t last, uint32_t samples)
{
	for (uint64_t inode = first; inode <= last; inode++)
		hit(f, inode, samples);
}

/* With so many samples in each. */
static inline void pass_epochs(struct fixture *f, uint32_t epochs, uint64_t inode, uint32_t hits)
{
	for (uint32_t i = 0; i < epochs; i++) {
		hit(f, inode, hits);
		f->settings.epoch++;
		f->now_ns += 5 * NS_PER_SEC;
		tables_next_epoch(f->tables, f->now_ns);
	}
}
