/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: one script for each shell with all verbs and flags in it, so that a key press starts no
 * program. bash lists names, zsh and fish show the first sentence of the help too.
 */
#include "cli/manual/manual.h"

#include <stdio.h>
#include <string.h>

typedef void option_fn(const struct cli_command *c, const struct cli_option *o, struct buf *out);

static void each_option(const struct cli_command *c, option_fn *fn, struct buf *out)
{
	for (size_t g = 0; g < c->group_count; g++)
		for (size_t i = 0; c->groups[g].title[0] && i < c->groups[g].count; i++)
			if (!c->groups[g].options[i].hidden)
				fn(c, &c->groups[g].options[i], out);
}

/* The text up to the end of its first sentence. */
static struct str first_sentence(const char *help)
{
	size_t len = 0;
	while (help[len] && !(help[len] == '.' && (help[len + 1] == ' ' || !help[len + 1])))
		len++;
	return str_make(help, len);
}

/* Writes a text for single quotes of sh and zsh; characters of `special` get a backslash. */
static void put_quoted(struct buf *out, struct str s, const char *special)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = (char)s.p[i];
		if (c == '\'')
			buf_cstr(out, "'\\''");
		else if (strchr(special, c))
			buf_printf(out, "\\%c", c);
		else
			buf_u8(out, (uint8_t)c);
	}
}

/* "verify inspect" */
static void put_subverbs(struct buf *out, const struct cli_command *c)
{
	struct str subs = cli_manual_subverbs(c);
	for (size_t i = 0; i < subs.len; i++)
		buf_u8(out, subs.p[i] == '|' ? ' ' : (uint8_t)subs.p[i]);
}

static bool is_file(const char *value)
{
	return strstr(value, "FILE") || strstr(value, "DIR") || strstr(value, "PATH");
}

static void put_verbs(const struct cli_manual *m, struct buf *out)
{
	for (const struct cli_verb *v = m->verbs; v->name; v++)
		if (v->summary)
			buf_printf(out, "%s ", v->name);
	buf_cstr(out, "help");
}

/* ---- bash ---- */

static void bash_flag(const struct cli_command *c, const struct cli_option *o, struct buf *out)
{
	(void)c;
	if (o->letter)
		buf_printf(out, "-%c ", o->letter);
	buf_printf(out, "--%s ", o->name);
}

/* Completes the value of a flag: one of its choices, else a file, which is bash's own default. */
static void bash_value(const struct cli_command *c, const struct cli_option *o, struct buf *out)
{
	(void)c;
	if (o->kind == CLI_BOOL)
		return;
	buf_cstr(out, "\t\t");
	if (o->letter)
		buf_printf(out, "-%c | ", o->letter);
	if (o->choices)
		buf_printf(out, "--%s) words='%s' ;;\n", o->name, o->choices);
	else
		buf_printf(out, "--%s) return ;;\n", o->name);
}

void cli_complete_bash(const struct cli_manual *m, struct buf *out)
{
	buf_cstr(out,
		"# bash completion of firn, made by `firn manual`.\n"
		"_firn()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} words= flags= at=$((COMP_CWORD - 1))\n"
		"\t[[ $cur != = ]] || cur=\n"
		"\t[[ ${COMP_WORDS[at]} != = ]] || at=$((at - 1))\n"
		"\tCOMPREPLY=()\n"
		"\tif [[ $COMP_CWORD == 1 || \"${COMP_WORDS[1]} $COMP_CWORD\" == 'help 2' ]]; "
		"then\n\t\tCOMPREPLY=($(compgen -W '");
	put_verbs(m, out);
	buf_cstr(out, "' -- \"$cur\"))\n\t\treturn\n\tfi\n"
		      "\tcase \"${COMP_WORDS[1]} ${COMP_WORDS[2]} \" in\n");
	for (size_t i = 0; i < m->count; i++) {
		const struct cli_command *c = m->commands[i];
		buf_printf(out, "\t'%s '*)\n\t\tflags='", c->name);
		each_option(c, bash_flag, out);
		buf_cstr(out, "--help'\n");
		if (cli_manual_subverbs(c).len) {
			buf_cstr(out, "\t\t[[ $COMP_CWORD != 2 ]] || words='");
			put_subverbs(out, c);
			buf_cstr(out, "'\n");
		}
		buf_cstr(out, "\t\tcase ${COMP_WORDS[at]} in\n");
		each_option(c, bash_value, out);
		buf_cstr(out, "\t\tesac\n\t\t;;\n");
	}
	buf_cstr(out, "\tesac\n"
		      "\t[[ $cur != -* ]] || words=$flags\n"
		      "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		      "}\n"
		      "complete -o bashdefault -o default -F _firn firn\n");
}

/* ---- zsh ---- */

static void zsh_spec(const struct cli_option *o, const char *flag, const char *end, struct buf *out)
{
	buf_printf(out, " \\\n\t\t\t'%s%s%s[", o->kind == CLI_LIST ? "*" : "", flag, end);
	put_quoted(out, first_sentence(o->help), "[]\\");
	buf_u8(out, ']');
	if (o->kind != CLI_BOOL) {
		buf_u8(out, ':');
		put_quoted(out, str_of(o->value), ":\\");
		if (o->choices)
			buf_printf(out, ":(%s)", o->choices);
		else
			buf_cstr(out, is_file(o->value) ? ":_files" : ": ");
	}
	buf_u8(out, '\'');
}

