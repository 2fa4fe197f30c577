/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads to a server that is a function: what it is asked, in which order, and what it refuses. */
#include "capture.h"
#include "fakes.h"
#include "objfile/objfile.h"
#include "pb/pb.h"

#include <stdlib.h>
#include <sys/stat.h>

#define UPLOAD_ID "0f9c1f5e-1111-4222-8333-444444444444"

static char dir[] = "/tmp/firn-test-cli-upload-XXXXXX";
static struct buf calls;   /* names of the calls */
static struct buf content; /* of the chunks */
static uint64_t strategy, should, size_said, type_said;
static bool force_said;
static char id_said[160], hash_said[160];
static const char *fails; /* the call that fails */
static enum status fails_with;

static struct str last_bytes(struct str message, uint32_t number)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	struct str out = STR("");
	while (pb_next(&r, &f))
		if (f.number == number && f.wire == PB_BYTES)
			out = f.bytes;
	CHECK(!r.failed);
	return out;
}

static uint64_t last_number(struct str message, uint32_t number)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	uint64_t out = 0;
	while (pb_next(&r, &f))
		if (f.number == number && f.wire == PB_VARINT)
			out = f.u64;
	return out;
}

static void check_upload(struct str info)
{
	CHECK_STR(last_bytes(info, 1), id_said);
	CHECK_STR(last_bytes(info, 2), UPLOAD_ID);
	CHECK(last_number(info, 3) == type_said);
}

static enum status answer(const char *path, struct str message, struct buf *out, struct err *e)
{
	static const char service[] = "/parca.debuginfo.v1alpha1.DebuginfoService/";
	CHECK(strncmp(path, service, sizeof(service) - 1) == 0);
	const char *name = path + sizeof(service) - 1;
	bool upload = strcmp(name, "Upload") == 0;
	if (!upload || message.len == 0)
		buf_printf(&calls, "%s ", name);
	if (fails && strcmp(fails, name) == 0)
		return err_set(e, fails_with, "as the server says");
	if (strcmp(name, "ShouldInitiateUpload") == 0) {
		snprintf(id_said, sizeof(id_said), "%.*s", STR_ARG(last_bytes(message, 1)));
		force_said = last_number(message, 3);
		type_said = last_number(message, 4);
		pb_put_u64(out, 1, should);
		pb_put_str(out, 2, STR("because \033[2J"));
	} else if (strcmp(name, "InitiateUpload") == 0) {
		CHECK_STR(last_bytes(message, 1), id_said);
		size_said = last_number(message, 2);
		snprintf(hash_said, sizeof(hash_said), "%.*s", STR_ARG(last_bytes(message, 3)));
		CHECK(last_number(message, 4) == force_said &&
			last_number(message, 5) == type_said);
		size_t at = pb_begin(out, 1);
		pb_put_str(out, 1, str_of(id_said));
		pb_put_str(out, 2, STR(UPLOAD_ID));
		pb_put_u64(out, 3, strategy);
		pb_put_str(out, 4, STR("http://bucket.example/a/b?sig=c%2Fd"));
		pb_end(out, at);
	} else if (upload && message.len) {
		if (last_bytes(message, 1).len)
			check_upload(last_bytes(message, 1));
		CHECK(message.len < 64 << 20);
		buf_str(&content, last_bytes(message, 2));
	} else if (!upload) {
		check_upload(message);
	}
	return OK;
}

static int begin(void **state)
{
	(void)state;
	fake_rpc = answer;
	buf_init(&calls, 4096);
	buf_init(&content, 64 << 20);
	if (!mkdtemp(dir) || chdir(dir) != 0)
		return -1;
	return system("echo 'int main(void) { return 3; }' > a.c && " /* NOLINT */
		      "${CC:-cc} -g -Wl,--build-id -o app a.c && "
		      "${CC:-cc} -g -Wl,--build-id=none -o nameless a.c && "
		      "head -c 3000001 /dev/urandom > archive && touch empty && "
		      "printf 'secret\\n' > token");
}

static int end(void **state)
{
	char command[128];
	(void)state;
	buf_deinit(&calls);
	buf_deinit(&content);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return chdir("/") == 0 ? system(command) : -1; /* NOLINT */
}

static void run(struct capture *c, const char *line)
{
	char whole[512];
	buf_clear(&calls);
	buf_clear(&content);
	snprintf(whole, sizeof(whole), "debuginfo upload %s", line);
	capture_run(c, cli_debuginfo, whole);
}

