/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a token is needed and there is no valid one, one thread requests it: the others wait for the
 * lock and find the token. The client's name and secret are sent in an Authorization header; if the
 * server refuses this (400, 401), they are sent in the form, as some servers require. A refusal is
 * remembered for a short time, so that a thousand targets do not send a thousand requests.
 */
#include "scrape/client/client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "http/http.h"

struct client_oauth2 {
	const char *id, *secret, *secret_file, *token_url;
	const struct conf_node *scopes, *params; /* NULL */
	struct client_tls tls;
	struct client_proxy proxy;
	struct lock lock;   /* protects all fields below */
	char *token;        /* "TYPE TOKEN"; NULL: none */
	int64_t until_ns;   /* monotonic: when the token ends; INT64_MAX: never */
	int64_t refused_ns; /* monotonic: time of the last refusal; 0: none */
	struct err refusal;
	enum status refusal_status;
};

/* ---- the file ---- */

static enum status params(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	if (x->value->kind != CONF_MAP)
		return conf_wrong(e, x->value, "endpoint_params must be a mapping");
	for (uint32_t i = 0; i < x->value->count; i++)
		if (x->value->v[i].value->kind != CONF_TEXT)
			return conf_wrong(e, x->value->v[i].value, "a text is expected");
	*CONF_AT(base, f, const struct conf_node *) = x->value;
	return OK;
}

#define O(member) offsetof(struct client_oauth2, member)

enum status client_read_oauth2(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "client_id", conf_field_text, O(id), NULL },
		{ "client_secret", conf_field_text, O(secret), NULL },
		{ "client_secret_file", conf_field_text, O(secret_file), NULL },
		{ "token_url", conf_field_text, O(token_url), NULL },
		{ "scopes", conf_field_texts, O(scopes), NULL },
		{ "endpoint_params", params, O(params), NULL },
		{ "tls_config", client_read_tls, O(tls), NULL },
		CLIENT_PROXY_FIELDS(O(proxy)),
		{ 0 },
	};
	struct client_config *c = CONF_AT(base, f, struct client_config);
	c->oauth2 = calloc(1, sizeof(*c->oauth2));
	if (!c->oauth2)
		return err_set(e, E_NOMEM, "oauth2");
	lock_init(&c->oauth2->lock, LOCK_OAUTH2);
	return conf_read_map(x->value, fields, c->oauth2, e);
}

enum status client_oauth2_check(
	const struct client_oauth2 *o, const struct conf_node *n, struct err *e)
{
	if (!o->id || !o->token_url)
		return conf_wrong(e, n, "oauth2 needs client_id and token_url");
	if (o->secret && o->secret_file)
		return conf_wrong(e, n, "a secret and a file of it: one of them is enough");
	if (!str_starts(str_of(o->token_url), STR("http://")) &&
		!str_starts(str_of(o->token_url), STR("https://")))
		return conf_wrong(e, n, "token_url must begin with http:// or https://");
	return OK;
}

void client_oauth2_free(struct client_oauth2 *o)
{
	if (!o)
		return;
	if (o->token)
		explicit_bzero(o->token, strlen(o->token));
	free(o->token);
	lock_destroy(&o->lock);
	free(o);
}

/* ---- the request ---- */

static void put_escaped(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			     (c >= 'a' && c <= 'z') || (c && strchr("-_.~", c));
		buf_printf(b, plain ? "%c" : "%%%02X", c);
	}
}

static void put_pair(struct buf *b, const char *name, struct str value)
{
	if (b->len)
		buf_u8(b, '&');
	put_escaped(b, str_of(name));
	buf_u8(b, '=');
	put_escaped(b, value);
}

static void put_form(
	const struct client_oauth2 *o, bool with_secret, struct str secret, struct buf *form)
{
	put_pair(form, "grant_type", STR("client_credentials"));
	if (o->scopes && o->scopes->count) {
		buf_cstr(form, "&scope=");
		for (uint32_t i = 0; i < o->scopes->count; i++) {
			if (i)
				buf_u8(form, '+');
			put_escaped(form, o->scopes->v[i].value->text);
		}
	}
	for (uint32_t i = 0; o->params && i < o->params->count; i++)
		put_pair(form, o->params->v[i].key.p, o->params->v[i].value->text);
	if (with_secret) {
		put_pair(form, "client_id", str_of(o->id));
		put_pair(form, "client_secret", secret);
	}
}

/* RFC 6749, 2.3.1: both are escaped before they are put together. */
static enum status put_header(
	const struct client_oauth2 *o, struct str secret, struct fetch *f, struct err *e)
{
	CLEANUP(buf_deinit) struct buf pair, value;
	buf_init(&pair, 4 * CLIENT_SECRET_BYTES_MAX);
	buf_init(&value, 8 * CLIENT_SECRET_BYTES_MAX);
	put_escaped(&pair, str_of(o->id));
	buf_u8(&pair, ':');
	put_escaped(&pair, secret);
	buf_cstr(&value, "Basic ");
	http_base64_encode(&value, buf_view(&pair));
	buf_u8(&value, 0);
	if (buf_status(&pair) != OK || buf_status(&value) != OK)
		return err_set(e, E_LIMIT, "a secret is too long");
	return fetch_header(f, "Authorization", (const char *)value.data, e);
}

