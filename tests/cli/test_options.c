/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "capture.h"
#include "cli/options/options.h"

struct first {
	const char *text;
	bool flag;
	uint32_t number;
	double share;
};

struct second {
	int64_t duration_ns;
	uint64_t size;
	const char *choice;
	struct cli_list list;
};

struct flags {
	struct second second;
	struct first first;
};

/* clang-format off */
static const struct cli_option first_options[] = {
	{ .name = "text", .kind = CLI_TEXT, .at = offsetof(struct first, text), .value = "TEXT", .letter = 't',
	  .otherwise = "default", .env = "FIRN_TEST_TEXT", .help = "Some text, with a sentence that is so long that it must be wrapped over two lines." },
	{ .name = "flag", .kind = CLI_BOOL, .at = offsetof(struct first, flag), .help = "A flag." },
	{ .name = "number", .kind = CLI_NUMBER, .at = offsetof(struct first, number), .value = "N", .otherwise = "7", .least = 1, .most = 100, .help = "A number." },
	{ .name = "share", .kind = CLI_SHARE, .at = offsetof(struct first, share), .value = "SHARE", .help = "A share." },
};
static const struct cli_option second_options[] = {
	{ .name = "duration", .kind = CLI_DURATION, .at = offsetof(struct second, duration_ns), .value = "DURATION", .otherwise = "14d", .help = "How long." },
	{ .name = "size", .kind = CLI_SIZE, .at = offsetof(struct second, size), .value = "SIZE", .otherwise = "1GiB", .help = "How large." },
	{ .name = "choice", .kind = CLI_CHOICE, .at = offsetof(struct second, choice), .value = "X", .choices = "one two", .help = "Which." },
	{ .name = "list", .kind = CLI_LIST, .at = offsetof(struct second, list), .value = "A,...", .separator = ',', .help = "Several." },
	{ .name = "old-flag", .kind = CLI_TEXT, .at = offsetof(struct second, choice), .value = "X", .hidden = true, .help = "Hidden." },
};
static const struct cli_command command = {
	.name = "verb", .summary = "firn verb: a verb.", .args = "[A] [B]", .args_most = 2,
	.text = "A paragraph that is long enough to be wrapped, since it goes on beyond the eighty columns of a line.\n\n  kept as it is",
	.groups = {
		{ "First", first_options, ARRAY_COUNT(first_options), offsetof(struct flags, first) },
		{ "Second", second_options, ARRAY_COUNT(second_options), offsetof(struct flags, second) },
	},
	.group_count = 2,
};

static struct flags got;
static char got_args[256];

/* Exit code 99: parsed. */
static int verb(int argc, char **argv)
{
	int at = 0, code = -1;
	got = (struct flags){ 0 };
	got_args[0] = 0;
	if (!cli_parse(&command, argc, argv, &got, &at, &code))
		return code;
	for (; at < argc; at++) {
		strcat(got_args, "|");
		strcat(got_args, argv[at]);
	}
	return 99;
}

static const struct {
	const char *name, *line, *want; /* want: on standard error */
} bad[] = {
	{ "unknown", "verb --nonsense", "verb has no flag --nonsense; `firn verb --help` lists what there is" },
	{ "typing error", "verb --numbr 3", "verb has no flag --numbr; did you mean --number?" },
	{ "typing error with value", "verb --numbr=3", "no flag --numbr; did you mean --number?" },
	{ "prefix", "verb --num 3", "no flag --num; did you mean --number?" },
	{ "prefix of help", "verb --hel", "no flag --hel; did you mean --help?" },
	{ "hidden flags are not suggested", "verb --old-flg 3", "`firn verb --help` lists" },
	{ "unknown letter", "verb -x", "verb has no flag -x;" },
	{ "no value", "verb --number", "--number needs a value: --number N" },
	{ "no value of a letter", "verb -t", "--text needs a value: --text TEXT" },
	{ "number too large", "verb --number 101", "--number: '101' is not a whole number from 1 to 100" },
	{ "number too small", "verb --number 0", "--number: '0' is not" },
	{ "no number", "verb --number=x1", "--number: 'x1' is not" },
	{ "empty number", "verb --number=", "--number: '' is not" },
	{ "share", "verb --share 1.5", "--share: '1.5' is not a number from 0 to 1" },
	{ "share that is none", "verb --share nan", "--share: 'nan' is not" },
	{ "duration", "verb --duration 14", "--duration: '14' is not a duration" },
	{ "size", "verb --size 5XB", "--size: '5XB' is not a size" },
	{ "choice", "verb --choice three", "--choice: 'three' is not one of: one two" },
	{ "part of a choice", "verb --choice on", "--choice: 'on' is not one of" },
	{ "flag with a wrong value", "verb --flag=maybe", "--flag: 'maybe' is neither true nor false" },
	{ "help with a value", "verb --help=x", "--help takes no value" },
	{ "too many arguments", "verb a b c", "verb does not know what to do with 'c': usage: firn verb [A] [B] [flags]" },
};
/* clang-format on */

