/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "agent/files/known_files.h"

#define SECOND NS_PER_SEC

static struct {
	uint32_t count;
	struct file_key last;
} retracted;

void sampler_retract(struct sampler *s, const struct file_key *key)
{
	(void)s;
	retracted.count++;
	retracted.last = *key;
}

static struct files_metrics metrics;

/* Each limit is another number, so that none passes for another. Keys are looked at 256 at a time.
 */
enum { KEYS = 300, KNOWN = 100, OWNER_IDS = 150 };

static struct known_files make(void)
{
	struct known_files b;
	metrics = (struct files_metrics){ 0 };
	retracted.count = 0;
	CHECK(known_files_init(&b, NULL, &metrics) == OK);
	CHECK(b.limits.keys == FILES_KEYS_MAX && b.limits.known == FILES_KNOWN_MAX &&
		b.limits.owner_ids == FILES_OWNER_IDS_MAX);
	b.limits = (struct known_files_limits){ KEYS, KNOWN, OWNER_IDS };
	return b;
}

static struct file_key key_of(uint64_t inode, uint32_t dev)
{
	return (struct file_key){ .inode = inode, .dev = dev };
}

/* Of a content that is a number; 0: refused. */
static uint32_t know_of(
	struct known_files *b, uint64_t owner, uint64_t content, int64_t now, bool *out_is_new)
{
	char text[32];
	uint32_t id = 0;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)content);
	const struct known_file_content c = { text, "b1d", "/lib/a.so", NULL, owner };
	enum status s = known_files_know(b, &c, now, &id, out_is_new, NULL);
	CHECK(s == OK || s == E_LIMIT);
	return s == OK ? id : 0;
}

static uint32_t know(struct known_files *b, uint64_t content, int64_t now, bool *out_is_new)
{
	uint32_t id = know_of(b, 0, content, now, out_is_new);
	CHECK(id);
	return id;
}

static uint32_t bind(struct known_files *b, uint64_t inode, uint32_t id, enum binding_state state)
{
	const struct file_key key = key_of(inode, 1);
	uint32_t i = known_files_bind(b, &key, 0);
	CHECK(i != MAP_NONE);
	b->bindings.v[i].state = state;
	b->bindings.v[i].file_id = id;
	return i;
}

static void finds_keys_by_inode_and_device(void **state)
{
	(void)state;
	struct known_files b = make();
	struct file_key key = key_of(7, 1), other = key_of(7, 2);
	CHECK(known_files_find(&b, &key) == MAP_NONE);
	uint32_t i = known_files_bind(&b, &key, 0);
	uint32_t k = known_files_bind(&b, &other, 0);
	key.generation = 99; /* no part of it */
	CHECK(i != k && known_files_find(&b, &key) == i && known_files_find(&b, &other) == k);
	b.bindings.v[i].state = BINDING_BOUND;
	b.bindings.v[k].state = BINDING_BOUND;
	known_files_unbind(&b, i);
	CHECK(known_files_find(&b, &key) == MAP_NONE && known_files_find(&b, &other) == k);
	/* Its place is used again. */
	struct file_key third = key_of(8, 1);
	CHECK(known_files_bind(&b, &third, 0) == i && b.bindings.len == 2);
	known_files_deinit(&b);
}

static void drops_what_failed_when_there_are_too_many_keys(void **state)
{
	(void)state;
	struct known_files b = make();
	for (uint64_t n = 1; n <= KEYS; n++) {
		uint32_t i = bind(&b, n, 0, n == 5 ? BINDING_FAILED : BINDING_WAITING);
		b.bindings.v[i].retry_ns = 10 * SECOND;
	}
	struct file_key more = key_of(1u << 20, 1), failed = key_of(5, 1);
	CHECK(known_files_bind(&b, &more, 9 * SECOND) == MAP_NONE);
	CHECK(known_files_find(&b, &failed) != MAP_NONE);
	uint32_t place = known_files_find(&b, &failed);
	CHECK(known_files_bind(&b, &more, 10 * SECOND) == place);
	CHECK(known_files_find(&b, &failed) == MAP_NONE && known_files_find(&b, &more) == place);
	known_files_deinit(&b);
}

/* Each copy of a file is a key: they are not all there may be. */
static void lets_go_of_a_key_that_rests(void **state)
{
	(void)state;
	struct known_files b = make();
	for (uint64_t n = 1; n <= KEYS; n++) {
		uint32_t i = bind(&b, n, FRAME_FILE_FIRST, BINDING_BOUND);
		b.bindings.v[i].retry_ns = (n == 9 ? 1 : 10) * SECOND;
	}
	struct file_key rests = key_of(9, 1), more = key_of(1u << 20, 1);
	CHECK(known_files_bind(&b, &more, 9 * SECOND) != MAP_NONE);
	CHECK(known_files_find(&b, &rests) == MAP_NONE && known_files_find(&b, &more) != MAP_NONE);
	CHECK(retracted.count == 1 && retracted.last.inode == 9);
	CHECK(b.binding_count == KEYS);
	known_files_deinit(&b);
}