static void zsh_flag(const struct cli_command *c, const struct cli_option *o, struct buf *out)
{
	(void)c;
	char flag[96];
	snprintf(flag, sizeof(flag), "--%s", o->name);
	zsh_spec(o, flag, o->kind == CLI_BOOL ? "" : "=", out);
	if (!o->letter)
		return;
	snprintf(flag, sizeof(flag), "-%c", o->letter);
	zsh_spec(o, flag, "", out);
}

void cli_complete_zsh(const struct cli_manual *m, struct buf *out)
{
	buf_cstr(out, "#compdef firn\n# zsh completion of firn, made by `firn manual`.\n"
		      "_firn() {\n\tlocal -a verbs\n\tif (( CURRENT == 2 )); then\n\t\tverbs=(\n");
	for (const struct cli_verb *v = m->verbs; v->name; v++) {
		if (!v->summary)
			continue;
		buf_printf(out, "\t\t\t'%s:", v->name);
		put_quoted(out, str_of(v->summary), "\\");
		buf_cstr(out, "'\n");
	}
	buf_cstr(out, "\t\t\t'help:say more about a verb'\n\t\t)\n"
		      "\t\t_describe verb verbs\n\t\treturn\n\tfi\n"
		      "\tcase \"$words[2] $words[3] \" in\n");
	for (size_t i = 0; i < m->count; i++) {
		const struct cli_command *c = m->commands[i];
		int count = strchr(c->name, ' ') ? 2 : 1;
		buf_printf(out, "\t'%s '*)\n", c->name);
		if (cli_manual_subverbs(c).len) {
			buf_cstr(out, "\t\t(( CURRENT == 3 )) && compadd ");
			put_subverbs(out, c);
			buf_u8(out, '\n');
		}
		buf_printf(out, "\t\tshift %d words\n\t\t(( CURRENT -= %d ))\n\t\t_arguments",
			count, count);
		each_option(c, zsh_flag, out);
		buf_cstr(out, " \\\n\t\t\t'--help[Show the help]'");
		if (c->args[0] && !cli_manual_subverbs(c).len)
			buf_cstr(out, " \\\n\t\t\t'*: :_files'");
		buf_cstr(out, "\n\t\t;;\n");
	}
	buf_cstr(out, "\tesac\n}\n_firn \"$@\"\n");
}

/* ---- fish ---- */

/* Writes a text for single quotes of fish. */
static void put_fish(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '\'' || s.p[i] == '\\')
			buf_u8(out, '\\');
		buf_u8(out, (uint8_t)s.p[i]);
	}
}

static void fish_flag(const struct cli_command *c, const struct cli_option *o, struct buf *out)
{
	buf_printf(out, "complete -c firn -n '__firn_verb %s' -l %s", c->name, o->name);
	if (o->letter)
		buf_printf(out, " -s %c", o->letter);
	if (o->choices)
		buf_printf(out, " -x -a '%s'", o->choices);
	else if (o->kind != CLI_BOOL)
		buf_cstr(out, is_file(o->value) ? " -r -F" : " -x");
	buf_cstr(out, " -d '");
	put_fish(out, first_sentence(o->help));
	buf_cstr(out, "'\n");
}

void cli_complete_fish(const struct cli_manual *m, struct buf *out)
{
	buf_cstr(out, "# fish completion of firn, made by `firn manual`.\n"
		      "function __firn_verb\n"
		      "\tset -l words (commandline -opc)\n"
		      "\tset -l last (math 1 + (count $argv))\n"
		      "\ttest (count $words) -ge $last; and test \"$words[2..$last]\" = \"$argv\"\n"
		      "end\n"
		      "function __firn_words\n"
		      "\ttest (count (commandline -opc)) -eq $argv[1]\n"
		      "end\n");
	for (const struct cli_verb *v = m->verbs; v->name; v++) {
		if (!v->summary)
			continue;
		buf_printf(out, "complete -c firn -n '__firn_words 1' -f -a %s -d '", v->name);
		put_fish(out, str_of(v->summary));
		buf_cstr(out, "'\n");
	}
	buf_cstr(out, "complete -c firn -n '__firn_words 1; or __firn_verb help' -f -a 'help'\n"
		      "complete -c firn -n '__firn_verb help; and __firn_words 2' -f -a '");
	put_verbs(m, out);
	buf_cstr(out, "'\n");
	for (size_t i = 0; i < m->count; i++) {
		const struct cli_command *c = m->commands[i];
		if (cli_manual_subverbs(c).len) {
			buf_printf(out,
				"complete -c firn -n '__firn_verb %s; and __firn_words 2' "
				"-f -a '",
				c->name);
			put_subverbs(out, c);
			buf_cstr(out, "'\n");
		}
		if (!c->args[0])
			buf_printf(out, "complete -c firn -n '__firn_verb %s' -f\n", c->name);
		each_option(c, fish_flag, out);
		buf_printf(out, "complete -c firn -n '__firn_verb %s' -l help -d 'Show the help'\n",
			c->name);
	}
}
