/* SPDX-License-Identifier: Apache-2.0 */
/* Makes rules of conf's tree. Errors name line and column. */
#include "relabel/internal.h"

struct reader {
	struct relabel *out;
	struct err *e;
};

static const char *const actions[] = {
#define RELABEL_ACTION_TEXT(name, text) [RELABEL_##name] = (text),
	RELABEL_ACTIONS(RELABEL_ACTION_TEXT)
#undef RELABEL_ACTION_TEXT
};

static const char *const fields[] = { "source_labels", "separator", "target_label", "replacement",
	"regex", "action", "modulus", NULL };

static enum status limit(struct err *e, const struct conf_node *n, const char *what, size_t most)
{
	return err_set(
		e, E_LIMIT, "line %u, column %u: more than %zu %s", n->line, n->column, most, what);
}

static enum status read_text(
	struct reader *r, const struct conf_node *n, const char *what, struct str *out)
{
	struct str text;
	enum status s = conf_text(n, what, &text, r->e);
	if (s != OK)
		return s;
	if (text.len > RELABEL_VALUE_BYTES_MAX)
		return limit(r->e, n, "bytes", RELABEL_VALUE_BYTES_MAX);
	char *copy = arena_copy(&r->out->arena, text.p, text.len);
	if (!copy)
		return err_set(r->e, arena_status(&r->out->arena), "line %u", n->line);
	*out = str_make(copy, text.len);
	return OK;
}

static enum status read_sources(
	struct reader *r, const struct conf_node *n, struct relabel_rule *rule)
{
	if (n->kind != CONF_LIST)
		return conf_wrong(r->e, n, "source_labels must be a list");
	for (uint32_t i = 0; i < n->count; i++) {
		const struct conf_node *item = n->v[i].value;
		if (rule->source_count == RELABEL_SOURCES_MAX)
			return limit(r->e, item, "source_labels", RELABEL_SOURCES_MAX);
		struct str *to = &rule->sources[rule->source_count];
		enum status s = read_text(r, item, "a source label", to);
		if (s != OK)
			return s;
		if (!relabel_name_ok(*to))
			return conf_wrong(r->e, item, "\"%.*s\" is no label name", STR_ARG(*to));
		rule->source_count++;
	}
	return OK;
}

static enum status read_regex(
	struct reader *r, struct str text, const struct conf_node *n, struct regex **out)
{
	char why[200] = "";
	struct regex *fresh = regex_new_capturing(text.p, text.len, why, sizeof(why));
	if (!fresh && !why[0])
		return err_set(r->e, E_NOMEM, "line %u: regex: no memory", n->line);
	if (!fresh)
		return conf_wrong(r->e, n, "regex: %s", why);
	regex_free(*out);
	*out = fresh;
	return OK;
}

static enum status read_action(
	struct reader *r, struct str text, const struct conf_node *n, enum relabel_action *out)
{
	for (int i = 0; i < RELABEL_ACTION_COUNT; i++)
		if (str_eq_nocase(text, str_of(actions[i]))) {
			*out = (enum relabel_action)i;
			return OK;
		}
	return conf_wrong(r->e, n, "there is no action \"%.*s\"", STR_ARG(text));
}

static enum status read_field(
	struct reader *r, const struct conf_entry *x, struct relabel_rule *rule)
{
	struct str text, key = x->key;
	const struct conf_node *n = x->value;
	if (str_eq(key, STR("source_labels")))
		return read_sources(r, n, rule);
	bool known = false;
	for (size_t i = 0; fields[i]; i++)
		known |= str_eq(key, str_of(fields[i]));
	if (!known)
		return conf_unknown(r->e, x, fields);
	enum status s = read_text(r, n, (const char *)key.p, &text);
	if (s != OK)
		return s;
	if (str_eq(key, STR("separator")))
		rule->separator = text;
	else if (str_eq(key, STR("target_label")))
		rule->target = text;
	else if (str_eq(key, STR("replacement")))
		rule->replacement = text;
	else if (str_eq(key, STR("regex")))
		s = read_regex(r, text, n, &rule->regex);
	else if (str_eq(key, STR("action")))
		s = read_action(r, text, n, &rule->action);
	else
		s = conf_number(n, "modulus", 0, UINT64_MAX, &rule->modulus, r->e);
	return s;
}

