/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server without sockets over a small store in memory, for targets that call handlers as net
 * would: two profile types (CPU time and a gauge), labels of series and of threads, names with
 * files and lines, an inlined call, a stack without names.
 */
#pragma once

#include "fuzz/fuzz.h"

#include "server/request/inlet.h"
#include "server/request/state.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUZZ_SERVER_NS (1767323040LL * NS_PER_SEC)
#define FUZZ_SERVER_PERIOD 10000000

static struct server fuzz_server;
static struct server_config fuzz_config;
static char fuzz_dir[64];

static bool fuzz_never_gone(const struct net_request *r)
{
	(void)r;
	return false;
}

static uint32_t fuzz_text(struct profile *p, const char *s)
{
	uint32_t id = 0;
	FUZZ_CHECK(profile_add_string(p, str_of(s), &id) == OK);
	return id;
}

static uint32_t fuzz_location(struct profile *p, uint64_t address, const char *name, const char *in)
{
	struct profile_mapping m = { .start = 0x1000,
		.limit = 0x9000,
		.filename = fuzz_text(p, "/usr/bin/app"),
		.build_id = fuzz_text(p, "0123456789abcdef") };
	struct profile_location l = { .address = address, .kind = FRAME_NATIVE };
	struct profile_line lines[2] = { { .line = 7 }, { .line = 9 } };
	const char *names[2] = { name, in };
	uint32_t id = 0, count = 0;
	for (; count < 2 && names[count]; count++) {
		struct profile_function f = { .name = fuzz_text(p, names[count]),
			.filename = fuzz_text(p, "/src/app.c"),
			.start_line = 3 };
		FUZZ_CHECK(profile_add_function(p, &f, &lines[count].function) == OK);
	}
	FUZZ_CHECK(profile_add_mapping(p, &m, &l.mapping) == OK);
	FUZZ_CHECK(profile_add_location(p, &l, lines, count, &id) == OK);
	return id;
}

static uint32_t fuzz_head(struct profile *p, const char *const parts[5], int64_t period)
{
	struct profile_type type = { fuzz_text(p, parts[0]), fuzz_text(p, parts[1]),
		fuzz_text(p, parts[2]), fuzz_text(p, parts[3]), fuzz_text(p, parts[4]),
		period > 0 };
	struct profile_head h = {
		.period = period, .time_ns = FUZZ_SERVER_NS, .duration_ns = period ? NS_PER_SEC : 0
	};
	uint32_t id = 0;
	FUZZ_CHECK(profile_add_type(p, &type, &h.type) == OK);
	FUZZ_CHECK(profile_add_head(p, &h, &id) == OK);
	return id;
}

static void fuzz_fill(struct store *store)
{
	static const char *const cpu[5] = { "cpu", "samples", "count", "cpu", "nanoseconds" };
	static const char *const heap[5] = { "memory", "inuse_space", "bytes", "space", "bytes" };
	static const char *const comms[3] = { "a", "b", "" };
	struct profile p;
	struct err e = { 0 };
	FUZZ_CHECK(profile_init(&p, 1 << 24) == OK);
	const uint32_t heads[2] = { fuzz_head(&p, cpu, FUZZ_SERVER_PERIOD),
		fuzz_head(&p, heap, 0) };
	const uint32_t frames[5] = { fuzz_location(&p, 0x1010, "leaf", "inlined into"),
		fuzz_location(&p, 0x1020, "main", NULL), fuzz_location(&p, 0x1030, NULL, NULL),
		fuzz_location(&p, 0x1040, "main", NULL), fuzz_location(&p, 0x1050, "leaf", NULL) };
	static const uint32_t stacks[4][3] = { { 0, 1, 1 }, { 2, 1, 1 }, { 4, 3, 1 }, { 0, 2, 4 } };
	for (uint32_t i = 0; i < 48; i++) {
		struct profile_sample s = { .head = heads[i % 2],
			.time_ns = FUZZ_SERVER_NS + i * NS_PER_SEC / 2,
			.value = 1 + i % 5 };
		uint32_t chain[3];
		for (int k = 0; k < 3; k++)
			chain[k] = frames[stacks[i % 4][k]];
		const struct profile_label labels[2] = {
			{ fuzz_text(&p, "comm"), fuzz_text(&p, comms[i % 3]) },
			{ fuzz_text(&p, "node"), fuzz_text(&p, "n") },
		};
		const struct profile_label own = { fuzz_text(&p, "pid"),
			fuzz_text(&p, i % 7 ? "1" : "22") };
		FUZZ_CHECK(profile_add_stack(&p, chain, 3, &s.stack) == OK);
		FUZZ_CHECK(profile_add_labels(&p, labels, i % 3 == 2 ? 0 : 2, &s.resource) == OK);
		FUZZ_CHECK(profile_add_labels(&p, &own, 1, &s.own) == OK);
		FUZZ_CHECK(profile_add_sample(&p, &s) == OK);
	}
	FUZZ_CHECK(store_append(store, STR(""), &p, hash128("fuzz", 4), &e) == OK);
	profile_deinit(&p);
}

static void fuzz_server_close(void)
{
	char command[128];
	if (!fuzz_server.store)
		return;
	store_close(fuzz_server.store);
	server_inlets_close(&fuzz_server);
	ingest_deinit(&fuzz_server.ingest);
	fuzz_server.store = NULL;
	snprintf(command, sizeof(command), "rm -r %s", fuzz_dir);
	(void)!system(command);
}

/* Opens it, or a new one in place of the old one. */
static void fuzz_server_open(void)
{
	struct store_config c;
	struct err e = { 0 };
	static bool known;
	fuzz_server_close();
	if (!known)
		atexit(fuzz_server_close);
	known = true;
	snprintf(fuzz_dir, sizeof(fuzz_dir), "%s/firn-fuzz-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	FUZZ_CHECK(mkdtemp(fuzz_dir));
	store_config_default(&c);
	c.path = fuzz_dir;
	c.retention_ns = 0;
	/* More than the sanitizers take, so that nobody thinks memory is short. */
	c.memory_bytes = (uint64_t)4 << 30;
	server_config_default(&fuzz_config);
	fuzz_config.storage_path = fuzz_dir;
	fuzz_config.tenant_header = "x-scope-orgid";
	fuzz_config.retention_ns = 0;
	fuzz_server = (struct server){ .config = &fuzz_config };
	server_init_locks(&fuzz_server);
	const struct ingest_config ingest = { .limits = fuzz_config.limits };
	FUZZ_CHECK(ingest_init(&fuzz_server.ingest, &ingest, &e) == OK);
	FUZZ_CHECK(store_open(&c, NULL, NULL, &fuzz_server.store, &e) == OK);
	ingest_open(&fuzz_server.ingest, store_sink(fuzz_server.store), NULL);
	fuzz_server.engine.samples = store_samples(fuzz_server.store);
	atomic_store(&fuzz_server.ready, true);
	fuzz_fill(fuzz_server.store);
}

static struct net_request fuzz_request(struct str path, struct str query, struct str body)
{
	return (struct net_request){ .method = STR("GET"),
		.path = path,
		.query = query,
		.body = body,
		.deadline_ns = INT64_MAX,
		.peer = "127.0.0.1:1",
		.gone = fuzz_never_gone };
}
