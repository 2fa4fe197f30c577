/* SPDX-License-Identifier: Apache-2.0 */
/*
 * configfile: the configuration file: YAML in which each flag of server, agent and up is a key, the
 * flag's name with '_' for '-'. Parca's object_storage and scrape_configs and parca-agent's
 * relabel_configs are keys too. A key of another verb is accepted and has no effect.
 *
 * Private to cli/. Values point into the file's tree.
 */
#pragma once

#include <limits.h>

#include "base/arena.h"
#include "cli/options/option.h"
#include "conf/conf.h"

struct cli_config {
	char path[PATH_MAX];
	struct arena arena;
	const struct conf_node *root; /* NULL: empty, or no file */
};
void cli_config_deinit(struct cli_config *c); /* all 0 is fine */
/* `path` NULL or "": there is no file. Errors name the file, line and column; a key that is in none
 * of these groups (NULL at the end) is an error. */
NODISCARD enum status cli_config_load(struct cli_config *c, const char *path,
	const struct cli_group *const *groups, struct err *e);
/* Checks each value as its flag would, without storing it. */
NODISCARD enum status cli_config_check(const struct cli_config *c,
	const struct cli_group *const *groups, uint32_t *out_keys, struct err *e);
/* Its value for a flag; NULL: none. */
const struct conf_node *cli_config_find(const struct cli_config *c, const struct cli_option *o);
/* Sets a flag's field from the file's value. If the flag may be repeated, the value is a list, or a
 * map of NAME: VALUE. */
NODISCARD enum status cli_config_set(const struct cli_config *c, const struct cli_option *o,
	const struct conf_node *n, void *field, struct err *e);

/* False: the flag makes no sense in a file. */
bool cli_config_is_key(const struct cli_option *o);
/* "FIRN_HTTP_ADDRESS" */
void cli_config_env(const struct cli_option *o, char out[96]);
/* "http_address: 127.0.0.1:7070", without an end of line. */
void cli_config_show(struct buf *out, const struct cli_option *o, const void *field);
/* The sections that are no flags (scrape_configs, …) as YAML, with their lines; secrets are hidden,
 * and so are the values of headers and the part of a URL before the '@'. */
void cli_config_show_sections(struct buf *out, const struct cli_config *c);
