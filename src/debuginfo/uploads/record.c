/* SPDX-License-Identifier: Apache-2.0 */
/* The record of an upload (docs/formats/debuginfo.md), and how texts become names of files. */
#include "debuginfo/uploads/record.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

#define HEAD "firn-debuginfo 1\n"
#define CHECK_LINE_LEN 23 /* "check 0123456789abcdef\n" */

static const char *const type_names[DEBUGINFO_TYPES] = { "debuginfo", "executable", "sources",
	"sourcemap" };
static const char *const state_names[] = { [DEBUGINFO_NOT_SEEN] = "",
	[DEBUGINFO_UPLOADING] = "uploading",
	[DEBUGINFO_BROKEN] = "broken",
	[DEBUGINFO_UPLOADED] = "uploaded",
	[DEBUGINFO_PURGED] = "purged" };

const char *debuginfo_type_name(enum debuginfo_type type)
{
	return type_names[type];
}

/* ---- texts ---- */

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' ||
	       c == '_';
}

void debuginfo_put_name(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (is_plain(text.p[i]))
			buf_u8(out, (uint8_t)text.p[i]);
		else
			buf_printf(out, "%%%02X", (unsigned char)text.p[i]);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool debuginfo_take_name(struct str name, char *out, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];
		if (c == '%') {
			bool whole = name.len - i > 2;
			int high = whole ? digit(name.p[i + 1]) : -1;
			int low = whole ? digit(name.p[i + 2]) : -1;
			if (high < 0 || low < 0 || (high == 0 && low == 0))
				return false;
			c = (char)(high << 4 | low);
			if (is_plain(c))
				return false; /* each text has only one encoding */
			i += 2;
		} else if (!is_plain(c)) {
			return false;
		}
		if (n == max)
			return false;
		out[n++] = c;
	}
	out[n] = 0;
	return true;
}

