/* SPDX-License-Identifier: Apache-2.0 */
/* Records read back as they were written; what is not ours is refused, with the line. */
#include "test.h"

#include "base/hash.h"
#include "debuginfo/uploads/record.h"

#include <inttypes.h>

static struct debuginfo_record example(void)
{
	return (struct debuginfo_record){ .build_id = "a/../b.%",
		.tenant = "team (a)",
		.type = DEBUGINFO_SOURCES,
		.state = DEBUGINFO_UPLOADED,
		.upload = "0123abcd-0123-4abc-8abc-0123456789ab",
		.hash = "h\xffsh\n",
		.size_bytes = UINT64_MAX,
		.started_ns = 17,
		.finished_ns = INT64_MAX,
		.invalid = true,
		.ready = "00000000-0000-4000-8000-000000000000",
		.ready_bytes = 99 };
}

/* By their bytes: what lies between the members is nobody's. */
static bool same(const struct debuginfo_record *a, const struct debuginfo_record *b)
{
	CLEANUP(buf_deinit) struct buf x;
	CLEANUP(buf_deinit) struct buf y;
	buf_init(&x, DEBUGINFO_RECORD_BYTES_MAX);
	buf_init(&y, DEBUGINFO_RECORD_BYTES_MAX);
	debuginfo_record_encode(a, &x);
	debuginfo_record_encode(b, &y);
	return buf_status(&x) == OK && str_eq(buf_view(&x), buf_view(&y));
}

static void reads_what_it_wrote(void **state)
{
	(void)state;
	struct debuginfo_record r = example(), got;
	struct debuginfo_record least = { .build_id = "abc", .state = DEBUGINFO_UPLOADING };
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	buf_init(&b, DEBUGINFO_RECORD_BYTES_MAX);
	debuginfo_record_encode(&r, &b);
	CHECK_OK(debuginfo_record_decode(buf_view(&b), &got, &e), &e);
	CHECK(same(&r, &got));
	buf_clear(&b);
	debuginfo_record_encode(&least, &b);
	CHECK_OK(debuginfo_record_decode(buf_view(&b), &got, &e), &e);
	CHECK(same(&least, &got));
	CHECK_STR(str_of(got.build_id), "abc");
	CHECK(got.state == DEBUGINFO_UPLOADING && !got.ready[0] && !got.invalid);
}

/* The text with a check that holds. */
static enum status decode(const char *text, struct err *e)
{
	struct debuginfo_record r;
	char all[1024];
	int n = snprintf(all, sizeof(all), "firn-debuginfo 1\n%s", text);
	n += snprintf(
		all + n, sizeof(all) - (size_t)n, "check %016" PRIx64 "\n", hash64(all, (size_t)n));
	return debuginfo_record_decode(str_make(all, (size_t)n), &r, e);
}

#define END "size 1\nstate uploading\nstarted 1\nfinished 0\n"

static void refuses(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text, *says;
	} cases[] = {
		{ "nothing", "", "line 2: build_id" },
		{ "type", "build_id abc\ntype x\n" END, "line 3: type" },
		{ "two ways to write", "build_id %61bc\ntype sources\n" END, "line 2: build_id" },
		{ "cut escape", "build_id abc%4\ntype sources\n" END, "line 2: build_id" },
		{ "NUL", "build_id abc%00\ntype sources\n" END, "line 2: build_id" },
		{ "bare slash", "build_id ../..\ntype sources\n" END, "line 2: build_id" },
		{ "path as upload", "build_id abc\ntype sources\nupload ..-.\n" END,
			"line 4: upload" },
		{ "no UUID", "build_id abc\ntype sources\nready abc\n" END, "line 4: size" },
		{ "size", "build_id abc\ntype sources\nsize -1\n", "line 4: size" },
		{ "state", "build_id abc\ntype sources\nsize 1\nstate \n", "line 5: state" },
		{ "more", "build_id abc\ntype sources\n" END "more 1\n", "line 8: not expected" },
	};
	FOR_EACH_CASE (c, cases) {
		struct err e = { 0 };
		CHECK_CASE(c, decode(c->text, &e) == E_CORRUPT);
		if (strcmp(e.text, c->says) != 0)
			print_error("%s\n", e.text);
		CHECK_CASE(c, strcmp(e.text, c->says) == 0);
	}
	struct err e = { 0 };
	CHECK_OK(decode("build_id abc\ntype sources\n" END, &e), &e);
}

static void notices_each_changed_byte(void **state)
{
	(void)state;
	struct debuginfo_record r = example(), got;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, DEBUGINFO_RECORD_BYTES_MAX);
	debuginfo_record_encode(&r, &b);
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 1;
		CHECK(debuginfo_record_decode(buf_view(&b), &got, NULL) == E_CORRUPT);
		b.data[i] ^= 1;
		CHECK(debuginfo_record_decode(str_sub(buf_view(&b), 0, i), &got, NULL) ==
			E_CORRUPT);
	}
}

TEST_MAIN(cmocka_unit_test(reads_what_it_wrote), cmocka_unit_test(refuses),
	cmocka_unit_test(notices_each_changed_byte))
