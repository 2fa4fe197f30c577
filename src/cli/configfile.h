/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configfile: the configuration file: YAML in which each flag of server, agent and up is a key, the
 * flag's name with '_' for '-'. Parca's object_storage and scrape_configs and parca-agent's
 * relabel_configs stand beside them. A key of another verb is taken and has no effect.
 *
 * Private to cli/. Values point into the file's tree.
 */
#pragma once

#include <limits.h>

#include "base/arena.h"
#include "cli/option.h"
#include "conf/conf.h"

struct cli_config {
	char path[PATH_MAX];
	struct arena arena;
	const struct conf_node *root; /* NULL: empty, or no file */
};
void cli_config_deinit(struct cli_config *c); /* all 0 is fine */
/* NULL or "": there is none. Errors name the file, line and column; a key that is in none of these
 * groups (NULL at the end) is one. */
NODISCARD enum status cli_config_load(struct cli_config *c, const char *path,
	const struct cli_group *const *groups, struct err *e);
/* Each value as its flag would take it, without a place to put it. */
NODISCARD enum status cli_config_check(const struct cli_config *c,
	const struct cli_group *const *groups, uint32_t *out_keys, struct err *e);
/* Its value for a flag; NULL: none. */
const struct conf_node *cli_config_find(const struct cli_config *c, const struct cli_option *o);
/* A flag's field from the file's value: a list where the flag may be repeated, also as a map of
 * NAME: VALUE. */
NODISCARD enum status cli_config_set(const struct cli_config *c, const struct cli_option *o,
	const struct conf_node *n, void *field, struct err *e);

/* False: the flag makes no sense in a file. */
bool cli_config_is_key(const struct cli_option *o);
/* "FIRN_HTTP_ADDRESS" */
void cli_config_env(const struct cli_option *o, char out[96]);
/* "http_address: 127.0.0.1:7070", without an end of line. */
void cli_config_show(struct buf *out, const struct cli_option *o, const void *field);
/* The sections that are no flags (scrape_configs, …) as YAML, with their lines; secrets are hidden,
 * and so are the values of headers and what stands before the '@' of a URL. */
void cli_config_show_sections(struct buf *out, const struct cli_config *c);