bool debuginfo_is_upload_id(struct str id)
{
	if (id.len != DEBUGINFO_UPLOAD_ID_LEN)
		return false;
	for (size_t i = 0; i < id.len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		bool hex = (id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f');
		if (dash ? id.p[i] != '-' : !hex)
			return false;
	}
	return true;
}

/* ---- writing ---- */

static void put_text(struct buf *out, const char *name, const char *text)
{
	if (!text[0])
		return;
	buf_printf(out, "%s ", name);
	debuginfo_put_name(out, str_of(text));
	buf_u8(out, '\n');
}

void debuginfo_record_encode(const struct debuginfo_record *r, struct buf *out)
{
	size_t begin = out->len;
	buf_cstr(out, HEAD);
	put_text(out, "build_id", r->build_id);
	put_text(out, "type", type_names[r->type]);
	put_text(out, "tenant", r->tenant);
	put_text(out, "upload", r->upload);
	put_text(out, "hash", r->hash);
	buf_printf(out, "size %" PRIu64 "\n", r->size_bytes);
	put_text(out, "state", state_names[r->state]);
	buf_printf(
		out, "started %" PRId64 "\nfinished %" PRId64 "\n", r->started_ns, r->finished_ns);
	buf_cstr(out, r->invalid ? "invalid 1\n" : "");
	put_text(out, "ready", r->ready);
	if (r->ready[0])
		buf_printf(out, "ready_bytes %" PRIu64 "\n", r->ready_bytes);
	if (!out->failed)
		buf_printf(
			out, "check %016" PRIx64 "\n", hash64(out->data + begin, out->len - begin));
}

/* ---- reading ---- */

struct lines {
	struct str rest;
	uint32_t line, next; /* line read last; line to read next */
	struct err *e;
	bool failed;
};

static enum status bad(struct lines *l, const char *what)
{
	l->failed = true;
	return err_set(l->e, E_CORRUPT, "line %u: %s", l->line, what);
}

/* The value of the next line if its name is this one. */
static bool value_of(struct lines *l, const char *name, struct str *out)
{
	size_t end = str_index(l->rest, '\n');
	l->line = l->failed ? l->line : l->next;
	struct str line = str_sub(l->rest, 0, end), want = str_of(name);
	if (l->failed || end == l->rest.len || !str_starts(line, want) ||
		line.len <= want.len + 1 || line.p[want.len] != ' ')
		return false;
	*out = str_sub(line, want.len + 1, line.len);
	l->rest = str_sub(l->rest, end + 1, l->rest.len);
	l->next++;
	return true;
}

static void text(struct lines *l, const char *name, bool needed, char *out, size_t max)
{
	struct str v;
	if (value_of(l, name, &v)) {
		if (!debuginfo_take_name(v, out, max))
			bad(l, name);
	} else if (needed && !l->failed) {
		bad(l, name);
	}
}

static void count(struct lines *l, const char *name, uint64_t *out)
{
	struct str v;
	if (!l->failed && (!value_of(l, name, &v) || !str_parse_u64(v, 10, out)))
		bad(l, name);
}

static void moment(struct lines *l, const char *name, int64_t *out)
{
	struct str v;
	if (!l->failed && (!value_of(l, name, &v) || !str_parse_i64(v, out)))
		bad(l, name);
}

static void word(
	struct lines *l, const char *name, const char *const *names, size_t count, int *out)
{
	struct str v;
	bool found = false;
	if (!value_of(l, name, &v))
		v = STR("");
	for (size_t i = 0; i < count && !found; i++) {
		found = v.len && str_eq(v, str_of(names[i]));
		*out = (int)i;
	}
	if (!found && !l->failed)
		bad(l, name);
}

static void upload_id(struct lines *l, const char *name, char *out)
{
	text(l, name, false, out, DEBUGINFO_UPLOAD_ID_LEN);
	if (!l->failed && out[0] && !debuginfo_is_upload_id(str_of(out)))
		bad(l, name);
}

static bool check_holds(struct str bytes)
{
	char want[CHECK_LINE_LEN + 1];
	if (bytes.len < CHECK_LINE_LEN)
		return false;
	struct str head = str_sub(bytes, 0, bytes.len - CHECK_LINE_LEN);
	snprintf(want, sizeof(want), "check %016" PRIx64 "\n", hash64(head.p, head.len));
	return str_eq(str_sub(bytes, head.len, bytes.len), str_of(want));
}

enum status debuginfo_record_decode(struct str bytes, struct debuginfo_record *out, struct err *e)
{
	struct debuginfo_record r = { 0 };
	struct lines l = { .line = 1, .e = e };
	struct str v;
	int type = 0, state = 0;
	if (!str_starts(bytes, STR(HEAD)))
		return bad(&l, "no record of version 1");
	if (!check_holds(bytes))
		return err_set(e, E_CORRUPT, "the check does not hold");
	l.rest = str_sub(bytes, strlen(HEAD), bytes.len - CHECK_LINE_LEN - strlen(HEAD));
	l.next = 2;
	text(&l, "build_id", true, r.build_id, DEBUGINFO_ID_MAX);
	word(&l, "type", type_names, ARRAY_COUNT(type_names), &type);
	text(&l, "tenant", false, r.tenant, DEBUGINFO_TENANT_MAX);
	upload_id(&l, "upload", r.upload);
	text(&l, "hash", false, r.hash, DEBUGINFO_HASH_MAX);
	count(&l, "size", &r.size_bytes);
	word(&l, "state", state_names, ARRAY_COUNT(state_names), &state);
	moment(&l, "started", &r.started_ns);
	moment(&l, "finished", &r.finished_ns);
	if (value_of(&l, "invalid", &v)) {
		r.invalid = str_eq(v, STR("1"));
		if (!r.invalid)
			bad(&l, "invalid");
	}
	upload_id(&l, "ready", r.ready);
	if (r.ready[0])
		count(&l, "ready_bytes", &r.ready_bytes);
	l.line = l.failed ? l.line : l.next;
	if (!l.failed && l.rest.len)
		bad(&l, "not expected");
	if (l.failed)
		return E_CORRUPT;
	r.type = (enum debuginfo_type)type;
	r.state = (enum debuginfo_state)state;
	*out = r;
	return OK;
}
