/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of issuers. One thread fetches them at the start, every KEYS_NS, and when a token names an
 * unknown key, but then at most every AGAIN_NS. Keys are used until new ones were fetched. They
 * come from jwks_file, from jwks_url, or from the address in the issuer's
 * /.well-known/openid-configuration.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/internal.h"
#include "fetch/fetch.h"

#include <openssl/evp.h>

#define KEYS_NS (600 * NS_PER_SEC)
#define AGAIN_NS (10 * NS_PER_SEC)
#define FETCH_NS (10 * NS_PER_SEC)
#define KEYS_BYTES_MAX ((size_t)256 << 10)
#define WELL_KNOWN "/.well-known/openid-configuration"

static enum status get(const char *url, int wake_fd, struct buf *out, struct err *e)
{
	struct fetch *f = NULL;
	int http_status = 0;
	enum status s = fetch_new(&(struct fetch_config){ .follow_redirects = false }, &f, e);
	if (s != OK)
		return s;
	fetch_limit(f, KEYS_BYTES_MAX);
	fetch_interrupt(f, wake_fd, 0);
	s = fetch_get(f, url, FETCH_NS, &http_status, out, e);
	fetch_free(f);
	if (s == OK && http_status != 200)
		s = err_set(e, E_UNAVAILABLE, "%.150s: HTTP status %d", url, http_status);
	return s;
}

/* Finds jwks_uri in the issuer's document, which must name this issuer. */
static enum status discover(
	const struct auth_issuer *i, int wake_fd, char *out, size_t out_size, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf json;
	const struct conf_node *root = NULL;
	struct str base = str_of(i->issuer);
	arena_init(&a, 1 << 20);
	buf_init(&json, KEYS_BYTES_MAX);
	while (str_ends(base, STR("/")))
		base.len--;
	snprintf(out, out_size, "%.*s" WELL_KNOWN, STR_ARG(base));
	enum status s = get(out, wake_fd, &json, e);
	if (s == OK)
		s = conf_parse(buf_view(&json), &a, &root, e);
	if (s != OK)
		return s;
	const struct conf_node *issuer = conf_find(root, "issuer");
	const struct conf_node *url = conf_find(root, "jwks_uri");
	if (!issuer || issuer->kind != CONF_TEXT || !str_eq(issuer->text, str_of(i->issuer)))
		return err_set(e, E_INVALID, "%.150s is another issuer's", out);
	if (!url || url->kind != CONF_TEXT || url->text.len >= out_size)
		return err_set(e, E_INVALID, "%.150s has no jwks_uri", out);
	snprintf(out, out_size, "%.*s", STR_ARG(url->text));
	return OK;
}

static enum status fetch_keys(
	const struct auth_issuer *i, int wake_fd, struct auth_keys *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf json;
	char url[2048];
	enum status s = OK;
	buf_init(&json, KEYS_BYTES_MAX);
	if (i->jwks_file) {
		s = os_read_own(i->jwks_file, &json, NULL, e);
	} else {
		snprintf(url, sizeof(url), "%s", i->jwks_url ? i->jwks_url : "");
		if (!i->jwks_url)
			s = discover(i, wake_fd, url, sizeof(url), e);
		if (s == OK)
			s = get(url, wake_fd, &json, e);
	}
	return s == OK ? auth_keys_parse(buf_view(&json), out, e) : s;
}

void auth_issuer_refresh(struct auth_issuer *i, int wake_fd, auth_told_fn *told)
{
	struct auth_keys fresh = { 0 };
	struct err e = { 0 };
	int64_t now = clock_monotonic_ns();
	lock_take(&i->lock);
	bool due = !i->tried_ns || now - i->tried_ns >= (i->failed ? AGAIN_NS : KEYS_NS) ||
		   (i->wanted && now - i->tried_ns >= AGAIN_NS);
	if (due)
		i->tried_ns = now;
	lock_release(&i->lock);
	if (!due)
		return;
	enum status s = fetch_keys(i, wake_fd, &fresh, &e);
	lock_take(&i->lock);
	bool tell = s != OK && !i->failed && s != E_CANCELED;
	i->failed = s != OK;
	i->wanted = false;
	if (s == OK) {
		struct auth_keys old = i->keys;
		i->keys = fresh;
		fresh = old;
	}
	lock_release(&i->lock);
	auth_keys_free(&fresh);
	if (tell && told)
		told(i->issuer, 0, err_text(&e, s));
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool has_same_keys(const struct auth_issuer *a, const struct auth_issuer *b)
{
	return same_text(a->issuer, b->issuer) && same_text(a->jwks_file, b->jwks_file) &&
	       same_text(a->jwks_url, b->jwks_url);
}

/* Copies keys to a new configuration. Without memory for that, they are fetched again. */
static void copy_keys(struct auth_issuer *to, struct auth_issuer *from)
{
	lock_take(&from->lock);
	for (size_t i = 0; i < from->keys.v.len; i++) {
		struct auth_key k = from->keys.v.v[i];
		if (VEC_PUSH(&to->keys.v, k))
			(void)EVP_PKEY_up_ref(k.key);
	}
	lock_release(&from->lock);
}

void auth_issuers_inherit(struct auth_config *to, const struct auth_config *from)
{
	for (uint32_t i = 0; i < to->issuer_count; i++)
		for (uint32_t k = 0; k < from->issuer_count; k++)
			if (to->issuers[i]->keys.v.len == 0 &&
				has_same_keys(to->issuers[i], from->issuers[k]))
				copy_keys(to->issuers[i], from->issuers[k]);
}

enum status auth_issuer_check(struct auth_issuer *i, struct str token, struct auth_caller *out,
	int64_t *out_until_ns, struct err *e)
{
	int64_t now_s = clock_realtime_ns() / NS_PER_SEC, until_s = 0;
	lock_take(&i->lock);
	enum status s =
		i->keys.v.len == 0 ? err_set(e, E_UNAVAILABLE, "%.150s: no keys", i->issuer) : OK;
	if (s == OK)
		s = auth_jwt_check(i, &i->keys, token, now_s, out, &until_s, e);
	if (s == E_NOTFOUND) {
		i->wanted = true;
		e->status = s = E_UNAUTHENTICATED;
	}
	lock_release(&i->lock);
	if (s == OK)
		*out_until_ns = clock_monotonic_ns() + (until_s - now_s) * NS_PER_SEC;
	return s;
}
