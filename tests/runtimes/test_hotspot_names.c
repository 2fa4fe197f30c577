/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes.h"
#include "test.h"

static bool is_named_in(const char *file, const char *told, const char *want)
{
	struct buf b;
	buf_init(&b, 4096);
	hotspot_name(&b, str_of(told), str_of(file));
	bool same = str_eq(buf_view(&b), str_of(want));
	if (!same)
		print_error("%s: %.*s\n", told, STR_ARG(buf_view(&b)));
	buf_deinit(&b);
	return same;
}

static bool is_named(const char *told, const char *want)
{
	return is_named_in("Main.java", told, want);
}

static void writes_classes_with_dots(void **state)
{
	(void)state;
	CHECK(is_named("java/util/HashMap$Node.getKey", "java.util.HashMap$Node.getKey"));
	CHECK(is_named("Main.<init>", "Main.<init>"));
	CHECK(is_named("Main.<clinit>", "Main.<clinit>"));
	CHECK(is_named("a/b/C.", "a.b.C."));
	CHECK(is_named(".x", ".x"));
	CHECK(is_named("", ""));
	CHECK(is_named("nodot", "nodot"));
}

static void leaves_out_numbers_of_hidden_classes(void **state)
{
	(void)state;
	CHECK(is_named("Main$$Lambda$14+0x0000000800c00a08.run", "Main$$Lambda.run"));
	CHECK(is_named("a/Main$$Lambda+0x00007f1f5c000a00.run", "a.Main$$Lambda.run"));
	CHECK(is_named("Main$$Lambda$7/0x0000000840066c40.run", "Main$$Lambda.run"));
	CHECK(is_named("Main$$Lambda$1/531885035.run", "Main$$Lambda.run"));
	CHECK(is_named("java/lang/invoke/LambdaForm$DMH+0x0000000800c10000.invokeStatic",
		"java.lang.invoke.LambdaForm$DMH.invokeStatic"));
	CHECK(is_named("a/Version$1.run", "a.Version$1.run"));
	CHECK(is_named("a/Face.run", "a.Face.run"));
}

static void writes_scala_and_clojure_as_they_are_spelt(void **state)
{
	(void)state;
	CHECK(is_named_in("Main.scala", "app/Main$.run", "app.Main.run"));
	CHECK(is_named_in("List.scala", "scala/List.$colon$colon", "scala.List.::"));
	CHECK(is_named_in("Main.scala", "app/Main$.$anonfun$run$1", "app.Main.$anonfun$run$1"));
	CHECK(is_named_in("core.clj", "my_app/core$swap_BANG_.invoke", "my-app.core/swap!"));
	CHECK(is_named_in("core.clj", "my_app/core$f$fn__42.invokeStatic", "my-app.core/f/fn"));
	CHECK(is_named_in("core.clj", "a/core$_main.doInvoke", "a.core/-main"));
	CHECK(is_named_in("core.clj", "a/core__init.load", "a.core__init.load"));
	CHECK(is_named_in("Main.kt", "app/MainKt$main$1.invoke", "app.MainKt$main$1.invoke"));
	CHECK(is_named_in("", "app/Main$.run", "app.Main$.run"));
}

static void writes_utf8_whatever_comes(void **state)
{
	(void)state;
	CHECK(is_named("a/B\n\x01.c\x7f", "a.B??.c?"));
	CHECK(is_named("caf\xc3\xa9/B.d", "caf\xc3\xa9.B.d"));
	struct buf b;
	buf_init(&b, 4096);
	hotspot_name(&b, STR("a\xff\xc3.b\xed\xa0\xbd"), STR(""));
	CHECK(str_is_utf8(buf_view(&b)));
	buf_deinit(&b);
}

static void cuts_names_of_stubs(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 4096);
	hotspot_stub_name(&b, STR("vtable chunks\0garbage"));
	CHECK(str_eq(buf_view(&b), STR("vtable chunks")));
	buf_deinit(&b);
}

TEST_MAIN(cmocka_unit_test(writes_classes_with_dots),
	cmocka_unit_test(leaves_out_numbers_of_hidden_classes),
	cmocka_unit_test(writes_scala_and_clojure_as_they_are_spelt),
	cmocka_unit_test(writes_utf8_whatever_comes), cmocka_unit_test(cuts_names_of_stubs))
