/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes of users: named views of the page, annotations of times, and the settings of Profiles
 * Drilldown, which come as settings.v1 (docs/formats/notes.md). How: a tenant's notes are one small
 * file, read as a whole for each request and replaced as a whole by each change, under one lock.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "conf/conf.h"
#include "http/http.h"
#include "os/os.h"
#include "pb/pb.h"
#include "query/query.h"
#include "server/api/api.h"
#include "server/request/request.h"

#include <inttypes.h>
#include <stdio.h>

#define FILE_BYTES_MAX ((size_t)8 << 20)
#define ARENA_BYTES_MAX ((size_t)32 << 20)
#define PATH_BYTES 4096
#define HEAD "firn notes 1"
/* Limits of a tenant. Further views and settings are refused; for a further annotation the oldest
 * is removed. */
#define VIEWS_MAX 500
#define ANNOTATIONS_MAX 2000
#define SETTINGS_MAX 100
#define NOTES_MAX (VIEWS_MAX + ANNOTATIONS_MAX + SETTINGS_MAX)
#define NAME_BYTES_MAX 120
#define VALUE_BYTES_MAX 4096
#define BODY_BYTES_MAX ((size_t)64 << 10)

enum kind { VIEW, ANNOTATION, SETTING, KINDS };
static const char *const kinds[KINDS] = { "view", "annotation", "setting" };

struct note {
	enum kind kind;
	int64_t time_ms;
	struct str name; /* of a view or a setting; the text of an annotation */
	struct str value;
};

struct notes {
	struct server *s;
	const struct net_request *r;
	struct arena a;
	const struct conf_node *json; /* the request's body; NULL: it is not a JSON object */
	char path[PATH_BYTES];
	struct note *v;
	size_t count;
	struct err *e;
};

/* ---- the file ---- */

static enum status find_path(struct notes *n)
{
	struct str tenant;
	enum status st = server_tenant(n->s, n->r, &tenant, n->e);
	if (st == OK && snprintf(n->path, PATH_BYTES, "%s/notes", n->s->config->storage_path) >=
				PATH_BYTES / 2)
		return err_set(n->e, E_INVALID, "the storage path is too long");
	if (st == OK)
		st = os_make_dirs(n->path, n->e);
	if (st != OK)
		return st;
	size_t len = strlen(n->path);
	snprintf(n->path + len, PATH_BYTES - len, "/notes%s%.*s.txt", tenant.len ? "@" : "",
		STR_ARG(tenant));
	return OK;
}

/* "KIND\tTIME\tNAME\tVALUE" */
static bool parse_line(struct str line, struct note *out)
{
	struct str kind, time;
	uint64_t ms;
	if (!str_split(&line, '\t', &kind) || !str_split(&line, '\t', &time) ||
		!str_split(&line, '\t', &out->name) || !str_parse_u64(time, 10, &ms) ||
		ms > INT64_MAX)
		return false;
	out->time_ms = (int64_t)ms;
	out->value = line;
	for (out->kind = VIEW; out->kind < KINDS; out->kind++)
		if (str_eq(kind, str_of(kinds[out->kind])))
			return true;
	return false;
}

static enum status parse(struct notes *n, struct str text)
{
	struct str line;
	size_t lines = 1;
	if (!str_split(&text, '\n', &line) || !str_eq(line, STR(HEAD)))
		return err_set(n->e, E_CORRUPT, "%s: line 1 is not \"" HEAD "\"", n->path);
	while (str_split(&text, '\n', &line)) {
		lines++;
		if (n->count == NOTES_MAX || !parse_line(line, &n->v[n->count]))
			return err_set(n->e, E_CORRUPT, "%s: line %zu is no note", n->path, lines);
		n->count++;
	}
	return OK;
}

