/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "codec/codec.h"
#include "gen/elf.h"
#include "objfile/objfile.h"

#include <libdeflate.h>

#define TEXT_BYTES 100000

static uint8_t text[TEXT_BYTES];

/* A compressed section of `type` that says it has `size` bytes. */
static void compressed(struct buf *out, uint32_t type, uint64_t size)
{
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i / 100);
	buf_init(out, 1 << 20);
	buf_u32(out, type);
	buf_u32(out, 0);
	buf_u64(out, size);
	buf_u64(out, 1);
	if (type == 2) {
		CHECK(codec_zstd_compress(text, sizeof(text), 3, out) == OK);
		return;
	}
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
	uint8_t *to = buf_reserve(out, sizeof(text));
	out->len += libdeflate_zlib_compress(c, text, sizeof(text), to, sizeof(text));
	libdeflate_free_compressor(c);
}

static enum status read_it(
	const struct buf *bytes, uint64_t flags, uint32_t type, size_t max, struct buf *out)
{
	struct gen_elf g;
	gen_elf_init(&g);
	gen_section(&g, ".debug_x", type, flags, 0, bytes->data, bytes->len);
	gen_elf_finish(&g);
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	buf_init(out, max);
	buf_cstr(out, "before"); /* appended to */
	enum status s = objfile_read_section(obj, objfile_section(obj, ".debug_x"), out, &e);
	CHECK(s == OK ? e.text[0] == 0 : e.status == s && e.text[0]);
	CHECK(s == OK || out->len == 6);
	objfile_close(obj);
	gen_elf_deinit(&g);
	return s;
}

/* clang-format off */
static const struct {
	const char *name; uint32_t type; uint64_t size; size_t cut; size_t max; enum status want;
} cases[] = {
	{ "zlib",                1, TEXT_BYTES,          0,  1 << 20, OK },
	{ "zstd",                2, TEXT_BYTES,          0,  1 << 20, OK },
	{ "unknown type",        3, TEXT_BYTES,          0,  1 << 20, E_UNSUPPORTED },
	{ "zlib, says less",     1, TEXT_BYTES - 1,      0,  1 << 20, E_INVALID },
	{ "zlib, says more",     1, TEXT_BYTES + 1,      0,  1 << 20, E_INVALID },
	{ "zlib, cut",           1, TEXT_BYTES,          20, 1 << 20, E_INVALID },
	{ "zstd, says less",     2, TEXT_BYTES - 1,      0,  1 << 20, E_INVALID },
	{ "zstd, says more",     2, TEXT_BYTES + 1,      0,  1 << 20, E_INVALID },
	{ "zstd, cut",           2, TEXT_BYTES,          20, 1 << 20, E_INVALID },
	{ "says 2^60",           1, 1ull << 60,          0,  1 << 20, E_LIMIT },
	{ "cannot become that",  1, 1ull << 29,          0,  1 << 30, E_INVALID },
	{ "too large for us",    1, TEXT_BYTES,          0,  1000,    E_LIMIT },
};
/* clang-format on */

static void reads_compressed_sections(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct buf bytes, out;
		compressed(&bytes, c->type, c->size);
		bytes.len -= c->cut;
		CHECK_CASE(
			c, read_it(&bytes, SHF_COMPRESSED, SHT_PROGBITS, c->max, &out) == c->want);
		if (c->want == OK) {
			CHECK_CASE(c, out.len == 6 + TEXT_BYTES);
			CHECK_CASE(c, memcmp(out.data + 6, text, TEXT_BYTES) == 0);
		}
		buf_deinit(&bytes);
		buf_deinit(&out);
	}
}

static void a_compression_header_may_be_cut(void **state)
{
	(void)state;
	struct buf bytes, out;
	buf_init(&bytes, 100);
	buf_zero(&bytes, 23);
	CHECK(read_it(&bytes, SHF_COMPRESSED, SHT_PROGBITS, 1000, &out) == E_INVALID);
	buf_deinit(&out);
	buf_deinit(&bytes);
}

static void reads_plain_sections(void **state)
{
	(void)state;
	struct buf bytes, out;
	buf_init(&bytes, 100);
	buf_cstr(&bytes, "plain");
	CHECK(read_it(&bytes, 0, SHT_PROGBITS, 1000, &out) == OK);
	CHECK_STR(buf_view(&out), "beforeplain");
	buf_deinit(&out);
	CHECK(read_it(&bytes, 0, SHT_NOBITS, 1000, &out) == OK);
	CHECK_STR(buf_view(&out), "before");
	buf_deinit(&out);
	CHECK(read_it(&bytes, 0, SHT_PROGBITS, 8, &out) == E_LIMIT);
	buf_deinit(&out);
	buf_deinit(&bytes);
}

static void a_section_may_pass_the_end(void **state)
{
	(void)state;
	struct objfile_section s = {
		.name = STR(".x"), .type = SHT_PROGBITS, .offset = 60, .size = 8
	};
	struct gen_elf g;
	gen_elf_init(&g);
	g.no_section_headers = true;
	gen_elf_finish(&g);
	struct objfile *obj = NULL;
	CHECK(objfile_open_bytes(g.file.data, 64, "made", &obj, NULL) == OK);
	struct buf out;
	buf_init(&out, 100);
	CHECK(objfile_read_section(obj, &s, &out, NULL) == E_INVALID);
	s.offset = UINT64_MAX;
	CHECK(objfile_read_section(obj, &s, &out, NULL) == E_INVALID);
	buf_deinit(&out);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

TEST_MAIN(cmocka_unit_test(reads_compressed_sections),
	cmocka_unit_test(a_compression_header_may_be_cut), cmocka_unit_test(reads_plain_sections),
	cmocka_unit_test(a_section_may_pass_the_end))
