/* SPDX-License-Identifier: Apache-2.0 */
/* All steps over real sockets, to a server that keeps what came and answers what it is told to. */
#include "test.h"

#include "base/clock.h"
#include "pb/pb.h"
#include "upload/upload.h"

#define MINUTE (60 * NS_PER_SEC)
#define ID "abcdef0123"
#define SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"

static struct net_server *server;
static struct net_client *client;
static char address[64];
static struct buf came;       /* bytes */
static struct buf said;       /* the last question, and the info of an upload */
static int pieces;            /* that they came in */
static const char *put_where; /* NULL: by gRPC */
static enum status fails;
static char token_seen[64]; /* with the bytes */

static void refuse(struct net_response *out)
{
	struct err e = { 0 };
	net_fail(out, err_set(&e, fails, "as the server says"), &e);
}

static void serve_ask(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	buf_clear(&said);
	buf_str(&said, r->body);
	if (fails != OK) {
		refuse(out);
		return;
	}
	pb_put_bool(&out->body, 1, true);
	pb_put_str(&out->body, 2, STR("please"));
}

static void serve_begin(void *ctx, const struct net_request *r, struct net_response *out)
{
	char url[256];
	(void)ctx;
	buf_clear(&said);
	buf_str(&said, r->body);
	snprintf(url, sizeof(url), "http://%s%s", address, put_where ? put_where : "");
	size_t at = pb_begin(&out->body, 1);
	pb_put_str(&out->body, 2, STR("upload-1"));
	pb_put_u64(&out->body, 3, put_where ? 2 : 1);
	pb_put_str(&out->body, 4, str_of(url));
	pb_end(&out->body, at);
}

static void take(struct str message)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number == 1) {
			buf_clear(&said);
			buf_str(&said, f.bytes);
		} else if (f.number == 2) {
			buf_str(&came, f.bytes);
			pieces++;
		}
	}
	CHECK(!r.failed);
}

static void see_token(const struct net_request *r)
{
	snprintf(token_seen, sizeof(token_seen), "%.*s",
		STR_ARG(net_header_find(r, "authorization")));
}

static void serve_bytes(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct str message;
	struct err e = { 0 };
	bool end = false;
	enum status s;
	(void)ctx;
	see_token(r);
	while ((s = net_stream_receive(stream, &message, &end, &e)) == OK && !end)
		take(message);
	if (s != OK)
		net_fail(out, s, &e);
	else
		pb_put_u64(&out->body, 2, came.len);
}

static void serve_put(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	see_token(r);
	buf_str(&came, r->body);
	pieces = 1;
	CHECK_STR(r->query, "sig=x%2Fy");
	out->http_status = fails == OK ? 201 : fails == E_DENIED ? 403 : 503;
}

static void serve_finish(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	buf_clear(&said);
	buf_str(&said, r->body);
	if (fails != OK)
		refuse(out);
}

static const struct pb_member members[] = { PB_FIELD("a", 1, STRING) };
static const struct pb_desc desc = PB_DESC("t.A", members);
static const struct pb_method upload_method = { "Upload", &desc, &desc, true, false };

static int begin(void **state)
{
	const struct net_route routes[] = {
		{ .method = "POST",
			.path = SERVICE "ShouldInitiateUpload",
			.fn = serve_ask,
			.is_rpc = true },
		{ .method = "POST",
			.path = SERVICE "InitiateUpload",
			.fn = serve_begin,
			.is_rpc = true },
		{ .method = "POST",
			.path = SERVICE "Upload",
			.stream_fn = serve_bytes,
			.is_rpc = true,
			.rpc = &upload_method },
		{ .method = "POST",
			.path = SERVICE "MarkUploadFinished",
			.fn = serve_finish,
			.is_rpc = true },
		{ .method = "PUT", .path = "/bucket/file", .fn = serve_put },
	};
	struct net_server_config c;
	struct err e = { 0 };
	(void)state;
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	c.workers = 1;
	buf_init(&came, 64 << 20);
	buf_init(&said, 1 << 20);
	CHECK_OK(net_server_start(&c, routes, ARRAY_COUNT(routes), &server, &e), &e);
	snprintf(address, sizeof(address), "%s", net_server_address(server));
	CHECK_OK(net_client_new(address, &client, &e), &e);
	CHECK_OK(net_client_header(client, "authorization", "Bearer secret", &e), &e);
	return 0;
}

static int end(void **state)
{
	(void)state;
	net_client_free(client);
	net_server_stop(server);
	buf_deinit(&came);
	buf_deinit(&said);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	fails = OK;
	put_where = NULL;
	pieces = 0;
	buf_clear(&came);
	return 0;
}

static uint64_t number_of(uint32_t field)
{
	struct reader r = reader_over(said.data, said.len);
	struct pb_field f;
	uint64_t out = 0;
	while (pb_next(&r, &f))
		if (f.number == field && f.wire == PB_VARINT)
			out = f.u64;
	return out;
}

static struct str text_of(uint32_t field)
{
	struct reader r = reader_over(said.data, said.len);
	struct pb_field f;
	struct str out = STR("");
	while (pb_next(&r, &f))
		if (f.number == field && f.wire == PB_BYTES)
			out = f.bytes;
	return out;
}