static enum status load(struct notes *n)
{
	CLEANUP(buf_deinit) struct buf file;
	buf_init(&file, FILE_BYTES_MAX);
	/* Room for one note more. */
	n->v = ARENA_ARRAY(&n->a, struct note, NOTES_MAX + 1);
	if (!n->v)
		return err_set(n->e, arena_status(&n->a), "notes");
	enum status st = find_path(n);
	if (st == OK)
		st = os_read_file(n->path, &file, n->e);
	if (st == E_NOTFOUND)
		return OK;
	char *copy = st == OK ? arena_copy(&n->a, file.data, file.len) : NULL;
	if (st == OK && !copy)
		return err_set(n->e, arena_status(&n->a), "notes");
	return st == OK ? parse(n, str_make(copy, file.len)) : st;
}

static enum status store(struct notes *n)
{
	CLEANUP(buf_deinit) struct buf file;
	buf_init(&file, FILE_BYTES_MAX);
	buf_cstr(&file, HEAD "\n");
	for (size_t i = 0; i < n->count; i++)
		buf_printf(&file, "%s\t%" PRId64 "\t%.*s\t%.*s\n", kinds[n->v[i].kind],
			n->v[i].time_ms, STR_ARG(n->v[i].name), STR_ARG(n->v[i].value));
	if (buf_status(&file) != OK)
		return err_set(n->e, buf_status(&file), "notes of more than %zu MiB",
			FILE_BYTES_MAX >> 20);
	return os_replace_file(n->path, file.data, file.len, 0640, n->e);
}

/* ---- what a request says ---- */

/* A body may have parameters that the address lacks: an object of JSON, or a form. */
static enum status read_body(struct notes *n)
{
	struct str body = str_trim(n->r->body);
	if (body.len > BODY_BYTES_MAX)
		return err_set(n->e, E_LIMIT, "the body has %zu bytes, at most %zu", body.len,
			BODY_BYTES_MAX);
	if (!str_starts(body, STR("{")))
		return OK;
	return conf_json_parse(body, NULL, &n->a, &n->json, n->e);
}

/* Finds a parameter by name; false: it is missing, or "". */
static bool find_text(struct notes *n, const char *key, struct str *out)
{
	const struct conf_node *member = conf_find(n->json, key);
	if (net_query_param(n->r, key, 0, &n->a, out))
		return out->len > 0;
	if (n->json) {
		*out = member && member->kind == CONF_TEXT ? member->text : STR("");
		return out->len > 0;
	}
	return http_query_find(str_trim(n->r->body), key, 0, &n->a, out) && out->len > 0;
}

/* ---- changes ---- */

/* Checks a text that becomes part of a line. */
static enum status check_text(struct notes *n, const char *key, struct str text, size_t most)
{
	if (text.len > most)
		return err_set(n->e, E_LIMIT, "%s: %zu bytes, at most %zu", key, text.len, most);
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.p[i] < ' ')
			return err_set(n->e, E_INVALID, "%s: control characters", key);
	return str_is_utf8(text) ? OK : err_set(n->e, E_INVALID, "%s: not UTF-8", key);
}

static enum status take(struct notes *n, const char *key, size_t most, struct str *out)
{
	if (!find_text(n, key, out))
		return err_set(n->e, E_INVALID, "%s: a text is expected", key);
	return check_text(n, key, *out, most);
}

static void drop(struct notes *n, size_t at)
{
	memmove(&n->v[at], &n->v[at + 1], (n->count - at - 1) * sizeof(*n->v));
	n->count--;
}

/* The number of notes of a kind; *out_first: the first one, for annotations the oldest. */
static size_t count_of(const struct notes *n, enum kind kind, size_t *out_first)
{
	size_t count = 0;
	for (size_t i = n->count; i-- > 0;)
		if (n->v[i].kind == kind) {
			count++;
			*out_first = i;
		}
	return count;
}

static void drop_named(struct notes *n, enum kind kind, struct str name)
{
	for (size_t i = n->count; i-- > 0;)
		if (n->v[i].kind == kind && str_eq(n->v[i].name, name))
			drop(n, i);
}

