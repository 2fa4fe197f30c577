/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual/manual.h"
#include "test.h"

#include <string.h>

static const struct cli_option options[] = {
	{ .name = "http-address",
		.kind = CLI_TEXT,
		.value = "HOST:PORT",
		.otherwise = "a:1",
		.env = "ADDRESS",
		.letter = 'a',
		.help = ".begins with a dot, has a \\ and a -." },
	{ .name = "config-path", .kind = CLI_TEXT, .value = "FILE", .help = "The file." },
	{ .name = "secret-name", .kind = CLI_BOOL, .hidden = true, .help = "Hidden." },
};
static const struct cli_group group = { "The server", options, ARRAY_COUNT(options), 0 };
static const struct cli_command command = { .name = "store verify",
	.summary = "firn store verify: find what is damaged.",
	.args = "PATH",
	.text = "One.\n\n'Two'.\n\n  firn store verify x\n",
	.groups = { { "The server", options, ARRAY_COUNT(options), 0 } },
	.group_count = 1 };

#define HAS(out, part)                                                                      \
	do {                                                                                \
		if (!strstr((const char *)(out).data, part)) {                              \
			print_error("no \"%s\" in:\n%s\n", part, (const char *)(out).data); \
			fail();                                                             \
		}                                                                           \
	} while (0)

static void writes_a_verb(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 16);
	cli_man_command(&command, &out);
	buf_u8(&out, 0);
	HAS(out, ".TH \"FIRN-STORE-VERIFY\" 1 ");
	HAS(out, "firn\\-store\\-verify \\- find what is damaged\n");
	HAS(out, "One.\n.PP\n\\&'Two'.\n.PP\n.nf\n  firn store verify x\n.fi\n");
	HAS(out, "\\fB\\-a\\fR, \\fB\\-\\-http\\-address\\fR \\fIHOST:PORT\\fR\n"
		 "\\&.begins with a dot, has a \\e and a \\-. Default: a:1. Environment: "
		 "ADDRESS.\n");
	CHECK(!strstr((const char *)out.data, "secret"));
}

static void writes_the_keys(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 16);
	cli_man_keys((const struct cli_group *const[]){ &group, NULL }, &out);
	buf_u8(&out, 0);
	HAS(out, ".TH \"FIRN.YAML\" 5 ");
	HAS(out, ".SH \"The server\"\n.TP\n\\fBhttp_address\\fR\n");
	CHECK(!strstr((const char *)out.data, "config_path"));
	CHECK(!strstr((const char *)out.data, "secret"));
}

static void writes_the_overview(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 16);
	cli_man_overview(&(struct cli_manual){ .commands = { &command }, .count = 1 }, &out);
	buf_u8(&out, 0);
	HAS(out, "\\fBstore verify\\fR\nfind what is damaged\n");
	HAS(out, ".BR firn\\-store\\-verify (1)");
	HAS(out, "Exit codes: 0 all is well");
}

static void writes_the_layout(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 16);
	cli_man_layout(&out);
	buf_u8(&out, 0);
	HAS(out, ".TH \"FIRN-DISK-LAYOUT\" 7 ");
	HAS(out, ".TP\n\\fBagent\\-spool\\fR\n");
	HAS(out, "Format: docs/formats/notes.md.\n");
}

TEST_MAIN(cmocka_unit_test(writes_a_verb), cmocka_unit_test(writes_the_keys),
	cmocka_unit_test(writes_the_overview), cmocka_unit_test(writes_the_layout))
