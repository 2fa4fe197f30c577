/* SPDX-License-Identifier: Apache-2.0 */
/* How: the table is searched row by row for each key. Tables have about 60 rows, and files about
 * 1,000 keys. */
#include "conf/conf.h"

enum status conf_read_map(
	const struct conf_node *n, const struct conf_field *fields, void *base, struct err *e)
{
	if (n->kind != CONF_MAP)
		return conf_is_empty(n) ? OK : conf_wrong(e, n, "a mapping is expected");
	for (uint32_t i = 0; i < n->count; i++) {
		const struct conf_entry *x = &n->v[i];
		const struct conf_field *f = fields;
		while (f->name && !str_eq(x->key, str_of(f->name)))
			f++;
		if (!f->name) {
			const char *names[CONF_FIELDS_MAX + 1];
			size_t count = 0;
			for (f = fields; f->name && count < CONF_FIELDS_MAX; f++)
				names[count++] = f->name;
			names[count] = NULL;
			return conf_unknown(e, x, names);
		}
		enum status s = conf_is_empty(x->value) ? OK : f->read(x, base, f, e);
		if (s != OK)
			return s;
	}
	return OK;
}

enum status conf_field_text(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	struct str s;
	enum status st = conf_text(x->value, f->name, &s, e);
	if (st == OK)
		*CONF_AT(base, f, const char *) = s.p;
	return st;
}

enum status conf_field_bool(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	return conf_bool(x->value, f->name, CONF_AT(base, f, bool), e);
}

enum status conf_field_duration(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	/* Go's durations have a unit, except 0. */
	if (x->value->kind == CONF_TEXT && str_eq(x->value->text, STR("0"))) {
		*CONF_AT(base, f, int64_t) = 0;
		return OK;
	}
	return conf_duration(x->value, f->name, CONF_AT(base, f, int64_t), e);
}

enum status conf_field_seconds(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	return conf_number(x->value, f->name, 0, 3600, CONF_AT(base, f, uint64_t), e);
}

enum status conf_field_port(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	return conf_number(x->value, f->name, 1, 65535, CONF_AT(base, f, uint64_t), e);
}

enum status conf_field_texts(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	if (x->value->kind != CONF_LIST)
		return conf_wrong(e, x->value, "%s must be a list of texts", f->name);
	for (uint32_t i = 0; i < x->value->count; i++)
		if (x->value->v[i].value->kind != CONF_TEXT)
			return conf_wrong(e, x->value->v[i].value, "a text is expected");
	*CONF_AT(base, f, const struct conf_node *) = x->value;
	return OK;
}

enum status conf_field_refuse(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	(void)base;
	return err_set(e, E_INVALID, "line %u, column %u: %s: %s", x->line, x->column, f->name,
		f->why ? f->why : "firn does not do this");
}

enum status conf_field_ignore(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	(void)x;
	(void)base;
	(void)f;
	(void)e;
	return OK;
}