static int setup(void **state)
{
	(void)state;
	strategy = should = 1;
	fails = NULL;
	return 0;
}

#define ALL "ShouldInitiateUpload InitiateUpload Upload MarkUploadFinished "

static uint64_t length_of(const char *path)
{
	struct stat st;
	CHECK(stat(path, &st) == 0);
	return (uint64_t)st.st_size;
}

static void sends_what_it_extracted(void **state)
{
	(void)state;
	struct capture c;
	run(&c, "app");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	char says[200];
	snprintf(says, sizeof(says), "Uploaded \"app\" with build id %s: %zu bytes\n", id_said,
		content.len);
	assert_string_equal(c.out, says);
	CHECK_STR(buf_view(&calls), ALL);
	CHECK(type_said == 0 && !force_said && strlen(id_said) == 40 && strlen(hash_said) == 32);
	CHECK(content.len == size_said && size_said > 500);
	struct objfile *obj;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(content.data, content.len, "sent", &obj, &e), &e);
	assert_string_equal(objfile_build_id(obj), id_said);
	const struct objfile_section *text = objfile_section(obj, ".text");
	CHECK(text && text->type == 8 && objfile_section(obj, ".debug_info")->type != 8);
	objfile_close(obj);
	assert_string_equal(fake_server, "http://127.0.0.1:7070");
	run(&c, "app --log-level warn");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.out), "");
}

static void sends_files_whole(void **state)
{
	(void)state;
	struct capture c;
	run(&c, "--no-extract app --force --build-id abcdef");
	assert_int_equal(c.code, CLI_OK);
	CHECK(content.len == length_of("app") && force_said && type_said == 0);
	assert_string_equal(id_said, "abcdef");
	run(&c, "--type=executable app");
	assert_int_equal(c.code, CLI_OK);
	CHECK(content.len == length_of("app") && type_said == 1 && strlen(id_said) == 40);
	run(&c, "--type=sources --build-id abcdef archive --log-level debug");
	assert_int_equal(c.code, CLI_OK);
	CHECK(content.len == 3000001 && type_said == 2); /* in several messages */
	CHECK_HAS(c.out, "Uploading \"archive\" with build id abcdef as " UPLOAD_ID);
}

static void asks_only(void **state)
{
	(void)state;
	struct capture c;
	run(&c, "--no-initiate app");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(buf_view(&calls), "ShouldInitiateUpload ");
	CHECK_HAS(c.out, "the server would take it: because \xEF\xBF\xBD[2J\n");
	should = 0;
	run(&c, "app");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(buf_view(&calls), "ShouldInitiateUpload ");
	CHECK_HAS(c.out, "Skipping upload of \"app\" with build id ");
	CHECK_HAS(c.out, "does not want it: because \xEF\xBF\xBD[2J\n");
}

static void fails_where_the_server_does(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum status status;
		int code;
		const char *says, *calls;
	} cases[] = {
		{ "ShouldInitiateUpload", E_UNAVAILABLE, CLI_UNREACHABLE,
			"app: ShouldInitiateUpload: as the server says", "ShouldInitiateUpload " },
		{ "InitiateUpload", E_EXISTS, CLI_FAILED, "app: InitiateUpload: as",
			"ShouldInitiateUpload InitiateUpload " },
		{ "Upload", E_LIMIT, CLI_FAILED, "app: Upload: as",
			"ShouldInitiateUpload InitiateUpload " },
		{ "MarkUploadFinished", E_INVALID, CLI_FAILED, "app: MarkUploadFinished: as", ALL },
	};
	FOR_EACH_CASE (x, cases) {
		struct capture c;
		fails = x->name;
		fails_with = x->status;
		run(&c, "app");
		CHECK_CASE(x, c.code == x->code);
		CHECK_HAS(c.err, x->says);
		CHECK_STR(buf_view(&calls), x->calls);
	}
	fails = NULL;
	struct capture c;
	strategy = 7;
	run(&c, "app");
	CHECK_HAS(c.err, "upload strategy 7 is not known");
}

