/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf: a YAML document as a tree of texts, lists and maps that know where they stand, for files
 * that people write.
 *
 * Layer 1 (may use base). Every value is a text: its reader gives it a meaning. Errors begin with
 * "line 3, column 5: ". The tree lies in the caller's arena, together with its texts.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define CONF_BYTES_MAX ((size_t)1 << 20)
#define CONF_ARENA_BYTES ((size_t)32 << 20) /* what a document of that size may take */
#define CONF_DEPTH_MAX 16                   /* lists and maps inside others */
#define CONF_ANCHORS_MAX 1000               /* an alias is searched among them */
#define CONF_NODES_MAX 100000               /* an alias counts as all nodes that it stands for */

enum conf_kind { CONF_TEXT, CONF_LIST, CONF_MAP };

struct conf_node {
	enum conf_kind kind;
	struct str text; /* ends with a NUL that is not counted; "" for null */
	bool quoted;
	struct conf_entry *v; /* items, or members in their order */
	uint32_t count;
	uint32_t line, column; /* from 1 */
	uint32_t weight;       /* nodes in it, itself too */
	uint32_t height;       /* 0: a text, else one more than its highest value */
};

struct conf_entry {
	struct str key;        /* of a map; ends with a NUL */
	uint32_t line, column; /* of the key, or of the item */
	const struct conf_node *value;
};

/* E_INVALID: not YAML, a key twice, more than one document; E_LIMIT: one of the limits. *out is
 * NULL for an empty document. */
NODISCARD enum status conf_parse(
	struct str yaml, struct arena *a, const struct conf_node **out, struct err *e);
/* The member of a map; NULL: none, or `n` is no map. */
const struct conf_node *conf_find(const struct conf_node *n, const char *key);
/* "key:" with nothing behind it. */
bool conf_is_empty(const struct conf_node *n);

/* E_INVALID with its place. */
enum status conf_wrong(struct err *e, const struct conf_node *n, const char *fmt, ...) PRINTF(3, 4);
/* E_INVALID for a key that is none of `names` (NULL at the end), with the nearest of them. */
enum status conf_unknown(struct err *e, const struct conf_entry *x, const char *const *names);

/* Read a member as a text, a whole number from least to most, true or false, or a duration in Go's
 * and Prometheus' form. `what` names it in errors. */
NODISCARD enum status conf_text(
	const struct conf_node *n, const char *what, struct str *out, struct err *e);
NODISCARD enum status conf_number(const struct conf_node *n, const char *what, uint64_t least,
	uint64_t most, uint64_t *out, struct err *e);
NODISCARD enum status conf_bool(
	const struct conf_node *n, const char *what, bool *out, struct err *e);
NODISCARD enum status conf_duration(
	const struct conf_node *n, const char *what, int64_t *out_ns, struct err *e);

/* ---- JSON and XML, of programs ---- */

#define CONF_JSON_DEPTH_MAX 64
#define CONF_JSON_BYTES_MAX ((size_t)64 << 20)

/* RFC 8259 as the same tree: numbers, true and false are texts, null is an empty one. `without`
 * names members that are left out wherever they are (NULL at the end, or NULL). A key that is there
 * twice stays twice. E_INVALID: not JSON, and at which byte; E_LIMIT: too long, too deep, or more
 * than the arena holds. */
NODISCARD enum status conf_json_parse(struct str json, const char *const *without, struct arena *a,
	const struct conf_node **out, struct err *e);
#define CONF_XML_DEPTH_MAX 64

/* XML of programs, as the same tree: the root element's members are its children, each under the
 * name of its element (which may come more than once, in their order); an element without children
 * is a text. Attributes, and texts next to children, are left out. It may be as long as JSON.
 * E_INVALID: not XML, and at which byte, or XML with a document type; E_LIMIT: as above. */
NODISCARD enum status conf_xml_parse(
	struct str xml, struct arena *a, const struct conf_node **out, struct err *e);
/* The text at the end of a path of keys, "a.b.c"; "" where there is none. (No key has a dot.) */
struct str conf_text_at(const struct conf_node *n, const char *path);
/* The node at the end of such a path; NULL. */
const struct conf_node *conf_node_at(const struct conf_node *n, const char *path);

/* ---- maps whose keys are known: tables of keys, each with the function that reads its value ----
 */

#define CONF_FIELDS_MAX 96

struct conf_field;
typedef enum status conf_field_fn(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e);
struct conf_field {
	const char *name; /* NULL: the end of the table */
	conf_field_fn *read;
	size_t at;       /* where in `base` the value goes */
	const char *why; /* conf_field_refuse()'s */
};
#define CONF_AT(base, f, T) ((T *)(void *)((char *)(base) + (f)->at))

/* A key that no row has is E_INVALID, and the error names the nearest key; a key without a value
 * changes nothing. */
NODISCARD enum status conf_read_map(
	const struct conf_node *n, const struct conf_field *fields, void *base, struct err *e);
/* A value's type at `at`: const char *, bool, int64_t (ns), uint64_t (up to an hour), uint64_t (up
 * to 65535), const struct conf_node * (a list of texts). */
conf_field_fn conf_field_text, conf_field_bool, conf_field_duration, conf_field_seconds,
	conf_field_port, conf_field_texts;
/* For keys that are known but not supported: E_INVALID with `why`. */
conf_field_fn conf_field_refuse;
/* For keys that are accepted and have no effect. */
conf_field_fn conf_field_ignore;
