/* SPDX-License-Identifier: Apache-2.0 */
/* How: each source of keys is a function that fills the session and says whether it found keys;
 * libcurl signs (fetch_sign()). To take a role, a request to STS gets other keys. */
#include "scrape/discover/aws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

#define METADATA "http://169.254.169.254"
#define CONTAINER "http://169.254.170.2" /* ECS */
#define STS_VERSION "2011-06-15"
#define SHOWN_BYTES 200

/* An environment variable; NULL: not set, or empty. */
static const char *variable(const char *name)
{
	const char *v = getenv(name);
	return v && v[0] ? v : NULL;
}

static bool keep(char *to, size_t size, struct str v)
{
	if (v.len >= size)
		return false;
	memcpy(to, v.p, v.len);
	to[v.len] = 0;
	return true;
}

static enum status keep_keys(
	struct aws_session *x, struct str id, struct str secret, struct str token, struct err *e)
{
	if (!id.len || !secret.len)
		return err_set(e, E_INVALID, "a key without its secret, or the other way round");
	return keep(x->key_id, sizeof(x->key_id), id) &&
			       keep(x->secret, sizeof(x->secret), secret) &&
			       keep(x->token, sizeof(x->token), token)
		       ? OK
		       : err_set(e, E_LIMIT, "a key or token that is too long");
}

static void wipe(struct buf *b)
{
	if (b->len)
		explicit_bzero(b->data, b->len);
}

/* ---- the instance's metadata ---- */

static enum status no_piece(void *ctx, struct str *out, bool *out_end, struct err *e)
{
	(void)ctx, (void)e;
	*out = STR("");
	*out_end = true;
	return OK;
}

static enum status metadata_text(
	struct aws_session *x, const char *path, bool put, struct buf *out, struct err *e)
{
	int code = 0;
	enum status s = put ? fetch_put(x->metadata, path, 0, no_piece, NULL,
				      AWS_METADATA_TIMEOUT_NS, &code, out, e)
			    : fetch_get(x->metadata, path, AWS_METADATA_TIMEOUT_NS, &code, out, e);
	if (s == OK && code != 200)
		s = err_set(e, E_UNAVAILABLE, "HTTP status %d", code);
	buf_u8(out, 0);
	if (s == OK)
		s = buf_status(out);
	return s;
}

/* Gets the token that version 2 of the metadata service requires as a header of all further
 * requests. */
static enum status metadata_open(struct aws_session *x, struct err *e)
{
	static const struct client_tls no_tls = { 0 };
	static const struct client_proxy no_proxy = { 0 };
	CLEANUP(buf_deinit) struct buf token;
	const char *at = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	buf_init(&token, AWS_TOKEN_BYTES);
	if (x->metadata)
		return OK;
	enum status s =
		client_fetch(&no_tls, &no_proxy, false, at ? at : METADATA, &x->metadata, e);
	if (s != OK)
		return s;
	fetch_interrupt(x->metadata, x->run->wake_fd, 0);
	fetch_limit(x->metadata, AWS_METADATA_BYTES_MAX);
	s = fetch_header(x->metadata, "X-aws-ec2-metadata-token-ttl-seconds", "300", e);
	if (s == OK)
		s = metadata_text(x, "/latest/api/token", true, &token, e);
	if (s == OK)
		s = fetch_header(
			x->metadata, "X-aws-ec2-metadata-token", (const char *)token.data, e);
	if (s == OK)
		s = fetch_header(x->metadata, "X-aws-ec2-metadata-token-ttl-seconds", NULL, e);
	return s;
}

static enum status metadata_get(
	struct aws_session *x, const char *path, struct buf *out, struct err *e)
{
	enum status s = metadata_open(x, e);
	if (s == OK)
		s = metadata_text(x, path, false, out, e);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "metadata of this instance");
}

static enum status keys_of_json(struct aws_session *x, struct str json, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	arena_init(&a, 16 * AWS_METADATA_BYTES_MAX);
	enum status s = conf_json_parse(json, NULL, &a, &root, e);
	return s == OK ? keep_keys(x, conf_text_at(root, "AccessKeyId"),
				 conf_text_at(root, "SecretAccessKey"), conf_text_at(root, "Token"),
				 e)
		       : s;
}

