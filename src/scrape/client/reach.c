/* SPDX-License-Identifier: Apache-2.0 */
/* How: settings common to a server and the server that gives its tokens: TLS, proxies, secrets in
 * files. */
#include "scrape/client/client.h"

#include <string.h>

#include "os/os.h"

#define T(member) offsetof(struct client_tls, member)

enum status client_read_tls(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "ca_file", conf_field_text, T(ca_file), NULL },
		{ "cert_file", conf_field_text, T(cert_file), NULL },
		{ "key_file", conf_field_text, T(key_file), NULL },
		{ "ca", conf_field_text, T(ca), NULL },
		{ "cert", conf_field_text, T(cert), NULL },
		{ "key", conf_field_text, T(key), NULL },
		{ "insecure_skip_verify", conf_field_bool, T(insecure), NULL },
		{ "server_name", conf_field_refuse, 0,
			"the name of the address is checked, and no other" },
		{ "min_version", conf_field_ignore, 0, NULL },
		{ "max_version", conf_field_refuse, 0, "TLS 1.2 and all that is later is spoken" },
		{ 0 },
	};
	struct client_tls *t = CONF_AT(base, f, struct client_tls);
	enum status s = conf_read_map(x->value, fields, t, e);
	if (s != OK)
		return s;
	if ((t->ca && t->ca_file) || (t->cert && t->cert_file) || (t->key && t->key_file))
		return conf_wrong(e, x->value, "a PEM text and a file of it: one is enough");
	if ((!t->cert && !t->cert_file) != (!t->key && !t->key_file))
		return conf_wrong(e, x->value, "cert_file and key_file belong together");
	return OK;
}

/* Messages do not show the value, as it may contain a password. */
enum status client_read_proxy(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const char *const schemes[] = { "http://", "https://", "socks4://", "socks4a://",
		"socks5://", "socks5h://" };
	enum status s = conf_field_text(x, base, f, e);
	if (s != OK)
		return s;
	const char *url = *CONF_AT(base, f, const char *);
	bool known = !strstr(url, "://");
	for (size_t i = 0; i < ARRAY_COUNT(schemes); i++)
		known |= str_starts(str_of(url), str_of(schemes[i]));
	return known ? OK
		     : conf_wrong(e, x->value,
			       "%s must begin with http://, https://, socks4:// or socks5://",
			       f->name);
}

enum status client_fetch(const struct client_tls *tls, const struct client_proxy *proxy,
	bool follow, const char *address, struct fetch **out, struct err *e)
{
	const struct fetch_config config = { .address = address,
		.ca_file = tls->ca_file,
		.cert_file = tls->cert_file,
		.key_file = tls->key_file,
		.ca = tls->ca,
		.cert = tls->cert,
		.key = tls->key,
		.trust_anybody = tls->insecure,
		.proxy_url = proxy->url                ? proxy->url
			     : proxy->from_environment ? NULL
						       : "",
		.no_proxy = proxy->no_proxy,
		.follow_redirects = follow };
	return fetch_new(&config, out, e);
}

enum status client_secret(const char *given, const char *file, struct buf *out, struct err *e)
{
	if (!file) {
		buf_cstr(out, given ? given : "");
		return OK;
	}
	size_t at = out->len;
	enum status s = os_read_own(file, out, NULL, e);
	if (s != OK)
		return s;
	while (out->len > at && strchr(" \t\r\n", out->data[out->len - 1]))
		out->len--;
	return OK;
}
