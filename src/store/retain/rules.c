/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pattern is matched with one place to go back to, the last star. Rules are read from left to
 * right.
 */
#include "store/retain/rules.h"

#include "base/units.h"
#include "store/store.h"

#define TYPE_TEXT_MAX 4096

bool rules_match(struct str pattern, struct str text)
{
	size_t i = 0, k = 0, star = SIZE_MAX, mark = 0;
	while (k < text.len) {
		if (i < pattern.len && pattern.p[i] == '*') {
			star = i++;
			mark = k;
		} else if (i < pattern.len && pattern.p[i] == text.p[k]) {
			i++;
			k++;
		} else if (star != SIZE_MAX) {
			i = star + 1; /* the star takes one more */
			k = ++mark;
		} else {
			return false;
		}
	}
	while (i < pattern.len && pattern.p[i] == '*')
		i++;
	return i == pattern.len;
}

static void type_text(const struct tabs *t, const struct tab_series *s, struct buf *out)
{
	for (int k = 0; k < TABLES_TYPE_PARTS; k++) {
		if (k)
			buf_u8(out, ':');
		buf_str(out, t->label_strings[s->type[k]]);
	}
	if (s->delta)
		buf_cstr(out, ":delta");
}

size_t rules_find(const struct store_retention_rule *rules, size_t count, const struct tabs *t,
	uint32_t series)
{
	const struct tab_series *s = &t->series[series];
	CLEANUP(buf_deinit) struct buf type;
	buf_init(&type, TYPE_TEXT_MAX);
	type_text(t, s, &type);
	for (size_t i = 0; i < count; i++) {
		const struct store_retention_rule *r = &rules[i];
		if ((!r->has_tenant || rules_match(r->tenant, t->label_strings[s->tenant])) &&
			(!r->has_type || rules_match(r->type, buf_view(&type))))
			return i;
	}
	return count;
}

void rules_thin(
	const struct store_thin_rule *rules, size_t count, int64_t age_ns, struct thinning *out)
{
	*out = (struct thinning){ 0 };
	for (size_t i = 0; i < count; i++) {
		const struct store_thin_rule *r = &rules[i];
		if (age_ns <= r->age_ns)
			continue;
		out->resolution_ns = MAX(out->resolution_ns, r->resolution_ns);
		out->all_names |= r->all_names;
		out->rules |= (uint64_t)1 << i;
		for (size_t k = 0; k < r->name_count; k++)
			if (out->name_count < ARRAY_COUNT(out->names))
				out->names[out->name_count++] = r->names[k];
	}
}

/* ---- parsing ---- */

static enum status bad_condition(struct str rest, struct err *e)
{
	return err_set(e, E_INVALID,
		"'%.*s': expected tenant=\"NAME\" or type=\"TYPE\", where * stands for any "
		"characters",
		STR_ARG(str_sub(rest, 0, 60)));
}

/* name="value" off the front of *rest. */
static enum status take_condition(struct str *rest, struct store_retention_rule *r, struct err *e)
{
	size_t equal = str_index(*rest, '=');
	struct str name = str_sub(*rest, 0, equal);
	struct str value = str_sub(*rest, equal + 1, rest->len);
	if (value.len < 2 || value.p[0] != '"')
		return bad_condition(*rest, e);
	value = str_sub(value, 1, value.len);
	size_t quote = str_index(value, '"');
	if (quote == value.len)
		return bad_condition(*rest, e);
	struct str after = str_sub(value, quote + 1, value.len);
	value = str_sub(value, 0, quote);
	if (str_eq(name, STR("tenant")) && !r->has_tenant) {
		r->has_tenant = true;
		r->tenant = value;
	} else if (str_eq(name, STR("type")) && !r->has_type) {
		r->has_type = true;
		r->type = value;
	} else {
		return bad_condition(*rest, e);
	}
	*rest = after;
	return OK;
}

static enum status take_limits(struct str text, struct store_retention_rule *r, struct err *e)
{
	size_t slash = str_index(text, '/');
	struct str first = str_sub(text, 0, slash), second = str_sub(text, slash + 1, text.len);
	if (slash < text.len) {
		enum status s = units_parse_duration(first, &r->time_ns, e);
		return s == OK ? units_parse_bytes(second, &r->bytes, e) : s;
	}
	if (units_parse_duration(first, &r->time_ns, NULL) == OK ||
		units_parse_bytes(first, &r->bytes, NULL) == OK)
		return OK;
	return err_set(e, E_INVALID,
		"'%.*s': expected a duration (7d), a size (10GB), or both (7d/10GB)",
		STR_ARG(str_sub(text, 0, 60)));
}

enum status store_retention_parse(struct str text, struct store_retention_rule *out, struct err *e)
{
	struct store_retention_rule r = { 0 };
	struct str rest = text;
	for (;;) {
		enum status s = take_condition(&rest, &r, e);
		if (s != OK)
			return s;
		if (rest.len == 0 || (rest.p[0] != ',' && rest.p[0] != '='))
			return err_set(e, E_INVALID, "'%.*s': expected =DURATION/SIZE at its end",
				STR_ARG(str_sub(text, 0, 60)));
		bool more = rest.p[0] == ',';
		rest = str_sub(rest, 1, rest.len);
		if (!more)
			break;
	}
	enum status s = take_limits(rest, &r, e);
	if (s == OK)
		*out = r;
	return s;
}

static enum status take_names(struct str text, struct store_thin_rule *r, struct err *e)
{
	struct str name;
	if (str_eq(text, STR("*"))) {
		r->all_names = true;
		return OK;
	}
	while (str_split(&text, '+', &name)) {
		if (r->name_count == STORE_THIN_NAMES_MAX)
			return err_set(e, E_LIMIT, "more than %d labels", STORE_THIN_NAMES_MAX);
		if (!selector_label_name_ok(name))
			return err_set(e, E_INVALID, "'%.*s' is not the name of a label",
				STR_ARG(str_sub(name, 0, 60)));
		r->names[r->name_count++] = name;
	}
	return r->name_count ? OK : err_set(e, E_INVALID, "no label behind the /");
}

enum status store_thin_parse(struct str text, struct store_thin_rule *out, struct err *e)
{
	struct store_thin_rule r = { 0 };
	size_t equal = str_index(text, '=');
	struct str age = str_sub(text, 0, equal), rest = str_sub(text, equal + 1, text.len);
	size_t slash = str_index(rest, '/');
	struct str resolution = str_sub(rest, 0, slash);
	if (equal == text.len)
		return err_set(e, E_INVALID,
			"'%.*s': expected AGE=RESOLUTION or AGE=RESOLUTION/LABEL+LABEL",
			STR_ARG(str_sub(text, 0, 60)));
	enum status s = units_parse_duration(age, &r.age_ns, e);
	if (s == OK)
		s = units_parse_duration(resolution, &r.resolution_ns, e);
	if (s == OK && slash < rest.len)
		s = take_names(str_sub(rest, slash + 1, rest.len), &r, e);
	if (s == OK)
		*out = r;
	return s;
}

int64_t store_retention_longest(
	int64_t all_ns, const struct store_retention_rule *rules, size_t count)
{
	int64_t longest = all_ns;
	for (size_t i = 0; longest && i < count; i++)
		longest = rules[i].time_ns ? MAX(longest, rules[i].time_ns) : 0;
	return longest;
}
