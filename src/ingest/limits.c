/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --tenant-limits FILE: a line for each tenant, or for tenants whose names begin with the same
 * letters; its words override the flags of the same names. The first matching line is used.
 */
#include "ingest/ingest.h"

#include "base/units.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

static const struct limit_word {
	const char *name;
	size_t at; /* offset in struct ingest_limits; the limits are uint32_t, except the size */
	uint64_t least, most;
	bool is_size;
} words[] = {
	{ "max-label-names-per-series", offsetof(struct ingest_limits, labels), 1, 256, false },
	{ "max-label-name-length", offsetof(struct ingest_limits, label_name_bytes), 1, 1024,
		false },
	{ "max-label-value-length", offsetof(struct ingest_limits, label_value_bytes), 1, 65536,
		false },
	{ "max-series-per-tenant", offsetof(struct ingest_limits, series), 0, 100000000, false },
	{ "max-profile-stacktrace-depth", offsetof(struct ingest_limits, stack_frames), 2, 2048,
		false },
	{ "max-profile-size", offsetof(struct ingest_limits, message_bytes), 64 << 10, 64 << 20,
		true },
};

/* The rule for tenant names is that of Pyroscope and of Grafana's other stores. */
bool ingest_is_tenant(struct str s)
{
	if (s.len == 0 || s.len > SAMPLES_TENANT_MAX || str_eq(s, STR(".")) || str_eq(s, STR("..")))
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];
		bool letter = (c | 32) >= 'a' && (c | 32) <= 'z', digit = c >= '0' && c <= '9';
		if (!letter && !digit && (c == 0 || !strchr("!-_.*'()", c)))
			return false;
	}
	return true;
}

static struct str next_word(struct str *line)
{
	*line = str_trim(*line);
	size_t n = 0;
	while (n < line->len && line->p[n] != ' ' && line->p[n] != '\t')
		n++;
	struct str word = str_sub(*line, 0, n);
	*line = str_sub(*line, n, line->len);
	return word;
}

static enum status take_word(
	struct str word, const struct ingest_limits *base, struct ingest_limits *out, struct err *e)
{
	size_t equals = str_index(word, '=');
	struct str name = str_sub(word, 0, equals), value = str_sub(word, equals + 1, word.len);
	for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
		const struct limit_word *w = &words[i];
		uint64_t most = w->is_size ? MIN(w->most, base->message_bytes) : w->most, v = 0;
		if (!str_eq(name, str_of(w->name)))
			continue;
		bool good = w->is_size ? units_parse_bytes(value, &v, NULL) == OK
				       : str_parse_u64(value, 10, &v);
		if (!good || v < w->least || v > most)
			return err_set(e, E_INVALID,
				"%s: expected %" PRIu64 " to %" PRIu64 ", got \"%.*s\"", w->name,
				w->least, most, STR_ARG(str_sub(value, 0, 32)));
		if (w->is_size)
			memcpy((char *)out + w->at, &v, sizeof(v));
		else
			memcpy((char *)out + w->at, &(uint32_t){ (uint32_t)v }, sizeof(uint32_t));
		return OK;
	}
	return err_set(e, E_INVALID,
		"\"%.*s\" is no limit of a tenant (max-series-per-tenant=N, …)",
		STR_ARG(str_sub(word, 0, 64)));
}

static enum status take_tenant(struct str name, struct tenant_rule *out, struct err *e)
{
	out->is_prefix = str_ends(name, STR("*"));
	if (out->is_prefix)
		name = str_sub(name, 0, name.len - 1);
	if (str_eq(name, STR("\"\"")))
		name = STR("");
	else if (!ingest_is_tenant(name) && !(out->is_prefix && name.len == 0))
		return err_set(e, E_INVALID,
			"\"%.*s\" is no tenant's name (\"\" is the one without a name)",
			STR_ARG(str_sub(name, 0, 80)));
	memcpy(out->tenant, name.p, name.len);
	return OK;
}

static enum status take_line(
	struct str line, const struct ingest_limits *base, struct tenant_rules *out, struct err *e)
{
	struct tenant_rule rule = { .limits = *base };
	line = str_sub(line, 0, str_index(line, '#'));
	struct str word = next_word(&line);
	if (word.len == 0)
		return OK;
	enum status s = take_tenant(word, &rule, e);
	while (s == OK && (word = next_word(&line)).len)
		s = take_word(word, base, &rule.limits, e);
	if (s != OK)
		return s;
	if (out->v.len == TENANT_RULES_MAX)
		return err_set(e, E_LIMIT, "more than %d tenants", TENANT_RULES_MAX);
	return VEC_PUSH(&out->v, rule) ? OK : E_NOMEM;
}

enum status tenant_rules_parse(
	struct str text, const struct ingest_limits *base, struct tenant_rules *out, struct err *e)
{
	CLEANUP(tenant_rules_deinit) struct tenant_rules rules = { 0 };
	struct str line;
	for (size_t n = 1; str_split(&text, '\n', &line); n++) {
		enum status s = take_line(line, base, &rules, e);
		if (s != OK)
			return err_prefix(e, s, "line %zu", n);
	}
	*out = rules;
	rules = (struct tenant_rules){ 0 };
	return OK;
}

void tenant_rules_deinit(struct tenant_rules *r)
{
	VEC_FREE(&r->v);
}

const struct tenant_rule *tenant_rules_find(const struct tenant_rules *r, struct str tenant)
{
	for (size_t i = 0; i < r->v.len; i++) {
		const struct tenant_rule *rule = &r->v.v[i];
		struct str name = str_of(rule->tenant);
		if (rule->is_prefix ? str_starts(tenant, name) : str_eq(tenant, name))
			return rule;
	}
	return NULL;
}
