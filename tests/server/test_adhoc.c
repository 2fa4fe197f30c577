/* SPDX-License-Identifier: Apache-2.0 */
/* Single files: kept, listed, shown and compared, each tenant's for itself. */
#include "http/http.h"
#include "made.h"
#include "server/pyroscope/pyroscope.h"

static struct str call(struct ask *a, net_handler_fn *fn, struct buf *b, enum status want)
{
	ask_init(a, "/", "");
	a->r.body = buf_view(b);
	fn(&made, &a->r, &a->out);
	CHECK(a->out.status == want);
	return buf_view(&a->out.body);
}

/* The id lies in `id`. */
static void upload(const char *name, const char *file, char id[100])
{
	CLEANUP(buf_deinit) struct buf b, text;
	struct ask a;
	buf_init(&b, 65536);
	buf_init(&text, 65536);
	http_base64_encode(&text, str_of(file));
	pb_put_str(&b, 1, str_of(name));
	pb_put_str(&b, 2, buf_view(&text));
	struct str answer = call(&a, server_adhoc_upload, &b, OK);
	snprintf(id, 100, "%.*s", STR_ARG(made_find(answer, 1, 0).bytes));
	CHECK_STR(made_find(answer, 4, 0).bytes, "samples");
	CHECK(made_find(answer, 3, 0).u64 > 1700000000000);
	CHECK(str_starts(made_find(answer, 6, 0).bytes, STR("{\"version\":1,\"flamebearer\":")));
	ask_deinit(&a);
}

static void keeps_and_shows_files(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	char left[100], right[100];
	struct ask a;
	buf_init(&b, 65536);
	upload("a b/c.txt", "m;f 3\nm;g 4\n", left);
	upload("", "m;f 30\n", right);
	CHECK_STR(str_of(left + 22), "-a_b_c.txt");
	CHECK_STR(str_of(right + 22), "-");
	struct str answer = call(&a, server_adhoc_list, &b, OK);
	CHECK(made_find(answer, 1, 1).number == 1 && made_find(answer, 1, 2).number == 0);
	/* The youngest first, if the clock has moved between them. */
	size_t at = str_eq(made_find(made_find(answer, 1, 1).bytes, 1, 0).bytes, str_of(left));
	CHECK_STR(made_find(made_find(answer, 1, at).bytes, 2, 0).bytes, "a_b_c.txt");
	CHECK_STR(made_find(made_find(answer, 1, 1 - at).bytes, 1, 0).bytes, right);
	ask_deinit(&a);

	pb_put_str(&b, 1, str_of(left));
	pb_put_str(&b, 2, STR("another")); /* is not there: the first */
	pb_put_u64(&b, 3, 2);
	answer = call(&a, server_adhoc_get, &b, OK);
	CHECK_STR(made_find(answer, 2, 0).bytes, "a_b_c.txt");
	CHECK_STR(made_find(answer, 5, 0).bytes, "samples");
	struct str json = made_find(answer, 6, 0).bytes;
	CHECK(memmem(json.p, json.len, "[0,7,0,0],[0,7,0,1],[0,7,7,", 27));
	ask_deinit(&a);

	buf_clear(&b);
	pb_put_str(&b, 1, str_of(left));
	pb_put_str(&b, 2, str_of(right));
	answer = call(&a, server_adhoc_diff, &b, OK);
	json = made_find(answer, 2, 0).bytes;
	CHECK(memmem(json.p, json.len, "\"numTicks\":37", 13));
	CHECK(memmem(json.p, json.len, "\"leftTicks\":7,\"rightTicks\":30", 29));
	CHECK_STR(made_find(answer, 1, 0).bytes, "samples");
	ask_deinit(&a);
}

static void refuses_what_is_no_file(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct ask a;
	buf_init(&b, 65536);
	pb_put_str(&b, 2, STR("!"));
	call(&a, server_adhoc_upload, &b, E_INVALID);
	ask_deinit(&a);
	buf_clear(&b);
	pb_put_str(&b, 2, STR("AQI="));
	call(&a, server_adhoc_upload, &b, E_INVALID);
	ask_deinit(&a);
	buf_clear(&b);
	static const char *const ids[] = { "", "../notes", "aaaaaaaaaaaaaaaaaaaaaa",
		"aaaaaaaaaaaaaaaaaaaaaa-x", "aaaaaaaaaaaaaaaaaaaaaa-x/y" };
	FOR_EACH_CASE (id, ids) {
		buf_clear(&b);
		pb_put_str(&b, 1, str_of(*id));
		call(&a, server_adhoc_get, &b, E_NOTFOUND);
		ask_deinit(&a);
	}
}

static void keeps_tenants_apart(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct ask a;
	char id[100];
	buf_init(&b, 65536);
	upload("mine", "m;f 3\n", id);
	pb_put_str(&b, 1, str_of(id));
	made_config.tenant_header = "x-scope-orgid";
	ask_init(&a, "/", "");
	ask_header(&a, "x-scope-orgid", "other");
	a.r.body = buf_view(&b);
	server_adhoc_get(&made, &a.r, &a.out);
	CHECK(a.out.status == E_NOTFOUND);
	ask_deinit(&a);
	ask_init(&a, "/", "");
	ask_header(&a, "x-scope-orgid", "other");
	server_adhoc_list(&made, &a.r, &a.out);
	CHECK(a.out.status == OK && a.out.body.len == 0);
	ask_deinit(&a);
	made_config.tenant_header = NULL;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, made_setup, made_teardown)
TEST_MAIN(TEST(keeps_and_shows_files), TEST(refuses_what_is_no_file), TEST(keeps_tenants_apart))
