/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: every text passes put(), which escapes what man(7) would take for commands: backslashes and
 * dashes anywhere, dots and quotes at the beginning of a line. Lines of a text that begin with a
 * blank are examples and keep their shape. Pages carry no date, so that two builds are the same.
 */
#include "cli/manual/manual.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/storage/storage.h"

static void put(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = (char)s.p[i];
		bool first = i == 0 || s.p[i - 1] == '\n';
		if (first && (c == '.' || c == '\''))
			buf_cstr(out, "\\&");
		if (c == '\\')
			buf_cstr(out, "\\e");
		else if (c == '-')
			buf_cstr(out, "\\-");
		else
			buf_u8(out, (uint8_t)c);
	}
}

static void put_text(struct buf *out, const char *text)
{
	bool as_is = false;
	while (*text) {
		size_t len = strcspn(text, "\n");
		if ((*text == ' ') != as_is && len > 0) {
			as_is = !as_is;
			buf_cstr(out, as_is ? ".nf\n" : ".fi\n");
		}
		if (len == 0 && !as_is)
			buf_cstr(out, ".PP");
		put(out, str_make(text, len));
		buf_u8(out, '\n');
		text += len;
		text += *text == '\n';
	}
	if (as_is)
		buf_cstr(out, ".fi\n");
}

static void put_title(struct buf *out, const char *name, int section)
{
	buf_cstr(out, ".\\\" Made by `firn manual`.\n.TH \"");
	for (; *name; name++)
		buf_u8(out, *name == ' ' ? '-' : (uint8_t)toupper((unsigned char)*name));
	buf_printf(out, "\" %d \"\" \"firn " FIRN_VERSION "\" \"firn\"\n.SH NAME\n", section);
}

static void put_option_text(struct buf *out, const struct cli_option *o)
{
	char text[1024];
	cli_option_text(o, text, sizeof(text));
	put(out, str_of(text));
	buf_u8(out, '\n');
}

static void put_flag(struct buf *out, const struct cli_option *o)
{
	if (o->hidden)
		return;
	buf_cstr(out, ".TP\n");
	if (o->letter)
		buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
	buf_cstr(out, "\\fB\\-\\-");
	put(out, str_of(o->name));
	buf_cstr(out, "\\fR");
	if (o->kind != CLI_BOOL) {
		buf_cstr(out, " \\fI");
		put(out, str_of(o->value));
		buf_cstr(out, "\\fR");
	}
	buf_u8(out, '\n');
	put_option_text(out, o);
}

void cli_man_command(const struct cli_command *c, struct buf *out)
{
	char title[64];
	snprintf(title, sizeof(title), "firn %s", c->name);
	put_title(out, title, 1);
	for (char *t = title; *t; t++)
		*t = *t == ' ' ? '-' : *t;
	put(out, str_of(title));
	buf_cstr(out, " \\- ");
	put(out, cli_manual_summary(c));
	buf_cstr(out, "\n.SH SYNOPSIS\n\\fBfirn ");
	put(out, str_of(c->name));
	buf_cstr(out, "\\fR ");
	put(out, str_of(c->args));
	buf_cstr(out, " [flags]\n.SH DESCRIPTION\n");
	put_text(out, c->text);
	for (size_t g = 0; g < c->group_count; g++) {
		if (!c->groups[g].title[0])
			continue;
		buf_cstr(out, ".SH \"");
		put(out, str_of(c->groups[g].title));
		buf_cstr(out, "\"\n");
		for (size_t i = 0; i < c->groups[g].count; i++)
			put_flag(out, &c->groups[g].options[i]);
	}
	buf_cstr(out, ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nShow the help.\n"
		      ".SH \"SEE ALSO\"\n.BR firn (1)");
	buf_cstr(out, c->file_groups ? ", \n.BR firn.yaml (5)\n" : "\n");
}

