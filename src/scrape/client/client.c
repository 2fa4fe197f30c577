/* SPDX-License-Identifier: Apache-2.0 */
/* How: tables of keys for the file; for a request, one Authorization header, made in the configured
 * way. Secrets are in buffers that are wiped. */
#include "scrape/client/client.h"

#include <string.h>

#include "http/http.h"

/* ---- the file ---- */

#define C(member) offsetof(struct client_config, member)

enum status client_read_basic(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "username", conf_field_text, C(username), NULL },
		{ "username_file", conf_field_text, C(username_file), NULL },
		{ "password", conf_field_text, C(password), NULL },
		{ "password_file", conf_field_text, C(password_file), NULL },
		{ 0 },
	};
	return conf_read_map(x->value, fields, CONF_AT(base, f, struct client_config), e);
}

enum status client_read_authorization(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "type", conf_field_text, C(auth_type), NULL },
		{ "credentials", conf_field_text, C(credentials), NULL },
		{ "credentials_file", conf_field_text, C(credentials_file), NULL },
		{ 0 },
	};
	return conf_read_map(x->value, fields, CONF_AT(base, f, struct client_config), e);
}

/* {NAME: {values: [a, b]}} */
enum status client_read_headers(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	struct client_config *c = CONF_AT(base, f, struct client_config);
	if (x->value->kind != CONF_MAP)
		return conf_wrong(e, x->value, "http_headers must be a mapping");
	for (uint32_t i = 0; i < x->value->count; i++) {
		const struct conf_node *values = conf_find(x->value->v[i].value, "values");
		if (!values || values->kind != CONF_LIST || values->count != 1 ||
			values->v[0].value->kind != CONF_TEXT)
			return conf_wrong(e, x->value->v[i].value,
				"a header needs values: with one text in the list");
		if (c->header_count == ARRAY_COUNT(c->headers))
			return conf_wrong(
				e, x->value, "more than %zu headers", ARRAY_COUNT(c->headers));
		c->headers[c->header_count].name = x->value->v[i].key.p;
		c->headers[c->header_count++].value = values->v[0].value->text.p;
	}
	return OK;
}

enum status client_check(const struct client_config *c, const struct conf_node *n, struct err *e)
{
	bool has_basic = c->username || c->username_file;
	bool has_token = c->credentials || c->credentials_file;
	if (has_basic + has_token + (c->oauth2 != NULL) > 1)
		return conf_wrong(e, n, "basic_auth, a token, oauth2: one of them is enough");
	if ((c->password && c->password_file) || (c->credentials && c->credentials_file))
		return conf_wrong(e, n, "a secret and a file of it: one of them is enough");
	return c->oauth2 ? client_oauth2_check(c->oauth2, n, e) : OK;
}

void client_deinit(struct client_config *c)
{
	client_oauth2_free(c->oauth2);
	c->oauth2 = NULL;
}

/* ---- calls ---- */

enum status client_open(
	const struct client_config *c, const char *address, struct fetch **out, struct err *e)
{
	enum status s = client_fetch(&c->tls, &c->proxy, c->follow, address, out, e);
	for (uint32_t i = 0; s == OK && i < c->header_count; i++)
		s = fetch_header(*out, c->headers[i].name, c->headers[i].value, e);
	return s;
}

static enum status basic_value(const struct client_config *c, struct buf *value, struct err *e)
{
	CLEANUP(buf_deinit) struct buf pair;
	buf_init(&pair, CLIENT_SECRET_BYTES_MAX);
	enum status s = client_secret(c->username, c->username_file, &pair, e);
	buf_u8(&pair, ':');
	if (s == OK)
		s = client_secret(c->password, c->password_file, &pair, e);
	buf_cstr(value, "Basic ");
	http_base64_encode(value, buf_view(&pair));
	if (s == OK && buf_status(&pair) != OK)
		s = err_set(e, E_LIMIT, "a secret is too long");
	if (pair.data)
		explicit_bzero(pair.data, pair.len);
	return s;
}

enum status client_present(
	const struct client_config *c, struct fetch *f, int wake_fd, struct err *e)
{
	CLEANUP(buf_deinit) struct buf value;
	enum status s = OK;
	buf_init(&value, 2 * CLIENT_SECRET_BYTES_MAX);
	if (c->username || c->username_file) {
		s = basic_value(c, &value, e);
	} else if (c->credentials || c->credentials_file) {
		buf_printf(&value, "%s ", c->auth_type ? c->auth_type : "Bearer");
		s = client_secret(c->credentials, c->credentials_file, &value, e);
	} else if (c->oauth2) {
		s = client_oauth2_token(c->oauth2, wake_fd, &value, e);
	} else {
		return OK;
	}
	buf_u8(&value, 0);
	if (s == OK && buf_status(&value) != OK)
		s = err_set(e, E_LIMIT, "a secret is too long");
	if (s == OK)
		s = fetch_header(f, "Authorization", (const char *)value.data, e);
	if (value.data)
		explicit_bzero(value.data, value.len);
	return s;
}

void client_refused(const struct client_config *c)
{
	if (c->oauth2)
		client_oauth2_forget(c->oauth2);
}