/* Byte i is i modulo 251; from `broken_at` on it cannot be read. */
static uint64_t broken_at = UINT64_MAX, read_up_to;

static enum status read_bytes(void *ctx, uint64_t at, void *out, size_t len, struct err *e)
{
	uint8_t *to = out;
	(void)ctx;
	CHECK(at == read_up_to);
	if (at + len > broken_at)
		return err_set(e, E_CORRUPT, "the file has become shorter");
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)((at + i) % 251);
	read_up_to = at + len;
	return OK;
}

static struct upload_file file_of(uint64_t bytes)
{
	read_up_to = 0;
	return (struct upload_file){ .build_id = ID,
		.id_type = UPLOAD_ID_HASH,
		.type = DEBUGINFO_EXECUTABLE,
		.hash = "h",
		.force = true,
		.bytes = bytes,
		.read = read_bytes };
}

static const struct upload_limits limits = {
	.call_ns = MINUTE,
	.bytes_ns = MINUTE,
	.clear_text = true,
	.wake_fd = -1,
};

static void check_info(void)
{
	CHECK_STR(text_of(1), ID);
	CHECK_STR(text_of(2), "upload-1");
	CHECK(number_of(3) == DEBUGINFO_EXECUTABLE);
}

static void goes_all_the_way(void **state)
{
	(void)state;
	static const uint64_t sizes[] = { 1, UPLOAD_CHUNK_BYTES, 10000000 };
	static const char *const places[] = { NULL, "/bucket/file?sig=x%2Fy" };
	for (size_t i = 0; i < ARRAY_COUNT(sizes) * ARRAY_COUNT(places); i++) {
		struct upload_file f = file_of(sizes[i / 2]);
		static struct upload_answer a;
		static struct upload_ticket t;
		struct err e = { 0 };
		bool retry = true;
		setup(NULL);
		put_where = places[i % 2];
		CHECK_OK(upload_ask(client, &limits, &f, &a, &retry, &e), &e);
		CHECK(a.wanted && !retry && number_of(3) == 1 && number_of(5) == UPLOAD_ID_HASH);
		CHECK_STR(text_of(1), ID);
		CHECK_STR(text_of(2), "h");
		CHECK_STR(str_of(a.reason), "please");
		CHECK_OK(upload_begin(client, &limits, &f, &t, &retry, &e), &e);
		CHECK(number_of(2) == f.bytes && number_of(4) == 1 &&
			number_of(5) == DEBUGINFO_EXECUTABLE && number_of(6) == UPLOAD_ID_HASH);
		CHECK_STR(text_of(3), "h");
		CHECK_OK(upload_send(client, &limits, &f, &t, &retry, &e), &e);
		CHECK(came.len == f.bytes &&
			(put_where || pieces == (int)((f.bytes + UPLOAD_CHUNK_BYTES - 1) /
							UPLOAD_CHUNK_BYTES)));
		for (size_t n = 0; n < came.len; n++)
			CHECK(came.data[n] == n % 251);
		/* Whoever keeps the bytes for the server is not told who we are. */
		assert_string_equal(token_seen, put_where ? "" : "Bearer secret");
		CHECK_OK(upload_finish(client, &limits, &f, &t, &retry, &e), &e);
		check_info();
	}
}

static void says_who_failed(void **state)
{
	(void)state;
	struct upload_file f = file_of(1000000);
	static struct upload_answer a;
	static struct upload_ticket t;
	struct err e = { 0 };
	bool retry = false;
	fails = E_UNAVAILABLE;
	CHECK(upload_ask(client, &limits, &f, &a, &retry, &e) == E_UNAVAILABLE && retry);
	assert_string_equal(e.text, "ShouldInitiateUpload: as the server says");
	fails = E_DENIED;
	CHECK(upload_ask(client, &limits, &f, &a, &retry, &e) == E_DENIED && !retry);
	fails = OK;
	CHECK_OK(upload_begin(client, &limits, &f, &t, &retry, &e), &e);
	broken_at = 500000;
	CHECK(upload_send(client, &limits, &f, &t, &retry, &e) == E_CORRUPT);
	assert_string_equal(e.text, "Upload: the file has become shorter");
	put_where = "/bucket/file?sig=x%2Fy";
	CHECK_OK(upload_begin(client, &limits, &f, &t, &retry, &e), &e);
	read_up_to = 0;
	CHECK(upload_send(client, &limits, &f, &t, &retry, &e) == E_CORRUPT);
	broken_at = UINT64_MAX;
	read_up_to = 0;
	fails = E_DENIED;
	CHECK(upload_send(client, &limits, &f, &t, &retry, &e) == E_INVALID && !retry);
	CHECK(strstr(e.text, "answers HTTP 403") && !strstr(e.text, "sig="));
	read_up_to = 0;
	fails = E_UNAVAILABLE;
	CHECK(upload_send(client, &limits, &f, &t, &retry, &e) == E_UNAVAILABLE && retry);
	fails = E_INVALID;
	CHECK(upload_finish(client, &limits, &f, &t, &retry, &e) == E_INVALID);
	assert_string_equal(e.text, "MarkUploadFinished: as the server says");
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { TEST(goes_all_the_way), TEST(says_who_failed) };
	return cmocka_run_group_tests(tests, begin, end);
}
