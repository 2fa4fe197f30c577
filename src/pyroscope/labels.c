/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a series, from label pairs and from the text after an application's name. */
#include "pyroscope/labels.h"

enum status labels_add(struct series_labels *l, struct profile *p, struct str name,
	struct str value, struct err *e)
{
	name = str_trim(name);
	if (str_eq(name, STR("__name__"))) {
		/* Alloy gives this name to profiles from `profile.godeltaprof_memory`. */
		struct str prefix = STR("godeltaprof_");
		l->name = str_starts(value, prefix) ? str_sub(value, prefix.len, value.len) : value;
		return OK;
	}
	if (name.len == 0 || value.len == 0 || str_starts(name, STR("__")))
		return OK;
	if (l->count == PROFILE_LABELS_MAX - 2) /* service_name and pyroscope_spy follow */
		return err_set(e, E_LIMIT, "more than %d labels", PROFILE_LABELS_MAX - 2);
	struct profile_label *label = &l->v[l->count++];
	enum status s = profile_add_name(p, name, &label->name);
	if (s == OK)
		s = profile_add_string(p, value, &label->value);
	if (s != OK)
		return err_set(e, s, "labels: %s", status_text(s));
	l->has_service |= str_eq(profile_str(p, label->name), STR("service_name"));
	return OK;
}

enum status labels_intern(struct series_labels *l, struct profile *p, struct str service,
	uint32_t *out, struct err *e)
{
	enum status s = OK;
	if (!l->has_service)
		s = labels_add(l, p, STR("service_name"), service, e);
	if (s != OK)
		return s;
	s = profile_add_labels(p, l->v, l->count, out);
	return s == OK ? OK : err_set(e, s, "labels: %s", status_text(s));
}

bool name_split(struct str name, struct str *out_app, struct str *out_labels)
{
	name = str_trim(name);
	size_t open = str_index(name, '{');
	*out_app = str_trim(str_sub(name, 0, open));
	*out_labels = str_sub(name, open + (open < name.len), name.len);
	if (open < name.len)
		*out_labels = str_sub(*out_labels, 0, str_rindex(*out_labels, '}'));
	return out_app->len > 0;
}

enum status labels_add_text(
	struct series_labels *l, struct profile *p, struct str text, struct err *e)
{
	struct str pair;
	enum status s = OK;
	while (s == OK && str_split(&text, ',', &pair)) {
		size_t equals = str_index(pair, '=');
		if (equals < pair.len)
			s = labels_add(l, p, str_sub(pair, 0, equals),
				str_trim(str_sub(pair, equals + 1, pair.len)), e);
	}
	return s;
}
