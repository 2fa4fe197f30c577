/* SPDX-License-Identifier: Apache-2.0 */
/* A server without sockets over a real store in a temporary directory, with a few samples in it. */
#pragma once

#include "ask.h"
#include "pb/pb.h"
#include "server/request/state.h"
#include "store/store.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#define MADE_TYPE "cpu:samples:count:cpu:nanoseconds:delta"
#define MADE_NS (1767323040LL * 1000000000)
#define MADE_PERIOD 10000000

static struct server made;
static struct server_config made_config;
static struct store *made_store;
static char made_dir[64];

static inline uint32_t made_text(struct profile *p, const char *s)
{
	uint32_t id = 0;
	CHECK(profile_add_string(p, str_of(s), &id) == OK);
	return id;
}

/* Functions from the root down, "main;f". */
static inline void made_sample(struct profile *p, uint32_t head, int64_t time_ns, int64_t value,
	const char *comm, const char *functions)
{
	uint32_t locations[16], count = 0;
	struct str rest = str_of(functions), name;
	struct profile_sample s = { .head = head, .time_ns = time_ns, .value = value };
	while (str_split(&rest, ';', &name)) {
		struct profile_mapping m = { .filename = made_text(p, "/bin/x") };
		struct profile_location l = { .address = 0x1000 + name.len, .kind = FRAME_NATIVE };
		struct profile_line line = { .line = 7 };
		struct profile_function f = { .filename = made_text(p, "/src/x.c") };
		CHECK(profile_add_string(p, name, &f.name) == OK);
		CHECK(profile_add_mapping(p, &m, &l.mapping) == OK);
		CHECK(profile_add_function(p, &f, &line.function) == OK);
		CHECK(profile_add_location(p, &l, &line, 1, &locations[count++]) == OK);
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		uint32_t other = locations[i];
		locations[i] = locations[count - 1 - i];
		locations[count - 1 - i] = other;
	}
	struct profile_label label = { made_text(p, "comm"), made_text(p, comm) };
	CHECK(profile_add_stack(p, locations, count, &s.stack) == OK);
	CHECK(profile_add_labels(p, &label, 1, &s.resource) == OK);
	CHECK(profile_add_sample(p, &s) == OK);
}

static inline void made_fill(void)
{
	CLEANUP(profile_deinit) struct profile p = { 0 };
	struct err e = { 0 };
	uint32_t head = 0;
	CHECK(profile_init(&p, 1 << 24) == OK);
	struct profile_type type = { made_text(&p, "cpu"), made_text(&p, "samples"),
		made_text(&p, "count"), made_text(&p, "cpu"), made_text(&p, "nanoseconds"), true };
	struct profile_head h = { .period = MADE_PERIOD, .time_ns = MADE_NS, .duration_ns = 1000 };
	CHECK(profile_add_type(&p, &type, &h.type) == OK);
	CHECK(profile_add_head(&p, &h, &head) == OK);
	made_sample(&p, head, MADE_NS, 3, "a", "main;f");
	made_sample(&p, head, MADE_NS + 1000000000, 2, "b", "main;g");
	CHECK_OK(store_append(made_store, STR(""), &p, hash128("made", 4), &e), &e);
}

static inline int made_setup(void **state)
{
	(void)state;
	struct store_config c;
	struct err e = { 0 };
	strcpy(made_dir, "/tmp/firn-test-server-XXXXXX");
	CHECK(mkdtemp(made_dir));
	store_config_default(&c);
	c.path = made_dir;
	c.retention_ns = 0;
	CHECK_OK(store_open(&c, NULL, NULL, &made_store, &e), &e);
	server_config_default(&made_config);
	made_config.storage_path = made_dir;
	made = (struct server){ .config = &made_config };
	server_init_locks(&made);
	made.engine.samples = store_samples(made_store);
	atomic_store(&made.ready, true);
	ask_gone_value = false;
	made_fill();
	return 0;
}

static inline int made_teardown(void **state)
{
	(void)state;
	char command[128];
	store_close(made_store);
	snprintf(command, sizeof(command), "rm -r %s", made_dir);
	return system(command);
}

/* The n-th field of that number; number 0 when there is none. */
static inline struct pb_field made_find(struct str message, uint32_t number, size_t n)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == number && n-- == 0)
			return f;
	CHECK(!r.failed);
	return (struct pb_field){ 0 };
}

static inline void made_put_time(struct buf *b, uint32_t field, int64_t ns)
{
	size_t begun = pb_begin(b, field);
	pb_put_i64(b, 1, ns / 1000000000);
	pb_put_i64(b, 2, ns % 1000000000);
	pb_end(b, begun);
}

/* QueryRequest in mode MERGE over [MADE_NS - 1 s, MADE_NS + 10 s]. */
static inline void made_put_query(struct buf *b, const char *selector, uint64_t report)
{
	pb_put_u64(b, 1, 2);
	size_t merge = pb_begin(b, 3);
	pb_put_str(b, 1, str_of(selector));
	made_put_time(b, 2, MADE_NS - 1000000000);
	made_put_time(b, 3, MADE_NS + 10000000000);
	pb_end(b, merge);
	pb_put_u64(b, 5, report);
}
