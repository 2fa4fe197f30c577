/* SPDX-License-Identifier: Apache-2.0 */
/* Saved views, annotations and settings: what is kept, in which order, what is refused, and a
 * damaged file. */
#include "test.h"

#include "ask.h"
#include "pb/pb.h"
#include "server/api/api.h"
#include "server/request/state.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[128];
static struct server_config config;
static struct server s;

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/firn-test-notes-XXXXXX");
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/notes/notes.txt", dir);
	server_config_default(&config);
	config.storage_path = dir;
	s = (struct server){ .config = &config };
	server_init_locks(&s);
	atomic_store(&s.ready, true);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0); /* NOLINT */
	return 0;
}

static char body[1 << 16];
static int http_status;

/* The body, or the sentence of a failure. */
static const char *ask_for(
	net_handler_fn *fn, const char *method, const char *query, const char *tenant)
{
	struct ask a;
	ask_init(&a, "/", query);
	a.r.method = str_of(method);
	if (tenant)
		ask_header(&a, "x-scope-orgid", tenant);
	fn(&s, &a.r, &a.out);
	http_status = a.out.http_status;
	snprintf(body, sizeof(body), "%.*s", (int)a.out.body.len, (const char *)a.out.body.data);
	ask_deinit(&a);
	return body;
}

static const char *views(const char *method, const char *query)
{
	return ask_for(server_handle_views, method, query, NULL);
}

static const char *annotations(const char *method, const char *query)
{
	return ask_for(server_handle_annotations, method, query, NULL);
}

static void keeps_views(void **state)
{
	(void)state;
	CHECK(strcmp(views("GET", ""), "{\"views\":[]}") == 0);
	(void)views("POST", "name=first&url=%3Fsearch%3Da%2520b");
	(void)views("POST", "name=%22second%22&url=%3Fview%3Dtable");
	CHECK(strstr(views("GET", ""), "\"name\":\"first\",\"url\":\"?search=a%20b\"}"));
	CHECK(strstr(body, "\"name\":\"\\\"second\\\"\",\"url\":\"?view=table\"}"));
	/* One name, one view; as of now on top of nobody else's. */
	(void)views("POST", "name=first&url=%3Fnew");
	CHECK(strstr(views("GET", ""), "\"url\":\"?new\"") && !strstr(body, "a%20b"));
	(void)views("POST", "name=first&delete=1");
	CHECK(!strstr(views("GET", ""), "first") && strstr(body, "second"));
	CHECK(strcmp(annotations("GET", ""), "{\"annotations\":[]}") == 0);
	config.tenant_header = "x-scope-orgid";
	CHECK(!strstr(ask_for(server_handle_views, "GET", "", "other"), "second"));
	CHECK(http_status == 0);
}

static void keeps_annotations_by_time(void **state)
{
	(void)state;
	(void)annotations("POST", "text=second&time=2026-03-05T11:00:00Z");
	(void)views("POST", "name=view&url=%3F");
	(void)annotations("POST", "text=first&time=2026-03-05T10:00:00Z");
	CHECK(strcmp(annotations("GET", ""),
		      "{\"annotations\":[{\"time\":1772704800000,\"text\":\"first\"},"
		      "{\"time\":1772708400000,\"text\":\"second\"}]}") == 0);
	CHECK(!strstr(annotations("GET", "from=2026-03-05T10:30:00Z"), "first"));
	CHECK(!strstr(annotations("GET", "to=2026-03-05T10:30:00Z"), "second") &&
		strstr(body, "first"));
	(void)annotations("POST", "text=now");
	CHECK(strstr(annotations("GET", "from=now-1m"), "\"now\""));
	CHECK(strstr(views("GET", ""), "\"name\":\"view\""));
}

/* The answer to a body that is posted. */
static const char *post(net_handler_fn *fn, const char *query, const char *text)
{
	struct ask a;
	ask_init(&a, "/", query);
	a.r.method = STR("POST");
	a.r.body = str_of(text);
	fn(&s, &a.r, &a.out);
	http_status = a.out.http_status;
	snprintf(body, sizeof(body), "%.*s", (int)a.out.body.len, (const char *)a.out.body.data);
	ask_deinit(&a);
	return body;
}

