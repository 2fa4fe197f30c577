/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml loads the document as a table of nodes, in which an alias is one more reference to a
 * node, so that a small file cannot become a large one. Errors name the line.
 */
#include "relabel/private.h"

#include <yaml.h>

struct reader {
	yaml_document_t *doc;
	struct relabel *out;
	struct err *e;
};

static const char *const actions[] = {
#define RELABEL_ACTION_TEXT(name, text) [RELABEL_##name] = (text),
	RELABEL_ACTIONS(RELABEL_ACTION_TEXT)
#undef RELABEL_ACTION_TEXT
};

static unsigned line_of(const yaml_node_t *n)
{
	return (unsigned)n->start_mark.line + 1;
}

static const yaml_node_t *node_at(const struct reader *r, int index)
{
	return yaml_document_get_node(r->doc, index);
}

static struct str scalar_text(const yaml_node_t *n)
{
	return str_make(n->data.scalar.value, n->data.scalar.length);
}

static enum status read_scalar(
	struct reader *r, const yaml_node_t *n, const char *what, struct str *out)
{
	if (n->type != YAML_SCALAR_NODE)
		return err_set(r->e, E_INVALID, "line %u: %s must be a text", line_of(n), what);
	struct str text = scalar_text(n);
	if (text.len > RELABEL_VALUE_BYTES_MAX)
		return err_set(r->e, E_LIMIT, "line %u: %s is longer than %zu bytes", line_of(n),
			what, RELABEL_VALUE_BYTES_MAX);
	char *copy = arena_copy(&r->out->arena, text.p, text.len);
	if (!copy)
		return err_set(r->e, arena_status(&r->out->arena), "line %u", line_of(n));
	*out = str_make(copy, text.len);
	return OK;
}

static enum status read_sources(struct reader *r, const yaml_node_t *n, struct relabel_rule *rule)
{
	if (n->type != YAML_SEQUENCE_NODE)
		return err_set(
			r->e, E_INVALID, "line %u: source_labels must be a list", line_of(n));
	for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top;
		i++) {
		const yaml_node_t *item = node_at(r, *i);
		if (rule->source_count == RELABEL_SOURCES_MAX)
			return err_set(r->e, E_LIMIT, "line %u: more than %d source_labels",
				line_of(item), RELABEL_SOURCES_MAX);
		struct str *to = &rule->sources[rule->source_count];
		enum status s = read_scalar(r, item, "a source label", to);
		if (s != OK)
			return s;
		if (!relabel_name_ok(*to))
			return err_set(r->e, E_INVALID, "line %u: \"%.*s\" is no label name",
				line_of(item), STR_ARG(*to));
		rule->source_count++;
	}
	return OK;
}

static enum status read_regex(struct reader *r, struct str text, unsigned line, struct regex **out)
{
	char why[200] = "";
	struct regex *fresh = regex_new_capturing(text.p, text.len, why, sizeof(why));
	if (!fresh)
		return err_set(r->e, why[0] ? E_INVALID : E_NOMEM, "line %u: regex: %s", line,
			why[0] ? why : "no memory");
	regex_free(*out);
	*out = fresh;
	return OK;
}

static enum status read_action(
	struct reader *r, struct str text, unsigned line, enum relabel_action *out)
{
	for (int i = 0; i < RELABEL_ACTION_COUNT; i++)
		if (str_eq_nocase(text, str_of(actions[i]))) {
			*out = (enum relabel_action)i;
			return OK;
		}
	return err_set(
		r->e, E_INVALID, "line %u: there is no action \"%.*s\"", line, STR_ARG(text));
}

