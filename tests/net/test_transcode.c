/* SPDX-License-Identifier: Apache-2.0 */
/* One handler that echoes protobuf, asked in JSON: as Connect and as REST. */
#include "test.h"

#include "net/state.h"
#include "net/transcode.h"

#include "peer.h"

/* clang-format off */
static const struct { const char *name, *head, *body, *status, *end; } cases[] = {
	{ "connect", "POST /t.Test/Json HTTP/1.1\r\ncontent-type: application/json\r\n", "{\"label_name\":\"a\",\"count\":5}", "200", "{\"labelName\":\"a\",\"count\":\"5\"}" },
	{ "charset", "POST /t.Test/Json HTTP/1.1\r\ncontent-type: application/json; charset=utf-8\r\n", "{}", "200", "\r\n\r\n{}" },
	{ "unknown field", "POST /t.Test/Json HTTP/1.1\r\ncontent-type: application/json\r\n", "{\"x\":{\"y\":[1]},\"count\":5}", "200", "\"count\":\"5\"}" },
	{ "no JSON", "POST /t.Test/Json HTTP/1.1\r\ncontent-type: application/json\r\n", "x", "400", "{\"code\":\"invalid_argument\",\"message\":\"an object is expected at byte 0 of the JSON\"}" },
	{ "no tables", "POST /t.Test/Echo HTTP/1.1\r\ncontent-type: application/json\r\n", "{}", "415", "UNSUPPORTED\"}\n" },
	{ "unknown method of connect", "POST /t.Test/No HTTP/1.1\r\ncontent-type: application/json\r\nconnect-protocol-version: 1\r\n", "{}", "501", "{\"code\":\"unimplemented\",\"message\":\"unknown method /t.Test/No\"}" },
	{ "rest", "GET /rest/job/values?match=a%2Cb&match=c&unknown=1&count=-3 HTTP/1.1\r\n", "", "200", "{\"labelName\":\"job\",\"count\":\"-3\",\"match\":[\"a,b\",\"c\"]}" },
	{ "rest, zeros", "GET /rest/job/values HTTP/1.1\r\n", "", "200", "{\"labelName\":\"job\",\"count\":\"0\",\"match\":[]}" },
	{ "rest, path decoded", "GET /rest/a%20b/values HTTP/1.1\r\n", "", "200", "{\"labelName\":\"a b\",\"count\":\"0\",\"match\":[]}" },
	{ "rest, given twice", "GET /rest/job/values?labelName=x HTTP/1.1\r\n", "", "400", "{\"code\":3,\"message\":\"label_name: given twice\",\"details\":[]}" },
	{ "rest, bad number", "GET /rest/job/values?count=x HTTP/1.1\r\n", "", "400", "{\"code\":3,\"message\":\"count: \\\"x\\\" is not a 64 bit number\",\"details\":[]}" },
	{ "rest, bad escape", "GET /rest/job/values?count=%zz HTTP/1.1\r\n", "", "400", "the parameter count has a bad %-escape: \\\"%zz\\\"\",\"details\":[]}" },
	{ "rest, handler fails", "GET /rest/fail HTTP/1.1\r\n", "", "429", "{\"code\":8,\"message\":\"too much of \\\"it\\\" \xC3\xA9\",\"details\":[]}" },
	{ "rest, post", "POST /rest/json HTTP/1.1\r\ncontent-type: application/json\r\n", "{\"count\":\"7\",\"zzz\":[]}", "200", "{\"labelName\":\"\",\"count\":\"7\",\"match\":[]}" },
	{ "rest, post without a type", "POST /rest/json HTTP/1.1\r\n", "", "200", "{\"labelName\":\"\",\"count\":\"0\",\"match\":[]}" },
	{ "rest, post with more", "POST /rest/json?count=9 HTTP/1.1\r\n", "{\"count\":\"7\"}", "200", "\"count\":\"7\",\"match\":[]}" },
	{ "rest, post, no JSON", "POST /rest/json HTTP/1.1\r\n", "{\"count\":", "400", "\"details\":[]}" },
	{ "rest, not what its tables say", "GET /rest/torn HTTP/1.1\r\n", "", "500", "\"details\":[]}" },
	{ "rest, no such path", "GET /rest/job HTTP/1.1\r\n", "", "404", "{\"error\":\"nothing at /rest/job\",\"code\":\"NOTFOUND\"}\n" },
	{ "rest, slash behind", "GET /rest/job/values/ HTTP/1.1\r\n", "", "404", "NOTFOUND\"}\n" },
	{ "rest, empty field", "GET /rest//values HTTP/1.1\r\n", "", "404", "NOTFOUND\"}\n" },
	{ "rest, other method", "POST /rest/job/values HTTP/1.1\r\n", "", "405", "UNSUPPORTED\"}\n" },
};
/* clang-format on */

static void speaks_json(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf request;
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&request, 1 << 20);
		buf_init(&out, 1 << 20);
		buf_printf(&request,
			"%shost: h\r\nconnection: close\r\ncontent-length: %zu\r\n\r\n%s", c->head,
			strlen(c->body), c->body);
		peer_exchange(s, request.data, request.len, &out);
		bool fits = str_eq(str_sub(buf_view(&out), 9, 3), str_of(c->status)) &&
			    str_ends(buf_view(&out), str_of(c->end));
		if (!fits)
			print_error("%.*s\n", STR_ARG(buf_view(&out)));
		CHECK_CASE(c, fits);
		CHECK_CASE(c, memmem(out.data, out.len, "content-type: application/json\r\n", 32));
	}
	net_server_stop(s);
}

static void limits_parameters(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	for (int count = 999; count <= 1000; count++) { /* one is in the path */
		CLEANUP(buf_deinit) struct buf request;
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&request, 1 << 20);
		buf_init(&out, 1 << 20);
		buf_cstr(&request, "GET /rest/job/values?");
		for (int i = 0; i < count; i++)
			buf_cstr(&request, i ? "&match=a" : "match=a");
		buf_cstr(&request, " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
		peer_exchange(s, request.data, request.len, &out);
		bool few = count < 1000;
		CHECK(str_starts(buf_view(&out), few ? STR("HTTP/1.1 200") : STR("HTTP/1.1 413")));
		CHECK(few || memmem(out.data, out.len, "more than 1000 parameters", 25));
	}
	net_server_stop(s);
}

static void fits_patterns(void **state)
{
	(void)state;
	static const struct {
		const char *name, *path;
		bool fits;
		size_t count;
	} fits[] = {
		{ "/a/{x}/b", "/a/1/b", true, 1 },
		{ "/a/{x}/{y}", "/a/1/2", true, 2 },
		{ "/a", "/a", true, 0 },
		{ "/a", "/a/b", false, 0 },
		{ "/a/{x}", "/a", false, 0 },
		{ "/a/{x}", "/a/", false, 0 },
		{ "/a/{x}/b", "/a/1/c", false, 0 },
		{ "/{x}", "/", false, 0 },
	};
	FOR_EACH_CASE (c, fits) {
		struct pb_param fields[NET_REST_FIELDS_MAX];
		size_t count = 0;
		CHECK_CASE(c, net_rest_fits(c->name, str_of(c->path), fields, &count) == c->fits);
		CHECK_CASE(c, !c->fits || count == c->count);
	}
}

TEST_MAIN(cmocka_unit_test(speaks_json), cmocka_unit_test(limits_parameters),
	cmocka_unit_test(fits_patterns))
