/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of value has one reader, which refuses other texts with an error message. */
#include "cli/options/option.h"

#include <string.h>

#include "base/units.h"

static bool one_of(const char *value, const char *choices)
{
	struct str rest = str_of(choices), part;
	while (str_split(&rest, ' ', &part))
		if (str_eq(part, str_of(value)))
			return true;
	return false;
}

static enum status set_number(
	const struct cli_option *o, const char *value, uint32_t *field, struct err *e)
{
	uint64_t number = 0;
	if (!str_parse_u64(str_of(value), 10, &number) || number < o->least || number > o->most)
		return err_set(e, E_INVALID, "'%s' is not a whole number from %u to %u", value,
			o->least, o->most);
	*field = (uint32_t)number;
	return OK;
}

static enum status set_bool(const char *value, bool *field, struct err *e)
{
	bool yes = !value || strcmp(value, "true") == 0;
	if (!yes && strcmp(value, "false") != 0)
		return err_set(e, E_INVALID, "'%s' is neither true nor false", value);
	*field = yes;
	return OK;
}

static enum status add_to_list(
	const struct cli_option *o, const char *value, struct cli_list *list, struct err *e)
{
	size_t len = strlen(value);
	if (len >= sizeof(list->text) - list->used)
		return err_set(e, E_LIMIT, "more than %zu bytes", sizeof(list->text));
	char *at = memcpy(list->text + list->used, value, len + 1);
	list->used += len + 1;
	while (at) {
		char *end = o->separator ? strchr(at, o->separator) : NULL;
		if (end)
			*end++ = 0;
		if (list->count == CLI_LIST_MAX)
			return err_set(e, E_LIMIT, "more than %d values", CLI_LIST_MAX);
		if (*at)
			list->v[list->count++] = at;
		at = end;
	}
	return OK;
}

/* Checks the port if --help calls the value HOST:PORT; other texts are checked when they are
 * used. */
static enum status set_text(
	const struct cli_option *o, const char *value, const char **field, struct err *e)
{
	const char *colon = value ? strrchr(value, ':') : NULL;
	uint64_t port;
	if (o->value && strcmp(o->value, "HOST:PORT") == 0 && colon &&
		!str_starts(str_of(value), STR("unix:")) &&
		str_parse_u64(str_of(colon + 1), 10, &port) && port > 65535)
		return err_set(e, E_INVALID, "'%s' is not a port (0 to 65535)", colon + 1);
	*field = value;
	return OK;
}

enum status cli_set_value(const struct cli_option *o, const char *value, void *field, struct err *e)
{
	double share = 0;
	switch (o->kind) {
	case CLI_TEXT:
		return set_text(o, value, field, e);
	case CLI_BOOL:
		return set_bool(value, field, e);
	case CLI_NUMBER:
		return set_number(o, value, field, e);
	case CLI_SHARE:
		if (!str_parse_double(str_of(value), &share) || !(share >= 0 && share <= 1))
			return err_set(e, E_INVALID, "'%s' is not a number from 0 to 1", value);
		*(double *)field = share;
		return OK;
	case CLI_DURATION:
		return units_parse_duration(str_of(value), field, e);
	case CLI_SIZE:
		return units_parse_bytes(str_of(value), field, e);
	case CLI_CHOICE:
		if (!one_of(value, o->choices))
			return err_set(e, E_INVALID, "'%s' is not one of: %s", value, o->choices);
		*(const char **)field = value;
		return OK;
	case CLI_LIST:
		return add_to_list(o, value, field, e);
	}
	UNREACHABLE();
}