static enum status read_field(
	struct reader *r, struct str key, const yaml_node_t *value, struct relabel_rule *rule)
{
	struct str text;
	unsigned line = line_of(value);
	if (str_eq(key, STR("source_labels")))
		return read_sources(r, value, rule);
	char name[64];
	snprintf(name, sizeof(name), "%.*s", STR_ARG(key));
	enum status s = read_scalar(r, value, name, &text);
	if (s != OK)
		return s;
	if (str_eq(key, STR("separator"))) {
		rule->separator = text;
	} else if (str_eq(key, STR("target_label"))) {
		rule->target = text;
	} else if (str_eq(key, STR("replacement"))) {
		rule->replacement = text;
	} else if (str_eq(key, STR("regex"))) {
		s = read_regex(r, text, line, &rule->regex);
	} else if (str_eq(key, STR("action"))) {
		s = read_action(r, text, line, &rule->action);
	} else if (str_eq(key, STR("modulus"))) {
		if (!str_parse_u64(text, 10, &rule->modulus))
			s = err_set(r->e, E_INVALID, "line %u: modulus is not a number", line);
	} else {
		s = err_set(r->e, E_INVALID, "line %u: relabel_configs has no field \"%s\"", line,
			name);
	}
	return s;
}

/* As Prometheus' Config.UnmarshalYAML() and Validate(). */
static enum status check_rule(struct reader *r, const struct relabel_rule *rule, unsigned line)
{
	const char *action = actions[rule->action];
	bool needs_target = rule->action == RELABEL_REPLACE || rule->action == RELABEL_HASHMOD ||
			    rule->action == RELABEL_LOWERCASE ||
			    rule->action == RELABEL_UPPERCASE ||
			    rule->action == RELABEL_KEEPEQUAL || rule->action == RELABEL_DROPEQUAL;
	bool template =
		rule->action == RELABEL_REPLACE && str_index(rule->target, '$') < rule->target.len;
	if (needs_target && !rule->target.len)
		return err_set(
			r->e, E_INVALID, "line %u: action %s needs target_label", line, action);
	if (needs_target && !template && !relabel_name_ok(rule->target))
		return err_set(r->e, E_INVALID, "line %u: target_label \"%.*s\" is no label name",
			line, STR_ARG(rule->target));
	if (rule->action == RELABEL_HASHMOD && rule->modulus == 0)
		return err_set(
			r->e, E_INVALID, "line %u: action hashmod needs a modulus above 0", line);
	return OK;
}

static enum status read_rule(struct reader *r, const yaml_node_t *n)
{
	if (n->type != YAML_MAPPING_NODE)
		return err_set(r->e, E_INVALID, "line %u: a rule must be a mapping", line_of(n));
	if (r->out->rules.len == RELABEL_RULES_MAX)
		return err_set(r->e, E_LIMIT, "line %u: more than %d rules", line_of(n),
			RELABEL_RULES_MAX);
	if (!VEC_PUSH(&r->out->rules,
		    (struct relabel_rule){ .separator = STR(";"), .replacement = STR("$1") }))
		return err_set(r->e, E_NOMEM, "line %u", line_of(n));
	struct relabel_rule *rule = &r->out->rules.v[r->out->rules.len - 1];
	enum status s = read_regex(r, STR("(.*)"), line_of(n), &rule->regex);
	for (yaml_node_pair_t *p = n->data.mapping.pairs.start;
		s == OK && p < n->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = node_at(r, p->key);
		if (key->type != YAML_SCALAR_NODE)
			return err_set(
				r->e, E_INVALID, "line %u: a key must be a text", line_of(key));
		s = read_field(r, scalar_text(key), node_at(r, p->value), rule);
	}
	return s == OK ? check_rule(r, rule, line_of(n)) : s;
}

static enum status read_rules(struct reader *r, const yaml_node_t *n)
{
	/* "relabel_configs:" with nothing behind it. */
	if (n->type == YAML_SCALAR_NODE && n->data.scalar.length == 0)
		return OK;
	if (n->type != YAML_SEQUENCE_NODE)
		return err_set(
			r->e, E_INVALID, "line %u: relabel_configs must be a list", line_of(n));
	enum status s = OK;
	for (yaml_node_item_t *i = n->data.sequence.items.start;
		s == OK && i < n->data.sequence.items.top; i++)
		s = read_rule(r, node_at(r, *i));
	return s;
}

