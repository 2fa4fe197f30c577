/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake: a store and a symbolizer in memory, written as plainly as possible: what query/ answers is
 * held against them. Samples are given as text:
 *
 *	fake_sample(CPU, 10 * NS_PER_SEC, 3, PERIOD, "comm=a,pid=1",
 *"main@app;work>inlined@app;0x12@lib");
 *
 * A stack goes from the root down, ';' between locations; a location is "outer>inner>…", calls
 * inlined into each other, then "@path" of its binary, then "%kind". "0x12" is an address without
 * a name.
 */
#pragma once

#include "base/clock.h"
#include "query/query.h"
#include "test.h"

#define CPU "parca_agent:samples:count:cpu:nanoseconds:delta"
#define HEAP "memory:inuse_space:bytes:space:bytes"
#define PERIOD 10000000 /* 100 Hz */

extern struct profile fake_profile;
extern uint32_t fake_pending;   /* what symbolizer_resolve() says */
extern int64_t fake_covered_ns; /* what answers say, where they are asked for durations */
extern int fake_views;          /* open ones */
extern enum status fake_error;  /* of every report's function */
extern struct query_engine fake_engine;

/* What becomes of work that two threads may share: the second one comes before, after, at the same
 * time. Without a call there is no second one. */
enum fake_beside { FAKE_BEFORE, FAKE_AFTER, FAKE_TOGETHER, FAKE_BESIDE_COUNT };
void fake_have_threads(enum fake_beside how);

void fake_begin(void);
void fake_end(void);
void fake_sample(const char *type, int64_t time_ns, int64_t value, int64_t period,
	const char *labels, const char *stack);

/* cmocka's setup and teardown of a test with an empty store; the latter checks that no view is
 * left open. */
int fake_setup(void **state);
int fake_teardown(void **state);

/* All of time; the only type. */
struct query_request fake_request(const char *selector);