static enum status change_views(struct notes *n)
{
	struct note view = { .kind = VIEW, .time_ms = clock_realtime_ns() / NS_PER_MS };
	struct str text;
	size_t first;
	bool gone = find_text(n, "delete", &text) && str_eq(text, STR("1"));
	enum status st = take(n, "name", NAME_BYTES_MAX, &view.name);
	if (st == OK && !gone)
		st = take(n, "url", VALUE_BYTES_MAX, &view.value);
	if (st == OK && !gone && view.value.p[0] != '?')
		return err_set(n->e, E_INVALID,
			"url: what stands behind the page's address, from "
			"the question mark on, is expected");
	if (st != OK)
		return st;
	drop_named(n, VIEW, view.name);
	if (gone)
		return store(n);
	if (count_of(n, VIEW, &first) >= VIEWS_MAX)
		return err_set(n->e, E_LIMIT, "there are %d views: delete one", VIEWS_MAX);
	n->v[n->count++] = view;
	return store(n);
}

/* Annotations are in the order of their time. */
static enum status change_annotations(struct notes *n)
{
	struct note note = { .kind = ANNOTATION };
	struct str text;
	int64_t now = clock_realtime_ns(), at = now;
	enum status st = take(n, "text", NAME_BYTES_MAX, &note.name);
	if (st == OK && find_text(n, "time", &text))
		st = query_parse_time(text, now, 0, &at, n->e);
	if (st != OK)
		return st;
	note.time_ms = at / NS_PER_MS;
	size_t to = 0, first = 0;
	while (to < n->count && (n->v[to].kind != ANNOTATION || n->v[to].time_ms <= note.time_ms))
		to++;
	memmove(&n->v[to + 1], &n->v[to], (n->count - to) * sizeof(*n->v));
	n->v[to] = note;
	n->count++;
	if (count_of(n, ANNOTATION, &first) > ANNOTATIONS_MAX)
		drop(n, first);
	return store(n);
}

/* ---- answers ---- */

static enum status take_instant(struct notes *n, const char *key, unsigned flags, int64_t *out)
{
	struct str text;
	int64_t ns;
	if (!net_query_param(n->r, key, 0, &n->a, &text) || text.len == 0)
		return OK;
	enum status st = query_parse_time(text, clock_realtime_ns(), flags, &ns, n->e);
	if (st == OK)
		*out = ns / NS_PER_MS;
	return st;
}

static enum status write_notes(struct notes *n, enum kind kind, struct buf *out)
{
	int64_t from = 0, to = INT64_MAX;
	bool more = false;
	enum status st = take_instant(n, "from", 0, &from);
	if (st == OK)
		st = take_instant(n, "to", QUERY_TIME_END, &to);
	if (st != OK)
		return st;
	buf_printf(out, "{\"%ss\":[", kinds[kind]);
	for (size_t i = 0; i < n->count; i++) {
		const struct note *note = &n->v[i];
		if (note->kind != kind ||
			(kind == ANNOTATION && (note->time_ms < from || note->time_ms > to)))
			continue;
		buf_printf(out, "%s{\"time\":%" PRId64 ",\"%s\":", more ? "," : "", note->time_ms,
			kind == VIEW ? "name" : "text");
		buf_json_str(out, note->name);
		if (kind == VIEW) {
			buf_cstr(out, ",\"url\":");
			buf_json_str(out, note->value);
		}
		buf_u8(out, '}');
		more = true;
	}
	buf_cstr(out, "]}");
	return buf_status(out);
}

static void answer(
	struct server *s, const struct net_request *r, enum kind kind, struct net_response *out)
{
	struct err e = { 0 };
	if (!server_is_ready(s, out))
		return;
	struct notes n = { .s = s, .r = r, .e = &e };
	arena_init(&n.a, ARENA_BYTES_MAX);
	enum status st = read_body(&n);
	lock_take(&s->notes_lock);
	if (st == OK)
		st = load(&n);
	if (st == OK && str_eq(r->method, STR("POST")))
		st = kind == VIEW ? change_views(&n) : change_annotations(&n);
	lock_release(&s->notes_lock);
	if (st == OK)
		st = write_notes(&n, kind, &out->body);
	if (st != OK)
		net_fail(out, st, &e);
	else
		out->content_type = "application/json";
	snprintf(out->headers, sizeof(out->headers), "cache-control: no-store\r\n");
	arena_deinit(&n.a);
}

