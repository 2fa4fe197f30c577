/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each chunk has a bitmap of its units. A blob goes to the chunk that took the last one, or else to
 * the first chunk with a run that is long enough. Mappings are ordered by their last use. So a
 * caller that copies from one chunk to another has both, even if the first was mapped long before.
 */
#include "agent/tables/slabs.h"

#include "agent/broker/broker.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uint32_t slabs_of_bytes(uint64_t bytes)
{
	uint64_t slabs = bytes / SLAB_BYTES;
	return (uint32_t)MIN(MAX(slabs, (uint64_t)1), (uint64_t)SLABS_MAX);
}

enum status slabs_ask(int *out_fd, struct err *e)
{
	int fd = broker_slab();
	if (fd < 0 && errno == ENOSYS) /* there is none: we may do it ourselves */
		fd = privileged_open_slab();
	if (fd < 0)
		return err_os(e, "cannot allocate 2 MiB of kernel memory for unwind tables");
	*out_fd = fd;
	return OK;
}

enum status slabs_add(struct slabs *s, int fd, struct err *e)
{
	uint32_t i = s->count;
	assert(i < s->max);
	enum status status = OK;
	for (uint32_t c = 0; status == OK && c < SLAB_CHUNKS; c++)
		status = bitmap_init(&s->chunks[i * SLAB_CHUNKS + c], CHUNK_UNITS);
	if (status == OK && bpf_map_update_elem(s->outer, &i, &fd, BPF_ANY) != 0)
		status = err_os(e, "cannot add kernel memory for unwind tables");
	if (status != OK) {
		for (uint32_t c = 0; c < SLAB_CHUNKS; c++)
			bitmap_deinit(&s->chunks[i * SLAB_CHUNKS + c]);
		fd_cleanup(&fd);
		return status;
	}
	s->fds[i] = fd;
	s->count++;
	return OK;
}

static void unmap(struct slabs *s, uint32_t place)
{
	if (s->mapped[place].memory)
		(void)munmap(s->mapped[place].memory, SLAB_CHUNK_BYTES);
	s->mapped[place].memory = NULL;
}

void slabs_drop(struct slabs *s)
{
	assert(s->count > 1);
	uint32_t i = --s->count;
	assert(slabs_used_bytes(s, i) == 0);
	(void)bpf_map_delete_elem(s->outer, &i);
	slabs_rest(s);
	fd_cleanup(&s->fds[i]);
	for (uint32_t c = 0; c < SLAB_CHUNKS; c++)
		bitmap_deinit(&s->chunks[i * SLAB_CHUNKS + c]);
	s->hint = 0;
}

/* An update of an array of maps waits until all programs that run have ended (Linux commit
 * 1ae80cf31938, "bpf: wait for running BPF programs when updating map-in-map", 4.20). */
bool slabs_wait(struct slabs *s)
{
	uint32_t zero = 0;
	return bpf_map_update_elem(s->outer, &zero, &s->fds[0], BPF_ANY) == 0;
}

static bool take_in(struct slabs *s, uint32_t chunk, uint32_t units, struct blob *out)
{
	uint32_t start = bitmap_take(&s->chunks[chunk], units);
	if (start == BITMAP_NONE)
		return false;
	*out = (struct blob){ chunk, (uint16_t)start,
		(uint16_t)(units == CHUNK_UNITS ? 0 : units) };
	s->hint = chunk;
	return true;
}

bool slabs_take(struct slabs *s, uint32_t slab_count, uint32_t units, struct blob *out)
{
	uint32_t chunks = slab_count * SLAB_CHUNKS;
	if (s->hint < chunks && take_in(s, s->hint, units, out))
		return true;
	for (uint32_t i = 0; i < chunks; i++) {
		if (take_in(s, i, units, out))
			return true;
	}
	return false;
}

void slabs_release(struct slabs *s, const struct blob *b)
{
	bitmap_release(&s->chunks[b->chunk], b->start, blob_bytes(b) / BLOB_UNIT_BYTES);
}

uint64_t slabs_used_bytes(const struct slabs *s, uint32_t slab)
{
	uint64_t units = 0;
	for (uint32_t c = 0; c < SLAB_CHUNKS; c++)
		units += s->chunks[slab * SLAB_CHUNKS + c].used;
	return units * BLOB_UNIT_BYTES;
}

/* The place of a chunk; without one, the last place. */
static uint32_t find_mapped(const struct slabs *s, uint32_t chunk)
{
	uint32_t i = 0;
	while (i < CHUNKS_MAPPED_MAX - 1 && !(s->mapped[i].memory && s->mapped[i].chunk == chunk))
		i++;
	return i;
}

enum status slabs_map(struct slabs *s, const struct blob *b, uint8_t **out, struct err *e)
{
	uint32_t place = find_mapped(s, b->chunk);
	struct slab_mapping found = s->mapped[place];
	if (!found.memory || found.chunk != b->chunk) {
		off_t at = (off_t)(b->chunk % SLAB_CHUNKS) * SLAB_CHUNK_BYTES;
		void *p = mmap(NULL, SLAB_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			s->fds[blob_slab(b)], at);
		if (p == MAP_FAILED)
			return err_os(e, "cannot share the memory of an eBPF map");
		unmap(s, place);
		found = (struct slab_mapping){ b->chunk, p };
	}
	memmove(&s->mapped[1], &s->mapped[0], place * sizeof(s->mapped[0]));
	s->mapped[0] = found;
	*out = found.memory + (size_t)b->start * BLOB_UNIT_BYTES;
	return OK;
}

void slabs_rest(struct slabs *s)
{
	for (uint32_t i = 0; i < CHUNKS_MAPPED_MAX; i++)
		unmap(s, i);
}

enum status slabs_init(struct slabs *s, int outer, uint32_t max, struct err *e)
{
	assert(max >= 1 && max <= SLABS_MAX);
	s->outer = outer;
	s->max = max;
	s->chunks = calloc((size_t)max * SLAB_CHUNKS, sizeof(*s->chunks));
	if (!s->chunks)
		return err_set(e, E_NOMEM, "slabs");
	int fd;
	enum status status = slabs_ask(&fd, e);
	return status == OK ? slabs_add(s, fd, e) : status;
}

void slabs_deinit(struct slabs *s)
{
	slabs_rest(s);
	for (uint32_t i = 0; i < s->count; i++)
		fd_cleanup(&s->fds[i]);
	for (uint32_t i = 0; s->chunks && i < s->max * SLAB_CHUNKS; i++)
		bitmap_deinit(&s->chunks[i]);
	free(s->chunks);
	s->chunks = NULL;
}
