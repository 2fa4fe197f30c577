/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: getopt_long parses the arguments; its table is made from the verb's, and its values are row
 * numbers there. getopt_long also accepts prefixes of flags; these are refused here, so that a
 * script does not break when a flag is added. Every value, from whatever source, goes through
 * cli_set_value(), so any test that parses a verb's flags finds a wrong default.
 */
#include "cli/options/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/options/configfile.h"
#include "cli/options/plain.h"

#define HELP_WIDTH 80
/* getopt_long's values: above every letter. */
#define OPTION_BASE 1000
#define OPTION_HELP 999

/* The configuration file of the verb: values point into its texts until another is loaded. */
static struct cli_config file;

struct parsing {
	const struct cli_command *c;
	void *out;
	const struct cli_option *options[CLI_OPTIONS_MAX];
	size_t offsets[CLI_OPTIONS_MAX];
	bool given[CLI_OPTIONS_MAX];
	enum cli_source source[CLI_OPTIONS_MAX];
	const struct conf_node *from[CLI_OPTIONS_MAX]; /* of the file */
	uint32_t count;
};

struct buf *cli_complaints;
struct buf *cli_shown;
void (*cli_described)(const struct cli_command *c);

void cli_complain(const char *fmt, ...)
{
	char text[1024];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* The message may quote a server. */
	CLEANUP(buf_deinit) struct buf plain;
	buf_init(&plain, 9 * sizeof(text));
	cli_plain(str_of(text), "\n\t", &plain);
	if (cli_complaints)
		buf_str(cli_complaints, buf_view(&plain));
	else
		fprintf(stderr, "firn: %.*s\n", STR_ARG(buf_view(&plain)));
}

/* ---- values ---- */

static bool set_option(struct parsing *p, uint32_t i, const char *value, const char *from)
{
	struct err e = { 0 };
	const struct cli_option *o = p->options[i];
	if (o->gone) {
		cli_complain("--%s does nothing: %s", o->name, o->gone);
		return true;
	}
	enum status s = cli_set_value(o, value, (char *)p->out + p->offsets[i], &e);
	if (s == OK)
		return true;
	cli_complain("%s%s: %s", from, o->name, err_text(&e, s));
	return false;
}

/* The value of the flag's environment variable: its own one, or, in a verb that can be configured,
 * FIRN_ and the flag's name. NULL: not set. */
static const char *env_of(const struct parsing *p, const struct cli_option *o, char name[96])
{
	const char *value = NULL;
	snprintf(name, 96, "%s", o->env ? o->env : "");
	if (o->env)
		value = getenv(o->env);
	if ((!value || !value[0]) && p->c->file_groups) {
		cli_config_env(o, name);
		value = getenv(name);
	}
	return value && value[0] ? value : NULL;
}

static bool set_from_file(struct parsing *p, uint32_t i)
{
	struct err e = { 0 };
	enum status s = cli_config_set(
		&file, p->options[i], p->from[i], (char *)p->out + p->offsets[i], &e);
	if (s != OK)
		cli_complain("%s", err_text(&e, s));
	return s == OK;
}

static bool set_default(struct parsing *p, uint32_t i)
{
	const struct cli_option *o = p->options[i];
	char name[96], from[128];
	if (p->given[i]) {
		p->source[i] = CLI_FROM_FLAG;
		return true;
	}
	const char *value = env_of(p, o, name);
	if (value) {
		p->source[i] = CLI_FROM_ENV;
		snprintf(from, sizeof(from), "%s, the environment's --", name);
		return set_option(p, i, value, from);
	}
	if (p->from[i]) {
		p->source[i] = CLI_FROM_FILE;
		return set_from_file(p, i);
	}
	p->source[i] = o->otherwise ? CLI_FROM_DEFAULT : CLI_FROM_NOWHERE;
	return !o->otherwise || set_option(p, i, o->otherwise, "default of --");
}

/* Read the flags of this verb from the configuration file. */
static bool read_file(struct parsing *p)
{
	struct err e = { 0 };
	for (uint32_t i = 0; p->c->file_groups && i < p->count; i++) {
		char name[96];
		if (strcmp(p->options[i]->name, "config-path") != 0)
			continue;
		const char *path = p->given[i] ? *(const char **)((char *)p->out + p->offsets[i])
					       : env_of(p, p->options[i], name);
		enum status s = cli_config_load(&file, path, p->c->file_groups, &e);
		for (uint32_t k = 0; s == OK && k < p->count; k++)
			p->from[k] = cli_config_find(&file, p->options[k]);
		if (s != OK)
			cli_complain("%s", err_text(&e, s));
		return s == OK;
	}
	return true;
}

static bool set_defaults(struct parsing *p)
{
	bool good = read_file(p);
	for (uint32_t i = 0; good && i < p->count; i++)
		good = set_default(p, i);
	return good;
}

/* ---- `firn config show` ---- */

