/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "codec/codec.h"
#include "unwind/pages.h"

#define HEADER_BYTES 64

static struct unwind_table *make(void)
{
	struct unwind_table *t = calloc(1, sizeof(*t));
	struct pages *p = pages_new(PAGES_BYTES_MAX);
	CHECK(t && p);
	struct unwind_rule rule = { UNWIND_CFA_SP, UNWIND_FP_SAME, 8, 0, -8 };
	for (uint32_t i = 0; i < 400; i++) {
		rule.cfa_off = (int16_t)(8 + 8 * (i % 5));
		pages_put(p, 0x50000 + i * (i < 300 ? 200 : 300), rule);
	}
	pages_put(p, 0x90000, (struct unwind_rule){ 0 });
	pages_put(p, 0xb0000, rule);
	pages_put(p, 0xb0001, (struct unwind_rule){ 0 });
	CHECK(pages_finish(p, t) == OK);
	pages_free(p);
	t->fde_count = 77;
	t->bad_fdes = 3;
	return t;
}

static void encode(struct buf *out)
{
	struct unwind_table *t = make();
	buf_init(out, 1 << 20);
	CHECK(unwind_table_encode(t, out) == OK);
	unwind_table_free(t);
}

static void reads_back_what_it_wrote(void **state)
{
	(void)state;
	struct unwind_table *a = make();
	struct unwind_table *b = NULL;
	struct buf bytes;
	struct err e = { 0 };
	encode(&bytes);
	CHECK_OK(unwind_table_decode(buf_view(&bytes), &b, &e), &e);
	CHECK(a->first_page == b->first_page && a->page_count == b->page_count);
	CHECK(a->blob_bytes == b->blob_bytes && a->row_count == b->row_count);
	CHECK(b->fde_count == 77 && b->bad_fdes == 3);
	for (uint32_t i = 0; i < a->page_count; i++) {
		CHECK(a->pages[i].blob_len == b->pages[i].blob_len);
		CHECK(!a->pages[i].blob_len == !b->pages[i].blob);
		CHECK(!b->pages[i].blob || (uintptr_t)b->pages[i].blob % 8 == 0);
	}
	for (uint64_t o = 0x4fff0; o < 0xc0000; o += 7) {
		struct unwind_rule x = unwind_table_find(a, o);
		struct unwind_rule y = unwind_table_find(b, o);
		CHECK(memcmp(&x, &y, sizeof(x)) == 0);
	}
	unwind_table_free(a);
	unwind_table_free(b);
	buf_deinit(&bytes);
}

static void appends_and_keeps_to_the_limit(void **state)
{
	(void)state;
	struct unwind_table *t = make();
	struct unwind_table *back = NULL;
	struct buf bytes;
	buf_init(&bytes, 1 << 20);
	buf_cstr(&bytes, "before");
	CHECK(unwind_table_encode(t, &bytes) == OK);
	CHECK(unwind_table_decode(str_sub(buf_view(&bytes), 6, bytes.len), &back, NULL) == OK);
	unwind_table_free(back);
	buf_deinit(&bytes);
	buf_init(&bytes, 100);
	CHECK(unwind_table_encode(t, &bytes) == E_LIMIT);
	buf_deinit(&bytes);
	unwind_table_free(t);
}

/* The parts are the file; a table takes over what it is read from, unless it is broken. */
static void parts_are_the_file(void **state)
{
	(void)state;
	struct unwind_table *t = make(), *back = NULL;
	struct buf whole, head, tail;
	struct str blobs;
	encode(&whole);
	buf_init(&head, 1 << 20);
	buf_init(&tail, 100);
	CHECK(unwind_table_encode_parts(t, &head, &blobs, &tail) == OK);
	CHECK(blobs.len && (const uint8_t *)blobs.p == (const uint8_t *)t->memory);
	buf_str(&head, blobs);
	buf_str(&head, buf_view(&tail));
	CHECK(str_eq(buf_view(&head), buf_view(&whole)));
	head.data[head.len - 1] ^= 1;
	CHECK(unwind_table_decode_take(&head, &back, NULL) == E_CORRUPT);
	CHECK(!back && head.len == whole.len);
	head.data[head.len - 1] ^= 1;
	const void *bytes = head.data;
	CHECK(unwind_table_decode_take(&head, &back, NULL) == OK);
	CHECK(back->memory == bytes && !head.data && head.len == 0);
	CHECK(hash128_eq(unwind_table_hash(back), unwind_table_hash(t)));
	unwind_table_free(back);
	unwind_table_free(t);
	buf_deinit(&whole);
	buf_deinit(&head);
	buf_deinit(&tail);
}

