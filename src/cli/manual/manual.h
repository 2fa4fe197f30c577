/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manual: man pages and shell completions, from the tables that parse the flags.
 *
 * Private to cli/. Hidden flags are in neither, as in --help.
 */
#pragma once

#include <string.h>

#include "cli/cli.h"
#include "cli/options/options.h"

#define CLI_MANUAL_COMMANDS_MAX 64

struct cli_manual {
	const struct cli_verb *verbs;
	/* Sub-verbs ("store verify") stand before their verb ("store"). */
	const struct cli_command *commands[CLI_MANUAL_COMMANDS_MAX];
	size_t count;
};

/* The sub-verbs of a command, "verify|inspect"; "" for none. */
static inline struct str cli_manual_subverbs(const struct cli_command *c)
{
	struct str first = str_make(c->args, strcspn(c->args, " "));
	return memchr(first.p, '|', first.len) ? first : STR("");
}

/* "find what is damaged" of "firn store verify: find what is damaged." */
static inline struct str cli_manual_summary(const struct cli_command *c)
{
	const char *colon = strstr(c->summary, ": ");
	struct str s = str_of(colon ? colon + 2 : c->summary);
	s.len -= s.len > 0 && s.p[s.len - 1] == '.';
	return s;
}

/* firn(1), firn-VERB(1), firn.yaml(5) and firn-disk-layout(7), in the man(7) macros. */
void cli_man_overview(const struct cli_manual *m, struct buf *out);
void cli_man_command(const struct cli_command *c, struct buf *out);
void cli_man_keys(const struct cli_group *const *groups, struct buf *out);
void cli_man_layout(struct buf *out);

void cli_complete_bash(const struct cli_manual *m, struct buf *out);
void cli_complete_zsh(const struct cli_manual *m, struct buf *out);
void cli_complete_fish(const struct cli_manual *m, struct buf *out);