#define ROLES "/latest/meta-data/iam/security-credentials/"

static enum status keys_of_instance(struct aws_session *x, struct err *e)
{
	CLEANUP(buf_deinit) struct buf role, json;
	char path[512];
	buf_init(&role, AWS_KEY_BYTES);
	buf_init(&json, AWS_METADATA_BYTES_MAX);
	enum status s = metadata_get(x, ROLES, &role, e);
	if (s != OK)
		return s;
	struct str name = str_of((const char *)role.data);
	name = str_sub(name, 0, str_index(name, '\n'));
	snprintf(path, sizeof(path), ROLES "%.*s", STR_ARG(name));
	s = metadata_get(x, path, &json, e);
	if (s == OK)
		s = keys_of_json(x, str_of((const char *)json.data), e);
	wipe(&json);
	return s;
}

/* ---- the container ---- */

static enum status present_container(struct fetch *f, struct err *e)
{
	CLEANUP(buf_deinit) struct buf token;
	buf_init(&token, AWS_TOKEN_BYTES);
	enum status s = client_secret(variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
		variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), &token, e);
	buf_u8(&token, 0);
	if (s == OK)
		s = buf_status(&token);
	if (s == OK && token.len > 1)
		s = fetch_header(f, "Authorization", (const char *)token.data, e);
	wipe(&token);
	return s;
}

/* Gets keys from the service for EKS pod identities and ECS tasks. */
static enum status keys_of_container(struct aws_session *x, const char *url, struct err *e)
{
	static const struct client_tls no_tls = { 0 };
	static const struct client_proxy no_proxy = { 0 };
	CLEANUP(buf_deinit) struct buf json;
	struct fetch *f = NULL;
	int code = 0;
	buf_init(&json, AWS_METADATA_BYTES_MAX);
	enum status s = client_fetch(&no_tls, &no_proxy, false, NULL, &f, e);
	if (s == OK) {
		fetch_interrupt(f, x->run->wake_fd, 0);
		fetch_limit(f, AWS_METADATA_BYTES_MAX);
		s = present_container(f, e);
	}
	if (s == OK)
		s = fetch_get(f, url, AWS_METADATA_TIMEOUT_NS, &code, &json, e);
	if (s == OK && code != 200)
		s = err_set(e, E_UNAVAILABLE, "HTTP status %d", code);
	if (s == OK)
		s = keys_of_json(x, buf_view(&json), e);
	fetch_free(f);
	wipe(&json);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "keys of this container");
}

/* ---- the file of credentials ---- */

struct profile_keys {
	struct str id, secret, token;
};

static struct profile_keys profile_of(struct str file, const char *profile)
{
	struct profile_keys k = { STR(""), STR(""), STR("") };
	struct str line;
	bool here = false;
	while (str_split(&file, '\n', &line)) {
		line = str_trim(line);
		if (line.len && line.p[0] == '[') {
			struct str name = str_sub(line, 1, str_index(line, ']') - 1);
			here = str_eq(str_trim(name), str_of(profile));
			continue;
		}
		size_t at = str_index(line, '=');
		struct str key = str_trim(str_sub(line, 0, at));
		struct str value = str_trim(str_sub(line, at + 1, line.len));
		if (!here || at == line.len)
			continue;
		if (str_eq(key, STR("aws_access_key_id")))
			k.id = value;
		else if (str_eq(key, STR("aws_secret_access_key")))
			k.secret = value;
		else if (str_eq(key, STR("aws_session_token")))
			k.token = value;
	}
	return k;
}

/* *Reads keys from the credentials file. *out_found: it has the profile, or the profile was named
 * in the settings. */