static enum status read_document(struct reader *r)
{
	const yaml_node_t *root = yaml_document_get_root_node(r->doc);
	if (!root || (root->type == YAML_SCALAR_NODE && root->data.scalar.length == 0))
		return OK; /* empty */
	if (root->type != YAML_MAPPING_NODE)
		return err_set(
			r->e, E_INVALID, "line %u: expected \"relabel_configs:\"", line_of(root));
	enum status s = OK;
	for (yaml_node_pair_t *p = root->data.mapping.pairs.start;
		s == OK && p < root->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = node_at(r, p->key);
		bool known = key->type == YAML_SCALAR_NODE &&
			     str_eq(scalar_text(key), STR("relabel_configs"));
		if (!known)
			return err_set(r->e, E_INVALID,
				"line %u: only relabel_configs can be configured here",
				line_of(key));
		s = read_rules(r, node_at(r, p->value));
	}
	return s;
}

static enum status not_yaml(const yaml_parser_t *p, struct err *e)
{
	size_t line = p->problem_mark.line ? p->problem_mark.line : p->context_mark.line;
	return err_set(e, p->error == YAML_MEMORY_ERROR ? E_NOMEM : E_INVALID, "line %u: %s",
		(unsigned)line + 1, p->problem ? p->problem : "not YAML");
}

static enum status parser_over(yaml_parser_t *p, struct str yaml, struct err *e)
{
	if (!yaml_parser_initialize(p))
		return err_set(e, E_NOMEM, "YAML");
	yaml_parser_set_input_string(p, (const uint8_t *)(yaml.p ? yaml.p : ""), yaml.len);
	return OK;
}

/* How much deeper it is after this event. */
static int deeper(yaml_event_type_t type)
{
	if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT)
		return 1;
	return type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT ? -1 : 0;
}

/* libyaml takes time with the square of the depth: 50 kB of '[' are ten seconds. */
static enum status check_depth(struct str yaml, struct err *e)
{
	yaml_parser_t parser;
	enum status s = parser_over(&parser, yaml, e);
	if (s != OK)
		return s;
	int depth = 0;
	for (bool more = true; s == OK && more;) {
		yaml_event_t event;
		if (!yaml_parser_parse(&parser, &event)) {
			s = not_yaml(&parser, e);
			break;
		}
		depth += deeper(event.type);
		if (depth > RELABEL_DEPTH_MAX)
			s = err_set(e, E_LIMIT, "line %u: nested deeper than %d",
				(unsigned)event.start_mark.line + 1, RELABEL_DEPTH_MAX);
		more = event.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return s;
}

static enum status load(struct str yaml, yaml_document_t *doc, struct err *e)
{
	yaml_parser_t parser;
	enum status s = check_depth(yaml, e);
	if (s == OK)
		s = parser_over(&parser, yaml, e);
	if (s != OK)
		return s;
	if (!yaml_parser_load(&parser, doc))
		s = not_yaml(&parser, e);
	yaml_parser_delete(&parser);
	return s;
}

enum status relabel_parse(struct str yaml, struct relabel **out, struct err *e)
{
	yaml_document_t doc;
	if (yaml.len > RELABEL_CONFIG_BYTES_MAX)
		return err_set(e, E_LIMIT, "longer than %zu bytes", RELABEL_CONFIG_BYTES_MAX);
	enum status s = load(yaml, &doc, e);
	if (s != OK)
		return s;
	struct relabel *r = calloc(1, sizeof(*r));
	if (r) {
		arena_init(&r->arena, 2 * RELABEL_CONFIG_BYTES_MAX);
		s = read_document(&(struct reader){ &doc, r, e });
	} else {
		s = err_set(e, E_NOMEM, "relabelling");
	}
	yaml_document_delete(&doc);
	if (s != OK) {
		relabel_free(r);
		return s;
	}
	*out = r;
	return OK;
}
