/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "gen/elf.h"
#include "unwind/cfi.h"

static const struct cfi_registers regs = { .sp = 7, .fp = 6, .bx = CFI_NO_REGISTER };
static const uint8_t standard[] = { 0x0c, 7, 8, 0x90, 1 };

#define SECTION(c)                                                                         \
	{                                                                                  \
		buf_view(&(c).bytes), (c).address, !(c).is_debug_frame, false, 0x11110000, \
			0x22220000                                                         \
	}

static void walks_the_entries(void **state)
{
	(void)state;
	for (int debug = 0; debug < 2; debug++) {
		struct gen_cfi c;
		gen_cfi_init(&c, debug ? 0 : 0x4000);
		c.is_debug_frame = debug;
		size_t cie = gen_cie(&c);
		gen_fde(&c, cie, 0x1000, 0x10, NULL, 0);
		if (!debug)
			buf_u32(&c.bytes, 0); /* the end of one object's part */
		gen_fde(&c, cie, 0x2000, 0x20, NULL, 0);
		struct cfi_section s = SECTION(c);
		size_t offset = 0;
		bool broken = false;
		struct cfi_entry e;
		struct cfi_cie read;
		struct cfi_fde fde;
		CHECK(cfi_next_entry(&s, &offset, &e, &broken) && e.is_cie && e.offset == cie);
		CHECK(cfi_read_cie(&s, &regs, cie, &read) == OK);
		CHECK(read.code_align == 1 && read.data_align == -8 && read.ra_register == 16);
		CHECK(cfi_next_entry(&s, &offset, &e, &broken) && !e.is_cie && e.cie_offset == cie);
		CHECK(cfi_read_fde(&s, &e, &read, &fde) == OK);
		CHECK(fde.start == 0x1000 && fde.length == 0x10);
		CHECK(cfi_next_entry(&s, &offset, &e, &broken) && !e.is_cie && e.cie_offset == cie);
		CHECK(cfi_read_fde(&s, &e, &read, &fde) == OK);
		CHECK(fde.start == 0x2000 && fde.length == 0x20);
		CHECK(!cfi_next_entry(&s, &offset, &e, &broken) && !broken);
		buf_deinit(&c.bytes);
	}
}

static void an_end_mark_may_be_the_end(void **state)
{
	(void)state;
	struct gen_cfi c;
	gen_cfi_init(&c, 0x4000);
	gen_cie(&c);
	buf_u32(&c.bytes, 0);
	buf_u32(&c.bytes, 0x7fffffff); /* not ours */
	struct cfi_section s = SECTION(c);
	s.ends_at_zero = true;
	size_t offset = 0;
	bool broken = false;
	struct cfi_entry e;
	CHECK(cfi_next_entry(&s, &offset, &e, &broken));
	CHECK(!cfi_next_entry(&s, &offset, &e, &broken) && !broken);
	buf_deinit(&c.bytes);
}

static void lengths_of_64_bits(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 1000);
	buf_u32(&b, UINT32_MAX);
	buf_u64(&b, 20);
	buf_u32(&b, 0); /* a CIE; in .eh_frame the id has 4 bytes always */
	buf_zero(&b, 16);
	struct cfi_section s = { buf_view(&b), 0, true, false, 0, 0 };
	size_t offset = 0;
	bool broken = false;
	struct cfi_entry e;
	CHECK(cfi_next_entry(&s, &offset, &e, &broken) && e.is_cie && e.body == 16 && e.end == 32);
	buf_clear(&b);
	buf_u32(&b, UINT32_MAX);
	buf_u64(&b, 20);
	buf_u64(&b, UINT64_MAX);
	buf_zero(&b, 12);
	s = (struct cfi_section){ buf_view(&b), 0, false, false, 0, 0 };
	offset = 0;
	CHECK(cfi_next_entry(&s, &offset, &e, &broken) && e.is_cie && e.body == 20 && e.end == 32);
	CHECK(!cfi_next_entry(&s, &offset, &e, &broken) && !broken);
	buf_deinit(&b);
}

static void an_entry_may_pass_the_end(void **state)
{
	(void)state;
	static const uint32_t lengths[] = { 1, 3, 17, 0x7fffffff, 0xfffffff0, 0xfffffffe };
	for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
		struct buf b;
		buf_init(&b, 1000);
		buf_u32(&b, lengths[i]);
		buf_zero(&b, 16);
		struct cfi_section s = { buf_view(&b), 0, true, false, 0, 0 };
		size_t offset = 0;
		bool broken = false;
		struct cfi_entry e;
		CHECK(!cfi_next_entry(&s, &offset, &e, &broken) && broken);
		buf_deinit(&b);
	}
}

