/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code stays where it is for as long as its module does: a name holds from the process' beginning.
 * What was made at run time without a module has no name, and its place may be used again for
 * another such piece, which is called the same.
 *
 * A name needs some thirty bytes here and there of the module's metadata: they are read in blocks,
 * which are kept while one look lasts.
 */
#include "agent/jitnames/jitdotnet.h"

#include <stdlib.h>

#define BLOCK_BYTES 4096u
#define BLOCKS 128u /* a power of two */
#define ASKED_BYTES 1024
#define NAME_BYTES_MAX (4 * JIT_NAME_BYTES_MAX)
#define STUB STR("[.NET] [stub][PreJIT]") /* as its perf map has them */
#define DYNAMIC STR("[.NET] [method made at run time][PreJIT]")

struct block {
	uint64_t metadata, number;
	size_t len; /* 0: not read */
	uint8_t bytes[BLOCK_BYTES];
};

struct reading {
	int pid;
	uint64_t metadata;
	uint64_t done; /* bytes */
	struct block blocks[BLOCKS];
};

void jitdotnet_find(struct jitdotnet *d, struct code_files_memory *known, int pid)
{
	if (!d->table)
		(void)jit_dotnet_find(known, pid, &d->table, &d->version);
}

void jitdotnet_want(struct jitdotnet *d, uint64_t address)
{
	for (uint32_t i = 0; i < d->wanted_count; i++)
		if (d->wanted[i] == address)
			return;
	if (d->wanted_count < JITDOTNET_WANTED_MAX)
		d->wanted[d->wanted_count++] = address;
}

static const struct block *block_at(struct reading *r, uint64_t number)
{
	struct block *b = &r->blocks[(number ^ r->metadata >> 12) % BLOCKS];
	if (b->len && b->metadata == r->metadata && b->number == number)
		return b;
	ssize_t n = broker_dotnet_read(
		r->pid, r->metadata, number * BLOCK_BYTES, b->bytes, BLOCK_BYTES);
	b->metadata = r->metadata;
	b->number = number;
	b->len = n > 0 ? (size_t)n : 0;
	r->done += b->len + ASKED_BYTES;
	return b;
}

static bool read_metadata(void *ctx, uint64_t offset, void *out, size_t len)
{
	struct reading *r = ctx;
	uint8_t *to = out;
	memset(to, 0, len);
	for (size_t done = 0; done < len;) {
		const struct block *b = block_at(r, (offset + done) / BLOCK_BYTES);
		size_t from = (offset + done) % BLOCK_BYTES;
		if (from >= b->len)
			return done > 0;
		size_t n = MIN(len - done, b->len - from);
		memcpy(to + done, b->bytes + from, n);
		done += n;
	}
	return true;
}

static void name_one(struct reading *r, struct jitdotnet *d, uint64_t address, struct jit_map *map,
	struct lock *lock)
{
	struct dotnet_memory_code code;
	CLEANUP(buf_deinit) struct buf name;
	buf_init(&name, NAME_BYTES_MAX);
	r->done += ASKED_BYTES;
	if (broker_dotnet_find(r->pid, d->version, d->table, address, &code) != 0)
		return;
	r->metadata = code.metadata;
	if (!code.metadata)
		buf_str(&name, code.is_stub ? STUB : DYNAMIC);
	else if (!jit_dotnet_name(read_metadata, r, code.method, &name))
		return;
	const struct jit_code found = { .start = code.start,
		.size = code.bytes,
		.name = str_sub(buf_view(&name), 0, JIT_NAME_BYTES_MAX) };
	lock_take(lock);
	(void)jit_map_add(map, &found); /* what has no room is counted there */
	lock_release(lock);
}

uint64_t jitdotnet_read(
	struct jitdotnet *d, int pid, struct jit_map *map, struct lock *lock, uint64_t budget)
{
	uint64_t wanted[JITDOTNET_WANTED_MAX], done;
	struct jit_found known;
	lock_take(lock);
	uint32_t count = d->wanted_count;
	memcpy(wanted, d->wanted, count * sizeof(*wanted));
	d->wanted_count = 0;
	lock_release(lock);
	struct reading *r = count ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return 0;
	r->pid = pid;
	for (uint32_t i = 0; i < count && r->done < budget; i++) {
		lock_take(lock);
		bool is_known = jit_map_find(map, wanted[i], UINT64_MAX, &known);
		lock_release(lock);
		if (!is_known)
			name_one(r, d, wanted[i], map, lock);
	}
	done = r->done;
	free(r);
	return done;
}
