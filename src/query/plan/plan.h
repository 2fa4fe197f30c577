/* SPDX-License-Identifier: Apache-2.0 */
/* query/plan/plan: an opened query: its unit and step, and its limits of time and memory. Private
 * to query/. */
#pragma once

#include "query/plan/sums.h"
#include "query/query.h"

/* Memory of one report's texts and tables, where the caller gives no arena. */
#define QUERY_REPORT_BYTES_MAX ((size_t)512 << 20)
/* How long a report waits for symbol tables that are being built. */
#define QUERY_WAIT_MS 250
#define QUERY_PPROF_WAIT_MS 5000

/* A request made ready: selector parsed, its type found where the text named none, the store's
 * snapshot open. Close with query_plan_close(). */
struct query_plan {
	struct selector selector;
	struct samples_view *view;
	struct samples_query store;
	bool empty; /* the store holds no type at all: every report is empty */
};
/* need_type: true for a report, which is about one profile type. */
NODISCARD enum status query_plan_open(const struct query_engine *q, const struct query_request *r,
	bool need_type, struct arena *a, struct query_plan *out, struct err *e);
void query_plan_close(struct query_plan *p);
/* Whether samples of the type meet the selector's conditions, in the request's time. */
NODISCARD enum status query_type_has(const struct query_plan *p, const struct query_request *r,
	const struct samples_type *t, struct arena *a, bool *out, struct err *e);
/* Counts `bytes` in all for the report's own memory, until the plan is closed, in the quota of all
 * queries. To be called before it is allocated; fewer bytes than before change nothing.
 * E_UNAVAILABLE: other queries have it. E_LIMIT: more than one query may have. */
NODISCARD enum status query_hold(const struct query_plan *p, uint64_t bytes, struct err *e);
/* The same for memory with a limit of its own (an arena's): beyond the query's limit it succeeds,
 * and what was counted until then stays counted. */
NODISCARD enum status query_count(const struct query_plan *p, uint64_t bytes, struct err *e);

/* The unit of the values of a type, and what to multiply them by. */
struct query_unit {
	struct str name;
	int64_t factor;
};
struct query_unit query_unit_of(
	struct str sample_type, struct str sample_unit, struct str period_unit, int64_t period);

/* The points that a chosen step aims at, where the request does not say. */
#define QUERY_POINTS_WANTED 300
/* The step of the request; without one, a round step (whole minutes and the like) that gives about
 * `wanted` points. The same for every API. */
NODISCARD enum status query_choose_step(
	const struct query_request *r, uint32_t wanted, int64_t *out_ns, struct err *e);

/* "binary+0xaddress": how a place without a name is shown. */
#define QUERY_ADDRESS_NAME_MAX 320
struct str query_address_name(
	struct str binary, uint64_t address, char text[QUERY_ADDRESS_NAME_MAX]);
