/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

/* A token server: what it was asked, and what it answers. */
struct tokens {
	atomic_int asked;
	int only_form; /* refuses the header */
	const char *answer;
	char form[500], header[200];
};

static void serve_tokens(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct tokens *t = ctx;
	struct str header = net_header_find(r, "authorization");
	snprintf(t->form, sizeof(t->form), "%.*s", STR_ARG(r->body));
	snprintf(t->header, sizeof(t->header), "%.*s", STR_ARG(header));
	out->content_type = "application/json";
	out->http_status = t->only_form && header.len ? 401 : 200;
	if (t->answer)
		buf_cstr(&out->body, t->answer);
	else
		buf_printf(&out->body,
			"{\"access_token\": \"tok%d\", \"token_type\": \"bearer\", "
			"\"expires_in\": 3600}",
			atomic_load(&t->asked));
	atomic_fetch_add(&t->asked, 1);
}

static struct net_server *start(struct tokens *t)
{
	const struct net_route routes[] = {
		{ .method = "POST", .path = "/token", .fn = serve_tokens, .ctx = t }
	};
	struct net_server_config c;
	struct net_server *s = NULL;
	struct err e = { 0 };
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, 1, &s, &e), &e);
	return s;
}

struct holder {
	struct client_config client;
};

static enum status read_client(const char *yaml, struct arena *a, struct holder *h, struct err *e)
{
	static const struct conf_field fields[] = { CLIENT_FIELDS(0), { 0 } };
	const struct conf_node *root = NULL;
	arena_init(a, CONF_ARENA_BYTES);
	CHECK_OK(conf_parse(str_of(yaml), a, &root, e), e);
	enum status s = conf_read_map(root, fields, h, e);
	return s == OK ? client_check(&h->client, root, e) : s;
}

static void brings_a_token(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf out;
	struct tokens t = { 0 };
	struct net_server *s = start(&t);
	struct holder h = { 0 };
	struct err e = { 0 };
	char yaml[400];
	snprintf(yaml, sizeof(yaml),
		"oauth2: {client_id: 'a b', client_secret: 'x:y', scopes: [r, 'w+'], token_url: "
		"'http://%s/token', endpoint_params: {audience: 'p&q'}}",
		net_server_address(s));
	CHECK_OK(read_client(yaml, &a, &h, &e), &e);
	buf_init(&out, 1000);
	for (int i = 0; i < 3; i++) { /* it is asked for once */
		buf_clear(&out);
		CHECK_OK(client_oauth2_token(h.client.oauth2, -1, &out, &e), &e);
		CHECK_STR(buf_view(&out), "Bearer tok0");
	}
	CHECK_STR(str_of(t.form), "grant_type=client_credentials&scope=r+w%2B&audience=p%26q");
	CHECK_STR(str_of(t.header), "Basic YSUyMGI6eCUzQXk="); /* a%20b:x%3Ay */
	client_refused(&h.client);
	buf_clear(&out);
	CHECK_OK(client_oauth2_token(h.client.oauth2, -1, &out, &e), &e);
	CHECK_STR(buf_view(&out), "Bearer tok1");
	/* One that ends within seconds does not count as there. */
	t.answer = "{\"access_token\": \"short\", \"expires_in\": 5}";
	client_refused(&h.client);
	for (int i = 0; i < 2; i++)
		CHECK_OK(client_oauth2_token(h.client.oauth2, -1, &out, &e), &e);
	CHECK(atomic_load(&t.asked) == 4);
	client_deinit(&h.client);
	net_server_stop(s);
}

static void puts_the_secret_into_the_form(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf out;
	struct tokens t = { .only_form = 1 };
	struct net_server *s = start(&t);
	struct holder h = { 0 };
	struct err e = { 0 };
	char yaml[400];
	snprintf(yaml, sizeof(yaml),
		"oauth2: {client_id: i, client_secret: s, token_url: 'http://%s/token'}",
		net_server_address(s));
	CHECK_OK(read_client(yaml, &a, &h, &e), &e);
	buf_init(&out, 1000);
	CHECK_OK(client_oauth2_token(h.client.oauth2, -1, &out, &e), &e);
	CHECK_STR(str_of(t.form), "grant_type=client_credentials&client_id=i&client_secret=s");
	CHECK(!t.header[0] && atomic_load(&t.asked) == 2);
	client_deinit(&h.client);
	net_server_stop(s);
}

static void says_what_went_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *name, *answer, *says;
	} cases[] = {
		{ "no JSON", "<html>", "no token: not JSON" },
		{ "no token", "{\"error\": \"x\"}", "no token: the answer has no access_token" },
		{ "a line's end", "{\"access_token\": \"a\\nb\"}", "has no access_token" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		CLEANUP(buf_deinit) struct buf out;
		struct tokens t = { .answer = c->answer };
		struct net_server *s = start(&t);
		struct holder h = { 0 };
		struct err e = { 0 };
		char yaml[400];
		snprintf(yaml, sizeof(yaml), "oauth2: {client_id: i, token_url: 'http://%s/token'}",
			net_server_address(s));
		CHECK_OK(read_client(yaml, &a, &h, &e), &e);
		buf_init(&out, 1000);
		for (int i = 0; i < 3; i++) {
			enum status st = client_oauth2_token(h.client.oauth2, -1, &out, &e);
			CHECK_CASE(c, st != OK && strstr(e.text, c->says));
		}
		CHECK_CASE(c, atomic_load(&t.asked) == 1); /* remembered for a moment */
		client_deinit(&h.client);
		net_server_stop(s);
	}
}

static void refuses_settings(void **state)
{
	(void)state;
	static const struct {
		const char *name, *yaml, *says;
	} cases[] = {
		{ "no URL", "oauth2: {client_id: i}", "needs client_id and token_url" },
		{ "URL", "oauth2: {client_id: i, token_url: 'ftp://x'}", "must begin with http" },
		{ "two secrets",
			"oauth2: {client_id: i, token_url: 'http://x', client_secret: a, "
			"client_secret_file: b}",
			"one of them is enough" },
		{ "two ways", "bearer_token: t\noauth2: {client_id: i, token_url: 'http://x'}",
			"basic_auth, a token, oauth2" },
		{ "unknown", "oauth2: {client: i}", "did you mean \"client_id\"?" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		struct holder h = { 0 };
		struct err e = { 0 };
		CHECK_CASE(c,
			read_client(c->yaml, &a, &h, &e) == E_INVALID && strstr(e.text, c->says));
		client_deinit(&h.client);
	}
}

TEST_MAIN(cmocka_unit_test(brings_a_token), cmocka_unit_test(puts_the_secret_into_the_form),
	cmocka_unit_test(says_what_went_wrong), cmocka_unit_test(refuses_settings))
