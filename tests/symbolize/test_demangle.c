/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "symbolize/symbolize.h"

/* clang-format off */
static const struct {
	const char *name, *in, *want;
} cases[] = {
	{ "plain", "main", "main" },
	{ "empty", "", "" },
	{ "one letter", "_", "_" },
	{ "clone", "foo.isra.0", "foo" },
	{ "clone of a clone", "foo.part.0.cold", "foo" },
	{ "several", "foo.constprop.1.isra.0.lto_priv.23", "foo" },
	{ "a number is a name of its own", "helper.1", "helper.1" },
	{ "a Go name", "runtime.mallocgc", "runtime.mallocgc" },
	{ "a Go name with dots and stars", "net/http.(*conn).serve.func1", "net/http.(*conn).serve.func1" },
	{ "Go's function of a copy's name", "runtime.clone", "runtime.clone" },
	{ "Go's method of one", "crypto/tls.(*clientHelloMsg).clone",
		"crypto/tls.(*clientHelloMsg).clone" },
	{ "Go's method, with a word that may stand alone", "main.(*pool).cold", "main.(*pool).cold" },
	{ "words that need a number", "a.part.isra.constprop", "a.part.isra.constprop" },
	{ "an old GCC's clone", "foo.clone.3", "foo" },
	{ "LLVM's cold parts", "foo.cold.1", "foo" },
	{ "an alias", "foo.localalias", "foo" },
	{ "PLT", "malloc@plt", "malloc@plt" },
	{ "method of a template", "_ZN3FooIiE3barEv", "Foo<int>::bar" },
	{ "default arguments go",
		"_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
		"std::vector<int>::_M_realloc_insert<int const&>" },
	{ "typedefs of the library",
		"_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EED2Ev",
		"std::vector<std::string>::~vector" },
	{ "long arguments",
		"_ZN4llvm12DenseMapBaseINS_8DenseMapIPKNS_10BasicBlockEjNS_12DenseMapInfoIS4_vEENS_6detail"
		"12DenseMapPairIS4_jEEEES4_jS6_S9_E16FindAndConstructERKS4_",
		"llvm::DenseMapBase<…>::FindAndConstruct" },
	{ "anonymous namespace", "_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo" },
	{ "operator<<", "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
		"std::operator<< <std::char_traits<char>>" },
	{ "operator<", "_ZltRK1AS1_", "operator<" },
	{ "operator bool", "_ZN3FoocvbEv", "Foo::operator bool" },
	{ "lambda", "_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()" },
	{ "thunk", "_ZThn16_N3Foo3barEv", "non-virtual thunk to Foo::bar()" },
	{ "clone of C++", "_ZN3FooIiE3barEv.constprop.0.cold", "Foo<int>::bar" },
	{ "Rust, legacy",
		"_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$..$u7b$$u7b$closure$u7d$$u7d$"
		"$GT$17h0123456789abcdefE",
		"core::ptr::drop_in_place<…>" },
	{ "Rust, legacy, of LLVM",
		"_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop17h0123456789abcdefE"
		".llvm.1234567890",
		"<alloc::vec::Vec<T> as core::ops::Drop>::drop" },
	{ "Rust, v0", "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
	{ "Rust, v0, generic", "_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>" },
	{ "Rust, v0, trait", "_RNvXs_CsjKf_3fooINtB4_3BarhENtB4_3Baz3qux", "<foo::Bar<u8> as foo::Baz>::qux" },
	{ "not mangled after all", "_Zebra", "_Zebra" },
	{ "cut short", "_ZN3Foo", "_ZN3Foo" },
};
/* clang-format on */

static void reads_well(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1 << 20);
	FOR_EACH_CASE (c, cases) {
		struct str got = symbolize_demangle(str_of(c->in), &a);
		if (!str_eq(got, str_of(c->want)))
			print_error("got %.*s\n", STR_ARG(got));
		CHECK_CASE(c, str_eq(got, str_of(c->want)));
	}
	arena_deinit(&a);
}

/* 40 levels, each of them twice the one below: 2^40 bytes if it were written out. */
static void survives_explosions(void **state)
{
	(void)state;
	char name[4096] = "_Z1fI1aI";
	size_t n = strlen(name);
	n += (size_t)snprintf(name + n, sizeof(name) - n, "iiE");
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	for (int i = 0; i < 34; i++)
		n += (size_t)snprintf(
			name + n, sizeof(name) - n, "S_IS%c_S%c_E", digits[i + 1], digits[i + 1]);
	snprintf(name + n, sizeof(name) - n, "EvT_");
	struct arena a;
	arena_init(&a, 1 << 20);
	struct str got = symbolize_demangle(str_of(name), &a);
	CHECK(got.len <= 1100);

	/* Rust: a tuple of a tuple of … by back references. */
	n = (size_t)snprintf(name, sizeof(name), "_RINvC1a1bTuuE");
	for (int i = 0; i < 30; i++)
		n += (size_t)snprintf(name + n, sizeof(name) - n, "TB8_B8_E");
	snprintf(name + n, sizeof(name) - n, "E");
	got = symbolize_demangle(str_of(name), &a);
	CHECK(got.len <= 1100);

	memset(name, 'P', sizeof(name) - 1);
	memcpy(name, "_Z1f", 4);
	name[sizeof(name) - 1] = '\0';
	got = symbolize_demangle(str_of(name), &a);
	CHECK(got.len <= sizeof(name));
	arena_deinit(&a);
}

/* No memory for a better name: the mangled one. */
static void does_without_memory(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 0);
	CHECK_STR(symbolize_demangle(STR("_ZN3FooIiE3barEv"), &a), "_ZN3FooIiE3barEv");
	arena_deinit(&a);
}

TEST_MAIN(cmocka_unit_test(reads_well), cmocka_unit_test(survives_explosions),
	cmocka_unit_test(does_without_memory))