void cli_man_overview(const struct cli_manual *m, struct buf *out)
{
	put_title(out, "firn", 1);
	buf_cstr(out, "firn \\- always-on profiler\n.SH SYNOPSIS\n\\fBfirn\\fR VERB [flags]\n"
		      ".SH DESCRIPTION\n"
		      "firn profiles every process of this host, all the time, and shows where\n"
		      "the CPU\\(aqs time goes. Each verb has a page of its own.\n.SH VERBS\n");
	for (size_t i = 0; i < m->count; i++) {
		buf_cstr(out, ".TP\n\\fB");
		put(out, str_of(m->commands[i]->name));
		buf_cstr(out, "\\fR\n");
		put(out, cli_manual_summary(m->commands[i]));
		buf_u8(out, '\n');
	}
	buf_cstr(out, ".SH \"EXIT STATUS\"\n");
	put_text(out, cli_exit_codes);
	buf_cstr(out, ".SH \"SEE ALSO\"\n.BR firn.yaml (5)");
	for (size_t i = 0; i < m->count; i++) {
		buf_cstr(out, ",\n.BR firn\\-");
		for (const char *c = m->commands[i]->name; *c; c++)
			buf_cstr(out, *c == ' ' ? "\\-" : (char[]){ *c, 0 });
		buf_cstr(out, " (1)");
	}
	buf_u8(out, '\n');
}

void cli_man_keys(const struct cli_group *const *groups, struct buf *out)
{
	put_title(out, "firn.yaml", 5);
	buf_cstr(out, "firn.yaml \\- configuration of firn up, firn server and firn agent\n"
		      ".SH DESCRIPTION\n");
	put_text(out,
		"A YAML file that --config-path or FIRN_CONFIG_PATH names. A key is the name of a "
		"flag with _ for -. A flag comes before the environment's FIRN_ and the flag's "
		"name in capitals, and this before the file. A flag that may be repeated takes a "
		"list. A key of another verb has no effect; an unknown key is an error. "
		"`firn config check FILE` finds what is wrong. relabel_configs and scrape_configs "
		"are taken as Prometheus has them.\n");
	for (; *groups; groups++) {
		if (!(*groups)->title[0])
			continue;
		buf_cstr(out, ".SH \"");
		put(out, str_of((*groups)->title));
		buf_cstr(out, "\"\n");
		for (size_t i = 0; i < (*groups)->count; i++) {
			const struct cli_option *o = &(*groups)->options[i];
			if (o->hidden || !cli_config_is_key(o))
				continue;
			buf_cstr(out, ".TP\n\\fB");
			for (const char *c = o->name; *c; c++)
				buf_u8(out, *c == '-' ? '_' : (uint8_t)*c);
			buf_cstr(out, "\\fR\n");
			put_option_text(out, o);
		}
	}
	buf_cstr(out, ".SH \"SEE ALSO\"\n.BR firn (1)\n");
}

static void put_places(const struct cli_layout_entry *l, struct buf *out)
{
	for (; l->name; l++) {
		buf_cstr(out, ".TP\n\\fB");
		put(out, str_of(l->name));
		buf_cstr(out, "\\fR\n");
		put(out, str_of(l->text));
		if (l->format[0])
			buf_printf(out, "\nFormat: docs/formats/%s.md.", l->format);
		buf_u8(out, '\n');
	}
}

void cli_man_layout(struct buf *out)
{
	put_title(out, "firn-disk-layout", 7);
	buf_cstr(out, "firn\\-disk\\-layout \\- what firn keeps on disk\n.SH DESCRIPTION\n");
	put_text(out,
		"A server keeps all samples, and what gives them names, in one directory, "
		"--storage-path. Only one server at a time uses it. To back it up, stop the server "
		"and "
		"copy it, or use `firn store export` while it runs. To see whether it is whole, "
		"run "
		"`firn store verify PATH`.\n"
		"\n"
		"Parts, logs and the manifest begin with the version of their format. A server "
		"that meets a newer log or manifest does not start and says which file it is. A "
		"newer part is named and left alone, and its samples are not seen. `firn store "
		"verify` ends with 7.\n");
	buf_cstr(out, ".SH \"THE STORAGE DIRECTORY\"\n");
	put_places(cli_layout_storage, out);
	buf_cstr(out, ".SH \"OTHER PLACES\"\n");
	put_places(cli_layout_others, out);
	buf_cstr(out, ".SH \"SEE ALSO\"\n.BR firn (1),\n.BR firn\\-store\\-verify (1),\n"
		      ".BR firn.yaml (5)\n");
}
