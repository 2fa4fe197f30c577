/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "cli/process/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static int end_of(struct launch *l)
{
	int wait_status = 0;
	while (waitpid(l->pid, &wait_status, 0) < 0)
		CHECK(errno == EINTR);
	l->pid = 0;
	return launch_exit_code(wait_status);
}

static struct launch prepare(const char *script)
{
	struct launch l;
	struct err e;
	char text[512];
	snprintf(text, sizeof(text), "%s", script);
	char sh[] = "sh", c[] = "-c";
	char *const argv[] = { sh, c, text, NULL };
	fflush(NULL);
	CHECK_OK(launch_prepare(argv, &l, &e), &e);
	return l;
}

static void waits_for_the_word(void **state)
{
	(void)state;
	char path[] = "/tmp/firn-test-launch-XXXXXX", script[128];
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	snprintf(script, sizeof(script), "rm %s; exit 42", path);
	struct launch l = prepare(script);
	usleep(50000);
	CHECK(access(path, F_OK) == 0);
	launch_go(&l);
	assert_int_equal(end_of(&l), 42);
	CHECK(!launch_failed(&l));
	launch_end(&l);
	CHECK(access(path, F_OK) < 0);
}

static void tells_how_it_ended(void **state)
{
	(void)state;
	struct launch l = prepare("kill -9 $$");
	launch_go(&l);
	assert_int_equal(end_of(&l), 128 + SIGKILL);
	launch_end(&l);

	struct err e;
	char name[] = "/nonexistent/program";
	char *const argv[] = { name, NULL };
	/* What it says is not this test's output. */
	int old = fcntl(2, F_DUPFD_CLOEXEC, 10), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	CHECK(old >= 0 && dup2(null, 2) == 2);
	CHECK_OK(launch_prepare(argv, &l, &e), &e);
	CHECK(dup2(old, 2) == 2);
	close(old);
	close(null);
	launch_go(&l);
	assert_int_equal(end_of(&l), 127);
	CHECK(launch_failed(&l));
	launch_end(&l);

	l = prepare("exit 127"); /* of a command that did begin */
	launch_go(&l);
	assert_int_equal(end_of(&l), 127);
	CHECK(!launch_failed(&l));
	launch_end(&l);
}

static void finds_programs(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum status s;
	} cases[] = {
		{ "sh", OK },
		{ "/bin/sh", OK },
		{ "firn-no-such", E_NOTFOUND },
		{ "/nonexistent/program", E_NOTFOUND },
		{ "/etc/passwd", E_DENIED },
	};
	FOR_EACH_CASE (k, cases) {
		struct err e;
		CHECK_CASE(k, launch_find(k->name, &e) == k->s);
	}
}

/* What the command leaves behind becomes a child of the process between, not of init. */
static void keeps_orphans_below(void **state)
{
	(void)state;
	int out[2], in[2], parent = 0;
	/* The command has one end of each; with the others it would not see ours closed. */
	CHECK(pipe2(out, O_CLOEXEC) == 0 && pipe2(in, O_CLOEXEC) == 0);
	CHECK(fcntl(out[1], F_SETFD, 0) == 0 && fcntl(in[0], F_SETFD, 0) == 0);
	char script[256], line[64];
	/* It says who its parent is, again and again, and the command lives until we have heard. */
	snprintf(script, sizeof(script),
		"(sh -c 'while grep PPid /proc/$$/status >/dev/fd/%d; do sleep 0.02; done' &); "
		"read x </dev/fd/%d",
		out[1], in[0]);
	struct launch l = prepare(script);
	close(out[1]);
	close(in[0]);
	launch_go(&l);
	FILE *said = fdopen(out[0], "r");
	CHECK(said);
	/* Before its own parent has ended it is that one's child. */
	for (int i = 0; i < 3000 && parent != l.pid && fgets(line, sizeof(line), said); i++)
		parent = atoi(line + strlen("PPid:"));
	assert_int_equal(parent, l.pid);
	CHECK(write(in[1], "\n", 1) == 1);
	assert_int_equal(end_of(&l), 0);
	launch_end(&l);
	fclose(said); /* and it ends, too */
	close(in[1]);
}

static void ends_what_still_runs(void **state)
{
	(void)state;
	struct launch l = prepare("exec sleep 600");
	launch_go(&l);
	usleep(50000);
	launch_end(&l);
	assert_int_equal(l.pid, 0);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	l = prepare("exec sleep 600"); /* never told to begin */
	launch_end(&l);
	assert_int_equal(l.pid, 0);
}

TEST_MAIN(cmocka_unit_test(waits_for_the_word), cmocka_unit_test(tells_how_it_ended),
	cmocka_unit_test(finds_programs), cmocka_unit_test(keeps_orphans_below),
	cmocka_unit_test(ends_what_still_runs))
