/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/budget: the memory of one query: for its answers, and for each operation while it
 * runs.
 *
 * Layer 3, private to store/. Several threads may take from a budget, and several may hold memory
 * of a query_memory; all other functions are for one thread.
 */
#pragma once

#include "store/state/state.h"

#include <stdatomic.h>

/* The part of the quota for queries (memory_share.h) that a query holds. */
struct query_memory {
	struct store *store;
	struct store_query *query; /* memory is counted for all of its views, and it waits; or */
	struct store_query own;    /* this alone, which does not wait */
	struct memory_holder own_holder;
	struct lock lock;
	atomic_uint_least64_t held; /* by the running operation; changed with `lock` held */
	uint64_t kept;              /* by answers that were given */
};
void query_memory_init(struct query_memory *m, struct store *s);
void query_memory_deinit(struct query_memory *m);
/* Makes the running operation hold at least `bytes`. E_UNAVAILABLE: other queries have it.
 * E_CANCELED: the client does not want the answer any more. */
NODISCARD enum status query_memory_hold(struct query_memory *m, uint64_t bytes, struct err *e);
/* To be called when the operation has ended. */
void query_memory_release(struct query_memory *m);
/* Counts an answer's memory; it stays counted until query_memory_deinit(). */
void query_memory_keep(struct query_memory *m, uint64_t bytes);
/* Threads that a query may use; only one when memory is scarce. */
unsigned query_memory_width(const struct query_memory *m);
/* As store_query_again() says. */
bool query_memory_again(struct store_query *q);

/* Memory of one operation; taken and given by any of its threads. */
struct budget {
	struct query_memory *memory; /* NULL: none of the share is held */
	uint64_t limit;
	atomic_uint_least64_t used;
};
NODISCARD enum status budget_take(struct budget *b, uint64_t bytes, struct err *e);
void budget_give(struct budget *b, uint64_t bytes);
uint64_t budget_left(const struct budget *b);
/* The sentence for the sender of the query: E_LIMIT and E_NOMEM of something within the budget say
 * no more than that. */
enum status budget_fail(const struct budget *b, enum status s, struct err *e);
/* calloc within the budget. */
NODISCARD enum status budget_array(
	struct budget *b, size_t count, size_t size, void *out_ptr, struct err *e);
