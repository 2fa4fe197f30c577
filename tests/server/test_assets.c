/* SPDX-License-Identifier: Apache-2.0 */
/* The page's files, and that the table in this build is well formed. */
#include "test.h"

#include "codec/codec.h"

#include "ask.h"
#include "server/api/api.h"
#include "server/api/assets.h"

static void serves_an_asset(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf zip;
	buf_init(&zip, 10000);
	CHECK(codec_gzip("var a = 1;", 10, 6, &zip) == OK);
	struct server_asset asset = { "/assets/app-1a2b3c4d.js", "text/javascript; charset=utf-8",
		"\"abc\"", zip.data, zip.len, 1 };
	struct ask a;

	ask_init(&a, asset.path, "");
	ask_header(&a, "accept-encoding", "gzip, br");
	server_handle_asset(&asset, &a.r, &a.out);
	CHECK(str_eq(buf_view(&a.out.body), buf_view(&zip)));
	CHECK(strstr(a.out.headers, "content-encoding: gzip\r\n"));
	CHECK(strstr(a.out.headers, "max-age=31536000, immutable\r\n"));
	CHECK(strstr(a.out.headers, "etag: \"abc\"\r\n"));
	CHECK(strstr(a.out.headers, "content-security-policy: default-src 'self';"));
	CHECK(strstr(a.out.headers, "referrer-policy: no-referrer\r\n"));
	CHECK(a.out.no_compress);
	ask_deinit(&a);

	asset.immutable = 0;
	ask_init(&a, asset.path, "");
	server_handle_asset(&asset, &a.r, &a.out);
	CHECK_STR(buf_view(&a.out.body), "var a = 1;");
	CHECK(!strstr(a.out.headers, "content-encoding"));
	CHECK(strstr(a.out.headers, "cache-control: no-cache\r\n"));
	ask_deinit(&a);

	ask_init(&a, asset.path, "");
	ask_header(&a, "if-none-match", "\"x\", \"abc\"");
	server_handle_asset(&asset, &a.r, &a.out);
	assert_int_equal(a.out.http_status, 304);
	assert_int_equal(a.out.body.len, 0);
	ask_deinit(&a);
}

static void says_that_there_is_no_page(void **state)
{
	(void)state;
	struct ask a;
	ask_init(&a, "/", "");
	server_handle_no_page(NULL, &a.r, &a.out);
	CHECK(memmem(a.out.body.data, a.out.body.len, "without its page", 16));
	ask_deinit(&a);
}

static void leads_to_the_docs(void **state)
{
	(void)state;
	struct ask a;
	ask_init(&a, "/docs", "");
	server_handle_docs(NULL, &a.r, &a.out);
	assert_int_equal(a.out.http_status, 302);
	CHECK(strstr(a.out.headers, "location: docs/\r\n"));
	ask_deinit(&a);
	ask_init(&a, "/docs/", "");
	server_handle_no_docs(NULL, &a.r, &a.out);
	CHECK(memmem(a.out.body.data, a.out.body.len, "without lowdown", 15));
	ask_deinit(&a);
}

/* Returns how many bytes they take. */
static size_t check_table(const struct server_asset *assets)
{
	size_t bytes = 0;
	for (const struct server_asset *p = assets; p->path; p++) {
		CLEANUP(buf_deinit) struct buf plain;
		struct err e;
		buf_init(&plain, 1 << 24);
		CHECK(p->path[0] == '/' && p->etag[0] == '"' && p->content_type[0]);
		CHECK_OK(codec_gunzip(p->gzip, p->gzip_len, &plain, &e), &e);
		CHECK(plain.len > 0);
		bytes += p->gzip_len;
	}
	return bytes;
}

static void embeds_the_page(void **state)
{
	(void)state;
	if (check_table(server_assets) == 0)
		SKIP("this build has no page");
	assert_string_equal(server_assets[0].path, "/");
	CHECK(!server_assets[0].immutable);
}

static void embeds_the_docs(void **state)
{
	(void)state;
	size_t bytes = check_table(server_docs);
	if (bytes == 0)
		SKIP("this build has no docs: lowdown was not here");
	assert_string_equal(server_docs[0].path, "/docs/");
	CHECK(!server_docs[0].immutable);
	CHECK(bytes < 200000); /* what the pages may cost each program */
}

TEST_MAIN(cmocka_unit_test(serves_an_asset), cmocka_unit_test(says_that_there_is_no_page),
	cmocka_unit_test(leads_to_the_docs), cmocka_unit_test(embeds_the_page),
	cmocka_unit_test(embeds_the_docs))