static void show(const struct parsing *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		const struct cli_option *o = p->options[i];
		if (o->gone || o->hidden || p->source[i] == CLI_FROM_NOWHERE)
			continue;
		char name[96];
		cli_config_show(cli_shown, o, (const char *)p->out + p->offsets[i]);
		switch (p->source[i]) {
		case CLI_FROM_FLAG:
			buf_printf(cli_shown, "  # --%s\n", o->name);
			break;
		case CLI_FROM_ENV:
			(void)!env_of(p, o, name);
			buf_printf(cli_shown, "  # %s\n", name);
			break;
		case CLI_FROM_FILE:
			buf_printf(cli_shown, "  # line %u of the file\n", p->from[i]->line);
			break;
		default:
			buf_cstr(cli_shown, "  # default\n");
		}
	}
	cli_config_show_sections(cli_shown, &file);
}

/* ---- names that were meant ---- */

static void bad_flag(const struct parsing *p, const char *typed)
{
	const char *names[CLI_OPTIONS_MAX + 2];
	size_t count = 0;
	for (uint32_t i = 0; i < p->count; i++)
		if (!p->options[i]->hidden)
			names[count++] = p->options[i]->name;
	names[count++] = "help";
	names[count] = NULL;
	char name[NEAREST_WORD_MAX + 1];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(typed, "="), typed);
	if (strcmp(name, "--help") == 0) {
		cli_complain("--help takes no value");
		return;
	}
	const char *nearest = nearest_word(name + strspn(name, "-"), names);
	if (nearest)
		cli_complain("%s has no flag %s; did you mean --%s?", p->c->name, name, nearest);
	else
		cli_complain("%s has no flag %s; `firn %s --help` lists what there is", p->c->name,
			name, p->c->name);
}

/* ---- parsing ---- */

static void gather(struct parsing *p)
{
	for (size_t g = 0; g < p->c->group_count; g++)
		for (size_t i = 0; i < p->c->groups[g].count; i++) {
			assert(p->count < CLI_OPTIONS_MAX);
			p->options[p->count] = &p->c->groups[g].options[i];
			p->offsets[p->count++] = p->c->groups[g].at + p->c->groups[g].options[i].at;
		}
}

static void make_getopt(const struct parsing *p, struct option *longs, char *shorts)
{
	if (p->c->args_are_a_command)
		*shorts++ = '+';
	*shorts++ = ':'; /* tells a missing value from an unknown flag */
	*shorts++ = 'h';
	for (uint32_t i = 0; i < p->count; i++) {
		const struct cli_option *o = p->options[i];
		longs[i] = (struct option){ o->name,
			o->kind == CLI_BOOL ? optional_argument : required_argument, NULL,
			OPTION_BASE + (int)i };
		if (o->letter) {
			*shorts++ = o->letter;
			if (o->kind != CLI_BOOL)
				*shorts++ = ':';
		}
	}
	longs[p->count] = (struct option){ "help", no_argument, NULL, OPTION_HELP };
	longs[p->count + 1] = (struct option){ 0 };
	*shorts = 0;
}

/* The table's row for what getopt_long found; -1: not in the table. */
static int which_option(const struct parsing *p, int found)
{
	if (found >= OPTION_BASE)
		return found - OPTION_BASE;
	for (uint32_t i = 0; i < p->count; i++)
		if (p->options[i]->letter == found)
			return (int)i;
	return -1;
}

/* Whether the flag was typed in full, and not as a prefix. */
static bool is_whole(const char *typed, const char *name)
{
	return strncmp(typed, "--", 2) != 0 ||
	       str_eq(str_make(typed + 2, strcspn(typed + 2, "=")), str_of(name));
}

static bool print_help(const struct cli_command *c, int *out_exit)
{
	*out_exit = CLI_OK;
	if (cli_described) {
		cli_described(c);
		return false;
	}
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1 << 20);
	cli_help(c, &text);
	bool good = buf_status(&text) == OK && fwrite(text.data, 1, text.len, stdout) == text.len &&
		    fflush(stdout) == 0;
	*out_exit = good ? CLI_OK : CLI_FAILED;
	return false;
}

/* The argument that getopt_long has just parsed, as it was typed. */
static const char *typed_flag(int found, char **argv, char brief[3])
{
	if (found == '?' && optopt > 0 && optopt < OPTION_HELP) {
		brief[0] = '-';
		brief[1] = (char)optopt;
		brief[2] = 0;
		return brief;
	}
	bool value_apart = optarg && optarg == argv[optind - 1];
	return argv[optind - (value_apart ? 2 : 1)];
}

/* Handles one flag; false ends the parsing. */
static bool take(struct parsing *p, int found, const char *typed, int *out_exit)
{
	*out_exit = CLI_USAGE;
	if (found == 'h' || (found == OPTION_HELP && is_whole(typed, "help")))
		return print_help(p->c, out_exit);
	int i = found == ':' ? which_option(p, optopt) : which_option(p, found);
	bool unknown = found == '?' || found == OPTION_HELP || i < 0;
	if (unknown || !is_whole(typed, p->options[i]->name)) {
		bad_flag(p, typed);
		return false;
	}
	if (found == ':') {
		cli_complain("--%s needs a value: --%s %s", p->options[i]->name,
			p->options[i]->name, p->options[i]->value);
		return false;
	}
	p->given[i] = true;
	return set_option(p, (uint32_t)i, optarg, "--");
}

