/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of .NET, made here: a module, four types, of which one lies in another, four methods. */
#include "jit/jit.h"

#include "test.h"

#define TEXTS "\0App.dll\0<Module>\0Work\0Acme.App\0Inner\0Main\0Fib\0Compare\0Deep\0"
enum {
	APP = 1,
	MODULE_TYPE = 9,
	WORK = 18,
	ACME = 23,
	INNER = 32,
	MAIN = 38,
	FIB = 43,
	COMPARE = 47,
	DEEP = 55
};

static uint8_t bytes[4096];
static size_t len, most; /* most: what can be read */
static bool is_wide;     /* indexes of four bytes into texts */

static void put(uint64_t v, size_t n)
{
	CHECK(len + n <= sizeof(bytes));
	memcpy(bytes + len, &v, n);
	len += n;
}

static void put_text(uint64_t at)
{
	put(at, is_wide ? 4 : 2);
}

static void put_type(uint64_t name, uint64_t space, uint64_t method)
{
	put(0, 4);
	put_text(name);
	put_text(space);
	put(0, 2);
	put(1, 2);
	put(method, 2);
}

static void put_method(uint64_t name)
{
	put(0x2050, 4);
	put(0, 4);
	put_text(name);
	put(0, 2);
	put(1, 2);
}

static void put_tables(void)
{
	put(0, 4);
	put(2, 2);
	put(is_wide, 1);
	put(1, 1);
	put((uint64_t)1 << 0x29 | 1 << 0x0c | 1 << 6 | 1 << 2 | 1, 8);
	put(0, 8);
	put(1, 4);
	put(4, 4);
	put(4, 4);
	put(1, 4); /* an attribute */
	put(2, 4);
	put(0, 2);
	put_text(APP);
	put(0, 6);
	put_type(MODULE_TYPE, 0, 1);
	put_type(WORK, ACME, 1);
	put_type(INNER, 0, 3);
	put_type(DEEP, 0, 4);
	put_method(MAIN);
	put_method(FIB);
	put_method(COMPARE);
	put_method(DEEP);
	put(0, 6);
	put(3, 2); /* Inner lies in Work, Deep in Inner */
	put(2, 2);
	put(4, 2);
	put(3, 2);
}

static void make(bool wide)
{
	is_wide = wide;
	len = 0;
	put(0x424a5342, 4);
	put(0x00010001, 4);
	put(0, 4);
	put(12, 4);
	put(0x302e3476, 4);
	put(0x3330332e, 4);
	put(0x3931, 4);
	put(0, 2);
	put(2, 2);
	size_t place = len;
	put(0, 8);
	put(0x7e23, 4); /* "#~" */
	put(0, 8);
	memcpy(bytes + len, "#Strings\0\0\0", 12);
	len += 12;
	uint32_t at[2] = { (uint32_t)len, 0 };
	put_tables();
	at[1] = (uint32_t)len - at[0];
	memcpy(bytes + place, at, sizeof(at));
	at[0] = (uint32_t)len;
	at[1] = sizeof(TEXTS);
	memcpy(bytes + place + 12, at, sizeof(at));
	memcpy(bytes + len, TEXTS, sizeof(TEXTS));
	len += sizeof(TEXTS);
	most = len;
}

static bool read_bytes(void *ctx, uint64_t offset, void *out, size_t n)
{
	(void)ctx;
	memset(out, 0, n);
	if (offset >= most)
		return false;
	memcpy(out, bytes + offset, MIN(n, most - (size_t)offset));
	return true;
}

static struct str name_of(uint32_t method, struct buf *out)
{
	buf_clear(out);
	return jit_dotnet_name(read_bytes, NULL, method, out) ? buf_view(out) : STR("none");
}

static void names_methods(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 4096);
	for (int wide = 0; wide < 2; wide++) {
		make(wide);
		CHECK_STR(name_of(1, &b), "[App.dll] Acme.App.Work::Main");
		CHECK_STR(name_of(2, &b), "[App.dll] Acme.App.Work::Fib");
		CHECK_STR(name_of(3, &b), "[App.dll] Acme.App.Work+Inner::Compare");
		CHECK_STR(name_of(4, &b), "[App.dll] Acme.App.Work+Inner+Deep::Deep");
		CHECK_STR(name_of(0, &b), "none");
		CHECK_STR(name_of(5, &b), "none");
		CHECK_STR(name_of(UINT32_MAX, &b), "none");
	}
	struct jit_name n = jit_name_parse(STR("[App.dll] Acme.App.Work+Inner::Compare"));
	CHECK_STR(n.function, "Acme.App.Work+Inner::Compare");
	assert_int_equal(n.kind, FRAME_DOTNET);
}

/* Whatever is missing or wrong, it ends, and reads nothing beyond. */
static void bears_what_is_broken(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 65536);
	make(false);
	size_t whole = len;
	for (most = 0; most < whole; most++)
		(void)name_of(4, &b);
	for (size_t i = 0; i < whole; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			make(false);
			bytes[i] ^= (uint8_t)(1u << bit);
			for (uint32_t method = 1; method < 5; method++)
				(void)name_of(method, &b);
		}
	}
	make(false);
	bytes[most - sizeof(TEXTS) - 6] = 4; /* Deep lies in itself */
	CHECK(name_of(4, &b).len > 0);
}

TEST_MAIN(cmocka_unit_test(names_methods), cmocka_unit_test(bears_what_is_broken))
