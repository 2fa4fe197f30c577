/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "capture.h"
#include "cli/flags/flags.h"

struct flags {
	struct cli_server_flags server;
	struct cli_profiling_flags profiling;
	struct cli_log_flags log;
};

static struct flags got;

/* Exit code 99: all taken. */
static int verb(int argc, char **argv)
{
	struct cli_command c = { .name = "verb", .summary = "", .args = "", .text = "" };
	c.groups[0] = cli_server_group;
	c.groups[1] = cli_profiling_group;
	c.groups[1].at = offsetof(struct flags, profiling);
	c.groups[2] = cli_log_group;
	c.groups[2].at = offsetof(struct flags, log);
	c.groups[3] = cli_parca_group;
	c.group_count = 4;
	int at = 0, code = 0;
	got = (struct flags){ 0 };
	return cli_parse(&c, argc, argv, &got, &at, &code) ? 99 : code;
}

static void takes_values(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, verb,
		"verb --storage-memory 1GiB --storage-retention-time 2d --http-address :1 "
		"--profiling-cpu-sampling-frequency 99 --off-cpu-threshold 0.5 --wall-clock "
		"--node n --log-level warn --tracers python,go");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, 99);
	CHECK(got.server.storage_memory_bytes == 1 << 30);
	CHECK(got.server.retention_ns == 2 * 86400 * NS_PER_SEC);
	CHECK_STR(str_of(got.server.http_address), ":1");
	CHECK(got.profiling.frequency_hz == 99 && got.profiling.off_cpu_probability == 0.5);
	CHECK(got.profiling.wall_clock);
	CHECK_STR(str_of(got.profiling.node), "n");
	CHECK_STR(str_of(got.log.level), "warn");
}

static void has_defaults(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, verb, "verb");
	assert_int_equal(c.code, 99);
	CHECK_STR(str_of(got.server.http_address), "127.0.0.1:7070");
	CHECK(got.server.retention_ns == 14 * 86400 * NS_PER_SEC);
	CHECK(got.profiling.frequency_hz == 19 && got.profiling.off_cpu_probability == 0);
	CHECK(!got.profiling.wall_clock && !got.server.admin_api);
	CHECK_STR(str_of(got.log.level), "info");
}

static const struct {
	const char *name, *flags, *want;
} bad[] = {
	{ "frequency", "--profiling-cpu-sampling-frequency 0",
		"'0' is not a whole number from 1 to 1000" },
	{ "off-CPU probability", "--off-cpu-threshold 1.5", "'1.5' is not a number from 0 to 1" },
	{ "log level", "--log-level loud",
		"--log-level: 'loud' is not one of: error warn info debug" },
};

static void refuses(void **state)
{
	(void)state;
	FOR_EACH_CASE (b, bad) {
		struct capture c;
		char line[256];
		snprintf(line, sizeof(line), "verb %s", b->flags);
		capture_run(&c, verb, line);
		CHECK_CASE(b, strstr(c.err, b->want));
		CHECK_CASE(b, c.code == CLI_USAGE);
	}
}

TEST_MAIN(cmocka_unit_test(takes_values), cmocka_unit_test(has_defaults), cmocka_unit_test(refuses))