/* Checks a rule like Prometheus' Config.UnmarshalYAML() and Validate(). */
static enum status check_rule(
	struct reader *r, const struct relabel_rule *rule, const struct conf_node *n)
{
	const char *action = actions[rule->action];
	bool needs_target = rule->action == RELABEL_REPLACE || rule->action == RELABEL_HASHMOD ||
			    rule->action == RELABEL_LOWERCASE ||
			    rule->action == RELABEL_UPPERCASE ||
			    rule->action == RELABEL_KEEPEQUAL || rule->action == RELABEL_DROPEQUAL;
	bool template =
		rule->action == RELABEL_REPLACE && str_index(rule->target, '$') < rule->target.len;
	if (needs_target && !rule->target.len)
		return conf_wrong(r->e, n, "action %s needs target_label", action);
	if (needs_target && !template && !relabel_name_ok(rule->target))
		return conf_wrong(
			r->e, n, "target_label \"%.*s\" is no label name", STR_ARG(rule->target));
	if (rule->action == RELABEL_HASHMOD && rule->modulus == 0)
		return conf_wrong(r->e, n, "action hashmod needs a modulus above 0");
	return OK;
}

static enum status read_rule(struct reader *r, const struct conf_node *n)
{
	if (n->kind != CONF_MAP)
		return conf_wrong(r->e, n, "a rule must be a mapping");
	if (r->out->rules.len == RELABEL_RULES_MAX)
		return limit(r->e, n, "rules", RELABEL_RULES_MAX);
	if (!VEC_PUSH(&r->out->rules,
		    (struct relabel_rule){ .separator = STR(";"), .replacement = STR("$1") }))
		return err_set(r->e, E_NOMEM, "line %u", n->line);
	struct relabel_rule *rule = &r->out->rules.v[r->out->rules.len - 1];
	enum status s = read_regex(r, STR("(.*)"), n, &rule->regex);
	for (uint32_t i = 0; s == OK && i < n->count; i++)
		s = read_field(r, &n->v[i], rule);
	return s == OK ? check_rule(r, rule, n) : s;
}

static enum status read_rules(struct reader *r, const struct conf_node *n)
{
	if (conf_is_empty(n)) /* "relabel_configs:" without a value */
		return OK;
	if (n->kind != CONF_LIST)
		return conf_wrong(r->e, n, "relabel_configs must be a list");
	enum status s = OK;
	for (uint32_t i = 0; s == OK && i < n->count; i++)
		s = read_rule(r, n->v[i].value);
	return s;
}

enum status relabel_read(const struct conf_node *list, struct relabel **out, struct err *e)
{
	struct relabel *r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(e, E_NOMEM, "relabelling");
	arena_init(&r->arena, 2 * RELABEL_CONFIG_BYTES_MAX);
	enum status s = list ? read_rules(&(struct reader){ r, e }, list) : OK;
	if (s != OK) {
		relabel_free(r);
		return s;
	}
	*out = r;
	return OK;
}

enum status relabel_parse(struct str yaml, struct relabel **out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a = { 0 };
	const struct conf_node *root = NULL;
	if (yaml.len > RELABEL_CONFIG_BYTES_MAX)
		return err_set(e, E_LIMIT, "longer than %zu bytes", RELABEL_CONFIG_BYTES_MAX);
	arena_init(&a, CONF_ARENA_BYTES);
	enum status s = conf_parse(yaml, &a, &root, e);
	if (s == OK && root && root->kind != CONF_MAP)
		s = conf_wrong(e, root, "expected \"relabel_configs:\"");
	return s == OK ? relabel_read(conf_find(root, "relabel_configs"), out, e) : s;
}
