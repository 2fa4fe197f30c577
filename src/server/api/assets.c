/* SPDX-License-Identifier: Apache-2.0 */
/* The page and the pages of docs/ lie in the program, compressed. Files with a hash in their name
 * never change; for the others browsers ask each time whether the ETag has changed. */
#include "server/api/assets.h"
#include "codec/codec.h"
#include "server/api/api.h"

#include <stdio.h>

#define PLAIN_BYTES_MAX ((size_t)16 << 20)

#define PAGE_HEADERS                                                          \
	"content-security-policy: default-src 'self'; img-src 'self' data:; " \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "       \
	"object-src 'none'\r\n"                                               \
	"referrer-policy: no-referrer\r\n"                                    \
	"vary: accept-encoding\r\n"

void server_handle_asset(void *ctx, const struct net_request *r, struct net_response *out)
{
	const struct server_asset *a = (const struct server_asset *)ctx;
	bool gzip = http_list_has(net_header_find(r, "accept-encoding"), "gzip");
	snprintf(out->headers, sizeof(out->headers), "%setag: %s\r\ncache-control: %s\r\n%s",
		PAGE_HEADERS, a->etag,
		a->immutable ? "public, max-age=31536000, immutable" : "no-cache",
		gzip ? "content-encoding: gzip\r\n" : "");
	out->content_type = a->content_type;
	out->no_compress = true;
	if (http_list_has(net_header_find(r, "if-none-match"), a->etag)) {
		out->http_status = 304;
		return;
	}
	if (gzip) {
		buf_put(&out->body, a->gzip, a->gzip_len);
		return;
	}
	struct err e;
	CLEANUP(buf_deinit) struct buf plain;
	buf_init(&plain, PLAIN_BYTES_MAX);
	enum status s = codec_gunzip(a->gzip, a->gzip_len, &plain, &e);
	if (s == OK)
		buf_str(&out->body, buf_view(&plain));
	else
		net_fail(out, s, &e);
}

static void say(struct net_response *out, const char *text)
{
	snprintf(out->headers, sizeof(out->headers), "%scache-control: no-cache\r\n", PAGE_HEADERS);
	out->content_type = "text/html; charset=utf-8";
	buf_printf(&out->body,
		"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>firn</title>"
		"<p>%s</html>\n",
		text);
}

void server_handle_no_page(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	say(out, "This firn was built without its page: build ui/ (npm ci, npm run build) and then "
		 "firn "
		 "again. The API works: <a href=\"/api/types\">/api/types</a>.");
}

void server_handle_no_docs(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	say(out, "This firn was built without lowdown, which makes the pages of docs/. They are in "
		 "the "
		 "folder docs of its source.");
}

void server_handle_docs(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	/* Relative: firn may be below a prefix that a proxy removes. */
	snprintf(out->headers, sizeof(out->headers),
		"location: docs/\r\ncache-control: no-cache\r\n");
	out->http_status = 302;
}
