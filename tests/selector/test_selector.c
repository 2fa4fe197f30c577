/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "selector/selector.h"
#include "test.h"

#include <pthread.h>

#define CPU "parca_agent:samples:count:cpu:nanoseconds:delta"

/* clang-format off */
static const struct {
	const char *name, *in, *want; /* want: the normal form */
} good[] = {
	{ "nothing", "", "{}" },
	{ "empty braces", " { } ", "{}" },
	{ "type alone", CPU, CPU },
	{ "type and braces", CPU "{}", CPU },
	{ "five parts", "memory:inuse_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes" },
	{ "empty parts", "wall:samples:count::", "wall:samples:count::" },
	{ "one matcher", CPU "{comm=\"python3\"}", CPU "{comm=\"python3\"}" },
	{ "all operators", "{a=\"1\",b!=\"2\",c=~\"3.*\",d!~\"^4$\"}", "{a=\"1\",b!=\"2\",c=~\"3.*\",d!~\"^4$\"}" },
	{ "blanks", " " CPU " \t{ a = \"1\" ,\r\n b =~ 'x' } \n", CPU "{a=\"1\",b=~\"x\"}" },
	{ "trailing comma", "{a=\"1\",}", "{a=\"1\"}" },
	{ "single quotes", "{a='it\\'s \"x\"'}", "{a=\"it's \\\"x\\\"\"}" },
	{ "backticks", "{a=`c:\\n\"'`}", "{a=\"c:\\\\n\\\"'\"}" },
	{ "backticks hold lines", "{a=`x\ny`}", "{a=\"x\\ny\"}" },
	{ "named escapes", "{a=\"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\"}", "{a=\"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\"}" },
	{ "numbers", "{a=\"\\x41\\101\\u00e4\\U0001F525\"}", "{a=\"AAä🔥\"}" },
	{ "a byte that is not UTF-8", "{a=\"\\xff\"}", "{a=\"\\xff\"}" },
	{ "a NUL", "{a=\"\\000b\"}", "{a=\"\\x00b\"}" },
	{ "type by name", "{__name__=\"" CPU "\",a=\"1\"}", CPU "{a=\"1\"}" },
	{ "name beside the type", CPU "{a=\"1\",__name__=\"parca_agent\"}", CPU "{a=\"1\"}" },
	{ "another name beside the type", CPU "{__name__=\"x\"}", CPU "{__name__=\"x\"}" },
	{ "type quoted", "{\"" CPU "\", a=\"1\"}", CPU "{a=\"1\"}" },
	{ "type quoted alone", "{'" CPU "'}", CPU },
	{ "type with a unit's signs", "m:\xC2\xB5s:By/s:c#:% {a=\"1\"}", "{\"m:\xC2\xB5s:By/s:c#:%\",a=\"1\"}" },
	{ "type that needs quotes", "{\"a b:c:d:e:f\"}", "{\"a b:c:d:e:f\"}" },
	{ "type that begins with a digit", "{\"9:c:d:e:f\",x=\"\"}", "{\"9:c:d:e:f\",x=\"\"}" },
	{ "label name quoted", "{\"service.name\"=\"x\"}", "{\"service.name\"=\"x\"}" },
	{ "same label twice", "{a!=\"1\",a!=\"2\"}", "{a!=\"1\",a!=\"2\"}" },
	{ "empty values", "{a=\"\",b!=''}", "{a=\"\",b!=\"\"}" },
	{ "empty regex", "{a=~\"\"}", "{a=~\"\"}" },
};

