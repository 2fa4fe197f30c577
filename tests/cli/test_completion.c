/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual/manual.h"
#include "test.h"

#include <string.h>

static const struct cli_option options[] = {
	{ .name = "format",
		.kind = CLI_CHOICE,
		.value = "KIND",
		.choices = "json text",
		.letter = 'f',
		.help = "It's [one]. Not shown." },
	{ .name = "dir", .kind = CLI_TEXT, .value = "DIR", .help = "Where." },
	{ .name = "quick", .kind = CLI_BOOL, .help = "Be quick." },
	{ .name = "secret-name", .kind = CLI_BOOL, .hidden = true, .help = "Hidden." },
};
static const struct cli_command sub = { .name = "look at",
	.summary = "firn look at: look.",
	.args = "FILE",
	.text = "",
	.groups = { { "Flags", options, ARRAY_COUNT(options), 0 } },
	.group_count = 1 };
static const struct cli_command verb = {
	.name = "look", .summary = "firn look: look.", .args = "at|for ...", .text = ""
};
static const struct cli_verb verbs[] = { { "look", NULL, "look at it" }, { "__no", NULL, NULL },
	{ NULL, NULL, NULL } };
static const struct cli_manual manual = { verbs, { &sub, &verb }, 2 };

static void check(void (*fn)(const struct cli_manual *, struct buf *), const char *const *parts)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 16);
	fn(&manual, &out);
	buf_u8(&out, 0);
	assert_int_equal(buf_status(&out), OK);
	const char *text = (const char *)out.data;
	for (; *parts; parts++)
		if (!strstr(text, *parts)) {
			print_error("no \"%s\" in:\n%s\n", *parts, text);
			fail();
		}
	CHECK(!strstr(text, "secret-name") && !strstr(text, "__no"));
}

static void completes(void **state)
{
	(void)state;
	check(cli_complete_bash, (const char *const[]){ "compgen -W 'look help'", "'look at '*)",
					 "flags='-f --format --dir --quick --help'",
					 "-f | --format) words='json text' ;;", "--dir) return ;;",
					 "words='at for'", NULL });
	check(cli_complete_zsh,
		(const char *const[]){ "'look:look at it'",
			"'--format=[It'\\''s \\[one\\]]:KIND:(json text)'",
			"'-f[It'\\''s \\[one\\]]:KIND:(json text)'", "'--dir=[Where]:DIR:_files'",
			"'--quick[Be quick]'", "compadd at for", NULL });
	check(cli_complete_fish,
		(const char *const[]){ "-a look -d 'look at it'",
			"'__firn_verb look at' -l format -s f -x -a 'json text' -d 'It\\'s [one]'",
			"-l dir -r -F -d 'Where'", "-l quick -d", "-f -a 'at for'", NULL });
}

TEST_MAIN(cmocka_unit_test(completes))
