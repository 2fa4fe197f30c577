/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, and the course of a recording with scripted server and agent. */
#include "base/clock.h"
#include "capture.h"
#include "fakes.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

static char dir[64];
static struct shared {
	int only_pid;
	uint32_t frequency_hz;
	char address[128];
} * shared;

static enum status serve(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)e;
	char line[256];
	snprintf(shared->address, sizeof(shared->address), "%s", c->http_address);
	int n = snprintf(line, sizeof(line), "%s\n", c->http_address);
	if (write(c->ready_fd, line, (size_t)n) != n)
		return E_IO;
	fake_wait(stop);
	return OK;
}

static enum status sample(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)e;
	shared->only_pid = c->only_pid;
	shared->frequency_hz = c->frequency_hz;
	if (write(c->ready_fd, "1", 1) != 1)
		return E_IO;
	fake_wait(stop);
	return OK;
}

static int setup(void **state)
{
	(void)state;
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fake_probe = OK;
	fake_server_run = serve;
	fake_agent_run = sample;
	fake_status = OK;
	fake_http_status = 200;
	fake_body =
		"firn_store_samples_total 42\nfirn_agent_samples_lost_total{reason=\"ring\"} 2\n"
		"firn_agent_samples_lost_total{reason=\"excluded\"} 900\n";
	strcpy(dir, "/tmp/firn-test-record-XXXXXX");
	return shared != MAP_FAILED && mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return munmap(shared, sizeof(*shared)) == 0 ? system(command) : -1;
}

static void wants_one_target(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *line;
		const char *says;
	} cases[] = {
		{ "none", "record", "record what?" },
		{ "two", "record -a -p 1", "one thing at a time" },
		{ "three", "record -a -p 1 -- ls", "one thing at a time" },
		{ "no number", "record -p x", "'x' is no number of a process" },
		{ "no process", "record -p 2147483647", "there is no process 2147483647" },
		{ "no format", "record -a --format svg", "not one of" },
		{ "rate", "record -a -F 0", "--frequency: '0'" },
	};
	FOR_EACH_CASE (k, cases) {
		struct capture c;
		capture_run(&c, cli_record, k->line);
		CHECK_CASE(k, c.code == CLI_USAGE);
		CHECK_CASE(k, strstr(c.err, k->says));
	}
	struct capture c;
	fake_probe = E_UNAVAILABLE;
	capture_run(&c, cli_record, "record -a");
	assert_int_equal(c.code, CLI_FAILED);
}

static void records_a_command(void **state)
{
	(void)state;
	struct capture c;
	char line[256], file[128], content[256] = "";
	snprintf(file, sizeof(file), "%s/out.html", dir);
	/* Flags behind the command are the command's own. */
	snprintf(line, sizeof(line), "record -F 123 -o %s sh -c true -o x", file);
	capture_run(&c, cli_record, line);
	assert_int_equal(c.code, CLI_OK);
	CHECK(shared->only_pid > 0 && shared->only_pid != getpid());
	assert_int_equal(shared->frequency_hz, 123);
	CHECK(str_starts(str_of(shared->address), STR("unix:/tmp/firn-record-")));
	CHECK(access(shared->address + strlen("unix:"), F_OK) < 0);
	char gone[128];
	snprintf(gone, sizeof(gone), "%s", shared->address + strlen("unix:"));
	*strrchr(gone, '/') = 0;
	CHECK(access(gone, F_OK) < 0);
	CHECK_HAS(c.err, "42 samples in ");
	CHECK_HAS(c.err, "2 samples were lost");
	FILE *f = fopen(file, "re");
	CHECK(f && fread(content, 1, sizeof(content) - 1, f) == strlen(fake_body));
	fclose(f);
	CHECK_STR(str_of(content), fake_body);

	capture_run(&c, cli_record, "record -o /dev/null false");
	assert_int_equal(c.code, 1);
}

static const char *content_of(const char *file)
{
	static char text[256];
	FILE *f = fopen(file, "re");
	CHECK(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	return text;
}

static void put(const char *file, const char *text, mode_t mode)
{
	FILE *f = fopen(file, "we");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(file, mode) == 0);
}

