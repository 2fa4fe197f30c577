/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "pb/pb.h"
#include "upload/wire.h"

static struct buf message;

static int setup(void **state)
{
	(void)state;
	buf_init(&message, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_deinit(&message);
	return 0;
}

#define GOES_ON                                                                                \
	"A previous upload is still in-progress and not stale yet (only stale uploads can be " \
	"retried)."

static void reads_answers(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool wanted;
		const char *reason;
		bool in_progress;
	} cases[] = {
		{ "yes", true, "because", false },
		{ "no", false, "there", false },
		{ "somebody else", false, GOES_ON, true },
		{ "forced", true, GOES_ON, false },
	};
	FOR_EACH_CASE (c, cases) {
		struct upload_answer a;
		struct err e = { 0 };
		buf_clear(&message);
		pb_put_bool(&message, 1, c->wanted);
		pb_put_str(&message, 2, str_of(c->reason));
		pb_put_u64(&message, 77, 5); /* of a later version */
		CHECK_OK(upload_answer_decode(buf_view(&message), &a, &e), &e);
		CHECK_CASE(c, a.wanted == c->wanted && a.in_progress == c->in_progress);
		CHECK_STR(str_of(a.reason), c->reason);
	}
	struct upload_answer a = { .wanted = true };
	struct err e = { 0 };
	CHECK_OK(upload_answer_decode(STR(""), &a, &e), &e);
	CHECK(!a.wanted && a.reason[0] == 0);
	a.wanted = true;
	CHECK(upload_answer_decode(STR("\x12\x7f"), &a, &e) == E_IO && a.wanted);
	buf_clear(&message);
	size_t at = pb_begin(&message, 2);
	buf_zero(&message, 5000);
	memset(message.data + message.len - 5000, 'x', 5000);
	pb_end(&message, at);
	CHECK_OK(upload_answer_decode(buf_view(&message), &a, &e), &e);
	assert_int_equal(strlen(a.reason), UPLOAD_REASON_MAX);
}

static struct upload_ticket ticket;

static enum status instruct(struct str id, uint64_t strategy, struct str url, struct err *e)
{
	buf_clear(&message);
	size_t at = pb_begin(&message, 1);
	pb_put_str(&message, 1, STR("abcdef"));
	pb_put_str(&message, 2, id);
	pb_put_u64(&message, 3, strategy);
	pb_put_str(&message, 4, url);
	pb_end(&message, at);
	return upload_ticket_decode(buf_view(&message), &ticket, e);
}

static void reads_instructions(void **state)
{
	(void)state;
	struct err e = { 0 };
	static char large[UPLOAD_URL_MAX + 2];
	CHECK_OK(instruct(STR("id"), 1, STR("https://unused"), &e), &e);
	assert_string_equal(ticket.id, "id");
	assert_string_equal(ticket.url, "");
	CHECK_OK(instruct(STR("id"), 2, STR("https://b/x?y"), &e), &e);
	assert_string_equal(ticket.url, "https://b/x?y");
	memset(large, 'x', sizeof(large));
	CHECK_OK(instruct(STR("id"), 2, str_make(large, UPLOAD_URL_MAX), &e), &e);
	assert_int_equal(strlen(ticket.url), UPLOAD_URL_MAX);
	CHECK(instruct(STR("id"), 2, str_make(large, UPLOAD_URL_MAX + 1), &e) == E_LIMIT);
	CHECK(instruct(STR("id"), 2, STR(""), &e) == E_IO);
	CHECK(instruct(STR("id"), 2, str_make("https://b\0/x", 12), &e) == E_IO);
	CHECK(instruct(STR("id"), 7, STR(""), &e) == E_UNSUPPORTED);
	CHECK(strstr(e.text, "upload strategy 7 is not known") != NULL);
	CHECK(instruct(STR(""), 1, STR(""), &e) == E_IO);
	CHECK(instruct(str_make("a\0b", 3), 1, STR(""), &e) == E_IO);
	CHECK(instruct(str_make(large, DEBUGINFO_ID_MAX + 1), 1, STR(""), &e) == E_IO);
	CHECK(upload_ticket_decode(STR(""), &ticket, &e) == E_IO);
	CHECK(strstr(e.text, "InitiateUpload: the server's answer is malformed") != NULL);
	CHECK(upload_ticket_decode(STR("\x0a\x05\x12"), &ticket, &e) == E_IO);
}

static void takes_addresses_apart(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool clear_text;
		enum status status;
		const char *server, *target;
	} cases[] = {
		{ "https://bucket.example/a/b?c=d%2F&e", false, OK, "https://bucket.example:443",
			"/a/b?c=d%2F&e" },
		{ "https://bucket.example:8443/a#b", false, OK, "https://bucket.example:8443",
			"/a" },
		{ "https://bucket.example", false, OK, "https://bucket.example:443", "/" },
		{ "https://bucket.example?a=/b", false, OK, "https://bucket.example:443",
			"/?a=/b" },
		{ "https://[::1]/a", false, OK, "https://[::1]:443", "/a" },
		{ "https://[::1]:9/a", false, OK, "https://[::1]:9", "/a" },
		{ "http://127.0.0.1/a", true, OK, "http://127.0.0.1:80", "/a" },
		{ "http://127.0.0.1/a", false, E_UNSUPPORTED, "", "" },
		{ "file:///etc/passwd", true, E_UNSUPPORTED, "", "" },
		{ "unix:/run/x", true, E_UNSUPPORTED, "", "" },
		{ "", true, E_UNSUPPORTED, "", "" },
		{ "https://", true, E_INVALID, "", "" },
		{ "https://:/a", true, E_INVALID, "", "" },
		{ "https://:443/a", true, E_INVALID, "", "" },
		{ "https://a:/b", true, E_INVALID, "", "" },
		{ "https://a:0/b", true, E_INVALID, "", "" },
		{ "https://a:65536/b", true, E_INVALID, "", "" },
		{ "https://a:b/c", true, E_INVALID, "", "" },
		{ "https://[::1]:808]/a", true, E_INVALID, "", "" },
		{ "https://[:81]:808]/a", true, E_INVALID, "", "" },
		{ "https://a]/b", true, E_INVALID, "", "" },
		{ "https://::1:443/b", true, E_INVALID, "", "" },
		{ "https://[]:443/b", true, E_INVALID, "", "" },
		{ "https:///a", true, E_INVALID, "", "" },
		{ "https://a@b/c", true, E_INVALID, "", "" },
		{ "https://a b/c", true, E_INVALID, "", "" },
		{ "https://a/c d", true, E_INVALID, "", "" },
		{ "https://a/c\r\nx: y", true, E_INVALID, "", "" },
		{ "https://a/\xc3\xa9", true, E_INVALID, "", "" },
	};
	static struct upload_url url;
	FOR_EACH_CASE (c, cases) {
		struct err e = { 0 };
		enum status s = upload_url_parse(c->name, c->clear_text, &url, &e);
		CHECK_CASE(c, s == c->status);
		CHECK_CASE(c, s != OK || strcmp(url.server, c->server) == 0);
		CHECK_CASE(c, s != OK || strcmp(url.target, c->target) == 0);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { TEST(reads_answers), TEST(reads_instructions),
		TEST(takes_addresses_apart) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