static void takes_bodies(void **state)
{
	(void)state;
	(void)post(server_handle_annotations, "",
		" {\"time\":1772704800000,\"text\":\"caf\\u00e9\",\"tags\":[\"deploy\"]}\n");
	CHECK(strstr(body, "[{\"time\":1772704800000,\"text\":\"caf\303\251\"}]"));
	(void)post(server_handle_annotations, "", "text=v%202&time=2026-03-05T11:00:00Z\n");
	CHECK(strstr(body, "{\"time\":1772708400000,\"text\":\"v 2\"}"));
	(void)post(server_handle_annotations, "text=of+the+address", "{\"text\":\"other\"}");
	CHECK(strstr(body, "of the address") && !strstr(body, "other"));
	(void)post(server_handle_views, "", "{\"name\":\"a\",\"url\":\"?view=table\"}");
	CHECK(strstr(body, "\"name\":\"a\",\"url\":\"?view=table\"}"));
	(void)post(server_handle_views, "", "{\"name\":\"a\",\"delete\":1}");
	CHECK(strcmp(body, "{\"views\":[]}") == 0);

	static const struct {
		const char *name, *text, *why;
	} cases[] = {
		{ "no JSON", "{\"text\":", "byte" },
		{ "no text", "{\"time\":1}", "text: a text is expected" },
		{ "a list", "{\"text\":[\"a\"]}", "text: a text is expected" },
		{ "a line feed", "{\"text\":\"a\\nb\"}", "control characters" },
		{ "no time", "{\"text\":\"a\",\"time\":\"soon\"}", "not a time" },
	};
	FOR_EACH_CASE (c, cases) {
		CHECK_CASE(c, strstr(post(server_handle_annotations, "", c->text), c->why));
		CHECK_CASE(c, http_status == 400);
	}
	static char more[(64 << 10) + 2];
	memset(more, 'a', sizeof(more) - 1);
	CHECK(strstr(post(server_handle_annotations, "text=a", more), "at most 65536"));
}

static void refuses_what_it_cannot_keep(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		net_handler_fn *fn;
		const char *query, *why;
	} cases[] = {
		{ "no name", server_handle_views, "url=%3F", "name: a text is expected" },
		{ "no address", server_handle_views, "name=a", "url: a text is expected" },
		{ "another host's", server_handle_views, "name=a&url=https://x", "question mark" },
		{ "a tab", server_handle_views, "name=a%09b&url=%3F", "control characters" },
		{ "bytes", server_handle_views, "name=%ff&url=%3F", "not UTF-8" },
		{ "no text", server_handle_annotations, "time=now", "text: a text is expected" },
		{ "no time", server_handle_annotations, "text=a&time=soon", "not a time" },
	};
	FOR_EACH_CASE (c, cases) {
		CHECK_CASE(c, strstr(ask_for(c->fn, "POST", c->query, NULL), c->why));
		CHECK_CASE(c, http_status == 400);
	}
	/* A long name, and more views than there may be. */
	char query[512] = "url=%3F&name=";
	memset(query + strlen(query), 'a', 121);
	CHECK(strstr(views("POST", query), "at most 120"));
	for (int i = 0; i < 500; i++) {
		snprintf(query, sizeof(query), "name=%d&url=%%3F", i);
		(void)views("POST", query);
		CHECK(http_status == 0);
	}
	CHECK(strstr(views("POST", "name=more&url=%3F"), "there are 500 views: delete one"));
	CHECK(access(path, F_OK) == 0);
}

/* The answer to a message of settings.v1, in `body`. */
static struct str settings(net_handler_fn *fn, const char *tenant, struct buf *message)
{
	struct ask a;
	ask_init(&a, "/", "");
	a.r.body = buf_view(message);
	if (tenant)
		ask_header(&a, "x-scope-orgid", tenant);
	fn(&s, &a.r, &a.out);
	http_status = a.out.http_status;
	bool failed = a.out.status != OK;
	size_t len = failed ? strlen(a.out.message) : a.out.body.len;
	CHECK(len < sizeof(body));
	if (len)
		memcpy(body, failed ? (const void *)a.out.message : (const void *)a.out.body.data,
			len);
	body[len] = 0;
	ask_deinit(&a);
	buf_clear(message);
	return str_make(body, len);
}

