/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup for gRPC reflection in the tables that the build makes. */
#include "schema/schema.h"

/* Whether the symbol is "package.Service" itself, or one of its methods. */
static bool service_has(const struct pb_service *s, struct str symbol)
{
	struct str name = str_of(s->name);
	if (str_eq(symbol, name))
		return true;
	if (!str_starts(symbol, name) || symbol.p[name.len] != '.')
		return false;
	for (size_t i = 0; i < s->count; i++)
		if (str_eq(str_sub(symbol, name.len + 1, symbol.len), str_of(s->methods[i].name)))
			return true;
	return false;
}

static bool file_has(const struct pb_file *f, struct str symbol)
{
	for (size_t i = 0; i < f->message_count; i++)
		if (str_eq(symbol, str_of(f->messages[i]->name)))
			return true;
	for (size_t i = 0; i < f->enum_count; i++)
		if (str_eq(symbol, str_of(f->enums[i]->name)))
			return true;
	for (size_t i = 0; i < f->service_count; i++)
		if (service_has(f->services[i], symbol))
			return true;
	return false;
}

const struct pb_file *schema_find_symbol(struct str symbol)
{
	for (size_t i = 0; schema_files[i]; i++)
		if (file_has(schema_files[i], symbol))
			return schema_files[i];
	return NULL;
}

const struct pb_file *schema_find_file(struct str name)
{
	for (size_t i = 0; schema_files[i]; i++)
		if (str_eq(name, str_of(schema_files[i]->name)))
			return schema_files[i];
	return NULL;
}