/* clang-format off */
static const struct {
	const char *name; uint8_t encoding; uint8_t bytes[16]; uint64_t want; size_t len; bool fails;
} pointers[] = {
	{ "absptr",           0x00, { 1, 2, 3, 4, 5, 6, 7, 8 }, 0x0807060504030201, 8, false },
	{ "uleb128",          0x01, { 0x80, 0x01 }, 128, 2, false },
	{ "udata2",           0x02, { 0xff, 0xff }, 0xffff, 2, false },
	{ "udata4",           0x03, { 0xff, 0xff, 0xff, 0xff }, 0xffffffff, 4, false },
	{ "udata8",           0x04, { 1 }, 1, 8, false },
	{ "sleb128",          0x09, { 0x7f }, UINT64_MAX, 1, false },
	{ "sdata2",           0x0a, { 0xfe, 0xff }, (uint64_t)-2, 2, false },
	{ "sdata4",           0x0b, { 0xfe, 0xff, 0xff, 0xff }, (uint64_t)-2, 4, false },
	{ "sdata8",           0x0c, { 2 }, 2, 8, false },
	{ "pcrel sdata4",     0x1b, { 0x10 }, 0x4000 + 4 + 0x10, 4, false },
	{ "textrel udata4",   0x23, { 0x10 }, 0x11110010, 4, false },
	{ "datarel sdata4",   0x3b, { 0x10 }, 0x22220010, 4, false },
	{ "funcrel",          0x43, { 0x10 }, 0, 4, true },
	{ "aligned",          0x50, { 0, 0, 0, 0, 9 }, 9, 12, false },
	{ "indirect",         0x9b, { 0x10 }, 0, 0, true },
	{ "omitted",          0xff, { 0x10 }, 0, 0, true },
	{ "format of nothing", 0x05, { 0x10 }, 0, 0, true },
};
/* clang-format on */

static void pointers_of_all_encodings(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, pointers) {
		uint8_t bytes[20] = { 0 };
		memcpy(bytes + 4, c->bytes, sizeof(c->bytes));
		struct cfi_section s = { str_make(bytes, sizeof(bytes)), 0x4000, true, false,
			0x11110000, 0x22220000 };
		struct reader r = reader_over(bytes, sizeof(bytes));
		reader_seek(&r, 4);
		uint64_t got = cfi_read_pointer(&s, &r, c->encoding);
		CHECK_CASE(c, r.failed == c->fails);
		CHECK_CASE(c, c->fails || (got == c->want && reader_offset(&r) == 4 + c->len));
	}
	/* without a base there is no address */
	struct cfi_section s = { STR("12345678"), 0, true, false, 0, 0 };
	struct reader r = reader_over(s.bytes.p, s.bytes.len);
	cfi_read_pointer(&s, &r, 0x3b);
	CHECK(r.failed);
}

static void pointers_of_fdes(void **state)
{
	(void)state;
	static const uint8_t encodings[] = { 0x1b, 0x00, 0x0b, 0x03, 0x1c, 0x10 };
	for (size_t i = 0; i < ARRAY_COUNT(encodings); i++) {
		struct gen_cfi c;
		gen_cfi_init(&c, 0x4000);
		c.encoding = encodings[i];
		size_t cie = gen_cie(&c);
		size_t offset = gen_fde(&c, cie, 0x401000, 0x123, NULL, 0);
		struct cfi_section s = SECTION(c);
		struct cfi_cie read;
		struct cfi_fde fde;
		struct cfi_entry e;
		bool broken = false;
		CHECK(cfi_read_cie(&s, &regs, cie, &read) == OK);
		CHECK(read.pointer_encoding == encodings[i] && read.has_augmentation_data);
		CHECK(cfi_next_entry(&s, &offset, &e, &broken));
		CHECK(cfi_read_fde(&s, &e, &read, &fde) == OK);
		CHECK(fde.start == 0x401000 && fde.length == 0x123);
		buf_deinit(&c.bytes);
	}
}

/* clang-format off */
static const struct {
	const char *name; const char *augmentation; uint8_t data[12]; size_t len;
	enum status want; uint8_t encoding; bool signal;
} augmentations[] = {
	{ "none",                     "",      { 0 }, 0, OK, 0, false },
	{ "zR",                       "zR",    { 0x1b }, 1, OK, 0x1b, false },
	{ "C++",                      "zPLR",  { 0x9b, 1, 2, 3, 4, 0x1b, 0x1b }, 7, OK, 0x1b, false },
	{ "personality by address",   "zPR",   { 0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0x0b }, 10, OK, 0x0b, false },
	{ "signal frame",             "zRS",   { 0x1b }, 1, OK, 0x1b, true },
	{ "letter behind the known",  "zRB",   { 0x1b }, 1, OK, 0x1b, false },
	{ "letter before the known",  "zQR",   { 0x1b }, 1, OK, 0, false },
	{ "gcc 2",                    "eh",    { 1, 2, 3, 4, 5, 6, 7, 8 }, 8, OK, 0, false },
	{ "no z",                     "R",     { 0x1b }, 1, E_INVALID, 0, false },
	{ "data shorter than it says", "zPLR", { 0x9b, 1 }, 2, E_INVALID, 0, false },
};
/* clang-format on */

