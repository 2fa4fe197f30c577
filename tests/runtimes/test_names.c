/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes.h"
#include "test.h"

/* clang-format off */
static const struct {
	const char *name;
	unsigned kind, form;
	struct str owner, function;
	const char *want;
} cases[] = {
	{ "PHP: a function", RUNTIME_PHP, RUNTIME_FORM_NAMED, { "", sizeof("") - 1 }, { "A\\f", sizeof("A\\f") - 1 }, "A\\f" },
	{ "PHP: a method", RUNTIME_PHP, RUNTIME_FORM_NAMED, { "A\\B", sizeof("A\\B") - 1 }, { "f", sizeof("f") - 1 }, "A\\B::f" },
	{ "PHP: of a class without a name", RUNTIME_PHP, RUNTIME_FORM_NAMED,
		{ "class@anonymous\0/srv/a.php:3$0", sizeof("class@anonymous\0/srv/a.php:3$0") - 1 }, { "f", sizeof("f") - 1 }, "class@anonymous::f" },
	{ "PHP: a program", RUNTIME_PHP, RUNTIME_FORM_MAIN, { "", sizeof("") - 1 }, { "", sizeof("") - 1 }, "{main}" },
	{ "PHP: another file", RUNTIME_PHP, RUNTIME_FORM_FILE, { "", sizeof("") - 1 }, { "", sizeof("") - 1 }, "include" },
	{ "PHP: a text", RUNTIME_PHP, RUNTIME_FORM_EVAL, { "", sizeof("") - 1 }, { "", sizeof("") - 1 }, "eval" },
	{ "PHP: no form", RUNTIME_PHP, RUNTIME_FORM_COUNT, { "", sizeof("") - 1 }, { "", sizeof("") - 1 }, "" },
	{ "PHP: no UTF-8, a control character", RUNTIME_PHP, RUNTIME_FORM_NAMED, { "\xff", sizeof("\xff") - 1 },
		{ "\n", sizeof("\n") - 1 }, "\xef\xbf\xbd::?" },
	{ "Perl: a subroutine", RUNTIME_PERL, RUNTIME_FORM_NAMED, { "A::B", 4 }, { "f", 1 }, "A::B::f" },
	{ "Perl: a program", RUNTIME_PERL, RUNTIME_FORM_MAIN, { "", 0 }, { "", 0 }, "main::RUNTIME" },
	{ "Perl: a text", RUNTIME_PERL, RUNTIME_FORM_EVAL, { "", 0 }, { "", 0 }, "(eval)" },
	{ "Ruby: a method", RUNTIME_RUBY, RUNTIME_FORM_NAMED, { "A::B", 4 }, { "f", 1 }, "A::B#f" },
	{ "Ruby: of the class", RUNTIME_RUBY, RUNTIME_FORM_CLASS, { "A::B", 4 }, { "f", 1 }, "A::B.f" },
	{ "Ruby: a block", RUNTIME_RUBY, RUNTIME_FORM_NAMED, { "A", 1 }, { "block in f", 10 }, "block in A#f" },
	{ "Ruby: blocks in blocks", RUNTIME_RUBY, RUNTIME_FORM_NAMED, { "A", 1 },
		{ "rescue in block (2 levels) in f", 31 }, "rescue in block (2 levels) in A#f" },
	{ "Ruby: in no method", RUNTIME_RUBY, RUNTIME_FORM_NAMED, { "A", 1 }, { "block in <class:A>", 18 }, "block in <class:A>" },
	{ "Ruby: a class of one object", RUNTIME_RUBY, RUNTIME_FORM_NAMED, { "A", 1 }, { "singleton class", 15 }, "singleton class" },
	{ "Ruby: a class without a name", RUNTIME_RUBY, RUNTIME_FORM_NAMED, { "#<Class:0x0>", 12 }, { "f", 1 }, "f" },
	{ "Ruby: nothing but a prefix", RUNTIME_RUBY, RUNTIME_FORM_NAMED, { "", 0 }, { "block (", 7 }, "block (" },
	{ "Python: as it is", RUNTIME_CPYTHON, RUNTIME_FORM_MAIN, { "A.", sizeof("A.") - 1 }, { "f", sizeof("f") - 1 }, "A.f" },
	{ "of no runtime", 999, 999, { "A.", sizeof("A.") - 1 }, { "f", sizeof("f") - 1 }, "A.f" },
};
/* clang-format on */

static void puts_owner_and_name_together(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct buf out, text;
		buf_init(&out, 1024);
		buf_init(&text, 1024);
		buf_str(&text, c->owner);
		buf_str(&text, c->function);
		runtimes_name(
			&out, c->kind, c->form, c->owner.len, buf_view(&text), RUNTIME_TEXT_UTF8);
		CHECK_CASE(c, str_eq(buf_view(&out), str_of(c->want)));
		CHECK_CASE(c, out.len <= 3 * text.len + RUNTIMES_NAME_MORE_BYTES_MAX);
		buf_deinit(&out);
		buf_deinit(&text);
	}
}

/* clang-format off */
static const struct {
	const char *name;
	unsigned kind;
	const char *function, *file;
	uint32_t line;
	const char *want;
} placed[] = {
	{ "JavaScript without a name", RUNTIME_V8, "(anonymous)", "/srv/app.js", 24, "(anonymous) app.js:24" },
	{ "whose line is not known", RUNTIME_V8, "(anonymous)", "/srv/app.js", 0, "(anonymous)" },
	{ "of no file", RUNTIME_V8, "(anonymous)", "", 3, "(anonymous) :3" },
	{ "JavaScript with a name", RUNTIME_V8, "f", "/srv/app.js", 24, "f" },
	{ "a lambda of Python", RUNTIME_CPYTHON, "f.<locals>.<lambda>", "app.py", 7, "f.<locals>.<lambda> app.py:7" },
	{ "a comprehension", RUNTIME_CPYTHON, "<listcomp>", "/srv/app.py", 7, "<listcomp> app.py:7" },
	{ "a module", RUNTIME_CPYTHON, "<module>", "/srv/app.py", 1, "<module>" },
	{ "a closure of PHP", RUNTIME_PHP, "A\\{closure}", "/srv/a.php", 9, "A\\{closure} a.php:9" },
	{ "which has its line", RUNTIME_PHP, "{closure:/srv/a.php:9}", "/srv/a.php", 9, "{closure:/srv/a.php:9}" },
	{ "a block of Ruby", RUNTIME_RUBY, "block in A#f", "/srv/a.rb", 9, "block in A#f" },
};
/* clang-format on */

static void tells_functions_without_a_name_apart(void **state)
{
	(void)state;
	char out[RUNTIMES_NAME_PLACED_BYTES], longest[3000];
	FOR_EACH_CASE (c, placed) {
		struct str name = runtimes_name_placed(
			c->kind, str_of(c->function), str_of(c->file), c->line, out);
		CHECK_CASE(c, str_eq(name, str_of(c->want)));
	}
	memset(longest, 'x', sizeof(longest));
	struct str too_long = runtimes_name_placed(
		RUNTIME_V8, STR("(anonymous)"), str_make(longest, sizeof(longest)), 1, out);
	CHECK(str_eq(too_long, STR("(anonymous)")));
}

TEST_MAIN(cmocka_unit_test(puts_owner_and_name_together),
	cmocka_unit_test(tells_functions_without_a_name_apart))