/* What was recorded before is still there when this recording comes to nothing. */
static void failed_one_replaces_nothing(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *command;
		const char *body; /* NULL: with samples */
		int code;
		const char *says;
	} cases[] = {
		{ "no program", "firn-no-such", NULL, 127, "no such program in PATH" },
		{ "no path", "/nonexistent/program", NULL, 127, "No such file" },
		{ "not executable", "%s/data", NULL, 126, "Permission denied" },
		{ "no interpreter", "%s/script", NULL, 127, "script: No such file" },
		{ "no samples", "true", "firn_store_samples_total 0\n", 0, "no samples in" },
	};
	FOR_EACH_CASE (k, cases) {
		struct capture c;
		char file[128], path[128], command[128], line[512];
		snprintf(file, sizeof(file), "%s/old.pb.gz", dir);
		put(file, "the good one", 0600);
		snprintf(path, sizeof(path), "%s/data", dir);
		put(path, "no program", 0600);
		snprintf(path, sizeof(path), "%s/script", dir);
		put(path, "#!/nonexistent/shell\n", 0700);
		const char *rest = strstr(k->command, "%s");
		snprintf(command, sizeof(command), "%s%s", rest ? dir : "",
			rest ? rest + 2 : k->command);
		if (k->body)
			fake_body = k->body;
		snprintf(line, sizeof(line), "record -o %s %s", file, command);
		capture_run(&c, cli_record, line);
		CHECK_CASE(k, c.code == k->code);
		CHECK_CASE(k, strstr(c.err, k->says));
		CHECK_CASE(k, strcmp(content_of(file), "the good one") == 0);
	}
}

static void looks_at_the_output_first(void **state)
{
	(void)state;
	struct capture c;
	char line[256];
	capture_run(&c, cli_record, "record -o /nonexistent/x.pb.gz true");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "--output: /nonexistent/x.pb.gz cannot be written: No such file");
	assert_int_equal(shared->only_pid, 0);
	snprintf(line, sizeof(line), "record -o %s true", dir);
	capture_run(&c, cli_record, line);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "is a folder");
	assert_int_equal(shared->only_pid, 0);

	snprintf(line, sizeof(line), "record -o %s/x.zzz true", dir);
	capture_run(&c, cli_record, line);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "x.zzz names no format: .pb.gz");
	assert_int_equal(shared->only_pid, 0);
	capture_run(&c, cli_record, "record -o /dev/stdout --format text true");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "firn_store_samples_total 42");
}

static void records_for_a_time(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_record, "record -a -d 50ms -o - --format folded");
	assert_int_equal(c.code, CLI_OK);
	assert_int_equal(shared->only_pid, 0);
	CHECK_HAS(c.out, "firn_store_samples_total 42");
	char line[64];
	snprintf(line, sizeof(line), "record -p %d -d 50ms -o /dev/null", getpid());
	capture_run(&c, cli_record, line);
	assert_int_equal(c.code, CLI_OK);
	assert_int_equal(shared->only_pid, getpid());
	/* A command that would go on is ended. */
	int64_t begin = clock_monotonic_ns();
	capture_run(&c, cli_record, "record -d 50ms -o /dev/null sleep 600");
	CHECK(clock_monotonic_ns() - begin < 300 * NS_PER_SEC);
	assert_int_equal(c.code, CLI_OK);
}

static void fails_without_an_answer(void **state)
{
	(void)state;
	struct capture c;
	fake_status = E_UNAVAILABLE;
	capture_run(&c, cli_record, "record -o /dev/null true");
	assert_int_equal(c.code, CLI_FAILED);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(wants_one_target, setup, teardown),
	cmocka_unit_test_setup_teardown(records_a_command, setup, teardown),
	cmocka_unit_test_setup_teardown(failed_one_replaces_nothing, setup, teardown),
	cmocka_unit_test_setup_teardown(looks_at_the_output_first, setup, teardown),
	cmocka_unit_test_setup_teardown(records_for_a_time, setup, teardown),
	cmocka_unit_test_setup_teardown(fails_without_an_answer, setup, teardown))