static const struct {
	const char *name, *in, *want;
} bad[] = {
	{ "two parts", "cpu:samples", "at column 1, got 'cpu:samples'" },
	{ "six parts, not delta", "a:b:c:d:e:f", "then :delta or nothing) at column 1, got 'a:b:c:d:e:f'" },
	{ "seven parts", "a:b:c:d:e:delta:g", "got 'a:b:c:d:e:delta:g'" },
	{ "number", "7{}", "expected a profile type or '{' at column 1, got '7'" },
	{ "behind the end", "{} x", "expected the end at column 4, got 'x'" },
	{ "behind the type", CPU " x", "expected the end at column 49, got 'x'" },
	{ "not closed", "{a=\"1\"", "expected ',' or '}' at column 7, got the end" },
	{ "no comma", "{a=\"1\" b=\"2\"}", "expected ',' or '}' at column 8, got 'b'" },
	{ "comma alone", "{,}", "expected a label name or } at column 2, got ','" },
	{ "two commas", "{a=\"1\",,}", "expected a label name or } at column 8, got ','" },
	{ "no operator", "{a}", "expected one of = != =~ !~ at column 3, got '}'" },
	{ "half an operator", "{a!\"x\"}", "expected one of = != =~ !~ at column 3, got '!'" },
	{ "two equals", "{a==\"x\"}", "expected a quoted value at column 4, got '='" },
	{ "bare value", "{a=x}", "expected a quoted value at column 4, got 'x'" },
	{ "open string", "{a=\"x}", "expected the \" that ends the value of column 4 at column 7, got the end" },
	{ "line in string", "{a=\"x\ny\"}", "expected the \" that ends the value of column 4 at column 6, got byte 0x0a" },
	{ "unknown escape", "{a=\"\\q\"}", "expected an escape" },
	{ "other quote escaped", "{a=\"\\'\"}", "expected an escape" },
	{ "escape at the end", "{a=\"\\", "expected an escape" },
	{ "short hex", "{a=\"\\x4\"}", "expected a hexadecimal digit at column 8" },
	{ "octal too large", "{a=\"\\777\"}", "an octal number of at most 377 at column 6" },
	{ "not octal", "{a=\"\\08\"}", "expected an octal digit at column 7, got '8'" },
	{ "surrogate", "{a=\"\\ud800\"}", "the number of a Unicode character at column 7" },
	{ "too large", "{a=\"\\U00110000\"}", "the number of a Unicode character at column 7" },
	{ "columns are characters", "{ä=\"1\"}", "expected a label name or } at column 2, got 'ä'" },
	{ "columns behind characters", "{a=\"ää\" b}", "expected ',' or '}' at column 9, got 'b'" },
	{ "regex", "{a=~\"(\"}", "expected a regular expression (RE2) at column 5: missing ): (" },
	{ "regex looks ahead", "{a=~\"(?=x)\"}", "invalid perl operator" },
	{ "regex too large", "{a=~\"((a{100}){100}){100}\"}", "regular expression (RE2) at column 5" },
	{ "name by regex", "{__name__=~\"x\"}", "takes only =" },
	{ "two types", CPU "{__name__=\"" CPU "\"}", "a second profile type at column 58" },
	{ "empty label name", "{\"\"=\"x\"}", "expected a label name at column 2" },
	{ "empty quoted type", "{\"\"}", "expected a profile type" },
	{ "control byte", "\x01", "got byte 0x01" },
};

static const struct {
	const char *name, *selector, *value;
	bool want;
} matches[] = {
	{ "equal", "{a=\"x\"}", "x", true },
	{ "equal is the whole", "{a=\"x\"}", "xx", false },
	{ "not equal", "{a!=\"x\"}", "y", true },
	{ "not equal, but it is", "{a!=\"x\"}", "x", false },
	{ "empty holds when absent", "{a=\"\"}", "", true },
	{ "empty fails when present", "{a=\"\"}", "x", false },
	{ "not empty holds when present", "{a!=\"\"}", "x", true },
	{ "not empty fails when absent", "{a!=\"\"}", "", false },
	{ "not v holds when absent", "{a!=\"v\"}", "", true },
	{ "regex anywhere", "{a=~\"b+\"}", "abbbc", true },
	{ "regex whole, no", "{a=~\"^b+$\"}", "abbbc", false },
	{ "regex whole, yes", "{a=~\"^ab+c$\"}", "abbbc", true },
	{ "regex any, absent", "{a=~\".*\"}", "", true },
	{ "regex some, absent", "{a=~\".+\"}", "", false },
	{ "not regex", "{a!~\"b\"}", "abc", false },
	{ "not regex, absent", "{a!~\"b\"}", "", true },
	{ "regex, no case", "{a=~\"(?i)ABC\"}", "xabcx", true },
	{ "dot is a character", "{a=~\"^.$\"}", "ä", true },
};
/* clang-format on */

static void parses(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, good) {
		CLEANUP(arena_deinit) struct arena a;
		CLEANUP(buf_deinit) struct buf text;
		arena_init(&a, 1 << 20);
		buf_init(&text, 1 << 20);
		struct selector s;
		struct err e = { 0 };
		enum status status = selector_parse(str_of(c->in), &a, &s, &e);
		if (status != OK)
			print_error("[%s] %s\n", c->name, e.text);
		CHECK_CASE(c, status == OK);
		selector_write(&text, &s);
		CHECK_CASE(c, buf_status(&text) == OK);
		if (!str_eq(buf_view(&text), str_of(c->want)))
			print_error("[%s] got %.*s\n", c->name, STR_ARG(buf_view(&text)));
		CHECK_CASE(c, str_eq(buf_view(&text), str_of(c->want)));
		selector_deinit(&s);
	}
}

static void refuses(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, bad) {
		CLEANUP(arena_deinit) struct arena a;
		arena_init(&a, 1 << 20);
		struct selector s = { .matcher_count = 77 };
		struct err e = { 0 };
		CHECK_CASE(c, selector_parse(str_of(c->in), &a, &s, &e) == E_INVALID);
		CHECK_CASE(c, s.matcher_count == 77);
		if (!strstr(e.text, c->want))
			print_error("[%s] got: %s\n", c->name, e.text);
		CHECK_CASE(c, strstr(e.text, c->want));
		CHECK_CASE(c, selector_parse(str_of(c->in), &a, &s, NULL) == E_INVALID);
	}
}