static void a_table_without_a_row_is_kept(void **state)
{
	(void)state;
	struct unwind_table empty = { .first_page = 3 }, *back = NULL;
	struct buf bytes;
	buf_init(&bytes, 1000);
	CHECK(unwind_table_encode(&empty, &bytes) == OK);
	CHECK(unwind_table_decode_take(&bytes, &back, NULL) == OK);
	CHECK(back->first_page == 3 && back->page_count == 0);
	unwind_table_free(back);
	buf_deinit(&bytes);
}

static void every_changed_byte_is_noticed(void **state)
{
	(void)state;
	struct buf bytes;
	encode(&bytes);
	for (size_t i = 0; i < bytes.len; i++) {
		struct unwind_table *t = NULL;
		bytes.data[i] ^= 0x10;
		CHECK(unwind_table_decode(buf_view(&bytes), &t, NULL) == E_CORRUPT);
		bytes.data[i] ^= 0x10;
	}
	for (size_t len = 0; len < bytes.len; len++) {
		struct unwind_table *t = NULL;
		CHECK(unwind_table_decode(str_make(bytes.data, len), &t, NULL) == E_CORRUPT);
	}
	buf_deinit(&bytes);
}

static void sign(struct buf *b)
{
	uint32_t crc = codec_crc32c(0, b->data, b->len - 4);
	memcpy(b->data + b->len - 4, &crc, sizeof(crc));
}

/* With a right checksum: what a change does, byte by byte, is either refused or harmless. */
static void a_signed_lie_is_refused_or_harmless(void **state)
{
	(void)state;
	struct buf bytes;
	encode(&bytes);
	size_t refused = 0;
	for (size_t i = 0; i + 4 < bytes.len; i++) {
		uint8_t old = bytes.data[i];
		for (int bit = 0; bit < 8; bit += 3) {
			struct unwind_table *t = NULL;
			bytes.data[i] = old ^ (uint8_t)(1 << bit);
			sign(&bytes);
			enum status s = unwind_table_decode(buf_view(&bytes), &t, NULL);
			refused += s != OK;
			CHECK(s == OK || !t);
			for (uint64_t o = 0x50000; s == OK && o < 0xc0000; o += 333)
				(void)unwind_table_find(t, o);
			unwind_table_free(t);
		}
		bytes.data[i] = old;
	}
	CHECK(refused > bytes.len / 2);
	buf_deinit(&bytes);
}

/* clang-format off */
static const struct {
	const char *name; size_t at; uint64_t value; size_t len; enum status want;
} lies[] = {
	{ "magic",              0,  0,          1, E_CORRUPT },
	{ "version",            8,  1,          4, E_UNSUPPORTED },
	{ "first page",         12, 262144,     4, E_CORRUPT },
	{ "page count",         16, 0xffffffff, 4, E_CORRUPT },
	{ "one page less",      16, 6,          4, E_CORRUPT },
	{ "reserved",           20, 1,          4, E_CORRUPT },
	{ "blob bytes",         24, 1,          8, E_CORRUPT },
	{ "row count",          32, 1,          8, E_CORRUPT },
	{ "a blob of 4 GiB",    64, 0xffffffff, 4, E_CORRUPT },
	{ "no rule",            68, 0,          2, E_CORRUPT },
	{ "more rows",          70, 128,        2, E_CORRUPT },
};
/* clang-format on */

static void refuses_lies_in_the_header(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, lies) {
		struct buf bytes;
		struct unwind_table *t = NULL;
		struct err e = { 0 };
		encode(&bytes);
		memcpy(bytes.data + c->at, &c->value, c->len);
		sign(&bytes);
		CHECK_CASE(
			c, unwind_table_decode(buf_view(&bytes), &t, &e) == c->want && e.text[0]);
		buf_deinit(&bytes);
	}
}

static void refuses_another_length(void **state)
{
	(void)state;
	struct buf bytes;
	struct unwind_table *t = NULL;
	encode(&bytes);
	size_t len = bytes.len;
	buf_zero(&bytes, 8);
	sign(&bytes);
	CHECK(unwind_table_decode(buf_view(&bytes), &t, NULL) == E_CORRUPT);
	bytes.len = len - 1; /* one byte of padding less */
	sign(&bytes);
	CHECK(unwind_table_decode(buf_view(&bytes), &t, NULL) == E_CORRUPT);
	buf_deinit(&bytes);
}

TEST_MAIN(cmocka_unit_test(reads_back_what_it_wrote),
	cmocka_unit_test(appends_and_keeps_to_the_limit), cmocka_unit_test(parts_are_the_file),
	cmocka_unit_test(a_table_without_a_row_is_kept),
	cmocka_unit_test(every_changed_byte_is_noticed),
	cmocka_unit_test(a_signed_lie_is_refused_or_harmless),
	cmocka_unit_test(refuses_lies_in_the_header), cmocka_unit_test(refuses_another_length))