static void wipe(struct buf *b)
{
	if (b->len)
		explicit_bzero(b->data, b->len);
}

static enum status ask_once(const struct client_oauth2 *o, bool in_form, struct fetch *f,
	int *out_code, struct buf *answer, struct err *e)
{
	CLEANUP(buf_deinit) struct buf secret, form;
	buf_init(&secret, CLIENT_SECRET_BYTES_MAX);
	buf_init(&form, 8 * CLIENT_SECRET_BYTES_MAX);
	enum status s = client_secret(o->secret, o->secret_file, &secret, e);
	if (s != OK)
		return s;
	put_form(o, in_form, buf_view(&secret), &form);
	if (buf_status(&form) != OK)
		return err_set(e, E_LIMIT, "the form for a token is too long");
	s = in_form ? fetch_header(f, "Authorization", NULL, e)
		    : put_header(o, buf_view(&secret), f, e);
	if (s == OK)
		s = fetch_post(f, o->token_url, "application/x-www-form-urlencoded",
			buf_view(&form), CLIENT_TOKEN_TIMEOUT_NS, out_code, answer, e);
	wipe(&secret);
	wipe(&form);
	return s;
}

/* ---- the answer ---- */

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return s.len && s.len < CLIENT_SECRET_BYTES_MAX;
}

static enum status take(struct client_oauth2 *o, struct str json, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	uint64_t seconds;
	arena_init(&a, 16 * CLIENT_TOKEN_ANSWER_MAX);
	enum status s = conf_json_parse(json, NULL, &a, &root, e);
	if (s != OK)
		return s;
	struct str token = conf_text_at(root, "access_token");
	struct str type = conf_text_at(root, "token_type");
	struct str lasts = conf_text_at(root, "expires_in");
	if (!is_plain(token))
		return err_set(e, E_INVALID, "the answer has no access_token");
	/* Some servers write "bearer" for "Bearer". */
	if (!is_plain(type) || str_eq_nocase(type, STR("bearer")))
		type = STR("Bearer");
	o->token = malloc(type.len + token.len + 2);
	if (!o->token)
		return err_set(e, E_NOMEM, "token");
	snprintf(o->token, type.len + token.len + 2, "%.*s %.*s", STR_ARG(type), STR_ARG(token));
	o->until_ns = INT64_MAX;
	if (str_parse_u64(lasts, 10, &seconds))
		o->until_ns = clock_monotonic_ns() +
			      (int64_t)MIN(seconds, (uint64_t)1000000000) * NS_PER_SEC -
			      CLIENT_TOKEN_EARLY_NS;
	return OK;
}

static enum status ask(struct client_oauth2 *o, int wake_fd, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	struct fetch *f = NULL;
	int code = 0;
	buf_init(&answer, CLIENT_TOKEN_ANSWER_MAX);
	enum status s = client_fetch(&o->tls, &o->proxy, false, NULL, &f, e);
	if (s == OK) {
		fetch_limit(f, CLIENT_TOKEN_ANSWER_MAX);
		fetch_interrupt(f, wake_fd, 0);
		s = ask_once(o, false, f, &code, &answer, e);
	}
	if (s == OK && (code == 400 || code == 401)) {
		buf_clear(&answer);
		s = ask_once(o, true, f, &code, &answer, e);
	}
	if (s == OK && code != 200)
		s = err_set(e, E_UNAUTHENTICATED, "HTTP status %d", code);
	if (s == OK)
		s = take(o, buf_view(&answer), e);
	if (answer.data)
		explicit_bzero(answer.data, answer.len);
	fetch_free(f);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "no token");
}

enum status client_oauth2_token(
	struct client_oauth2 *o, int wake_fd, struct buf *out, struct err *e)
{
	enum status s = OK;
	struct err why = { 0 };
	lock_take(&o->lock);
	int64_t now = clock_monotonic_ns();
	bool lasts = o->token && now < o->until_ns;
	if (!lasts && o->refused_ns && now - o->refused_ns < CLIENT_TOKEN_RETRY_NS) {
		s = o->refusal_status;
		why = o->refusal;
	} else if (!lasts) {
		free(o->token);
		o->token = NULL;
		s = ask(o, wake_fd, &why);
		o->refused_ns = s == OK || s == E_CANCELED ? 0 : clock_monotonic_ns();
		o->refusal_status = s;
		o->refusal = why;
	}
	if (s == OK)
		buf_cstr(out, o->token);
	lock_release(&o->lock);
	return s == OK ? OK : err_set(e, s, "%s", err_text(&why, s));
}

void client_oauth2_forget(struct client_oauth2 *o)
{
	lock_take(&o->lock);
	free(o->token);
	o->token = NULL;
	lock_release(&o->lock);
}