static struct str set(struct buf *message, const char *name, struct str value)
{
	size_t begun = pb_begin(message, 1);
	pb_put_str(message, 1, str_of(name));
	pb_put_str(message, 2, value);
	pb_put_i64(message, 3, 12345); /* not theirs to say */
	pb_end(message, begun);
	return settings(server_settings_set, NULL, message);
}

/* The value by name in an answer; "": there is none. `count`: how many there are. */
static struct str value_in(struct str answer, const char *name, size_t *count)
{
	struct reader r = reader_over(answer.p, answer.len);
	struct pb_field f, k;
	struct str found = STR("");
	for (*count = 0; pb_next(&r, &f); ++*count) {
		struct str texts[3] = { 0 };
		int64_t time_ms = 0;
		for (struct reader m = pb_message(&f); pb_next(&m, &k);)
			if (k.wire == PB_BYTES && k.number < 3)
				texts[k.number] = k.bytes;
			else
				time_ms = (int64_t)k.u64;
		CHECK(time_ms > 1700000000000);
		if (str_eq(texts[1], str_of(name)))
			found = texts[2];
	}
	CHECK(!r.failed);
	return found;
}

static void keeps_settings(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct str json = STR("{\"maxNodes\":100,\"collapsedFlamegraphs\":true}");
	char name[16], longer[4097];
	size_t count;
	buf_init(&b, 1 << 16);
	CHECK(settings(server_settings_get, NULL, &b).len == 0);
	CHECK(str_eq(value_in(set(&b, "pluginSettings", json), "pluginSettings", &count), json));
	(void)set(&b, "other", STR("x"));
	(void)views("POST", "name=view&url=%3F");
	(void)annotations("POST", "text=now");
	(void)set(&b, "other", STR(""));
	CHECK(str_eq(
		value_in(settings(server_settings_get, NULL, &b), "pluginSettings", &count), json));
	CHECK(count == 2);
	CHECK(strstr(views("GET", ""), "\"name\":\"view\"") && !strstr(body, "other"));
	pb_put_str(&b, 1, STR("other"));
	CHECK(settings(server_settings_delete, NULL, &b).len == 0 && http_status == 0);
	(void)value_in(settings(server_settings_get, NULL, &b), "", &count);
	CHECK(count == 1);
	config.tenant_header = "x-scope-orgid";
	CHECK(settings(server_settings_get, "another", &b).len == 0);
	config.tenant_header = NULL;

	(void)set(&b, "", json);
	CHECK(strstr(body, "setting.name: a text is expected"));
	(void)set(&b, "a\tb", json);
	CHECK(strstr(body, "setting.name: control characters"));
	memset(longer, 'x', sizeof(longer));
	(void)set(&b, "long", str_make(longer, sizeof(longer)));
	CHECK(strstr(body, "setting.value: 4097 bytes, at most 4096"));
	buf_put(&b, "\x0a\x05\x0a", 3);
	(void)settings(server_settings_set, NULL, &b);
	CHECK(strstr(body, "malformed"));
	buf_put(&b, "\x0a\x05", 2);
	(void)settings(server_settings_delete, NULL, &b);
	CHECK(strstr(body, "malformed"));
	for (int i = 1; i <= 100; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		(void)set(&b, name, STR("v"));
	}
	CHECK(strstr(body, "there are 100 settings: delete one"));
	(void)value_in(settings(server_settings_get, NULL, &b), "", &count);
	CHECK(count == 100);
}

static void names_a_damaged_line(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "firn notes 2\n", "firn notes 1\nview\t1\ta\n\n",
		"firn notes 1\nother\t1\ta\tb\n", "firn notes 1\nview\tx\ta\tb\n" };
	(void)views("POST", "name=a&url=%3F");
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		FILE *f = fopen(path, "we");
		CHECK(f && fputs(bad[i], f) >= 0 && fclose(f) == 0);
		CHECK(strstr(views("GET", ""), "notes.txt: line ") && http_status == 500);
		/* It is left as it is. */
		(void)views("POST", "name=b&url=%3F");
		struct stat st;
		CHECK(stat(path, &st) == 0 && (size_t)st.st_size == strlen(bad[i]));
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
TEST_MAIN(CASE(keeps_views), CASE(keeps_annotations_by_time), CASE(takes_bodies),
	CASE(refuses_what_it_cannot_keep), CASE(keeps_settings), CASE(names_a_damaged_line))
