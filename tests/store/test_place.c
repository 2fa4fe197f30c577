/* SPDX-License-Identifier: Apache-2.0 */
/* A directory as a place of parts: an object is there whole or not at all, by its number. */
#include "store/disk/place.h"

#include "tests/store/fixture.h"

struct listed {
	uint64_t whole[8], unfinished[8];
	size_t whole_count, unfinished_count;
};

static enum status list_one(void *ctx, uint64_t id, bool whole, struct err *e)
{
	struct listed *l = ctx;
	(void)e;
	if (whole)
		l->whole[l->whole_count++] = id;
	else
		l->unfinished[l->unfinished_count++] = id;
	return OK;
}

static struct listed list(struct place *p)
{
	struct listed l = { 0 };
	struct err e = { 0 };
	CHECK_OK(place_list(p, list_one, &l, &e), &e);
	return l;
}

static void put(struct place *p, uint64_t id, const char *text, bool finish)
{
	struct place_put *u = NULL;
	struct err e = { 0 };
	CHECK_OK(place_put_open(p, id, &u, &e), &e);
	CHECK_OK(place_put_write(u, text, 2, &e), &e);
	CHECK_OK(place_put_write(u, text + 2, strlen(text) - 2, &e), &e);
	CHECK(u->bytes == strlen(text));
	if (finish)
		CHECK_OK(place_put_finish(u, &e), &e);
	place_put_close(u);
}

static void open_place(char dir[64], struct place **out)
{
	struct err e = { 0 };
	fixture_dir(dir);
	CHECK_OK(place_open_directory(dir, out, &e), &e);
}

static void puts_whole_objects(void **state)
{
	(void)state;
	char dir[64], bytes[3];
	struct place *p;
	struct object *o;
	struct place_put *u;
	struct err e = { 0 };
	open_place(dir, &p);
	put(p, 7, "abcde", true);
	put(p, 8, "left", false); /* closed unfinished: nothing stays */
	struct listed l = list(p);
	CHECK(l.whole_count == 1 && l.whole[0] == 7 && l.unfinished_count == 0);
	CHECK_OK(place_open(p, 7, &o, &e), &e);
	CHECK(o->bytes == 5);
	CHECK_OK(object_read(o, 1, bytes, 3, &e), &e);
	CHECK(memcmp(bytes, "bcd", 3) == 0);
	CHECK(place_open(p, 8, &(struct object *){ NULL }, &e) == E_NOTFOUND);
	/* Removed, and read on by who has it open. */
	CHECK_OK(place_remove(p, 7, &e), &e);
	CHECK_OK(place_remove(p, 7, &e), &e);
	CHECK_OK(place_sync(p, &e), &e);
	CHECK_OK(object_read(o, 2, bytes, 3, &e), &e);
	CHECK(memcmp(bytes, "cde", 3) == 0);
	CHECK(list(p).whole_count == 0);
	object_close(o);
	/* Two at a time under one number: the second is refused. */
	struct place_put *first;
	CHECK_OK(place_put_open(p, 9, &first, &e), &e);
	CHECK(place_put_open(p, 9, &u, &e) == E_EXISTS);
	place_put_close(first);
	place_close(p);
	fixture_clean(dir);
}

/* What a crash leaves of a put is removed by the next list, which tells its number. */
static void tells_what_was_not_finished(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct place *p;
	struct err e = { 0 };
	open_place(dir, &p);
	put(p, 0x11, "abcd", true);
	snprintf(path, sizeof(path), "%s/00000000000000ff.tmp", dir);
	CHECK_OK(os_replace_file(path, "x", 1, 0640, &e), &e);
	snprintf(path, sizeof(path), "%s/readme.part", dir);
	CHECK_OK(os_replace_file(path, "x", 1, 0640, &e), &e);
	struct listed l = list(p);
	CHECK(l.whole_count == 1 && l.whole[0] == 0x11);
	CHECK(l.unfinished_count == 1 && l.unfinished[0] == 0xff);
	CHECK(list(p).unfinished_count == 0);
	CHECK(access(path, F_OK) == 0); /* not ours */
	place_close(p);
	fixture_clean(dir);
}

static void takes_out(void **state)
{
	(void)state;
	char dir[64], to[128];
	struct place *p;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 100);
	open_place(dir, &p);
	put(p, 3, "damaged", true);
	snprintf(to, sizeof(to), "%s/aside", dir);
	CHECK_OK(place_take_out(p, 3, to, &e), &e);
	CHECK(list(p).whole_count == 0);
	CHECK_OK(os_read_file(to, &b, &e), &e);
	CHECK_STR(buf_view(&b), "damaged");
	CHECK(place_take_out(p, 3, to, &e) != OK);
	place_close(p);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(puts_whole_objects), cmocka_unit_test(tells_what_was_not_finished),
	cmocka_unit_test(takes_out))
