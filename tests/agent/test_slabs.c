/* SPDX-License-Identifier: Apache-2.0 */
/* How many slabs a budget has, and how long their chunks are mapped. What lies in them is in
 * test_tables.c. */
#include "agent/tables/slabs.h"
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

static void follows_the_budget(void **state)
{
	(void)state;
	CHECK(slabs_of_bytes(0) == 1 && slabs_of_bytes(SLAB_BYTES - 1) == 1);
	CHECK(slabs_of_bytes(64u << 20) == 32);
	CHECK(slabs_of_bytes((uint64_t)1 << 40) == SLABS_MAX);
}

static uint8_t *mapped(struct slabs *s, uint32_t chunk)
{
	const struct blob b = { chunk, 0, 0 };
	uint8_t *memory;
	CHECK(slabs_map(s, &b, &memory, NULL) == OK);
	return memory;
}

/* Who moves a table asks for where it lies, which may be mapped for long, and then for where it
 * goes. */
static void what_was_asked_for_last_stays_mapped(void **state)
{
	(void)state;
	struct slabs s = { .fds = { memfd_create("slab", MFD_CLOEXEC) }, .count = 1, .max = 1 };
	CHECK(s.fds[0] >= 0 && ftruncate(s.fds[0], SLAB_BYTES) == 0);
	for (uint32_t chunk = 0; chunk < CHUNKS_MAPPED_MAX; chunk++)
		(void)mapped(&s, chunk);
	for (uint32_t from = 0; from < CHUNKS_MAPPED_MAX; from++) {
		uint8_t *old = mapped(&s, from);
		uint8_t *to =
			mapped(&s, CHUNKS_MAPPED_MAX + from % (SLAB_CHUNKS - CHUNKS_MAPPED_MAX));
		*old = (uint8_t)(from + 1); /* not unmapped */
		*to = *old;
		CHECK(mapped(&s, from) == old);
		uint8_t byte;
		CHECK(pread(s.fds[0], &byte, 1, (off_t)from * SLAB_CHUNK_BYTES) == 1);
		CHECK(byte == from + 1);
	}
	/* one that nobody asked for has given way: it is mapped anew, and is what it was */
	CHECK(*mapped(&s, 0) == 1);
	slabs_rest(&s);
	(void)close(s.fds[0]);
}

TEST_MAIN(cmocka_unit_test(follows_the_budget),
	cmocka_unit_test(what_was_asked_for_last_stays_mapped))