static void reads_augmentations(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, augmentations) {
		struct gen_cfi g;
		gen_cfi_init(&g, 0x4000);
		size_t at = 0;
		if (strcmp(c->augmentation, "eh") == 0) { /* its data come before the factors */
			at = gen_entry_begin(&g);
			buf_u32(&g.bytes, 0);
			buf_u8(&g.bytes, 1);
			buf_put(&g.bytes, "eh", 3);
			buf_put(&g.bytes, c->data, 8);
			buf_put(&g.bytes, "\x01\x78\x10", 3);
			buf_put(&g.bytes, standard, sizeof(standard));
			gen_entry_end(&g, at);
		} else {
			at = gen_cie_with(
				&g, c->augmentation, c->data, c->len, standard, sizeof(standard));
		}
		struct cfi_section s = SECTION(g);
		struct cfi_cie cie;
		CHECK_CASE(c, cfi_read_cie(&s, &regs, at, &cie) == c->want);
		if (c->want == OK) {
			CHECK_CASE(c, cie.pointer_encoding == c->encoding);
			CHECK_CASE(c, cie.is_signal == c->signal);
			CHECK_CASE(c, cie.initial.cfa_register == 7 && cie.initial.cfa_offset == 8);
			CHECK_CASE(c, cie.initial.ra.offset == -8);
		}
		buf_deinit(&g.bytes);
	}
}

static void versions(void **state)
{
	(void)state;
	for (uint8_t version = 0; version < 6; version++) {
		struct gen_cfi c;
		gen_cfi_init(&c, 0);
		size_t at = gen_entry_begin(&c);
		buf_u32(&c.bytes, 0);
		buf_u8(&c.bytes, version);
		buf_u8(&c.bytes, 0);
		if (version == 4)
			buf_put(&c.bytes, "\x08\x00", 2);
		buf_put(&c.bytes, "\x01\x78\x10", 3);
		buf_put(&c.bytes, standard, sizeof(standard));
		gen_entry_end(&c, at);
		struct cfi_section s = SECTION(c);
		struct cfi_cie cie;
		bool good = version == 1 || version == 3 || version == 4;
		CHECK((cfi_read_cie(&s, &regs, at, &cie) == OK) == good);
		buf_deinit(&c.bytes);
	}
}

static void a_cie_is_where_a_cie_is(void **state)
{
	(void)state;
	struct gen_cfi c;
	gen_cfi_init(&c, 0);
	size_t cie = gen_cie(&c);
	size_t fde = gen_fde(&c, cie, 0x1000, 1, NULL, 0);
	struct cfi_section s = SECTION(c);
	struct cfi_cie read;
	CHECK(cfi_read_cie(&s, &regs, cie, &read) == OK);
	CHECK(cfi_read_cie(&s, &regs, fde, &read) == E_INVALID);
	CHECK(cfi_read_cie(&s, &regs, cie + 1, &read) == E_INVALID);
	CHECK(cfi_read_cie(&s, &regs, s.bytes.len, &read) == E_INVALID);
	CHECK(cfi_read_cie(&s, &regs, SIZE_MAX, &read) == E_INVALID);
	buf_deinit(&c.bytes);
}

static void an_fde_may_wrap(void **state)
{
	(void)state;
	struct gen_cfi c;
	gen_cfi_init(&c, 0);
	c.encoding = 0;
	size_t cie = gen_cie(&c);
	size_t offset = gen_fde(&c, cie, UINT64_MAX - 10, 20, NULL, 0);
	struct cfi_section s = SECTION(c);
	struct cfi_cie read;
	struct cfi_fde fde;
	struct cfi_entry e;
	bool broken = false;
	CHECK(cfi_read_cie(&s, &regs, cie, &read) == OK);
	CHECK(cfi_next_entry(&s, &offset, &e, &broken));
	CHECK(cfi_read_fde(&s, &e, &read, &fde) == E_INVALID);
	buf_deinit(&c.bytes);
}

TEST_MAIN(cmocka_unit_test(walks_the_entries), cmocka_unit_test(an_end_mark_may_be_the_end),
	cmocka_unit_test(lengths_of_64_bits), cmocka_unit_test(an_entry_may_pass_the_end),
	cmocka_unit_test(pointers_of_all_encodings), cmocka_unit_test(pointers_of_fdes),
	cmocka_unit_test(reads_augmentations), cmocka_unit_test(versions),
	cmocka_unit_test(a_cie_is_where_a_cie_is), cmocka_unit_test(an_fde_may_wrap))