static bool count_args(const struct cli_command *c, int argc, char **argv, int at)
{
	uint32_t count = (uint32_t)(argc - at);
	if (count >= c->args_least && count <= c->args_most)
		return true;
	if (count > c->args_most)
		cli_complain("%s does not know what to do with '%s': usage: firn %s%s%s [flags]",
			c->name, argv[at + (int)c->args_most], c->name, c->args[0] ? " " : "",
			c->args);
	else
		cli_complain("usage: firn %s %s [flags]; `firn %s --help` says more", c->name,
			c->args, c->name);
	return false;
}

bool cli_parse(
	const struct cli_command *c, int argc, char **argv, void *out, int *out_args, int *out_exit)
{
	struct parsing p = { .c = c, .out = out };
	struct option longs[CLI_OPTIONS_MAX + 2];
	char shorts[CLI_OPTIONS_MAX * 2 + 4];
	gather(&p);
	make_getopt(&p, longs, shorts);
	optind = 0; /* glibc: begin anew */
	opterr = 0;
	for (int found; (found = getopt_long(argc, argv, shorts, longs, NULL)) >= 0;) {
		char brief[3];
		if (!take(&p, found, typed_flag(found, argv, brief), out_exit))
			return false;
	}
	*out_exit = CLI_USAGE;
	if (!set_defaults(&p) || !count_args(c, argc, argv, optind))
		return false;
	*out_args = optind;
	if (!cli_shown || !c->file_groups)
		return true;
	show(&p);
	*out_exit = CLI_OK;
	return false;
}

/* ---- help ---- */

void cli_wrap(struct buf *out, const char *text, size_t indent, size_t width)
{
	size_t column = 0;
	while (*text) {
		size_t len = strcspn(text, " \n");
		if (column > 0 && column + 1 + len > width) {
			buf_u8(out, '\n');
			column = 0;
		}
		if (column == 0) {
			for (size_t i = 0; i < indent; i++)
				buf_u8(out, ' ');
			column = indent;
		} else {
			buf_u8(out, ' ');
			column++;
		}
		buf_put(out, text, len);
		column += len;
		text += len;
		text += *text == ' ';
		if (*text == '\n') {
			buf_u8(out, '\n');
			column = 0;
			text++;
		}
	}
	if (column > 0)
		buf_u8(out, '\n');
}

/* Paragraphs are wrapped; lines that begin with a blank are shown as they are. */
static void help_text(struct buf *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		char line[2048];
		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		if (line[0] == ' ' || line[0] == 0)
			buf_printf(out, "%s\n", line);
		else
			cli_wrap(out, line, 0, HELP_WIDTH);
		text += len;
		text += *text == '\n';
	}
}

void cli_option_text(const struct cli_option *o, char *out, size_t out_size)
{
	size_t len = (size_t)snprintf(out, out_size, "%s", o->help);
	if (o->otherwise && o->otherwise[0] && o->kind != CLI_BOOL && len < out_size)
		len += (size_t)snprintf(out + len, out_size - len, " Default: %s.", o->otherwise);
	if (o->env && len < out_size)
		snprintf(out + len, out_size - len, " Environment: %s.", o->env);
}

static void help_option(struct buf *out, const struct cli_option *o)
{
	if (o->hidden)
		return;
	buf_cstr(out, "  ");
	if (o->letter)
		buf_printf(out, "-%c, ", o->letter);
	buf_printf(out, "--%s%s%s\n", o->name, o->kind == CLI_BOOL ? "" : " ",
		o->kind == CLI_BOOL ? "" : o->value);
	char text[1024];
	cli_option_text(o, text, sizeof(text));
	cli_wrap(out, text, 8, HELP_WIDTH);
}

void cli_help(const struct cli_command *c, struct buf *out)
{
	buf_printf(out, "%s\n\nusage: firn %s%s%s [flags]\n\n", c->summary, c->name,
		c->args[0] ? " " : "", c->args);
	help_text(out, c->text);
	for (size_t g = 0; g < c->group_count; g++) {
		if (!c->groups[g].title[0])
			continue;
		buf_printf(out, "\n%s:\n", c->groups[g].title);
		for (size_t i = 0; i < c->groups[g].count; i++)
			help_option(out, &c->groups[g].options[i]);
	}
	buf_cstr(out, "\n  -h, --help\n        Show this.\n");
}

int cli_run_subverb(const struct cli_command *c, const struct cli_subverb *verbs, size_t count,
	const char *those, int argc, char **argv)
{
	int at = 0, code = CLI_OK;
	for (size_t i = 0; argc > 1 && i < count; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	if (!cli_parse(c, argc > 2 ? 2 : argc, argv, NULL, &at, &code))
		return code;
	cli_complain("%s can %s, not '%s'", c->name, those, argv[at]);
	return CLI_USAGE;
}
