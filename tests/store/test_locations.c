/* SPDX-License-Identifier: Apache-2.0 */
/* Every location of every sample is told, of parts, of what is frozen and of what came last. */
#include "tests/store/fixture.h"

struct told {
	uint64_t addresses[64];
	size_t count;
	size_t mappings;
	bool none; /* no mapping is wanted */
};

static uint32_t mapping(
	void *ctx, struct str build_id, struct str path, const struct profile_mapping *m)
{
	struct told *x = ctx;
	CHECK_STR(build_id, "00ff00ff");
	CHECK(path.len > 0 && m->start == 0);
	x->mappings++;
	return x->none ? PROFILE_LOCATIONS_NONE : 7;
}

static void location(void *ctx, uint32_t number, uint64_t address)
{
	struct told *x = ctx;
	CHECK(number == 7 && !x->none && x->count < ARRAY_COUNT(x->addresses));
	x->addresses[x->count++] = address;
}

static const struct profile_locations sink = { mapping, location };

static bool has(const struct told *x, uint64_t address)
{
	for (size_t i = 0; i < x->count; i++)
		if (x->addresses[i] == address)
			return true;
	return false;
}

/* A sample of a stack with one location without lines, and one with. */
static void append(struct store *s, const char *tenant, uint64_t address)
{
	static uint64_t batch;
	struct profile p;
	struct err e = { 0 };
	CHECK_OK(profile_init(&p, 1 << 20), NULL);
	uint32_t stack[] = { fx_frame(&p, "/bin/a", address), fx_named(&p, "f", 3, NULL) }, id;
	CHECK_OK(profile_add_stack(&p, stack, 2, &id), NULL);
	const char *const labels[] = { "comm", "a", NULL };
	fx_sample(&p, T0, 1, fx_head(&p, "cpu", true, 1), id, fx_labels(&p, labels), 0);
	CHECK_OK(store_append(s, str_of(tenant), &p, (struct hash128){ ++batch, 1 }, &e), &e);
	profile_deinit(&p);
}

static void tells_all(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct told x = { 0 };
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fixture_stop_merging(s);
	CHECK_OK(store_locations(s, &sink, &x, &e), &e);
	CHECK(x.count == 0 && x.mappings == 0 && store_part_bytes(s) == 0);
	append(s, "", 0x10);
	CHECK_OK(store_flush(s, &e), &e);
	append(s, "another", 0x20);
	CHECK_OK(store_flush(s, &e), &e);
	append(s, "", 0x30);
	CHECK_OK(store_locations(s, &sink, &x, &e), &e);
	CHECK(x.count == 3 && has(&x, 0x10) && has(&x, 0x20) && has(&x, 0x30));
	CHECK(store_part_bytes(s) > 0);
	x = (struct told){ .none = true };
	CHECK_OK(store_locations(s, &sink, &x, &e), &e);
	CHECK(x.count == 0 && x.mappings == 3);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(tells_all))