static void one_content_has_one_id(void **state)
{
	(void)state;
	struct known_files b = make();
	bool is_new = false;
	uint32_t id = know(&b, 1, 1, &is_new);
	CHECK(is_new && id >= FRAME_FILE_FIRST);
	CHECK(know(&b, 2, 2, &is_new) == id + 1 && is_new);
	CHECK(know(&b, 1, 3, &is_new) == id && !is_new);
	struct known_file *k = known_files_get(&b, id);
	CHECK(k && k->used_ns == 3);
	CHECK_STR(str_of(k->path), "/lib/a.so");
	CHECK_STR(str_of(k->build_id), "b1d");
	CHECK(!known_files_get(&b, id + 2) && !known_files_get(&b, FRAME_FILE_ADDRESS));
	CHECK(metric_get(&metrics.known) == 2);
	/* The vDSO has an id of its own, and does not count as a file. */
	const struct known_file_content vdso = { "[vdso]", "", "[vdso]", NULL, 0 };
	CHECK(!known_files_get(&b, FRAME_FILE_VDSO));
	CHECK(known_files_know_vdso(&b, &vdso) && known_files_know_vdso(&b, &vdso));
	CHECK(known_files_get(&b, FRAME_FILE_VDSO) && metric_get(&metrics.known) == 2);
	known_files_deinit(&b);
}

static void counts_tables(void **state)
{
	(void)state;
	struct known_files b = make();
	bool is_new;
	uint32_t a = know(&b, 1, 1, &is_new), c = know(&b, 2, 1, &is_new);
	known_files_set_table(&b, a, true, 100);
	known_files_set_table(&b, c, true, 20);
	known_files_set_table(&b, a, true, 50);
	CHECK(metric_get(&metrics.tables) == 2 && metric_get(&metrics.rows) == 70);
	known_files_set_table(&b, c, false, 0);
	CHECK(metric_get(&metrics.tables) == 1 && metric_get(&metrics.rows) == 50);
	known_files_set_table(&b, c + 1, true, 9); /* nobody's */
	CHECK(metric_get(&metrics.tables) == 1 && metric_get(&metrics.rows) == 50);
	known_files_deinit(&b);
}

/* With all that named it; its id is nobody's until no sample under way can name it. */
static void forgets_the_longest_unused_file(void **state)
{
	(void)state;
	struct known_files b = make();
	bool is_new;
	uint32_t ids[3];
	for (uint64_t n = 0; n < KNOWN; n++) {
		uint32_t id = know(&b, n, SECOND + (int64_t)n, &is_new);
		if (n < 3)
			ids[n] = id;
	}
	known_files_set_table(&b, ids[1], true, 10);
	uint32_t bound = bind(&b, 11, ids[1], BINDING_BOUND);
	uint32_t waiting = bind(&b, 12, ids[1], BINDING_WAITING);
	uint32_t others = bind(&b, 13, ids[2], BINDING_BOUND);
	(void)know(&b, 0, 2 * SECOND, &is_new); /* used again: now ids[1] is the oldest */
	CHECK(!is_new && retracted.count == 0);

	uint32_t id = know(&b, KNOWN, 3 * SECOND, &is_new);
	CHECK(is_new && id != ids[1]); /* that one rests */
	CHECK(!known_files_get(&b, ids[1]) && known_files_get(&b, ids[0]) &&
		known_files_get(&b, ids[2]));
	CHECK(retracted.count == 2 && retracted.last.inode == 12);
	CHECK(b.bindings.v[bound].state == BINDING_FREE);
	CHECK(b.bindings.v[waiting].state == BINDING_WAITING && b.bindings.v[waiting].file_id == 0);
	CHECK(b.bindings.v[others].state == BINDING_BOUND);
	CHECK(metric_get(&metrics.forgotten) == 1 && metric_get(&metrics.tables) == 0);
	CHECK(metric_get(&metrics.known) == KNOWN);

	id = know(&b, KNOWN + 1, 3 * SECOND + FILES_ID_REST_NS, &is_new);
	CHECK(is_new && id == ids[1]);
	known_files_deinit(&b);
}

/* Who makes new files all the time takes no ids from others. */
static void leaves_ids_for_other_owners(void **state)
{
	(void)state;
	struct known_files b = make();
	bool is_new;
	for (uint64_t n = 0; n < OWNER_IDS; n++)
		CHECK(know_of(&b, 1, n, SECOND, &is_new));
	CHECK(!know_of(&b, 1, OWNER_IDS, SECOND, &is_new));
	CHECK(know_of(&b, 2, OWNER_IDS, SECOND, &is_new) && is_new);
	CHECK(know_of(&b, 1, OWNER_IDS - 1, SECOND, &is_new) && !is_new);
	CHECK(know_of(&b, 1, OWNER_IDS + 1, SECOND + FILES_ID_REST_NS, &is_new));
	known_files_deinit(&b);
}

TEST_MAIN(cmocka_unit_test(finds_keys_by_inode_and_device),
	cmocka_unit_test(drops_what_failed_when_there_are_too_many_keys),
	cmocka_unit_test(lets_go_of_a_key_that_rests), cmocka_unit_test(one_content_has_one_id),
	cmocka_unit_test(counts_tables), cmocka_unit_test(forgets_the_longest_unused_file),
	cmocka_unit_test(leaves_ids_for_other_owners))
