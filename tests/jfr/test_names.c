/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "jfr/internal.h"

static void check(struct jfr_chunk *c, const char *name, const char *want)
{
	struct str s = str_of(name);
	assert_int_equal(jfr_stable_name(c, &s), OK);
	CHECK_STR(s, want);
}

static void cuts_what_is_made_anew(void **state)
{
	(void)state;
	struct jfr_chunk c = { 0 };
	arena_init(&c.arena, 1 << 20);
	check(&c, "org/example/OrderService$$Lambda$669.0x0000000800fd7318",
		"org/example/OrderService$$Lambda_");
	check(&c, "Fib$$Lambda.0x00007ffa600c4da0", "Fib$$Lambda_");
	check(&c, "A$$Lambda$12/800fd7318", "A$$Lambda_");
	check(&c, "A$$Lambda7", "A$$Lambda_");
	check(&c, "A$$Lambda$1.0xab$$Lambda$2.0xcd", "A$$Lambda$1.0xab$$Lambda_");
	check(&c, "jdk/internal/reflect/GeneratedMethodAccessor31",
		"jdk/internal/reflect/GeneratedMethodAccessor_");
	check(&c, "a/Bean$$EnhancerBySpringCGLIB$$1a2b", "a/Bean$$EnhancerBySpringCGLIB$$_");
	check(&c, "./tmp/libzstd-jni-1.5.1-16931311898282279136.so (deleted)", "libzstd-jni-_.so");
	check(&c, "/tmp/libasyncProfiler-linux-x64-17b9.so", "libasyncProfiler-_.so");
	check(&c, "/tmp/amazonCorrettoCryptoProviderNativeLibraries.7382c2f79097f415/libcrypto.so",
		"libamazonCorrettoCryptoProvider_.so");
	arena_deinit(&c.arena);
}

static void leaves_other_names(void **state)
{
	(void)state;
	static const char *const names[] = { "", "java/lang/Thread", "$$Lambda$1.0x1", "A$$Lambda",
		"A$$Lambda$", "A$$Lambda$12", "A$$Lambda$12.", "A$$Lambda$12.0x",
		"A$$Lambda$12.0xg", "A$$LambdaForm", "libc.so.6", "libc.so", "libzstd-jni-1",
		"jdk/internal/reflect/GeneratedMethodAccessor",
		"jdk/internal/reflect/GeneratedMethodAccessor3a" };
	struct jfr_chunk c = { 0 };
	struct err e = { 0 };
	arena_init(&c.arena, 1 << 20);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		check(&c, names[i], names[i]);
	arena_deinit(&c.arena);
	arena_init(&c.arena, 1);
	c.e = &e;
	struct str lambda = STR("A$$Lambda7");
	assert_int_equal(jfr_stable_name(&c, &lambda), E_LIMIT);
	arena_deinit(&c.arena);
}

TEST_MAIN(cmocka_unit_test(cuts_what_is_made_anew), cmocka_unit_test(leaves_other_names))