/* A server may have it sent to a bucket; it gets no headers of ours. */
static void puts_it_where_the_server_says(void **state)
{
	(void)state;
	struct capture c;
	strategy = 2;
	run(&c, "--store-address there:1 --grpc-headers a=b app");
	assert_int_equal(c.code, CLI_FAILED); /* no TLS, from a server with TLS */
	CHECK_HAS(c.err, "without TLS");
	fake_http_status = 200;
	run(&c, "--store-address http://there:1 --grpc-headers a=b app");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(buf_view(&calls), "ShouldInitiateUpload InitiateUpload MarkUploadFinished ");
	assert_string_equal(fake_server, "http://bucket.example:80");
	assert_string_equal(fake_url, "/a/b?sig=c%2Fd");
	assert_string_equal(fake_headers, "");
	CHECK(content.len == 0);
	fake_http_status = 403;
	run(&c, "--store-address http://there:1 app");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "http://bucket.example:80 answers HTTP 403");
	CHECK(!strstr(c.err, "sig="));
	CHECK_STR(buf_view(&calls), "ShouldInitiateUpload InitiateUpload ");
}

static void says_what_is_wrong_with_the_file(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int code;
		const char *says;
	} cases[] = {
		{ "nowhere", CLI_FAILED, "nowhere" },
		{ "a.c", CLI_FAILED, "a.c: 64 bytes at +0" },
		{ "archive", CLI_FAILED, "archive: no ELF magic" },
		{ "nameless", CLI_FAILED, "nameless: it has no build id" },
		{ "--type=sources archive", CLI_FAILED, "--build-id ID is needed" },
		{ "--type=sources --build-id abc empty", CLI_FAILED, "empty: the file is empty" },
		{ "--type=sources --build-id abc .", CLI_FAILED, "not a regular file" },
		{ "--type=other app", CLI_USAGE, "--type" },
		{ "--build-id ab app", CLI_USAGE, "--build-id: 3 to 128 characters, not 'ab'" },
		{ "--build-id abc app app", CLI_USAGE, "--build-id is that of one file" },
		{ "--insecure --store-address https://there:1 app", CLI_USAGE,
			"spoken to with TLS" },
		{ "--insecure --insecure-skip-verify app", CLI_USAGE, "there is no TLS" },
		{ "--bearer-token a --bearer-token-file b app", CLI_USAGE,
			"one of them is enough" },
		{ "--bearer-token-file nowhere app", CLI_FAILED, "nowhere" },
		{ "--grpc-headers a app", CLI_USAGE, "'a' is not NAME=VALUE" },
		{ "--grpc-headers =b app", CLI_USAGE, "is no header" },
		{ "--store-address https://here app", CLI_USAGE, "--store-address: https://here" },
		{ "", CLI_USAGE, "PATH" },
	};
	FOR_EACH_CASE (x, cases) {
		struct capture c;
		run(&c, x->name);
		CHECK_CASE(x, c.code == x->code);
		CHECK_HAS(c.err, x->says);
		CHECK_CASE(x, calls.len == 0);
	}
}

static void goes_where_it_is_told(void **state)
{
	(void)state;
	struct capture c;
	run(&c, "--store-address there:1 app");
	assert_string_equal(fake_server, "https://there:1");
	CHECK(!fake_trusts_anybody);
	run(&c, "--store-address there:1 --insecure --bearer-token t --grpc-headers a=b;c=d=e app");
	assert_string_equal(fake_server, "there:1");
	assert_string_equal(fake_headers, "authorization: Bearer t\na: b\nc: d=e\n");
	run(&c, "--store-address there:1 --insecure-skip-verify --bearer-token-file token app");
	CHECK(fake_trusts_anybody && strcmp(fake_headers, "authorization: Bearer secret\n") == 0);
	run(&c, "app nowhere app");
	assert_int_equal(c.code, CLI_FAILED); /* and the third was sent */
	CHECK_STR(buf_view(&calls), ALL ALL);
	fails = "ShouldInitiateUpload";
	fails_with = E_UNAVAILABLE;
	run(&c, "app app");
	assert_int_equal(c.code, CLI_UNREACHABLE);
	CHECK_STR(buf_view(&calls), "ShouldInitiateUpload ");
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { TEST(sends_what_it_extracted), TEST(sends_files_whole),
		TEST(asks_only), TEST(fails_where_the_server_does),
		TEST(puts_it_where_the_server_says), TEST(says_what_is_wrong_with_the_file),
		TEST(goes_where_it_is_told) };
	return cmocka_run_group_tests(tests, begin, end);
}