void server_handle_views(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer((struct server *)ctx, r, VIEW, out);
}

void server_handle_annotations(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer((struct server *)ctx, r, ANNOTATION, out);
}

/* ---- settings.v1 ---- */

static enum status malformed(struct notes *n)
{
	return err_set(n->e, E_INVALID, "a field of the message is malformed");
}

/* Setting { name = 1; value = 2; modifiedAt = 3 }; the time is ours. */
static void put_setting(struct buf *out, const struct note *setting)
{
	size_t begun = pb_begin(out, 1);
	pb_put_str(out, 1, setting->name);
	pb_put_str(out, 2, setting->value);
	pb_put_i64(out, 3, setting->time_ms);
	pb_end(out, begun);
}

/* GetSettingsResponse { settings = 1 } */
static enum status get_settings(struct notes *n, struct buf *out)
{
	for (size_t i = 0; i < n->count; i++)
		if (n->v[i].kind == SETTING)
			put_setting(out, &n->v[i]);
	return OK;
}

/* SetSettingsRequest { setting = 1 }, SetSettingsResponse { setting = 1 } */
static enum status set_setting(struct notes *n, struct buf *out)
{
	struct note setting = { .kind = SETTING, .time_ms = clock_realtime_ns() / NS_PER_MS };
	struct reader r = reader_over(n->r->body.p, n->r->body.len);
	struct pb_field f;
	size_t first;
	while (pb_next(&r, &f)) {
		struct reader inner = pb_message(&f);
		struct pb_field k;
		if (f.number != 1 || f.wire != PB_BYTES)
			continue;
		while (pb_next(&inner, &k))
			if (k.wire == PB_BYTES && (k.number == 1 || k.number == 2))
				*(k.number == 1 ? &setting.name : &setting.value) = k.bytes;
		if (inner.failed)
			return malformed(n);
	}
	if (r.failed)
		return malformed(n);
	if (setting.name.len == 0)
		return err_set(n->e, E_INVALID, "setting.name: a text is expected");
	enum status st = check_text(n, "setting.name", setting.name, NAME_BYTES_MAX);
	if (st == OK)
		st = check_text(n, "setting.value", setting.value, VALUE_BYTES_MAX);
	if (st != OK)
		return st;
	drop_named(n, SETTING, setting.name);
	if (count_of(n, SETTING, &first) >= SETTINGS_MAX)
		return err_set(n->e, E_LIMIT, "there are %d settings: delete one", SETTINGS_MAX);
	n->v[n->count++] = setting;
	put_setting(out, &setting);
	return store(n);
}

/* DeleteSettingsRequest { name = 1 } */
static enum status delete_setting(struct notes *n, struct buf *out)
{
	struct reader r = reader_over(n->r->body.p, n->r->body.len);
	struct pb_field f;
	struct str name = STR("");
	size_t before = n->count;
	(void)out;
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_BYTES)
			name = f.bytes;
	if (r.failed)
		return malformed(n);
	drop_named(n, SETTING, name);
	return n->count < before ? store(n) : OK;
}

static void answer_settings(struct server *s, const struct net_request *r, struct net_response *out,
	enum status (*fn)(struct notes *n, struct buf *out))
{
	struct err e = { 0 };
	if (!server_is_ready(s, out))
		return;
	struct notes n = { .s = s, .r = r, .e = &e };
	arena_init(&n.a, ARENA_BYTES_MAX);
	lock_take(&s->notes_lock);
	enum status st = load(&n);
	if (st == OK)
		st = fn(&n, &out->body);
	lock_release(&s->notes_lock);
	if (st != OK) {
		buf_clear(&out->body);
		net_fail(out, st, &e);
	}
	arena_deinit(&n.a);
}

void server_settings_get(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer_settings((struct server *)ctx, r, out, get_settings);
}

void server_settings_set(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer_settings((struct server *)ctx, r, out, set_setting);
}

void server_settings_delete(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer_settings((struct server *)ctx, r, out, delete_setting);
}
