/* SPDX-License-Identifier: Apache-2.0 */
/* A real store in a directory, and a server that is a fake. */
#include "capture.h"
#include "fakes.h"

#include "store/store.h"

#include <ftw.h>
#include <sys/stat.h>

#define SEC 1000000000LL

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	return remove(path);
}

static void clean(const char *dir)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A store with two samples: comm a at 10 s, comm b at 20 s (merging rounds to 10 s). */
static void make_store(char dir[32])
{
	struct store *s;
	struct store_config config;
	struct err e = { 0 };
	snprintf(dir, 32, "/tmp/firn-cli-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	store_config_default(&config);
	config.path = dir;
	CHECK_OK(store_open(&config, NULL, NULL, &s, &e), &e);
	for (int i = 0; i < 2; i++) {
		struct profile p;
		struct profile_type type = { .delta = true };
		struct profile_head head = { .period = 1 };
		struct profile_label label;
		struct profile_sample sample = { .value = 1, .time_ns = (i + 1) * 10 * SEC };
		CHECK(profile_init(&p, 1 << 20) == OK);
		uint32_t *parts[] = { &type.name, &type.sample_type, &type.sample_unit,
			&type.period_type, &type.period_unit };
		for (size_t k = 0; k < ARRAY_COUNT(parts); k++)
			CHECK(profile_add_string(&p, STR("x"), parts[k]) == OK);
		CHECK(profile_add_type(&p, &type, &head.type) == OK);
		CHECK(profile_add_head(&p, &head, &sample.head) == OK);
		CHECK(profile_add_string(&p, STR("comm"), &label.name) == OK);
		CHECK(profile_add_string(&p, i ? STR("b") : STR("a"), &label.value) == OK);
		CHECK(profile_add_labels(&p, &label, 1, &sample.resource) == OK);
		CHECK(profile_add_sample(&p, &sample) == OK);
		CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
		profile_deinit(&p);
	}
	store_close(s);
}

PRINTF(2, 3) static const char *run(struct capture *c, const char *fmt, ...)
{
	char line[512];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	capture_run(c, cli_store, line);
	return c->out;
}

static void a_directory_is_changed(void **state)
{
	(void)state;
	char dir[32], other[32], file[64];
	struct capture c;
	make_store(dir);
	make_store(other);
	snprintf(file, sizeof(file), "%s/all", dir);
	run(&c, "store export %s %s", dir, file);
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "{\"parts\":1,\"bytes\":");
	CHECK_HAS(run(&c, "store delete %s {} --from 20 --to 21", other),
		"{\"rows\":1,\"samples\":1,\"parts\":1,\"damaged\":0}\n");
	CHECK_HAS(run(&c, "store delete %s {} --tenant x", other), "{\"rows\":0,");
	CHECK_HAS(run(&c, "store delete %s {comm=\"a\"}", other), "{\"rows\":1,");
	CHECK_HAS(run(&c, "store import %s %s", other, file), "\"samples\":2,\"known\":false}");
	CHECK_HAS(run(&c, "store import %s %s", other, file), "\"samples\":0,\"known\":true}");
	CHECK_HAS(run(&c, "store delete %s {}", other), "{\"rows\":2,");
	CHECK_HAS(run(&c, "store import %s %s --from 20", other, file), "\"samples\":1,");
	CHECK_HAS(run(&c, "store import %s %s --from 20", other, file), "\"known\":true}");
	run(&c, "store import %s %s --from 20 --to 20", other, file);
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(run(&c, "store import %s %s --to 20", other, file), "\"samples\":1,");
	CHECK_HAS(run(&c, "store delete %s {}", other), "{\"rows\":2,");
	run(&c, "store import %s %s", dir, file);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "this very store");
	run(&c, "store import %s %s --again", dir, file);
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(run(&c, "store delete %s {}", dir), "\"samples\":4,");
	CHECK_HAS(run(&c, "store export %s %s", dir, file), "{\"parts\":0,\"bytes\":0}");
	run(&c, "store import %s %s", other, file);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "/all is empty: an export of nothing, or cut short");
	clean(dir);
	clean(other);
}

static void a_directory_is_refused(void **state)
{
	(void)state;
	char dir[32];
	struct capture c;
	struct store *s;
	struct store_config config;
	struct err e = { 0 };
	make_store(dir);
	run(&c, "store delete /tmp {}");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "/tmp is no storage directory");
	run(&c, "store delete %s {comm=}", dir);
	assert_int_equal(c.code, CLI_USAGE);
	run(&c, "store delete %s {} --from 3 --to 2", dir);
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "--from must lie before --to");
	run(&c, "store import %s /etc/passwd", dir);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "/etc/passwd: no end of a part");
	store_config_default(&config);
	config.path = dir;
	CHECK_OK(store_open(&config, NULL, NULL, &s, &e), &e);
	run(&c, "store delete %s {}", dir);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "name the server's address instead");
	store_close(s);
	clean(dir);
}

static void a_server_is_asked(void **state)
{
	(void)state;
	struct capture c;
	fake_http_status = 200;
	fake_body = "{\"rows\":7}";
	run(&c, "store delete http://h:1 {a=\"b\"} --from 1 --to 2.5 --tenant t");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.out), "{\"rows\":7}\n");
	CHECK_STR(str_of(fake_server), "http://h:1");
	CHECK_STR(str_of(fake_url),
		"/api/admin/"
		"delete?query=%7Ba%3D%22b%22%7D&tenant=t&from=1.000000000&to=2.500000000");
	assert_int_equal(fake_posts, 1);
	fake_http_status = 403;
	fake_body = "{\"error\":\"the admin API is off\",\"code\":\"DENIED\"}";
	run(&c, "store delete http://h:1 {}");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "http://h:1: the admin API is off");
	CHECK_STR(str_of(fake_url), "/api/admin/delete?query=%7B%7D");
	fake_status = E_UNAVAILABLE;
	char dir[] = "/tmp/firn-cli-XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	run(&c, "store export http://h:1 %s/nothing", dir);
	assert_int_equal(c.code, CLI_UNREACHABLE);
	CHECK(rmdir(dir) == 0); /* nothing was left in it */
	fake_status = OK;
	fake_http_status = 200;
}

/* What is too much at once is asked for in halves, until nothing can be halved. */
static void halves(void **state)
{
	(void)state;
	struct capture c;
	char dir[] = "/tmp/firn-cli-XXXXXX", file[64];
	CHECK(mkdtemp(dir) != NULL);
	fake_http_status = 422;
	fake_body = "{\"error\":\"too much\",\"code\":\"LIMIT\"}";
	run(&c, "store export http://h:1 %s/nothing --from 1 --to 2", dir);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "too much");
	CHECK_HAS(fake_url, "from=1.000000000&to=1.000000001");
	fake_http_status = 200;
	fake_body = "bytes";
	snprintf(file, sizeof(file), "%s/something", dir);
	run(&c, "store export http://h:1 %s --from 1 --to 2", file);
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.out), "{\"parts\":1,\"bytes\":5}\n");
	CHECK(unlink(file) == 0 && rmdir(dir) == 0);
}

TEST_MAIN(cmocka_unit_test(a_directory_is_changed), cmocka_unit_test(a_directory_is_refused),
	cmocka_unit_test(a_server_is_asked), cmocka_unit_test(halves))
