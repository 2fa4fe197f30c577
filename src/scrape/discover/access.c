/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ways to an API server, in this order: the address in the configuration, with the keys of
 * any HTTP client; the current context of a kubeconfig file; the service account of the pod in
 * which this process runs. The second and third are read for each use, since tokens are replaced
 * within the hour.
 * Source: kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig.
 */
#include "scrape/discover/kubernetes.h"

#include <stdlib.h>
#include <string.h>

#include "http/http.h"
#include "os/os.h"

/* The member `what` of the element with this name in the list `list_key`. */
static const struct conf_node *named(
	const struct conf_node *root, const char *list_key, struct str name, const char *what)
{
	const struct conf_node *list = conf_find(root, list_key);
	for (uint32_t i = 0; list && list->kind == CONF_LIST && i < list->count; i++) {
		const struct conf_node *n = list->v[i].value, *is = conf_find(n, "name");
		if (is && is->kind == CONF_TEXT && str_eq(is->text, name))
			return conf_find(n, what);
	}
	return NULL;
}

static const char *text(const struct conf_node *n, const char *key)
{
	const struct conf_node *v = conf_find(n, key);
	return v && v->kind == CONF_TEXT && v->text.len ? v->text.p : NULL;
}

static enum status pem(const struct conf_node *n, const char *key, struct arena *a,
	const char **out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf plain;
	const char *data = text(n, key);
	buf_init(&plain, CONF_BYTES_MAX);
	if (!data)
		return OK;
	if (!http_base64_decode(&plain, str_of(data)))
		return err_set(e, E_INVALID, "%s is not base64", key);
	*out = arena_copy(a, plain.data, plain.len);
	if (plain.data)
		explicit_bzero(plain.data, plain.len);
	return *out ? OK : err_set(e, E_NOMEM, "kubeconfig");
}

static enum status take_user(
	const struct conf_node *user, struct arena *a, struct client_config *c, struct err *e)
{
	if (conf_find(user, "exec") || conf_find(user, "auth-provider"))
		return err_set(e, E_UNSUPPORTED,
			"its user gets a token from a program, which firn does not start: use a "
			"token, tokenFile or a certificate");
	c->credentials_file = text(user, "tokenFile");
	c->credentials = c->credentials_file ? NULL : text(user, "token");
	if (!c->credentials && !c->credentials_file) {
		c->username = text(user, "username");
		c->password = text(user, "password");
	}
	c->tls.cert_file = text(user, "client-certificate");
	c->tls.key_file = text(user, "client-key");
	enum status s = pem(user, "client-certificate-data", a, &c->tls.cert, e);
	return s == OK ? pem(user, "client-key-data", a, &c->tls.key, e) : s;
}

static enum status by_kubeconfig(
	const char *path, struct arena *a, struct kubernetes_access *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes;
	const struct conf_node *root = NULL;
	buf_init(&bytes, CONF_BYTES_MAX);
	enum status s = os_read_own(path, &bytes, NULL, e);
	if (s == OK)
		s = conf_parse(buf_view(&bytes), a, &root, e);
	if (s != OK)
		return s;
	const char *current = text(root, "current-context");
	const struct conf_node *context =
		named(root, "contexts", str_of(current ? current : ""), "context");
	const char *cluster_name = text(context, "cluster"), *user_name = text(context, "user");
	const struct conf_node *cluster =
		named(root, "clusters", str_of(cluster_name ? cluster_name : ""), "cluster");
	out->server = text(cluster, "server");
	if (!out->server)
		return err_set(e, E_INVALID, "its current-context names no cluster with a server");
	struct client_config *c = &out->as.client;
	const char *insecure = text(cluster, "insecure-skip-tls-verify");
	c->tls.insecure = insecure && strcmp(insecure, "true") == 0;
	c->tls.ca_file = text(cluster, "certificate-authority");
	c->proxy.url = text(cluster, "proxy-url");
	s = pem(cluster, "certificate-authority-data", a, &c->tls.ca, e);
	return s == OK ? take_user(named(root, "users", str_of(user_name ? user_name : ""), "user"),
				 a, c, e)
		       : s;
}

static enum status by_account(
	const char *account, struct arena *a, struct kubernetes_access *out, struct err *e)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	if (!host || !port)
		return err_set(e, E_UNAVAILABLE,
			"this is no pod of Kubernetes, and neither api_server nor kubeconfig_file "
			"says where it is");
	const char *address = discover_join(a, str_of(host), str_of(port));
	out->server = address ? arena_printf(a, "https://%s", address) : NULL;
	out->as.client.credentials_file = arena_printf(a, "%s/token", account);
	out->as.client.tls.ca_file = arena_printf(a, "%s/ca.crt", account);
	return out->server && out->as.client.credentials_file && out->as.client.tls.ca_file
		       ? OK
		       : err_set(e, E_NOMEM, "service account");
}

enum status kubernetes_access_find(
	const struct kubernetes *k, struct arena *a, struct kubernetes_access *out, struct err *e)
{
	*out = (struct kubernetes_access){ .as = k->base };
	if (k->api_server) {
		size_t len = strlen(k->api_server);
		out->server =
			arena_copy(a, k->api_server, len - (len && k->api_server[len - 1] == '/'));
		return out->server ? OK : err_set(e, E_NOMEM, "api_server");
	}
	out->as.client = (struct client_config){ .follow = true };
	if (!k->kubeconfig_file)
		return by_account(k->account, a, out, e);
	enum status s = by_kubeconfig(k->kubeconfig_file, a, out, e);
	return s == OK ? OK : err_prefix(e, s, "%s", k->kubeconfig_file);
}
