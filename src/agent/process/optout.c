/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/optout.h"

static bool given(const char *const *list)
{
	return list && list[0];
}

static enum status check_names(const char *const *list, struct err *e)
{
	for (uint32_t i = 0; list && list[i]; i++) {
		if (!relabel_name_ok(str_of(list[i])))
			return err_set(e, E_INVALID,
				"environment variable \"%s\": not a name of letters, digits and _",
				list[i]);
		if (i >= OPTOUT_NAMES_MAX)
			return err_set(
				e, E_LIMIT, "more than %d environment variables", OPTOUT_NAMES_MAX);
	}
	return OK;
}

static enum status check_labels(const char *const *list, struct err *e)
{
	for (uint32_t i = 0; list && list[i]; i++) {
		struct str text = str_of(list[i]);
		size_t at = str_index(text, '=');
		if (at == text.len || !relabel_name_ok(str_sub(text, 0, at)))
			return err_set(
				e, E_INVALID, "label \"%s\": not of the form name=value", list[i]);
		if (i >= OPTOUT_NAMES_MAX)
			return err_set(e, E_LIMIT, "more than %d labels", OPTOUT_NAMES_MAX);
	}
	return OK;
}

enum status optout_check(const struct optout_config *c, struct err *e)
{
	enum status s = check_names(c->out_env, e);
	if (s == OK)
		s = check_names(c->in_env, e);
	if (s == OK)
		s = check_labels(c->out_labels, e);
	return s == OK ? check_labels(c->in_labels, e) : s;
}

bool optout_wants_environment(const struct optout_config *c)
{
	return given(c->out_env) || given(c->in_env);
}

static void write_names(const char *const *list, struct buf *out)
{
	for (; list && *list; list++)
		buf_cstr(out, *list);
}

void optout_write_variables(const struct optout_config *c, struct buf *out)
{
	write_names(c->out_env, out);
	write_names(c->in_env, out);
}

bool optout_is_empty(const struct optout_config *c)
{
	return !optout_wants_environment(c) && !given(c->out_labels) && !given(c->in_labels);
}

struct str optout_find_variable(struct str environment, struct str name)
{
	struct str entry, key;
	while (str_split(&environment, 0, &entry))
		if (str_split(&entry, '=', &key) && str_eq(key, name))
			return entry;
	return STR("");
}

static bool equal_but_for_case(struct str a, const char *small)
{
	struct str b = str_of(small);
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		char c = a.p[i];
		if ((c >= 'A' && c <= 'Z' ? c | 32 : c) != b.p[i])
			return false;
	}
	return true;
}

static bool is_one_of(struct str value, const char *const *words)
{
	for (; *words; words++)
		if (equal_but_for_case(value, *words))
			return true;
	return false;
}

static bool any_variable(const char *const *names, struct str environment, const char *const *words)
{
	for (; names && *names; names++)
		if (is_one_of(str_trim(optout_find_variable(environment, str_of(*names))), words))
			return true;
	return false;
}

static bool any_label(const char *const *wanted, const struct relabel_set *labels)
{
	for (; wanted && *wanted; wanted++) {
		struct str value = str_of(*wanted), name;
		if (str_split(&value, '=', &name) && str_eq(relabel_set_get(labels, name), value))
			return true;
	}
	return false;
}

bool optout_allows(
	const struct optout_config *c, struct str environment, const struct relabel_set *labels)
{
	static const char *const off[] = { "off", "false", "0", "no", "disable", "disabled", NULL };
	static const char *const on[] = { "on", "true", "1", "yes", "enable", "enabled", NULL };
	if (any_variable(c->out_env, environment, off) || any_label(c->out_labels, labels))
		return false;
	if (!given(c->in_env) && !given(c->in_labels))
		return true;
	return any_variable(c->in_env, environment, on) || any_label(c->in_labels, labels);
}