static enum status keys_of_file(struct aws_session *x, bool *out_found, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes;
	char path[1024] = "";
	struct err why = { 0 };
	const char *file = variable("AWS_SHARED_CREDENTIALS_FILE"), *home = variable("HOME");
	const char *asked = x->config->profile ? x->config->profile : variable("AWS_PROFILE");
	*out_found = asked;
	snprintf(path, sizeof(path), "%s%s",
		file   ? file
		: home ? home
		       : "",
		file ? "" : "/.aws/credentials");
	buf_init(&bytes, AWS_FILE_BYTES_MAX);
	enum status s = os_read_own(path, &bytes, NULL, &why);
	if (s != OK)
		return asked || file ? err_set(e, s, "%s", err_text(&why, s)) : OK;
	struct profile_keys k = profile_of(buf_view(&bytes), asked ? asked : "default");
	if (k.id.len || asked) {
		*out_found = true;
		s = keep_keys(x, k.id, k.secret, k.token, e);
		if (s != OK)
			s = err_prefix(e, s, "%s: profile \"%s\"", path, asked ? asked : "default");
	}
	wipe(&bytes);
	return s;
}

/* ---- roles ---- */

static void put(struct buf *form, const char *name, struct str value)
{
	if (!value.len)
		return;
	buf_printf(form, "&%s=", name);
	discover_put_escaped(form, value);
}

static enum status take_role(struct aws_session *x, const char *action, const char *role,
	struct str external_id, struct str identity, struct err *e)
{
	CLEANUP(buf_deinit) struct buf form;
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	const char *at = variable("AWS_ENDPOINT_URL_STS");
	char url[AWS_URL_BYTES], path[100];
	buf_init(&form, 8 * AWS_TOKEN_BYTES);
	arena_init(&a, 16 * AWS_METADATA_BYTES_MAX);
	aws_url(x, "sts", url);
	snprintf(path, sizeof(path), "%sResult.Credentials", action);
	buf_printf(&form, "Action=%s&Version=" STS_VERSION "&RoleSessionName=firn", action);
	put(&form, "RoleArn", str_of(role));
	put(&form, "ExternalId", external_id);
	put(&form, "WebIdentityToken", identity);
	enum status s = buf_status(&form);
	if (s == OK)
		s = aws_ask(x, identity.len ? NULL : "sts", at ? at : url, buf_view(&form), &a,
			&root, e);
	wipe(&form);
	const struct conf_node *k = s == OK ? conf_node_at(root, path) : NULL;
	if (s == OK)
		s = keep_keys(x, conf_text_at(k, "AccessKeyId"), conf_text_at(k, "SecretAccessKey"),
			conf_text_at(k, "SessionToken"), e);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "role %s", role);
}

/* Gets keys for a web identity token, as pods of EKS have it. */
static enum status keys_of_identity(
	struct aws_session *x, const char *file, const char *role, struct err *e)
{
	CLEANUP(buf_deinit) struct buf identity;
	buf_init(&identity, AWS_TOKEN_BYTES);
	enum status s = os_read_own(file, &identity, NULL, e);
	if (s == OK)
		s = take_role(x, "AssumeRoleWithWebIdentity", role, STR(""),
			str_trim(buf_view(&identity)), e);
	wipe(&identity);
	return s;
}

/* ---- which of them ---- */

static enum status find_keys(struct aws_session *x, struct err *e)
{
	const struct aws_config *c = x->config;
	const char *id = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");
	const char *token = variable("AWS_SESSION_TOKEN");
	const char *identity = variable("AWS_WEB_IDENTITY_TOKEN_FILE");
	const char *role = variable("AWS_ROLE_ARN");
	const char *relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *container = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	char url[FETCH_URL_MAX];
	bool found = false;
	if (c->access_key)
		return keep_keys(x, str_of(c->access_key), str_of(c->secret_key), STR(""), e);
	if (id && secret && !c->profile)
		return keep_keys(x, str_of(id), str_of(secret), str_of(token ? token : ""), e);
	if (identity && role && !c->profile)
		return keys_of_identity(x, identity, role, e);
	enum status s = keys_of_file(x, &found, e);
	if (s != OK || found)
		return s;
	if (relative) {
		snprintf(url, sizeof(url), CONTAINER "%s", relative);
		container = url;
	}
	return container ? keys_of_container(x, container, e) : keys_of_instance(x, e);
}

