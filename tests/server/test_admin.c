/* SPDX-License-Identifier: Apache-2.0 */
/* The admin API over a real store: what it does, and whom it refuses. */
#include "test.h"

#include "ask.h"
#include "server/admin/admin.h"
#include "server/request/state.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct server server;
static struct server_config config;
static char dir[32];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	return remove(path);
}

static int setup(void **state)
{
	(void)state;
	struct store_config c;
	struct err e = { 0 };
	memset(&server, 0, sizeof(server));
	config = (struct server_config){ .admin_api = true };
	server.config = &config;
	snprintf(dir, sizeof(dir), "/tmp/firn-admin-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	store_config_default(&c);
	c.path = dir;
	CHECK_OK(store_open(&c, NULL, NULL, &server.store, &e), &e);
	atomic_store(&server.ready, true);
	ask_gone_value = false;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	store_close(server.store);
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void append(const char *comm, int64_t time_ns)
{
	struct profile p;
	struct profile_type type = { .delta = true };
	struct profile_head head = { .period = 1 };
	struct profile_label label;
	struct profile_sample sample = { .value = 1, .time_ns = time_ns };
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	CHECK(profile_add_string(&p, STR("x"), &type.name) == OK);
	CHECK(profile_add_type(&p, &type, &head.type) == OK);
	CHECK(profile_add_head(&p, &head, &sample.head) == OK);
	CHECK(profile_add_string(&p, STR("comm"), &label.name) == OK);
	CHECK(profile_add_string(&p, str_of(comm), &label.value) == OK);
	CHECK(profile_add_labels(&p, &label, 1, &sample.resource) == OK);
	CHECK(profile_add_sample(&p, &sample) == OK);
	CHECK_OK(store_append(server.store, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
}

static void call(struct ask *a, net_handler_fn *fn, const char *query, struct str body)
{
	ask_init(a, "/api/admin", query);
	a->r.body = body;
	fn(&server, &a->r, &a->out);
}

/* Who is bound to a tenant reaches no other by the admin API. */
static void binds_to_a_tenant(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		net_handler_fn *fn;
		const char *query;
		enum status status;
	} cases[] = {
		{ "delete", server_handle_delete, "query=%7B%7D&tenant=b", E_DENIED },
		{ "nameless", server_handle_delete, "query=%7B%7D&tenant=", E_DENIED },
		{ "export", server_handle_export, "query=%7B%7D&tenant=b", E_DENIED },
		{ "import", server_handle_import, "", E_DENIED },
		{ "own", server_handle_delete, "query=%7B%7D&tenant=a", OK },
		{ "own by itself", server_handle_delete, "query=%7B%7D", OK },
	};
	append("a", 50000000000); /* of the tenant without a name */
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		ask_init(&a, "/api/admin", c->query);
		a.r.caller = (struct net_caller){ .has_tenant = true, .tenant = "a", .name = "x" };
		c->fn(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == c->status);
		CHECK_CASE(c,
			c->status != OK || str_starts(buf_view(&a.out.body), STR("{\"rows\":0,")));
		ask_deinit(&a);
	}
}

static void deletes(void **state)
{
	(void)state;
	struct ask a;
	append("a", 50000000000);
	append("b", 50000000000);
	append("a", 90000000000);
	call(&a, server_handle_delete, "query=%7Bcomm%3D%22a%22%7D&from=50&to=60", STR(""));
	assert_int_equal(a.out.status, OK);
	CHECK_STR(buf_view(&a.out.body), "{\"rows\":1,\"samples\":1,\"parts\":1,\"damaged\":0}");
	ask_deinit(&a);
	call(&a, server_handle_delete, "query=%7B%7D", STR(""));
	CHECK(str_starts(buf_view(&a.out.body), STR("{\"rows\":2,\"samples\":2,")));
	ask_deinit(&a);
}

static void exports_and_imports(void **state)
{
	(void)state;
	struct ask a, b;
	append("a", 5000000000);
	append("b", 5000000000);
	call(&a, server_handle_export, "query=%7Bcomm%3D%22a%22%7D", STR(""));
	assert_int_equal(a.out.status, OK);
	CHECK(a.out.body.len > 100);
	struct str part = buf_view(&a.out.body);
	call(&b, server_handle_import, "", part);
	assert_int_equal(b.out.status, E_EXISTS); /* from this very store */
	ask_deinit(&b);
	call(&b, server_handle_import, "again=1", part);
	CHECK_STR(buf_view(&b.out.body), "{\"rows\":1,\"samples\":1,\"known\":false}");
	ask_deinit(&b);
	call(&b, server_handle_import, "again=1", part);
	CHECK_STR(buf_view(&b.out.body), "{\"rows\":0,\"samples\":0,\"known\":true}");
	ask_deinit(&b);
	call(&b, server_handle_import, "again=1&from=6&to=7", part);
	CHECK_STR(buf_view(&b.out.body), "{\"rows\":0,\"samples\":0,\"known\":false}");
	ask_deinit(&b);
	call(&b, server_handle_import, "again=1&from=x", part);
	assert_int_equal(b.out.status, E_INVALID);
	ask_deinit(&b);
	call(&b, server_handle_import, "again=1", str_sub(part, 0, part.len - 1));
	assert_int_equal(b.out.status, E_INVALID);
	CHECK(strcmp(b.out.message, status_text(E_INVALID)) != 0); /* says what is wrong */
	ask_deinit(&b);
	ask_deinit(&a);
}

static void refuses(void **state)
{
	(void)state;
	static net_handler_fn *const handlers[] = { server_handle_delete, server_handle_export,
		server_handle_import };
	append("a", 5000000000);
	for (size_t i = 0; i < ARRAY_COUNT(handlers); i++) {
		struct ask a;
		config.admin_api = false;
		call(&a, handlers[i], "query=%7B%7D", STR(""));
		assert_int_equal(a.out.status, E_DENIED);
		CHECK(strstr(a.out.message, "--enable-admin-api") != NULL);
		ask_deinit(&a);
		config.admin_api = true;
		ask_init(&a, "/api/admin", "query=%7B%7D");
		ask_header(&a, "origin", "http://elsewhere.example");
		handlers[i](&server, &a.r, &a.out);
		assert_int_equal(a.out.status, E_DENIED);
		ask_deinit(&a);
		atomic_store(&server.admin_busy, true);
		call(&a, handlers[i], "query=%7B%7D", STR(""));
		assert_int_equal(a.out.status, E_UNAVAILABLE);
		ask_deinit(&a);
		atomic_store(&server.admin_busy, false);
	}
	struct ask a;
	static const char *const bad[] = { "", "query=", "query=%7Ba%7D", "query=%7B%7D&from=x",
		"query=%7B%7D&from=5&to=5" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		call(&a, server_handle_delete, bad[i], STR(""));
		assert_int_equal(a.out.status, E_INVALID);
		ask_deinit(&a);
	}
	ask_gone_value = true;
	append("a", 5000000000);
	call(&a, server_handle_delete, "query=%7B%7D", STR(""));
	assert_int_equal(a.out.status, E_CANCELED);
	ask_deinit(&a);
	CHECK(!atomic_load(&server.admin_busy));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
TEST_MAIN(TEST(deletes), TEST(binds_to_a_tenant), TEST(exports_and_imports), TEST(refuses))