static void sets_defaults(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, verb, "verb");
	assert_int_equal(c.code, 99);
	CHECK_STR(str_of(c.err), "");
	CHECK_STR(str_of(got.first.text), "default");
	CHECK(!got.first.flag && got.first.number == 7 && got.first.share == 0);
	CHECK(got.second.duration_ns == 14 * 86400 * NS_PER_SEC);
	CHECK(got.second.size == 1 << 30);
	CHECK(!got.second.choice && got.second.list.count == 0 && !got.second.list.v[0]);
	CHECK_STR(str_of(got_args), "");
}

static void takes_values(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, verb,
		"verb a --text x --number=8 --flag --share 0.25 b --duration 1h30m --size 512MB "
		"--choice two --list p,q --list r,,s");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, 99);
	CHECK_STR(str_of(got.first.text), "x");
	CHECK(got.first.flag && got.first.number == 8 && got.first.share == 0.25);
	CHECK(got.second.duration_ns == 5400 * NS_PER_SEC && got.second.size == 512000000);
	CHECK_STR(str_of(got.second.choice), "two");
	CHECK(got.second.list.count == 4 && !got.second.list.v[4]);
	CHECK_STR(str_of(got.second.list.v[0]), "p");
	CHECK_STR(str_of(got.second.list.v[3]), "s");
	CHECK_STR(str_of(got_args), "|a|b");
	for (uint32_t i = 0; i < 1; i++)
		CHECK(got.second.list.v[i]);

	capture_run(&c, verb, "verb --flag=false -t y --text= -- --number");
	assert_int_equal(c.code, 99);
	CHECK(!got.first.flag);
	CHECK_STR(str_of(got.first.text), "");
	CHECK_STR(str_of(got_args), "|--number");
}

static void reads_the_environment(void **state)
{
	(void)state;
	struct capture c;
	setenv("FIRN_TEST_TEXT", "from there", 1);
	capture_run(&c, verb, "verb");
	CHECK_STR(str_of(got.first.text), "from there");
	capture_run(&c, verb, "verb --text here");
	CHECK_STR(str_of(got.first.text), "here");
	setenv("FIRN_TEST_TEXT", "", 1);
	capture_run(&c, verb, "verb");
	CHECK_STR(str_of(got.first.text), "default");
	unsetenv("FIRN_TEST_TEXT");
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	FOR_EACH_CASE (b, bad) {
		struct capture c;
		capture_run(&c, verb, b->line);
		if (!strstr(c.err, b->want))
			print_error("[%s] got: %s\n", b->name, c.err);
		CHECK_CASE(b, strstr(c.err, b->want));
		CHECK_CASE(b, c.code == CLI_USAGE && c.out[0] == 0);
	}
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, verb, "verb --number 3 --help --nonsense");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.err), "");
	CHECK_HAS(c.out, "firn verb: a verb.\n\nusage: firn verb [A] [B] [flags]\n");
	CHECK_HAS(c.out, "\n  kept as it is\n");
	CHECK_HAS(c.out, "\nFirst:\n  -t, --text TEXT\n        Some text");
	CHECK_HAS(c.out, "Default: default. Environment: FIRN_TEST_TEXT.");
	CHECK_HAS(c.out, "\n  --flag\n        A flag.\n");
	CHECK_HAS(c.out, "\n  --duration DURATION\n        How long. Default: 14d.\n");
	CHECK(!strstr(c.out, "old-flag"));
	check_width(c.out);
	capture_run(&c, verb, "verb -h");
	assert_int_equal(c.code, CLI_OK);
}

static void wraps(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	cli_wrap(&b, "one two three\nfour averyverylongword", 2, 10);
	CHECK_STR(buf_view(&b), "  one two\n  three\n  four\n  averyverylongword\n");
}

TEST_MAIN(cmocka_unit_test(sets_defaults), cmocka_unit_test(takes_values),
	cmocka_unit_test(reads_the_environment), cmocka_unit_test(says_what_is_wrong),
	cmocka_unit_test(helps), cmocka_unit_test(wraps))
