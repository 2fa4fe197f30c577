/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata event: texts, and a tree of elements with attributes whose names and values are
 * texts. root > metadata > class (id, name) > field (name, class, constantPool, dimension). Fields
 * name their classes by id, which are looked up when all classes are read.
 */
#include "jfr/internal.h"

#define CLASS_IDS_DIRECT 4096u

/* The texts with a meaning, recognized once. */
enum word { WORD_OTHER, WORD_NAME, WORD_ID, WORD_CLASS, WORD_CONSTANT, WORD_DIMENSION, WORD_FIELD };
static const char *const words[] = { [WORD_NAME] = "name",
	[WORD_ID] = "id",
	[WORD_CLASS] = "class",
	[WORD_CONSTANT] = "constantPool",
	[WORD_DIMENSION] = "dimension",
	[WORD_FIELD] = "field" };

struct text {
	struct str s;
	enum word word;
};

struct metadata {
	struct jfr_chunk *c;
	struct reader r;
	VEC(struct text) texts;
	VEC(uint64_t) field_classes; /* ids, by field */
};

struct element {
	enum word name;
	struct str attribute_name, attribute_id, attribute_class;
	bool is_constant, is_array;
};

static enum word word_of(struct str s)
{
	for (enum word w = WORD_NAME; w <= WORD_FIELD; w++)
		if (str_eq(s, str_of(words[w])))
			return w;
	return WORD_OTHER;
}

static enum status read_texts(struct metadata *m)
{
	uint64_t count = jfr_varint(&m->r);
	if (count > JFR_STRINGS_MAX)
		return err_set(m->c->e, E_LIMIT, "metadata: %llu texts", (unsigned long long)count);
	if (!VEC_RESERVE(&m->texts, MIN((size_t)count, reader_left(&m->r))))
		return err_set(m->c->e, E_NOMEM, "metadata");
	enum status s = OK;
	for (uint64_t i = 0; s == OK && i < count; i++) {
		struct text t;
		s = jfr_text(m->c, &m->r, &t.s);
		t.word = s == OK ? word_of(t.s) : WORD_OTHER;
		if (s == OK && !VEC_PUSH(&m->texts, t))
			s = err_set(m->c->e, E_NOMEM, "metadata");
	}
	return s;
}

static const struct text *text_at(struct metadata *m)
{
	static const struct text none;
	uint64_t i = jfr_varint(&m->r);
	if (i < m->texts.len)
		return &m->texts.v[i];
	m->r.failed = true;
	return &none;
}

/* Reads an element's name and attributes, and the number of its children. Attributes of elements
 * other than classes and fields (mostly annotations) are skipped. */
static enum status read_element(struct metadata *m, struct element *out, uint64_t *out_children)
{
	*out = (struct element){ .name = text_at(m)->word };
	uint64_t attributes = jfr_varint(&m->r);
	bool is_known = out->name == WORD_CLASS || out->name == WORD_FIELD;
	if (attributes > reader_left(&m->r))
		m->r.failed = true;
	else if (!is_known)
		jfr_skip_varints(&m->r, 2 * attributes);
	for (uint64_t i = 0; is_known && i < attributes && !m->r.failed; i++) {
		enum word name = text_at(m)->word;
		struct str value = text_at(m)->s;
		if (name == WORD_NAME)
			out->attribute_name = value;
		else if (name == WORD_ID)
			out->attribute_id = value;
		else if (name == WORD_CLASS)
			out->attribute_class = value;
		else if (name == WORD_CONSTANT)
			out->is_constant = str_eq(value, STR("true"));
		else if (name == WORD_DIMENSION)
			out->is_array = str_eq(value, STR("1"));
	}
	*out_children = jfr_varint(&m->r);
	return m->r.failed ? jfr_torn(m->c, &m->r, "metadata") : OK;
}

static enum jfr_kind kind_of(struct str name)
{
	static const struct {
		const char *name;
		enum jfr_kind kind;
	} kinds[] = { { "long", JFR_INTEGER }, { "int", JFR_INTEGER }, { "short", JFR_INTEGER },
		{ "char", JFR_INTEGER }, { "byte", JFR_BYTE }, { "boolean", JFR_BYTE },
		{ "float", JFR_FLOAT }, { "double", JFR_DOUBLE },
		{ "java.lang.String", JFR_STRING } };
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
		if (str_eq(name, str_of(kinds[i].name)))
			return kinds[i].kind;
	return JFR_OBJECT;
}

static bool id_equal(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct jfr_chunk *)ctx)->classes.v[value].id == *(const uint64_t *)key;
}

uint32_t jfr_class_find(const struct jfr_chunk *c, uint64_t id)
{
	if (id < c->class_of.len)
		return c->class_of.v[id];
	return map_find(&c->class_index, hash_u64(id), id_equal, c, &id);
}

