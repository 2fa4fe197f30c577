/* SPDX-License-Identifier: Apache-2.0 */
#include "store/memory.h"

static const char *const names[MEMORY_SHARES] = {
	[MEMORY_INGEST] = "batches on their way in",
	[MEMORY_QUERIES] = "questions",
};
static const uint64_t sixteenths[MEMORY_SHARES] = {
	[MEMORY_INGEST] = 1,
	[MEMORY_QUERIES] = 4,
};

void memory_init(struct memory_shares *m, uint64_t budget_bytes)
{
	for (int i = 0; i < MEMORY_SHARES; i++) {
		m->limit[i] = budget_bytes / 16 * sixteenths[i];
		atomic_init(&m->used[i], 0);
		atomic_init(&m->refused[i], 0);
	}
}

enum status memory_take(
	struct memory_shares *m, enum memory_share share, uint64_t bytes, struct err *e)
{
	return memory_take_more(m, share, 0, bytes, e);
}

enum status memory_take_more(struct memory_shares *m, enum memory_share share, uint64_t held,
	uint64_t bytes, struct err *e)
{
	uint64_t used = atomic_load(&m->used[share]);
	do {
		uint64_t sum;
		bool fits = !__builtin_add_overflow(used, bytes, &sum) && sum <= m->limit[share];
		if (!fits && used > held) {
			atomic_fetch_add(&m->refused[share], 1);
			return err_set(e, E_UNAVAILABLE,
				"%s hold %llu of their %llu MiB of memory, %llu more do not fit: "
				"try again",
				names[share], (unsigned long long)(used >> 20),
				(unsigned long long)(m->limit[share] >> 20),
				(unsigned long long)(bytes >> 20));
		}
	} while (!atomic_compare_exchange_weak(&m->used[share], &used, used + bytes));
	return OK;
}

void memory_take_anyway(struct memory_shares *m, enum memory_share share, uint64_t bytes)
{
	atomic_fetch_add(&m->used[share], bytes);
}

void memory_give(struct memory_shares *m, enum memory_share share, uint64_t bytes)
{
	uint64_t before = atomic_fetch_sub(&m->used[share], bytes);
	assert(before >= bytes);
}

uint64_t memory_used(const struct memory_shares *m, enum memory_share share)
{
	return atomic_load(&m->used[share]);
}
