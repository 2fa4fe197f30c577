/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/store/model.h"

static void shows_what_is_there(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 21 };
	struct store *s;
	struct buf out;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fixture_stop_merging(s); /* or a part may go between the list and the look */
	model_append(&m, s, 100, T0, 60 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	model_append(&m, s, 10, T0, 60 * SEC);
	buf_init(&out, 1 << 20);
	CHECK_OK(store_inspect(dir, &out, &e), &e);
	buf_u8(&out, 0);
	const char *text = (const char *)out.data;
	static const char *const want[] = { "section TRIE ", "column time ", " of 100 samples",
		"  series cpu:samples:count:cpu:nanoseconds:delta{comm=\"c1\"", "manifest ",
		"  record 2 at +64: kind 1,", ": level " };
	for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
		if (!strstr(text, want[i]))
			print_error("no \"%s\" in:\n%s\n", want[i], text);
		CHECK(strstr(text, want[i]) != NULL);
	}
	buf_deinit(&out);
	buf_init(&out, 1 << 20);
	CHECK(store_inspect("/etc/passwd", &out, &e) == E_CORRUPT);
	buf_deinit(&out);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* Whoever sends a label does not write on the terminal of the person who looks. */
static void controls_are_shown(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct profile p;
	struct buf out;
	struct err e = { 0 };
	const char *const pairs[] = { "comm", "a\033[2J\n\"\\\xC2\x9B\xC3\xA9", NULL };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fixture_stop_merging(s);
	CHECK(profile_init(&p, 1 << 20) == OK);
	fx_sample(&p, T0, 1, fx_head(&p, "cpu", true, 1), 0, fx_labels(&p, pairs), 0);
	CHECK_OK(store_append(s, STR("\t"), &p, (struct hash128){ 0 }, &e), &e);
	CHECK_OK(store_flush(s, &e), &e);
	buf_init(&out, 1 << 20);
	CHECK_OK(store_inspect(dir, &out, &e), &e);
	buf_u8(&out, 0);
	const char *text = (const char *)out.data;
	CHECK(strstr(text, "comm=\"a\\x1b[2J\\x0a\\x22\\x5c\\xc2\x9B\xC3\xA9\"} tenant \"\\x09\""));
	buf_deinit(&out);
	profile_deinit(&p);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(shows_what_is_there), cmocka_unit_test(controls_are_shown))
