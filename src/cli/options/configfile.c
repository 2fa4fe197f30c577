/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: conf parses the tree, and the tables of flags give its keys. Each verb accepts the keys of
 * all verbs, so that one file is enough for a host.
 */
#include "cli/options/configfile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "os/os.h"
#include "relabel/relabel.h"
#include "scrape/scrape.h"

#define KEY_MAX 96
#define KEYS_MAX 512

/* Sections with the format of Parca and Prometheus. */
static const char *const further[] = { "object_storage", "scrape_configs", "relabel_configs" };

static void key_of(const struct cli_option *o, char out[KEY_MAX])
{
	snprintf(out, KEY_MAX, "%s", o->name);
	for (char *c = out; *c; c++)
		*c = *c == '-' ? '_' : *c;
}

void cli_config_env(const struct cli_option *o, char out[96])
{
	snprintf(out, KEY_MAX, "FIRN_%s", o->name);
	for (char *c = out; *c; c++)
		*c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

bool cli_config_is_key(const struct cli_option *o)
{
	return strcmp(o->name, "config-path") != 0 && strcmp(o->name, "version") != 0;
}

static const struct cli_option *option_of(const struct cli_group *const *groups, struct str key)
{
	char name[KEY_MAX];
	for (size_t g = 0; groups[g]; g++)
		for (size_t i = 0; i < groups[g]->count; i++) {
			key_of(&groups[g]->options[i], name);
			if (str_eq(key, str_of(name)) && cli_config_is_key(&groups[g]->options[i]))
				return &groups[g]->options[i];
		}
	return NULL;
}

static enum status unknown_key(
	const struct cli_group *const *groups, const struct conf_entry *x, struct err *e)
{
	const char *names[KEYS_MAX + ARRAY_COUNT(further) + 1];
	CLEANUP(free_cleanup) char(*keys)[KEY_MAX] = calloc(KEYS_MAX, KEY_MAX);
	size_t count = 0, made = 0;
	if (!keys)
		return err_set(e, E_NOMEM, "keys");
	for (size_t i = 0; i < ARRAY_COUNT(further); i++)
		names[count++] = further[i];
	for (size_t g = 0; groups[g]; g++)
		for (size_t i = 0; i < groups[g]->count && made < KEYS_MAX; i++)
			if (cli_config_is_key(&groups[g]->options[i])) {
				key_of(&groups[g]->options[i], keys[made]);
				names[count++] = keys[made++];
			}
	names[count] = NULL;
	return conf_unknown(e, x, names);
}

/* ---- values ---- */

static enum status wrong(const struct cli_config *c, const struct cli_option *o,
	const struct conf_node *n, const char *why, struct err *e)
{
	char key[KEY_MAX];
	struct err at = { 0 };
	key_of(o, key);
	enum status s = conf_wrong(&at, n, "%s: %s", key, why);
	return err_set(e, s, "%s: %s", c->path, at.text);
}

static enum status set_one(const struct cli_config *c, const struct cli_option *o,
	const struct conf_node *n, const char *text, void *field, struct err *e)
{
	struct err why = { 0 };
	enum status s = cli_set_value(o, text, field, &why);
	return s == OK ? OK : wrong(c, o, n, err_text(&why, s), e);
}

enum status cli_config_set(const struct cli_config *c, const struct cli_option *o,
	const struct conf_node *n, void *field, struct err *e)
{
	if (o->gone)
		return OK;
	if (n->kind == CONF_TEXT)
		return set_one(c, o, n, (const char *)n->text.p, field, e);
	if (o->kind != CLI_LIST)
		return wrong(c, o, n, "one value is expected", e);
	for (uint32_t i = 0; i < n->count; i++) {
		const struct conf_node *item = n->v[i].value;
		char text[CLI_LIST_BYTES_MAX];
		if (item->kind != CONF_TEXT)
			return wrong(c, o, item, "a text is expected", e);
		int len = snprintf(text, sizeof(text), "%s%s%.*s",
			n->kind == CONF_MAP ? (const char *)n->v[i].key.p : "",
			n->kind == CONF_MAP ? "=" : "", STR_ARG(item->text));
		if (len >= (int)sizeof(text))
			return wrong(c, o, item, "it is too long", e);
		enum status s = set_one(c, o, item, text, field, e);
		if (s != OK)
			return s;
	}
	return OK;
}

/* Shows a text without the user and password of a URL or of "USER:PASSWORD@HOST:PORT". */
static void show_text(struct buf *out, struct str text, bool secret)
{
	CLEANUP(buf_deinit) struct buf shown;
	size_t at = str_rindex(text, '@'), slashes = str_index(text, '/');
	bool url = at < text.len && slashes + 1 < at && text.p[slashes + 1] == '/';
	struct str user = str_sub(text, 0, at);
	size_t colon = str_index(user, ':');
	bool plain = true;
	for (size_t i = 0; i < user.len; i++)
		plain &= !strchr(" ()[]|*$\\", user.p[i]); /* not a regular expression */
	bool pair = at < text.len && colon + 1 < at && plain;
	buf_init(&shown, text.len + 16);
	if (secret) {
		buf_cstr(out, "(secret)");
	} else if (url || pair) {
		buf_str(&shown, str_sub(text, 0, url ? slashes + 2 : 0));
		buf_cstr(&shown, "(secret)");
		buf_str(&shown, str_sub(text, at, text.len));
		buf_json_str(out, buf_view(&shown));
	} else {
		buf_json_str(out, text);
	}
}

void cli_config_show(struct buf *out, const struct cli_option *o, const void *field)
{
	char key[KEY_MAX], text[UNITS_TEXT_MAX];
	const struct cli_list *list = field;
	key_of(o, key);
	buf_printf(out, "%s: ", key);
	if (o->secret) {
		buf_cstr(out, "(secret)");
		return;
	}
	switch (o->kind) {
	case CLI_TEXT:
	case CLI_CHOICE:
		show_text(out, str_of(*(char *const *)field ? *(char *const *)field : ""), false);
		break;
	case CLI_BOOL:
		buf_cstr(out, *(const bool *)field ? "true" : "false");
		break;
	case CLI_NUMBER:
		buf_printf(out, "%u", *(const uint32_t *)field);
		break;
	case CLI_SHARE:
		buf_json_double(out, *(const double *)field);
		break;
	case CLI_DURATION:
		buf_cstr(out, units_format_duration(*(const int64_t *)field, text));
		break;
	case CLI_SIZE:
		buf_cstr(out, units_format_bytes(*(const uint64_t *)field, text));
		break;
	case CLI_LIST:
		buf_cstr(out, "[");
		for (uint32_t i = 0; i < list->count; i++) {
			buf_cstr(out, i ? ", " : "");
			show_text(out, str_of(list->v[i]), false);
		}
		buf_cstr(out, "]");
	}
}

/* ---- sections, for people ---- */

static bool is_secret(struct str key)
{
	static const char *const names[] = { "password", "credentials", "bearer_token",
		"client_secret", "token", "secret", "key", "secret_key", "access_key",
		"session_token", "encryption_key", "storage_account_key",
		"storage_connection_string", "service_account", "http_headers", "endpoint_params" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(key, str_of(names[i])))
			return true;
	return false;
}

/* Shows a node after "key:" or "-"; the depth is bounded by CONF_DEPTH_MAX. */
static void show_node(struct buf *out, const struct conf_node *n, int indent, bool secret)
{
	if (n->kind == CONF_TEXT || !n->count) {
		buf_u8(out, ' ');
		if (n->kind == CONF_TEXT)
			show_text(out, n->text, secret);
		else
			buf_cstr(out, n->kind == CONF_MAP ? "{}" : "[]");
		buf_u8(out, '\n');
		return;
	}
	buf_u8(out, '\n');
	for (uint32_t i = 0; i < n->count; i++) {
		const struct conf_entry *x = &n->v[i];
		buf_printf(out, "%*s", indent, "");
		if (n->kind == CONF_MAP) {
			buf_str(out, x->key);
			buf_u8(out, ':');
		} else {
			buf_u8(out, '-');
		}
		show_node(out, x->value, indent + 2, secret || is_secret(x->key));
	}
}

void cli_config_show_sections(struct buf *out, const struct cli_config *c)
{
	for (size_t i = 0; c->root && i < ARRAY_COUNT(further); i++) {
		const struct conf_node *n = conf_find(c->root, further[i]);
		if (!n || conf_is_empty(n))
			continue;
		buf_printf(out, "# line %u of the file\n%s:", n->line, further[i]);
		show_node(out, n, 2, false);
	}
}

/* ---- the file ---- */

/* Checks the sections that other parts read later, so that errors show before anything starts. */
static enum status check_further(const struct cli_config *c, struct err *e)
{
	struct relabel *rules = NULL;
	enum status s = relabel_read(conf_find(c->root, "relabel_configs"), &rules, e);
	if (s == OK)
		relabel_free(rules);
	const struct conf_node *object = conf_find(c->root, "object_storage");
	if (s == OK)
		s = scrape_check(conf_find(c->root, "scrape_configs"), e);
	if (s == OK && object && object->kind != CONF_MAP && !conf_is_empty(object))
		s = conf_wrong(e, object, "object_storage must be a mapping");
	return s;
}

static enum status check_keys(
	const struct cli_config *c, const struct cli_group *const *groups, struct err *e)
{
	if (c->root && c->root->kind != CONF_MAP)
		return conf_wrong(e, c->root, "expected lines of the form \"key: value\"");
	for (uint32_t i = 0; c->root && i < c->root->count; i++) {
		const struct conf_entry *x = &c->root->v[i];
		bool known = option_of(groups, x->key) != NULL;
		for (size_t k = 0; k < ARRAY_COUNT(further); k++)
			known |= str_eq(x->key, str_of(further[k]));
		if (!known)
			return unknown_key(groups, x, e);
	}
	return check_further(c, e);
}

void cli_config_deinit(struct cli_config *c)
{
	arena_deinit(&c->arena);
	c->root = NULL;
}

enum status cli_config_load(struct cli_config *c, const char *path,
	const struct cli_group *const *groups, struct err *e)
{
	CLEANUP(buf_deinit) struct buf text;
	struct err why = { 0 };
	buf_init(&text, CONF_BYTES_MAX);
	cli_config_deinit(c);
	if (!path || !path[0])
		return OK;
	snprintf(c->path, sizeof(c->path), "%s", path);
	arena_init(&c->arena, CONF_ARENA_BYTES);
	enum status s = os_read_own(path, &text, NULL, &why);
	if (s != OK)
		return err_set(e, s, "--config-path: %s", err_text(&why, s));
	s = conf_parse(buf_view(&text), &c->arena, &c->root, &why);
	if (s == OK)
		s = check_keys(c, groups, &why);
	if (s != OK)
		c->root = NULL;
	return s == OK ? OK : err_set(e, s, "%s: %s", path, err_text(&why, s));
}

const struct conf_node *cli_config_find(const struct cli_config *c, const struct cli_option *o)
{
	char key[KEY_MAX];
	key_of(o, key);
	const struct conf_node *n = cli_config_is_key(o) ? conf_find(c->root, key) : NULL;
	return n && !conf_is_empty(n) ? n : NULL;
}

enum status cli_config_check(const struct cli_config *c, const struct cli_group *const *groups,
	uint32_t *out_keys, struct err *e)
{
	union {
		struct cli_list list;
		uint64_t number;
		double share;
		const char *text;
	} field;
	enum status s = OK;
	*out_keys = c->root ? c->root->count : 0;
	for (uint32_t i = 0; s == OK && i < *out_keys; i++) {
		const struct cli_option *o = option_of(groups, c->root->v[i].key);
		memset(&field, 0, sizeof(field));
		if (o && !conf_is_empty(c->root->v[i].value))
			s = cli_config_set(c, o, c->root->v[i].value, &field, e);
	}
	return s;
}
