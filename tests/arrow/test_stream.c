/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every layout, as an encoder that knows nothing of src/ writes it, gives the values that went in;
 * cut short or changed anywhere it gives values or a refusal, and nothing else.
 */
#include "dump.h"
#include "made.h"

#define LIMIT ((size_t)64 << 20)

static void reads_back(const char *name, struct str arrow, struct str text)
{
	struct buf out;
	struct err e = { 0 };
	buf_init(&out, LIMIT);
	enum status s = arrow_dump(arrow, LIMIT, &out, &e);
	if (s != OK || !str_eq(buf_view(&out), text)) {
		print_error("[%s] %s: %s; got %zu bytes, want %zu\n", name, status_name(s),
			err_text(&e, s), out.len, text.len);
		fail();
	}
	buf_deinit(&out);
}

static void reads_every_layout(void **state)
{
	(void)state;
	CHECK(made_each(false, reads_back) >= 14);
}

static void check_damaged(const char *name, struct str bytes)
{
	struct buf out;
	struct err e = { 0 };
	buf_init(&out, LIMIT);
	enum status s = arrow_dump(bytes, LIMIT, &out, &e);
	if (s != OK && (!e.text[0] || s == E_CORRUPT)) {
		print_error("[%s] %s: \"%s\"\n", name, status_name(s), e.text);
		fail();
	}
	buf_deinit(&out);
}

static void survives_damage(const char *name, struct str arrow, struct str text)
{
	(void)text;
	uint64_t random = 0x2545F4914F6CDD1D;
	/* Copies of their own size, so that the sanitizer sees a read beyond. */
	for (size_t len = 0; len < arrow.len; len += 1 + len / 64) {
		uint8_t *copy = malloc(len + 1);
		memcpy(copy, arrow.p, len);
		check_damaged(name, str_make(copy, len));
		free(copy);
	}
	for (int i = 0; i < 300; i++) {
		uint8_t *copy = malloc(arrow.len);
		memcpy(copy, arrow.p, arrow.len);
		for (int j = 0; j < 1 + i % 3; j++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			copy[(random >> 20) % arrow.len] ^= (uint8_t)(1 << (random >> 60 & 7));
		}
		check_damaged(name, str_make(copy, arrow.len));
		free(copy);
	}
}

static void survives_every_damage(void **state)
{
	(void)state;
	CHECK(made_each(false, survives_damage) >= 14);
}

static void ends_at_its_limit(const char *name, struct str arrow, struct str text)
{
	struct buf out;
	struct err e = { 0 };
	(void)text;
	for (size_t limit = 0; limit < 100000; limit += 3001) {
		buf_init(&out, LIMIT);
		enum status s = arrow_dump(arrow, limit, &out, &e);
		if (s != OK && s != E_LIMIT) {
			print_error("[%s] %s: %s\n", name, status_name(s), e.text);
			fail();
		}
		buf_deinit(&out);
	}
}

static void keeps_to_its_memory(void **state)
{
	(void)state;
	CHECK(made_each(false, ends_at_its_limit) >= 14);
}

TEST_MAIN(cmocka_unit_test(reads_every_layout), cmocka_unit_test(survives_every_damage),
	cmocka_unit_test(keeps_to_its_memory))