static enum status find_region(struct aws_session *x, struct err *e)
{
	CLEANUP(buf_deinit) struct buf text;
	const char *given = x->config->region ? x->config->region : variable("AWS_REGION");
	enum status s = OK;
	buf_init(&text, AWS_REGION_BYTES);
	if (!given)
		given = variable("AWS_DEFAULT_REGION");
	if (!given) {
		s = metadata_get(x, "/latest/meta-data/placement/region", &text, e);
		given = s == OK ? (const char *)text.data : NULL;
	}
	if (s != OK)
		return s == E_CANCELED ? s : err_prefix(e, s, "no region is given");
	for (const char *p = given; *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", *p))
			return err_set(e, E_INVALID, "\"%.63s\" is no region", given);
	return keep(x->region, sizeof(x->region), str_of(given))
		       ? OK
		       : err_set(e, E_INVALID, "\"%.63s…\" is no region", given);
}

enum status aws_session_open(const struct aws_config *c, const struct client_config *client,
	const struct discover_run *run, struct aws_session *out, struct err *e)
{
	*out = (struct aws_session){ .config = c, .run = run };
	enum status s = client_open(client, NULL, &out->fetch, e);
	if (s == OK)
		s = find_region(out, e);
	if (s == OK)
		s = find_keys(out, e);
	if (s == OK && c->role_arn)
		s = take_role(out, "AssumeRole", c->role_arn,
			str_of(c->external_id ? c->external_id : ""), STR(""), e);
	return s;
}

void aws_session_close(struct aws_session *x)
{
	fetch_free(x->fetch);
	fetch_free(x->metadata);
	explicit_bzero(x, sizeof(*x));
}

/* ---- requests ---- */

void aws_url(const struct aws_session *x, const char *service, char out[AWS_URL_BYTES])
{
	bool china = str_starts(str_of(x->region), STR("cn-"));
	snprintf(out, AWS_URL_BYTES, "https://%s.%s.amazonaws.com%s/", service, x->region,
		china ? ".cn" : "");
}

static enum status refused(int code, struct str body, struct arena *a, struct err *e)
{
	const struct conf_node *root = NULL, *why = NULL;
	struct err ignored = { 0 };
	if (conf_xml_parse(body, a, &root, &ignored) == OK) {
		why = conf_node_at(root, "Errors.Error");
		why = why ? why : conf_find(root, "Error");
	}
	struct str what = str_sub(conf_text_at(why, "Code"), 0, SHOWN_BYTES);
	struct str message = str_sub(conf_text_at(why, "Message"), 0, SHOWN_BYTES);
	return err_set(e, code == 401 || code == 403 ? E_DENIED : E_UNAVAILABLE,
		"HTTP status %d%s%.*s%s%.*s", code, what.len ? ": " : "", STR_ARG(what),
		message.len ? ": " : "", STR_ARG(message));
}

enum status aws_ask(struct aws_session *x, const char *service, const char *url, struct str form,
	struct arena *a, const struct conf_node **out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf body;
	char scope[AWS_REGION_BYTES + 40];
	const struct fetch_signature signature = { scope, x->key_id, x->secret };
	int code = 0;
	snprintf(scope, sizeof(scope), "aws:amz:%s:%s", x->region, service ? service : "");
	buf_init(&body, DISCOVER_ANSWER_MAX);
	fetch_limit(x->fetch, DISCOVER_ANSWER_MAX);
	fetch_interrupt(x->fetch, x->run->wake_fd, 0);
	fetch_sign(x->fetch, service ? &signature : NULL);
	enum status s = fetch_header(
		x->fetch, "X-Amz-Security-Token", service && x->token[0] ? x->token : NULL, e);
	if (s == OK)
		s = fetch_post(x->fetch, url, "application/x-www-form-urlencoded; charset=utf-8",
			form, DISCOVER_TIMEOUT_NS, &code, &body, e);
	fetch_sign(x->fetch, NULL);
	if (s != OK)
		return s;
	return code == 200 ? conf_xml_parse(buf_view(&body), a, out, e)
			   : refused(code, buf_view(&body), a, e);
}