static enum status add_class(struct metadata *m, const struct element *e)
{
	struct jfr_chunk *c = m->c;
	struct jfr_class k = { .name = e->attribute_name,
		.kind = kind_of(e->attribute_name),
		.first_field = (uint32_t)c->fields.len };
	if (!str_parse_u64(e->attribute_id, 10, &k.id) || jfr_class_find(c, k.id) != MAP_NONE)
		return err_set(c->e, E_INVALID, "metadata: class \"%.*s\" has no id of its own",
			STR_ARG(str_sub(k.name, 0, 64)));
	if (c->classes.len == JFR_CLASSES_MAX)
		return err_set(c->e, E_LIMIT, "metadata: more than %u classes", JFR_CLASSES_MAX);
	if (k.kind == JFR_STRING)
		c->string_class = (uint32_t)c->classes.len;
	if (!map_insert(&c->class_index, hash_u64(k.id), (uint32_t)c->classes.len) ||
		!VEC_PUSH(&c->classes, k))
		return err_set(c->e, E_NOMEM, "metadata");
	return OK;
}

static enum status add_field(struct metadata *m, const struct element *e)
{
	struct jfr_chunk *c = m->c;
	struct jfr_class *k = &c->classes.v[c->classes.len - 1];
	struct jfr_field f = {
		.name = e->attribute_name, .is_constant = e->is_constant, .is_array = e->is_array
	};
	uint64_t class;
	if (!str_parse_u64(e->attribute_class, 10, &class))
		return err_set(c->e, E_INVALID, "metadata: field \"%.*s\" has no class",
			STR_ARG(str_sub(f.name, 0, 64)));
	if (k->field_count == JFR_FIELDS_MAX)
		return err_set(c->e, E_LIMIT, "metadata: more than %u fields", JFR_FIELDS_MAX);
	k->field_count++;
	if (!VEC_PUSH(&c->fields, f) || !VEC_PUSH(&m->field_classes, class))
		return err_set(c->e, E_NOMEM, "metadata");
	return OK;
}

/* Reads the tree; elements other than classes and fields are not needed. */
static enum status read_tree(struct metadata *m, bool in_class, int depth)
{
	struct element e;
	uint64_t children;
	enum status s = read_element(m, &e, &children);
	bool is_class = e.name == WORD_CLASS;
	if (s == OK && depth == JFR_DEPTH_MAX)
		s = jfr_torn(m->c, &m->r, "metadata");
	if (s == OK && is_class && !in_class)
		s = add_class(m, &e);
	else if (s == OK && in_class && e.name == WORD_FIELD)
		s = add_field(m, &e);
	for (uint64_t i = 0; s == OK && i < children; i++)
		s = read_tree(m, is_class && !in_class, depth + 1);
	return s;
}

/* Each event names its class: small ids, which are nearly all, are looked up without a search. */
static enum status index_classes(struct jfr_chunk *c)
{
	if (!VEC_RESERVE(&c->class_of, CLASS_IDS_DIRECT))
		return err_set(c->e, E_NOMEM, "metadata");
	for (size_t i = 0; i < CLASS_IDS_DIRECT; i++)
		c->class_of.v[i] = MAP_NONE;
	for (size_t i = 0; i < c->classes.len; i++)
		if (c->classes.v[i].id < CLASS_IDS_DIRECT)
			c->class_of.v[c->classes.v[i].id] = (uint32_t)i;
	c->class_of.len = CLASS_IDS_DIRECT;
	return OK;
}

/* Finds the classes that consist of integers only. */
static void count_varints(struct jfr_chunk *c)
{
	for (size_t i = 0; i < c->classes.len; i++) {
		struct jfr_class *k = &c->classes.v[i];
		bool flat = true;
		for (uint32_t n = 0; n < k->field_count && flat; n++) {
			const struct jfr_field *f = &c->fields.v[k->first_field + n];
			bool is_integer = c->classes.v[f->class].kind == JFR_INTEGER;
			flat = !f->is_array && (f->is_constant || is_integer);
		}
		k->varints = k->kind == JFR_INTEGER          ? 1
			     : k->kind == JFR_OBJECT && flat ? k->field_count
							     : 0;
	}
}

static enum status find_classes(struct metadata *m)
{
	enum status s = index_classes(m->c);
	if (s != OK)
		return s;
	for (size_t i = 0; i < m->field_classes.len; i++) {
		struct jfr_field *f = &m->c->fields.v[i];
		f->class = jfr_class_find(m->c, m->field_classes.v[i]);
		if (f->class == MAP_NONE)
			return err_set(m->c->e, E_INVALID,
				"metadata: the class of field \"%.*s\" is not there",
				STR_ARG(str_sub(f->name, 0, 64)));
	}
	count_varints(m->c);
	return OK;
}

enum status jfr_metadata_read(struct jfr_chunk *c)
{
	struct metadata m = { .c = c, .r = jfr_at(c, c->metadata_offset) };
	uint64_t size = jfr_varint(&m.r);
	uint64_t type = jfr_varint(&m.r);
	enum status s = OK;
	c->string_class = MAP_NONE;
	for (int i = 0; i < 3; i++) /* start, duration, id */
		jfr_varint(&m.r);
	if (m.r.failed || type != 0 || size > c->bytes.len - c->metadata_offset)
		s = jfr_torn(c, &m.r, "metadata");
	if (s == OK)
		s = read_texts(&m);
	if (s == OK)
		s = read_tree(&m, false, 0);
	if (s == OK)
		s = find_classes(&m);
	VEC_FREE(&m.texts);
	VEC_FREE(&m.field_classes);
	return s;
}
