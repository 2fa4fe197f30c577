/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "pyroscope/multipart.h"

#define TYPE "multipart/form-data; boundary=xYz"

struct bad {
	const char *name, *type, *body;
	enum status want;
};
static const struct bad bad[] = {
	{ "no boundary", "multipart/form-data", "", E_INVALID },
	{ "never", TYPE, "--other\r\n", E_INVALID },
	{ "head", TYPE, "--xYz\r\nContent-Disposition: form-data; name=a\r\n", E_INVALID },
	{ "body", TYPE, "--xYz\r\n\r\nhello", E_INVALID },
	{ "ends", TYPE, "--xYz", E_INVALID },
};

static void refuses(void **state)
{
	(void)state;
	struct parts p;
	struct err e;
	FOR_EACH_CASE (c, bad)
		CHECK_CASE(c, parts_read(str_of(c->type), str_of(c->body), &p, &e) == c->want);
	char type[128] = "multipart/form-data; boundary=";
	memset(type + strlen(type), 'b', 71);
	CHECK(parts_read(str_of(type), STR(""), &p, &e) == E_INVALID);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 65536);
	for (size_t i = 0; i <= PYROSCOPE_PARTS_MAX; i++)
		buf_cstr(&b, "--xYz\r\n\r\n\r\n");
	buf_cstr(&b, "--xYz--\r\n");
	CHECK(parts_read(STR(TYPE), buf_view(&b), &p, &e) == E_LIMIT);
}

/* As Go writes it: quoted boundary, names in quotes, other headers; as Java's okhttp: small heads.
 * A body may hold line ends, dashes, and what begins as the boundary does. */
static void reads_parts(void **state)
{
	(void)state;
	struct parts p;
	struct err e;
	const char *body =
		"preamble\r\n--xYz\r\n"
		"Content-Disposition: form-data; name=\"profile\"; filename=\"p;=.pb\"\r\n"
		"Content-Type: application/octet-stream\r\n\r\n"
		"a\r\n--xY\r\n\r\nz\r\n--xYz \t\r\n"
		"content-disposition:form-data;NAME=labels\r\n\r\n\r\n--xYz\r\n"
		"X: y\r\n\r\nz\r\n--xYz--\r\nepilogue";
	CHECK_OK(parts_read(STR("multipart/form-data; charset=x; boundary=\"xYz\""), str_of(body),
			 &p, &e),
		&e);
	CHECK(p.count == 3);
	CHECK_STR(p.v[0].name, "profile");
	CHECK_STR(p.v[0].body, "a\r\n--xY\r\n\r\nz");
	CHECK(parts_find(&p, "labels") == &p.v[1] && p.v[1].body.len == 0);
	CHECK_STR(p.v[2].name, "");
	CHECK(!parts_find(&p, "jfr"));
}

TEST_MAIN(cmocka_unit_test(refuses), cmocka_unit_test(reads_parts))
