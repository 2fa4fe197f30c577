/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: every verb is called with --help; cli_described() then gets its table, and nothing is
 * printed. If the arguments of a table begin like "verify|inspect", they are sub-verbs, which are
 * called too. So there is no second list that could differ from the tables.
 */
#include "cli/manual/manual.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE_BYTES_MAX ((size_t)4 << 20)

static const struct cli_command command = {
	.name = "manual",
	.summary = "firn manual: write man pages and shell completions into a directory.",
	.args = "DIR",
	.args_least = 1,
	.args_most = 1,
	.text = "Below DIR come man/man1, man/man5, man/man7, bash-completion/completions, "
		"zsh/site-functions and fish/vendor_completions.d, as they lie below "
		"/usr/local/share. All of it is made from the tables that read the flags.\n"
		"\n"
		"  sudo firn manual /usr/local/share\n"
		"  man firn-up",
};

/* Filled by cli_described. */
static struct cli_manual manual;
static struct cli_command
	commands[CLI_MANUAL_COMMANDS_MAX]; /* copies, since a verb's table may be local */

static void take(const struct cli_command *c)
{
	assert(manual.count < CLI_MANUAL_COMMANDS_MAX);
	commands[manual.count] = *c;
	manual.commands[manual.count] = &commands[manual.count];
	manual.count++;
}

/* Sub-verbs come before their verb, because a shell takes the first pattern that matches. */
static void visit(const struct cli_verb *verb)
{
	char name[32], sub[32], flag[] = "--help";
	snprintf(name, sizeof(name), "%s", verb->name);
	char *own[] = { name, flag, NULL };
	(void)verb->run(2, own);
	if (manual.count == 0)
		return;
	const struct cli_command c = commands[manual.count - 1];
	struct str subs = cli_manual_subverbs(&c);
	if (subs.len == 0)
		return;
	manual.count--;
	for (size_t i = 0; i < subs.len;) {
		size_t len = 0;
		while (i + len < subs.len && subs.p[i + len] != '|')
			len++;
		snprintf(sub, sizeof(sub), "%.*s", (int)len, (const char *)subs.p + i);
		char *args[] = { name, sub, flag, NULL };
		(void)verb->run(3, args);
		i += len + 1;
	}
	take(&c);
}

static void gather(void)
{
	manual = (struct cli_manual){ .verbs = cli_verbs };
	cli_described = take;
	for (const struct cli_verb *v = cli_verbs; v->name; v++)
		if (v->summary)
			visit(v);
	cli_described = NULL;
}

/* Writes DIR/FOLDER/NAME; makes the folders. */
static bool write_file(const char *dir, const char *folder, const char *name, struct buf *text)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s/%s", dir, folder, name);
	if (len < 0 || (size_t)len >= sizeof(path) || buf_status(text) != OK) {
		cli_complain("%s: too long", name);
		return false;
	}
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		(void)mkdir(path, 0755);
		*slash = '/';
	}
	FILE *f = fopen(path, "we");
	bool good = f && fwrite(text->data, 1, text->len, f) == text->len && fflush(f) == 0;
	if (!good)
		cli_complain("%s: %s", path, strerror(errno));
	if (f)
		(void)fclose(f);
	buf_clear(text);
	return good;
}

static bool write_commands(const char *dir, struct buf *text)
{
	bool good = true;
	const struct cli_group *const *file_groups = NULL;
	for (size_t i = 0; good && i < manual.count; i++) {
		char name[64];
		snprintf(name, sizeof(name), "firn-%s.1", manual.commands[i]->name);
		for (char *c = name; *c; c++)
			*c = *c == ' ' ? '-' : *c;
		cli_man_command(manual.commands[i], text);
		good = write_file(dir, "man/man1", name, text);
		if (manual.commands[i]->file_groups)
			file_groups = manual.commands[i]->file_groups;
	}
	if (!good || !file_groups)
		return good;
	cli_man_keys(file_groups, text);
	return write_file(dir, "man/man5", "firn.yaml.5", text);
}

int cli_manual(int argc, char **argv)
{
	int at = 0, code = CLI_OK;
	if (!cli_parse(&command, argc, argv, NULL, &at, &code))
		return code;
	const char *dir = argv[at];
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, PAGE_BYTES_MAX);
	gather();
	bool good = write_commands(dir, &text);
	cli_man_overview(&manual, &text);
	good = good && write_file(dir, "man/man1", "firn.1", &text);
	cli_man_layout(&text);
	good = good && write_file(dir, "man/man7", "firn-disk-layout.7", &text);
	cli_complete_bash(&manual, &text);
	good = good && write_file(dir, "bash-completion/completions", "firn", &text);
	cli_complete_zsh(&manual, &text);
	good = good && write_file(dir, "zsh/site-functions", "_firn", &text);
	cli_complete_fish(&manual, &text);
	good = good && write_file(dir, "fish/vendor_completions.d", "firn.fish", &text);
	return good ? CLI_OK : CLI_FAILED;
}
