/* SPDX-License-Identifier: Apache-2.0 */
/* Files that flags name, by a real broker, on a disk and on a file system that hangs. */
#include "agent/broker/broker.h"
#include "agent/process/metadata.h"
#include "hanging_mount.h"
#include "temp_dir.h"
#include "test.h"

#include <limits.h>
#include <unistd.h>

#define RULES "relabel_configs:\n- {source_labels: [comm], regex: x, action: drop}\n"

static void write_file(const char *path, const char *text)
{
	struct err e;
	CHECK_OK(os_replace_file(path, text, strlen(text), 0600, &e), &e);
}

/* What is in it; "" when it cannot be read. */
static const char *read_it(const char *path, struct os_stamp *stamp, enum status want)
{
	static char text[256];
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	buf_init(&b, sizeof(text) - 1);
	enum status s = os_read_own(path, &b, stamp, &e);
	if (s != want)
		print_error("%s\n", e.text);
	CHECK(s == want);
	snprintf(text, sizeof(text), "%.*s", STR_ARG(buf_view(&b)));
	return s == OK ? text : "";
}

static void reads_what_was_named(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct os_stamp first, second, third;
	CLEANUP(temp_dir_deinit) struct temp_dir dir;
	temp_dir_init(&dir);
	char own[PATH_MAX], other[PATH_MAX], gone[PATH_MAX];
	snprintf(own, sizeof(own), "%s/own", dir.path);
	snprintf(other, sizeof(other), "%s/other", dir.path);
	snprintf(gone, sizeof(gone), "%s/gone", dir.path);
	write_file(own, "secret");
	write_file(other, "other");
	const struct broker_config c = { .own_files = { own, gone } };
	CHECK_STR(str_of(read_it(own, &first, OK)), "secret"); /* without a broker */
	CHECK_OK(privilege_start_broker(&c, &e), &e);
	CHECK_STR(str_of(read_it(own, &second, OK)), "secret");
	CHECK(os_stamp_is_same(&first, &second));
	CHECK_OK(os_read_own(own, NULL, &third, &e), &e);
	CHECK(os_stamp_is_same(&first, &third));
	CHECK_STR(str_of(read_it(other, NULL, OK)), "other"); /* by this process itself */
	write_file(own, "secret-2");
	CHECK_STR(str_of(read_it(own, &second, OK)), "secret-2");
	CHECK(!os_stamp_is_same(&first, &second));
	char large[400];
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = 0;
	write_file(own, large);
	(void)read_it(own, NULL, E_LIMIT);
	(void)read_it(gone, NULL, E_NOTFOUND);
	broker_stop();
}

/* The first open() is answered, the second not until it is let go. */
static void waits_once_and_then_no_more(void **state)
{
	(void)state;
	struct err e = { 0 };
	CLEANUP(temp_dir_deinit) struct temp_dir dir;
	temp_dir_init(&dir);
	char disk[PATH_MAX];
	struct hanging_mount m;
	const char *why_not = hanging_mount_init(&m, dir.path, HANGS_OPEN, STR(RULES));
	if (why_not)
		SKIP("%s", why_not);
	snprintf(disk, sizeof(disk), "%s/token", dir.path);
	write_file(disk, "secret");
	const struct broker_config c = { .own_files = { m.path, disk } };
	CHECK_OK(privilege_start_broker(&c, &e), &e);
	struct metadata *rules = NULL;
	const struct metadata_config config = { .node = "n", .config_path = m.path };
	CHECK_OK(metadata_new(&config, &rules, &e), &e);
	CHECK(!metadata_reload(rules, &e) && !e.text[0]); /* it waits here */
	int64_t begin = clock_monotonic_ns();
	CHECK(!metadata_reload(rules, &e) && strstr(e.text, "its file system does not answer"));
	e.text[0] = 0;
	for (int i = 0; i < 100; i++)
		CHECK(!metadata_reload(rules, &e) && !e.text[0]);
	CHECK(clock_monotonic_ns() - begin < BROKER_PATIENCE_NS);
	/* Others are nobody's hostage. */
	CHECK_STR(str_of(read_it(disk, NULL, OK)), "secret");
	hanging_mount_let_go(&m);
	int64_t end = clock_monotonic_ns() + 60 * NS_PER_SEC;
	struct os_stamp stamp;
	while (os_read_own(m.path, NULL, &stamp, &e) != OK && clock_monotonic_ns() < end)
		usleep(1000);
	CHECK_STR(str_of(read_it(m.path, NULL, OK)), RULES);
	metadata_free(rules);
	broker_stop();
	hanging_mount_deinit(&m);
}

TEST_MAIN(cmocka_unit_test(reads_what_was_named), cmocka_unit_test(waits_once_and_then_no_more))
