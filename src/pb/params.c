/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts parameters of a URL to a message's bytes: each member of the table takes the parameters
 * whose key is its path. Only nested messages that a parameter names are entered, so the walk is as
 * deep as the longest key.
 */
#include "pb/internal.h"

#include "base/units.h"

struct params {
	const struct pb_param *v;
	size_t count;
	struct err *e;
};

/* The key's part at this depth; *out_last: it is the last. False: the key is shorter. */
static bool part_at(struct str key, uint32_t depth, struct str *out, bool *out_last)
{
	for (;; depth--) {
		size_t dot = str_index(key, '.');
		*out = str_sub(key, 0, dot);
		*out_last = dot == key.len;
		if (depth == 0)
			return true;
		if (*out_last)
			return false;
		key = str_sub(key, dot + 1, key.len);
	}
}

/* Whether the parameter's key goes through, or ends at, the member at depth `depth` of `path`. */
static bool fits(const struct pb_param *p, const struct pb_member *const *path, uint32_t depth,
	bool *out_last)
{
	struct str part;
	for (uint32_t d = 0; d <= depth; d++)
		if (!part_at(p->key, d, &part, out_last) || !pb_name_fits(path[d]->name, part))
			return false;
	return true;
}

static enum status put_value(
	struct params *p, const struct pb_member *m, struct str text, struct buf *out)
{
	uint64_t bits = 0;
	int64_t ns;
	if (pb_is_numeric(m->kind)) {
		enum status s = pb_scalar_read(m, text, &bits, p->e);
		if (s == OK)
			pb_scalar_put(out, m, bits);
		return s;
	}
	enum status s = OK;
	size_t begun = pb_begin(out, m->number);
	if (m->kind == PB_KIND_STRING) {
		buf_str(out, text);
		s = str_is_utf8(text) ? OK : err_set(p->e, E_INVALID, "not UTF-8");
	} else if (m->kind == PB_KIND_BYTES) {
		s = pb_bytes_read(out, m, text) ? OK : err_set(p->e, E_INVALID, "not base64");
	} else if (m->message->form == PB_TIMESTAMP) {
		s = pb_timestamp_read(text, out, p->e);
	} else if (m->message->form == PB_DURATION) {
		s = pb_duration_read(text, out, p->e);
		/* Go's form is accepted too: "1h30m". */
		if (s != OK && units_parse_duration(text, &ns, NULL) == OK) {
			pb_put_i64(out, 1, ns / 1000000000);
			pb_put_i64(out, 2, ns % 1000000000);
			s = OK;
		}
	} else {
		s = err_set(p->e, E_INVALID, "a message; name one of its fields");
	}
	if (s == OK)
		pb_end(out, begun);
	return s;
}

static enum status walk(struct params *p, const struct pb_desc *d, const struct pb_member **path,
	uint32_t depth, struct buf *out);

static enum status take_member(
	struct params *p, const struct pb_member **path, uint32_t depth, struct buf *out)
{
	const struct pb_member *m = path[depth];
	bool inside = false, given = false;
	for (size_t i = 0; i < p->count; i++) {
		bool last;
		if (!fits(&p->v[i], path, depth, &last))
			continue;
		if (!last) {
			inside = true;
			continue;
		}
		if (given && !(m->flags & PB_REPEATED))
			return err_set(p->e, E_INVALID, "%s: given twice", m->name);
		given = true;
		enum status s = put_value(p, m, p->v[i].value, out);
		if (s != OK)
			return err_prefix(p->e, s, "%s", m->name);
	}
	if (!inside)
		return OK;
	if (m->kind != PB_KIND_MESSAGE || m->flags & PB_REPEATED)
		return err_set(p->e, E_INVALID, "%s: it has no fields", m->name);
	if (given)
		return err_set(p->e, E_INVALID, "%s: given twice", m->name);
	if (depth + 1 == PB_JSON_DEPTH_MAX)
		return err_set(p->e, E_INVALID, "too many levels");
	size_t begun = pb_begin(out, m->number);
	enum status s = walk(p, m->message, path, depth + 1, out);
	if (s == OK)
		pb_end(out, begun);
	return s == OK ? OK : err_prefix(p->e, s, "%s", m->name);
}

static enum status walk(struct params *p, const struct pb_desc *d, const struct pb_member **path,
	uint32_t depth, struct buf *out)
{
	for (size_t i = 0; i < d->count; i++) {
		path[depth] = &d->members[i];
		enum status s = take_member(p, path, depth, out);
		if (s != OK)
			return s;
	}
	return OK;
}

static bool known(const struct pb_desc *d, struct str key)
{
	struct str part;
	while (str_split(&key, '.', &part)) {
		const struct pb_member *m = d ? pb_desc_find_name(d, part) : NULL;
		if (!m)
			return false;
		d = m->message;
	}
	return true;
}

enum status pb_params_decode(const struct pb_desc *d, const struct pb_param *params, size_t count,
	unsigned flags, struct buf *out, struct err *e)
{
	const struct pb_member *path[PB_JSON_DEPTH_MAX];
	struct params p = { params, count, e };
	for (size_t i = 0; i < count && !(flags & PB_IGNORE_UNKNOWN); i++)
		if (!known(d, params[i].key))
			return err_set(e, E_INVALID, "unknown parameter \"%.*s\"",
				STR_ARG(str_sub(params[i].key, 0, 60)));
	enum status s = walk(&p, d, path, 0, out);
	if (s == OK && out->failed)
		s = err_set(e, buf_status(out), "the message");
	return s;
}
