/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the tree from libexpat's events. One vector has the members of all open elements, those of
 * the innermost last, and one buffer their texts; when an element ends, it takes its own from
 * there. A document type is refused, so the only entities are the five predefined ones and
 * characters.
 */
#include <expat.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/vec.h"
#include "conf/conf.h"

struct open_element {
	struct str name;
	size_t members, text; /* where its own members and text begin */
};

struct xml {
	XML_Parser parser;
	struct arena *arena;
	struct err *e;
	enum status failed;
	struct open_element open[CONF_XML_DEPTH_MAX];
	uint32_t depth;
	VEC(struct conf_entry) members;
	struct buf text;
	const struct conf_node *root;
};

static void fail(struct xml *x, enum status s)
{
	x->failed = s;
	(void)XML_StopParser(x->parser, XML_FALSE);
}

static void no_room(struct xml *x)
{
	enum status s = arena_status(x->arena);
	fail(x, err_set(x->e, s, s == E_LIMIT ? "more elements than fit" : "no memory for XML"));
}

static void XMLCALL on_start(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
	struct xml *x = ctx;
	(void)attributes;
	if (x->failed != OK)
		return;
	if (x->depth == CONF_XML_DEPTH_MAX) {
		fail(x, err_set(x->e, E_LIMIT, "XML nested deeper than %d", CONF_XML_DEPTH_MAX));
		return;
	}
	size_t len = strlen(name);
	char *copy = arena_copy(x->arena, name, len);
	if (!copy) {
		no_room(x);
		return;
	}
	x->open[x->depth++] =
		(struct open_element){ str_make(copy, len), x->members.len, x->text.len };
}

static void XMLCALL on_text(void *ctx, const XML_Char *bytes, int len)
{
	struct xml *x = ctx;
	if (x->failed == OK)
		buf_put(&x->text, bytes, (size_t)len);
}

static void XMLCALL on_doctype(void *ctx, const XML_Char *name, const XML_Char *system_id,
	const XML_Char *public_id, int has_subset)
{
	struct xml *x = ctx;
	(void)name, (void)system_id, (void)public_id, (void)has_subset;
	fail(x, err_set(x->e, E_INVALID, "XML with a document type is not read"));
}

/* Fills the node with the element's members and text. */
static bool fill(struct xml *x, const struct open_element *el, struct conf_node *n)
{
	n->count = (uint32_t)(x->members.len - el->members);
	if (!n->count) {
		size_t len = x->text.len - el->text;
		char *copy =
			arena_copy(x->arena, len ? (const char *)x->text.data + el->text : "", len);
		n->text = str_make(copy, len);
		return copy;
	}
	n->kind = CONF_MAP;
	n->text = STR("");
	n->v = ARENA_ARRAY(x->arena, struct conf_entry, n->count);
	if (!n->v)
		return false;
	memcpy(n->v, x->members.v + el->members, n->count * sizeof(*n->v));
	for (uint32_t i = 0; i < n->count; i++) {
		n->weight += n->v[i].value->weight;
		n->height = MAX(n->height, n->v[i].value->height + 1);
	}
	return true;
}

static void XMLCALL on_end(void *ctx, const XML_Char *name)
{
	struct xml *x = ctx;
	(void)name;
	if (x->failed != OK)
		return;
	const struct open_element *el = &x->open[--x->depth];
	struct conf_node *n = ARENA_NEW(x->arena, struct conf_node);
	if (n)
		*n = (struct conf_node){ .kind = CONF_TEXT, .line = 1, .column = 1, .weight = 1 };
	if (!n || !fill(x, el, n)) {
		no_room(x);
		return;
	}
	x->members.len = el->members;
	x->text.len = el->text;
	const struct conf_entry entry = { .key = el->name, .line = 1, .column = 1, .value = n };
	if (!x->depth)
		x->root = n;
	else if (!VEC_PUSH(&x->members, entry))
		fail(x, err_set(x->e, E_NOMEM, "XML"));
}

static enum status parse(struct xml *x, struct str xml)
{
	XML_SetUserData(x->parser, x);
	XML_SetElementHandler(x->parser, on_start, on_end);
	XML_SetCharacterDataHandler(x->parser, on_text);
	XML_SetStartDoctypeDeclHandler(x->parser, on_doctype);
	if (XML_Parse(x->parser, xml.p, (int)xml.len, XML_TRUE) == XML_STATUS_OK)
		return x->failed != OK ? x->failed : buf_status(&x->text);
	if (x->failed != OK)
		return x->failed;
	enum XML_Error code = XML_GetErrorCode(x->parser);
	if (code == XML_ERROR_NO_MEMORY)
		return err_set(x->e, E_NOMEM, "XML");
	return err_set(x->e, E_INVALID, "not XML at byte %lld: %s",
		(long long)XML_GetCurrentByteIndex(x->parser), XML_ErrorString(code));
}

enum status conf_xml_parse(
	struct str xml, struct arena *a, const struct conf_node **out, struct err *e)
{
	struct xml x = { .arena = a, .e = e };
	if (xml.len > CONF_JSON_BYTES_MAX)
		return err_set(e, E_LIMIT, "longer than %zu bytes", CONF_JSON_BYTES_MAX);
	x.parser = XML_ParserCreate(NULL);
	if (!x.parser)
		return err_set(e, E_NOMEM, "XML");
	buf_init(&x.text, CONF_JSON_BYTES_MAX);
	enum status s = parse(&x, xml);
	if (s == OK)
		*out = x.root;
	XML_ParserFree(x.parser);
	buf_deinit(&x.text);
	VEC_FREE(&x.members);
	return s;
}