static void splits_the_type(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	struct selector s;
	struct err e = { 0 };
	CHECK_OK(selector_parse(STR(CPU "{pid=\"1\"}"), &a, &s, &e), &e);
	CHECK(s.has_type && s.delta && s.matcher_count == 1);
	CHECK_STR(s.type[0], "parca_agent");
	CHECK_STR(s.type[1], "samples");
	CHECK_STR(s.type[2], "count");
	CHECK_STR(s.type[3], "cpu");
	CHECK_STR(s.type[4], "nanoseconds");
	selector_deinit(&s);
	CHECK_OK(selector_parse(STR("a:b:c:d:"), &a, &s, &e), &e);
	CHECK(s.has_type && !s.delta && s.matcher_count == 0);
	CHECK_STR(s.type[4], "");
	selector_deinit(&s);
	CHECK_OK(selector_parse(STR("{}"), &a, &s, &e), &e);
	CHECK(!s.has_type);
	selector_deinit(&s);
}

static void matches_values(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, matches) {
		CLEANUP(arena_deinit) struct arena a;
		arena_init(&a, 1 << 20);
		struct selector s;
		CHECK_CASE(c, selector_parse(str_of(c->selector), &a, &s, NULL) == OK);
		CHECK_CASE(c, selector_matches(&s.matchers[0], str_of(c->value)) == c->want);
		selector_deinit(&s);
	}
}

static void keeps_limits(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 4 << 20);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1 << 20);
	struct selector s;
	struct err e = { 0 };
	for (int i = 0; i <= SELECTOR_MATCHERS_MAX; i++)
		buf_printf(&text, "%sa%d=~\"x\"", i ? "," : "{", i);
	buf_cstr(&text, "}");
	CHECK(selector_parse(buf_view(&text), &a, &s, &e) == E_LIMIT);
	CHECK(strstr(e.text, "more than 64 conditions"));

	buf_clear(&text);
	buf_cstr(&text, "{a=\"");
	while (text.len < SELECTOR_BYTES_MAX - 2)
		buf_u8(&text, 'x');
	buf_cstr(&text, "\"}");
	CHECK_OK(selector_parse(buf_view(&text), &a, &s, &e), &e);
	CHECK(s.matchers[0].value.len == SELECTOR_BYTES_MAX - 6);
	selector_deinit(&s);
	buf_u8(&text, ' ');
	CHECK(selector_parse(buf_view(&text), &a, &s, &e) == E_INVALID);

	CLEANUP(arena_deinit) struct arena small;
	arena_init(&small, 16);
	CHECK(selector_parse(STR("{a=\"1\"}"), &small, &s, &e) == E_LIMIT);
}

/* What makes backtracking engines stand still for ever. */
static void is_linear(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	char text[50001];
	memset(text, 'a', sizeof(text));
	struct selector s;
	struct err e = { 0 };
	CHECK_OK(selector_parse(STR("{a=~\"^(a+)+b(a|a)*$\"}"), &a, &s, &e), &e);
	CHECK(!selector_matches(&s.matchers[0], str_make(text, sizeof(text))));
	selector_deinit(&s);
}

static void *match_often(void *ctx)
{
	const struct selector *s = ctx;
	uintptr_t hits = 0;
	for (int i = 0; i < 2000; i++) {
		char value[32];
		int len = snprintf(value, sizeof(value), "worker-%d", i);
		hits += selector_matches(&s->matchers[0], str_make(value, (size_t)len));
	}
	return (void *)hits;
}

static void is_shared_by_threads(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	struct selector s;
	struct err e = { 0 };
	CHECK_OK(selector_parse(STR("{a=~\"^worker-[0-9]*7$\"}"), &a, &s, &e), &e);
	pthread_t threads[4];
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
		CHECK(pthread_create(&threads[i], NULL, match_often, &s) == 0);
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
		void *hits = NULL;
		CHECK(pthread_join(threads[i], &hits) == 0);
		CHECK((uintptr_t)hits == 200);
	}
	selector_deinit(&s);
}

static void knows_label_names(void **state)
{
	(void)state;
	CHECK(selector_label_name_ok(STR("a")));
	CHECK(selector_label_name_ok(STR("_x9")));
	CHECK(!selector_label_name_ok(STR("")));
	CHECK(!selector_label_name_ok(STR("9a")));
	CHECK(!selector_label_name_ok(STR("a.b")));
	CHECK(!selector_label_name_ok(STR("a:b")));
	CHECK(!selector_label_name_ok(STR("\xc3\xa4")));
}

TEST_MAIN(cmocka_unit_test(parses), cmocka_unit_test(refuses), cmocka_unit_test(splits_the_type),
	cmocka_unit_test(matches_values), cmocka_unit_test(keeps_limits),
	cmocka_unit_test(is_linear), cmocka_unit_test(is_shared_by_threads),
	cmocka_unit_test(knows_label_names))
