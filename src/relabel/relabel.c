/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies rules one after the other, like Prometheus (model/relabel/relabel.go): the values of the
 * source labels are joined by the separator and matched as a whole, and the replacement is expanded
 * like Go's Regexp.ExpandString.
 */
#include "relabel/internal.h"

#include <openssl/evp.h>

/* ---- the set ---- */

void relabel_set_init(struct relabel_set *s, struct arena *a)
{
	s->count = 0;
	s->failed = false;
	s->arena = a;
}

static struct relabel_label *find(const struct relabel_set *s, struct str name)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (str_eq(s->v[i].name, name))
			return (struct relabel_label *)(uintptr_t)&s->v[i];
	return NULL;
}

struct str relabel_set_get(const struct relabel_set *s, struct str name)
{
	const struct relabel_label *l = find(s, name);
	return l ? l->value : STR("");
}

static void take_out(struct relabel_set *s, uint32_t at)
{
	s->count--;
	memmove(&s->v[at], &s->v[at + 1], (s->count - at) * sizeof(s->v[0]));
}

void relabel_set_put(struct relabel_set *s, struct str name, struct str value)
{
	struct relabel_label *l = find(s, name);
	if (l && value.len)
		l->value = value;
	else if (l)
		take_out(s, (uint32_t)(l - s->v));
	else if (value.len && s->count == RELABEL_LABELS_MAX)
		s->failed = true;
	else if (value.len)
		s->v[s->count++] = (struct relabel_label){ name, value };
}

bool relabel_name_ok(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
		if (!letter && !(i > 0 && c >= '0' && c <= '9'))
			return false;
	}
	return name.len > 0;
}

/* ---- texts that are made ---- */

/* A text that grows in the arena; its old memory there is not reused. */
struct text {
	struct arena *arena;
	char *p;
	size_t len, cap;
	bool failed;
};

static void text_add(struct text *t, struct str s)
{
	if (t->failed || s.len == 0)
		return;
	if (t->len + s.len > RELABEL_VALUE_BYTES_MAX) {
		t->failed = true;
		return;
	}
	if (t->len + s.len > t->cap) {
		size_t cap = MAX(2 * t->cap, t->len + s.len + 64);
		char *p = ARENA_ARRAY(t->arena, char, cap);
		t->failed = !p;
		if (!p)
			return;
		if (t->len)
			memcpy(p, t->p, t->len);
		t->p = p;
		t->cap = cap;
	}
	memcpy(t->p + t->len, s.p, s.len);
	t->len += s.len;
}

static struct str text_end(const struct text *t, struct relabel_set *s)
{
	s->failed = s->failed || t->failed;
	return t->failed ? STR("") : str_make(t->p, t->len);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* The name after a '$', in braces or not. Returns the length of the whole reference; 0: it is
 * none. */
static size_t reference(struct str s, struct str *out_name)
{
	bool braces = s.len && s.p[0] == '{';
	size_t begin = braces, end = begin;
	while (end < s.len && is_word(s.p[end]))
		end++;
	*out_name = str_sub(s, begin, end - begin);
	if (end == begin || (braces && (end == s.len || s.p[end] != '}')))
		return 0;
	return end + braces;
}

static struct str group(const struct regex *r, struct str name, struct str subject,
	const struct regex_span *spans, size_t count)
{
	uint64_t number = 0;
	int named = -1;
	if (!str_parse_u64(name, 10, &number)) {
		named = regex_find_group(r, name.p, name.len);
		if (named < 0)
			return STR("");
		number = (uint64_t)named;
	}
	if (number >= count || spans[number].begin > spans[number].end)
		return STR("");
	return str_sub(subject, spans[number].begin, spans[number].end - spans[number].begin);
}

static struct str expand(struct relabel_set *s, const struct regex *r, struct str template,
	struct str subject, const struct regex_span *spans, size_t count)
{
	struct text t = { .arena = s->arena };
	while (template.len) {
		size_t at = str_index(template, '$');
		text_add(&t, str_sub(template, 0, at));
		template = str_sub(template, at, template.len);
		if (!template.len)
			break;
		struct str rest = str_sub(template, 1, template.len), name;
		size_t len = reference(rest, &name);
		if (rest.len && rest.p[0] == '$') {
			text_add(&t, STR("$"));
			len = 1;
		} else if (len) {
			text_add(&t, group(r, name, subject, spans, count));
		} else {
			text_add(&t, STR("$"));
		}
		template = str_sub(rest, len, rest.len);
	}
	return text_end(&t, s);
}

static struct str join(struct relabel_set *s, const struct relabel_rule *r)
{
	struct text t = { .arena = s->arena };
	if (r->source_count == 1)
		return relabel_set_get(s, r->sources[0]);
	for (uint32_t i = 0; i < r->source_count; i++) {
		if (i)
			text_add(&t, r->separator);
		text_add(&t, relabel_set_get(s, r->sources[i]));
	}
	return text_end(&t, s);
}

/* ---- actions ---- */

static void replace(struct relabel_set *s, const struct relabel_rule *r, struct str value)
{
	struct regex_span spans[REGEX_GROUPS_MAX];
	size_t count;
	if (!regex_capture(r->regex, value.p, value.len, spans, &count))
		return;
	struct str target = expand(s, r->regex, r->target, value, spans, count);
	if (!relabel_name_ok(target))
		return;
	relabel_set_put(s, target, expand(s, r->regex, r->replacement, value, spans, count));
}

static void map_labels(struct relabel_set *s, const struct relabel_rule *r)
{
	uint32_t count = s->count;
	for (uint32_t i = 0; i < count && i < s->count; i++) {
		struct regex_span spans[REGEX_GROUPS_MAX];
		struct relabel_label l = s->v[i];
		size_t groups;
		if (regex_capture(r->regex, l.name.p, l.name.len, spans, &groups))
			relabel_set_put(s,
				expand(s, r->regex, r->replacement, l.name, spans, groups),
				l.value);
	}
}

static void choose_labels(struct relabel_set *s, const struct relabel_rule *r, bool matching)
{
	struct regex_span spans[REGEX_GROUPS_MAX];
	size_t groups;
	for (uint32_t i = s->count; i > 0; i--) {
		struct str name = s->v[i - 1].name;
		if (regex_capture(r->regex, name.p, name.len, spans, &groups) != matching)
			take_out(s, i - 1);
	}
}

/* Sets the target to the last eight bytes of the value's MD5, modulo the rule's number, like
 * Prometheus. */
static void hashmod(struct relabel_set *s, const struct relabel_rule *r, struct str value)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	uint64_t number = 0;
	if (!EVP_Digest(value.p ? value.p : "", value.len, digest, &len, EVP_md5(), NULL) ||
		len != 16) {
		s->failed = true;
		return;
	}
	for (int i = 8; i < 16; i++)
		number = number << 8 | digest[i];
	char *text = arena_printf(s->arena, "%llu", (unsigned long long)(number % r->modulus));
	s->failed = s->failed || !text;
	relabel_set_put(s, r->target, str_of(text));
}

