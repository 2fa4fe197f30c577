/* SPDX-License-Identifier: Apache-2.0 */
/* Property: frames that were cut off a body, put together again, are that body; base64 and
 * percent-encoding turn around; a decoded target is a safe path; no limit is passed. */
#include "fuzz/fuzz.h"

#include "http/http.h"

#define MESSAGE_MAX 4096

static void frames(struct str in)
{
	struct buf again, scratch;
	struct str rest = in, message;
	struct http_grpc_frame f;
	buf_init(&again, in.len + 1);
	while (http_grpc_next(&rest, MESSAGE_MAX, &f, NULL) == OK) {
		FUZZ_CHECK(f.bytes.len <= MESSAGE_MAX);
		http_grpc_put(&again, f.flags, f.bytes);
		buf_init(&scratch, MESSAGE_MAX);
		if (http_grpc_message(&f, STR("gzip"), &scratch, &message, NULL) == OK)
			FUZZ_CHECK(message.len <= MESSAGE_MAX);
		buf_deinit(&scratch);
	}
	FUZZ_CHECK(str_eq(buf_view(&again), str_sub(in, 0, in.len - rest.len)));
	buf_deinit(&again);
}

/* Trailers are one frame whose text has no line more than those of status and message. */
static void trailers(struct str message)
{
	struct buf b;
	struct http_grpc_frame f;
	buf_init(&b, 3 * message.len + 100);
	http_grpc_put_trailers(&b, (int)(message.len % 17), message);
	struct str rest = buf_view(&b);
	FUZZ_CHECK(http_grpc_next(&rest, rest.len, &f, NULL) == OK && rest.len == 0);
	FUZZ_CHECK(f.flags == HTTP_GRPC_TRAILER);
	size_t lines = 0;
	for (size_t i = 0; i < f.bytes.len; i++)
		lines += f.bytes.p[i] == '\n';
	FUZZ_CHECK(lines <= 2);
	buf_deinit(&b);
}

/* Each pair of a query that is well formed can be read. */
static void query_pairs(struct str query)
{
	struct arena a;
	struct str key, value;
	arena_init(&a, 100000);
	bool good = http_query_check(query, NULL) == OK;
	while (query.len) {
		enum status s = http_query_next(&query, &a, &key, &value, NULL);
		FUZZ_CHECK(!good || s == OK);
		if (s != OK)
			break;
	}
	arena_deinit(&a);
}

static void texts(struct str in)
{
	struct buf a, b;
	buf_init(&a, in.len * 4 + 8);
	buf_init(&b, in.len * 4 + 8);
	http_base64_encode(&a, in);
	FUZZ_CHECK(http_base64_decode(&b, buf_view(&a)) && str_eq(buf_view(&b), in));
	buf_clear(&b);
	if (http_base64_decode(&b, in))
		FUZZ_CHECK(b.len <= in.len / 4 * 3);
	buf_clear(&a);
	buf_clear(&b);
	http_grpc_put_text(&a, in);
	http_grpc_get_text(&b, buf_view(&a));
	FUZZ_CHECK(str_eq(buf_view(&b), in));
	int64_t ns;
	if (http_grpc_parse_timeout(in, &ns))
		FUZZ_CHECK(ns >= 0);
	if (http_list_has(in, "gzip"))
		FUZZ_CHECK(in.len >= 4);
	buf_deinit(&a);
	buf_deinit(&b);
}

static void target(struct str in)
{
	char *out = malloc(in.len + 1);
	struct str path, query, value;
	struct arena a;
	arena_init(&a, 100000);
	if (out && http_target_parse(in, out, &path, &query, NULL) == OK) {
		FUZZ_CHECK(path.len > 0 && path.p[0] == '/' && path.len <= in.len);
		FUZZ_CHECK(!memmem(path.p, path.len, "/../", 4) && !str_ends(path, STR("/..")));
		FUZZ_CHECK(!memchr(path.p, 0, path.len));
		for (size_t i = 0; i < 3; i++)
			if (http_query_find(query, "a", i, &a, &value))
				FUZZ_CHECK(value.len <= query.len);
	}
	free(out);
	arena_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = str_make(data, size);
	frames(in);
	texts(in);
	/* What escapes does so byte by byte. */
	trailers(fuzz_thorough(data, size) ? in : str_sub(in, 0, 32));
	target(in);
	query_pairs(in);
	FUZZ_CHECK(http_status_text((int)(size % 600)));
	return 0;
}
