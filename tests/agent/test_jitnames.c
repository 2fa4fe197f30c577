/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jitnames/jitnames.h"

#include "procfs/procfs.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS (30 * NS_PER_SEC)

static char path[64];
static struct jitnames *names;
static struct jitnames_place place;

static void tell(const char *mode, const char *text)
{
	FILE *f = fopen(path, mode);
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static uint64_t start_of(int pid)
{
	struct err e;
	struct procfs_stat stat;
	CHECK_OK(procfs_stat(pid, &stat, &e), &e);
	return stat.start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int begin(void **state)
{
	(void)state;
	struct err e;
	int pid = (int)getpid();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	CHECK_OK(jitnames_new(&names, &e), &e);
	place = (struct jitnames_place){
		.pid = pid, .start_ns = start_of(pid), .time_ns = (uint64_t)clock_monotonic_ns()
	};
	return 0;
}

static int end(void **state)
{
	(void)state;
	jitnames_free(names);
	unlink(path);
	return 0;
}

static struct str name_at(uint64_t at)
{
	static struct jitnames_name n;
	place.at = at;
	return jitnames_find(names, &place, true, &n) == JITNAMES_FOUND ? str_of(n.function)
									: STR("none");
}

/* By then all files were looked at. */
static struct str name_then(uint64_t at)
{
	struct str name = name_at(at);
	jitnames_settle(names, PATIENCE_NS);
	return str_eq(name, STR("none")) ? name_at(at) : name;
}

static void reads_what_is_added(void **state)
{
	(void)state;
	tell("w", "1000 10 first\n2000 10 se");
	CHECK_STR(name_then(0x1000), "first");
	CHECK_STR(name_then(0x2000), "none");
	tell("a", "cond\n3000 10 third\n");
	CHECK_STR(name_then(0x2000), "second");
	CHECK_STR(name_then(0x3000), "third");
}

static void writes_elixir_as_elixir_does(void **state)
{
	(void)state;
	tell("w", "1000 10 $'Elixir.Acme.Work':loop/2\n2000 10 $'Elixir.':a/1\n"
		  "3000 10 $'a b':c/1\n4000 10 $lists:map/2\n");
	CHECK_STR(name_then(0x1000), "Acme.Work.loop/2");
	CHECK_STR(name_then(0x2000), ".a/1");
	CHECK_STR(name_then(0x4000), "lists:map/2");
}

static void keeps_the_names_of_a_process_that_has_ended(void **state)
{
	(void)state;
	int up[2], down[2];
	char byte = 0;
	CHECK(pipe(up) == 0 && pipe(down) == 0);
	pid_t child = fork();
	if (child == 0) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
		tell("w", "1000 10 early\n");
		(void)!write(up[1], "x", 1);
		(void)!read(down[0], &byte, 1);
		tell("a", "2000 10 late\n");
		unlink(path);
		_exit(0);
	}
	CHECK(read(up[0], &byte, 1) == 1);
	place.pid = (int)child;
	place.start_ns = start_of((int)child);
	CHECK_STR(name_then(0x1000), "early");
	CHECK(write(down[1], "x", 1) == 1);
	CHECK(waitpid(child, NULL, 0) == child);
	jitnames_ended(names, (int)child, place.start_ns);
	CHECK_STR(name_then(0x2000), "late");
	for (int i = 0; i < 2; i++) {
		close(up[i]);
		close(down[i]);
	}
}

static bool is_open(void)
{
	bool is = false;
	for (int fd = 0; fd < 256 && !is; fd++) {
		char link[32], target[128] = "";
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		is = readlink(link, target, sizeof(target) - 1) > 0 && strcmp(target, path) == 0;
	}
	return is;
}

static void closes_the_files_of_what_it_forgets(void **state)
{
	(void)state;
	tell("w", "1000 10 first\n");
	CHECK_STR(name_then(0x1000), "first");
	CHECK(is_open());
	jitnames_forget(names, place.pid, place.start_ns);
	for (int i = 0; i < 3000 && is_open(); i++)
		usleep(10000);
	CHECK(!is_open());
	CHECK_STR(name_then(0x1000), "first");
}

static uint64_t metric(const char *name)
{
	CLEANUP(buf_deinit) struct buf out;
	char line[64];
	buf_init(&out, 1 << 16);
	jitnames_write_metrics(names, &out);
	buf_u8(&out, 0);
	snprintf(line, sizeof(line), "\nfirn_agent_jit_%s ", name);
	const char *at = strstr((char *)out.data, line);
	CHECK(at);
	return strtoull(at + strlen(line), NULL, 10);
}

static void forgets_the_longest_unused(void **state)
{
	(void)state;
	for (int i = 0; i < JITNAMES_PROCESSES_MAX + 10; i++) {
		place.pid = (1 << 30) + i; /* nobody */
		CHECK_STR(name_at(0x1000), "none");
		jitnames_settle(names, PATIENCE_NS);
	}
	jitnames_tick(names);
	assert_int_equal(metric("processes"), JITNAMES_PROCESSES_MAX);
	assert_int_equal(metric("evicted_total"), 10);
	jitnames_ended(names, place.pid, place.start_ns);
	for (int i = 0; i < 3; i++)
		jitnames_tick(names);
	assert_int_equal(metric("processes"), JITNAMES_PROCESSES_MAX - 1);
	jitnames_forget(names, place.pid - 1, place.start_ns);
	jitnames_tick(names);
	assert_int_equal(metric("processes"), JITNAMES_PROCESSES_MAX - 2);
	for (int i = 0; i < 200; i++)
		jitnames_tick(names);
	assert_int_equal(metric("processes"), 0);
}

static pid_t start_child(void)
{
	pid_t child = fork();
	if (child == 0) {
		alarm(60);
		pause();
		_exit(0);
	}
	CHECK(child > 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)child);
	place.pid = (int)child;
	place.start_ns = start_of((int)child);
	return child;
}

static void end_child(pid_t child)
{
	char map[64];
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)child);
	unlink(map);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

static void tell_much(void)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (unsigned i = 1; i <= JIT_CODES_MAX; i++)
		fprintf(f, "%x 10 %060u\n", i * 16, i);
	fclose(f);
}

/* They are far above the limit together; it is the longest unused. */
static void keeps_small_tables_beside_large_ones(void **state)
{
	(void)state;
	pid_t children[4];
	children[0] = start_child();
	struct jitnames_place small = place;
	tell("w", "1000 10 small\n");
	CHECK_STR(name_then(0x1000), "small");
	for (int i = 1; i < 4; i++) {
		jitnames_tick(names);
		children[i] = start_child();
		tell_much();
		CHECK(!str_eq(name_then(0x1000), STR("none")));
	}
	jitnames_tick(names);
	CHECK(metric("evicted_total") > 0);
	CHECK(metric("bytes") <= JITNAMES_BYTES_MAX);
	place = small;
	CHECK_STR(name_at(0x1000), "small");
	for (int i = 0; i < 4; i++)
		end_child(children[i]);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(keeps_small_tables_beside_large_ones, begin, end),
	cmocka_unit_test_setup_teardown(reads_what_is_added, begin, end),
	cmocka_unit_test_setup_teardown(writes_elixir_as_elixir_does, begin, end),
	cmocka_unit_test_setup_teardown(keeps_the_names_of_a_process_that_has_ended, begin, end),
	cmocka_unit_test_setup_teardown(closes_the_files_of_what_it_forgets, begin, end),
	cmocka_unit_test_setup_teardown(forgets_the_longest_unused, begin, end))