static void change_case(struct relabel_set *s, const struct relabel_rule *r, struct str value)
{
	struct text t = { .arena = s->arena };
	bool lower = r->action == RELABEL_LOWERCASE;
	text_add(&t, value);
	for (size_t i = 0; !t.failed && i < t.len; i++) {
		char c = t.p[i];
		if (lower ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z')
			t.p[i] = (char)(c ^ 0x20);
	}
	relabel_set_put(s, r->target, text_end(&t, s));
}

/* Applies a rule. False: the sample is dropped. */
static bool apply(struct relabel_set *s, const struct relabel_rule *r)
{
	struct regex_span spans[REGEX_GROUPS_MAX];
	size_t count;
	struct str value = join(s, r);
	switch (r->action) {
	case RELABEL_KEEP:
		return regex_capture(r->regex, value.p, value.len, spans, &count);
	case RELABEL_DROP:
		return !regex_capture(r->regex, value.p, value.len, spans, &count);
	case RELABEL_KEEPEQUAL:
		return str_eq(relabel_set_get(s, r->target), value);
	case RELABEL_DROPEQUAL:
		return !str_eq(relabel_set_get(s, r->target), value);
	case RELABEL_REPLACE:
		replace(s, r, value);
		break;
	case RELABEL_HASHMOD:
		hashmod(s, r, value);
		break;
	case RELABEL_LABELMAP:
		map_labels(s, r);
		break;
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		choose_labels(s, r, r->action == RELABEL_LABELKEEP);
		break;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		change_case(s, r, value);
		break;
	case RELABEL_ACTION_COUNT:
		UNREACHABLE();
	}
	return true;
}

enum status relabel_apply(
	const struct relabel *r, struct relabel_set *s, bool *out_keep, struct err *e)
{
	bool keep = true;
	for (size_t i = 0; keep && i < r->rules.len; i++)
		keep = apply(s, &r->rules.v[i]);
	if (s->failed)
		return err_set(e, E_LIMIT,
			"relabelling: more than %d labels, a value of more than %zu bytes, or no "
			"memory",
			RELABEL_LABELS_MAX, RELABEL_VALUE_BYTES_MAX);
	*out_keep = keep;
	return OK;
}

uint32_t relabel_count(const struct relabel *r)
{
	return r ? (uint32_t)r->rules.len : 0;
}

bool relabel_reads(const struct relabel *r, struct str name)
{
	struct regex_span spans[REGEX_GROUPS_MAX];
	size_t count;
	for (size_t i = 0; r && i < r->rules.len; i++) {
		const struct relabel_rule *rule = &r->rules.v[i];
		for (uint32_t k = 0; k < rule->source_count; k++)
			if (str_eq(rule->sources[k], name))
				return true;
		if (rule->action == RELABEL_LABELMAP &&
			regex_capture(rule->regex, name.p, name.len, spans, &count))
			return true;
	}
	return false;
}

void relabel_free(struct relabel *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->rules.len; i++)
		regex_free(r->rules.v[i].regex);
	VEC_FREE(&r->rules);
	arena_deinit(&r->arena);
	free(r);
}
