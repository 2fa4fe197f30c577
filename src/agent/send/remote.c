/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/remote.h"

#include "os/os.h"

#include <stdio.h>

#define HEADER_NAME_MAX 128
#define SCHEME "Bearer "

static bool is_given(const char *text)
{
	return text && text[0];
}

static enum status set_token(struct net_client *client, struct str token, struct err *e)
{
	char value[sizeof(SCHEME) + REMOTE_TOKEN_BYTES_MAX];
	token = str_trim(token);
	if (token.len == 0 || token.len > REMOTE_TOKEN_BYTES_MAX)
		return err_set(e, E_INVALID, "bearer token of %zu bytes", token.len);
	for (size_t i = 0; i < token.len; i++)
		if (token.p[i] <= ' ' || token.p[i] > '~')
			return err_set(
				e, E_INVALID, "bearer token: byte %zu is no visible character", i);
	snprintf(value, sizeof(value), SCHEME "%.*s", STR_ARG(token));
	return net_client_header(client, "authorization", value, e);
}

static enum status set_header(struct net_client *client, const char *text, struct err *e)
{
	static const char *const own[] = { "content-type", "te", "user-agent", "host" };
	char name[HEADER_NAME_MAX];
	size_t len = strcspn(text, "=");
	if (len == 0 || text[len] != '=' || len >= sizeof(name))
		return err_set(e, E_INVALID, "header '%.80s' is not NAME=VALUE", text);
	for (size_t i = 0; i < len; i++) /* HTTP/2 knows no capital letters */
		name[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 32 : text[i]);
	name[len] = 0;
	for (size_t i = 0; i < ARRAY_COUNT(own); i++)
		if (strcmp(name, own[i]) == 0 || strncmp(name, "grpc-", 5) == 0)
			return err_set(e, E_INVALID, "header %s is set by gRPC itself", name);
	return net_client_header(client, name, text + len + 1, e);
}

static enum status set_up(const struct remote_config *c, struct net_client *client, struct err *e)
{
	if (c->trust_anybody)
		net_client_trust_anybody(client);
	else if (is_given(c->pinned_cert))
		net_client_pin(client, c->pinned_cert);
	else if (is_given(c->ca_file))
		net_client_trust(client, c->ca_file);
	if (is_given(c->client_cert))
		net_client_identity(client, c->client_cert, c->client_key);
	enum status s = OK;
	for (const char *const *h = c->headers; s == OK && h && *h; h++)
		s = set_header(client, *h, e);
	if (s == OK && is_given(c->token))
		s = set_token(client, str_of(c->token), e);
	return s;
}

enum status remote_open(const struct remote_config *c, struct net_client **out, struct err *e)
{
	struct net_client *client = NULL;
	enum status s = net_client_new(c->address, &client, e);
	if (s == OK)
		s = set_up(c, client, e);
	if (s != OK) {
		net_client_free(client);
		return s;
	}
	*out = client;
	return OK;
}

enum status remote_refresh(const struct remote_config *c, struct net_client *client, struct err *e)
{
	if (!is_given(c->token_file))
		return OK;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, REMOTE_TOKEN_BYTES_MAX + 256);
	enum status s = os_read_own(c->token_file, &text, NULL, e);
	if (s == OK)
		s = set_token(client, buf_view(&text), e);
	return s == OK ? OK : err_prefix(e, s, "token file");
}
