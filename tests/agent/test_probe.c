/* SPDX-License-Identifier: Apache-2.0 */
/* What a user is told who cannot sample. */
#include "agent/sample/probe.h"
#include "os/os.h"
#include "test.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* clang-format off */
static const struct {
	const char *name;
	int error;
	enum status want;
	const char *says;
} cases[] = {
	{ "not built in", ENOSYS, E_UNSUPPORTED, "CONFIG_BPF_SYSCALL" },
	{ "too old", EINVAL, E_UNSUPPORTED, "Linux 5.10" },
	{ "no memory", ENOMEM, E_NOMEM, "doing it failed" },
};
/* clang-format on */

static void explains_errors(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct err e = { 0 };
		CHECK_CASE(c, probe_explain("doing it", c->error, &e) == c->want);
		CHECK_CASE(c, strstr(e.text, c->says) != NULL);
	}
}

static int set_capabilities(uint64_t set)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = {
		{ (uint32_t)set, (uint32_t)set, 0 },
		{ (uint32_t)(set >> 32), (uint32_t)(set >> 32), 0 },
	};
	return (int)syscall(SYS_capset, &header, data);
}

/* In a child without privileges but these: 0 when the probe says what it should. */
static int probe_with(uint64_t capabilities, const char *want)
{
	int pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e = { 0 };
		if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setresuid(65534, 65534, 65534) != 0 ||
			set_capabilities(capabilities) != 0)
			_exit(3);
		enum status s = probe_sampling(&e);
		if (!want)
			_exit(s == OK ? 0 : 1);
		(void)fprintf(stderr, "%s\n", e.text);
		_exit(s == E_DENIED && strstr(e.text, want) ? 0 : 2);
	}
	int status;
	assert_true(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void names_the_missing_capability(void **state)
{
	(void)state;
	uint64_t bpf = 1ull << 39, perfmon = 1ull << 38;
	if (geteuid() != 0 || !probe_has_capability(CAP_SYS_ADMIN))
		SKIP("must be root to give capabilities up");
	if (probe_sampling(NULL) != OK)
		SKIP("not even root can sample here");
	assert_int_equal(probe_with(0, "CAP_BPF and CAP_PERFMON"), 0);
	assert_int_equal(probe_with(bpf, "CAP_PERFMON is missing"), 0);
	assert_int_equal(probe_with(bpf | perfmon, NULL), 0);
}

/* Of a child in a PID namespace of its own: 0 when the probe says what it should. */
static int probe_within(void)
{
	int status, pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e = { 0 };
		enum status s = probe_pid_namespace(&e);
		_exit(s == E_UNSUPPORTED && strstr(e.text, "--pid=host") ? 0 : 2);
	}
	assert_true(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void names_a_pid_namespace(void **state)
{
	(void)state;
	if (geteuid() != 0 || !probe_has_capability(CAP_SYS_ADMIN))
		SKIP("must be root to make a PID namespace");
	CLEANUP(buf_deinit) struct buf name;
	buf_init(&name, 64);
	bool is_host = os_read_file("/proc/2/comm", &name, NULL) == OK &&
		       str_eq(buf_view(&name), STR("kthreadd\n"));
	assert_int_equal(probe_pid_namespace(NULL), is_host ? OK : E_UNSUPPORTED);
	int status, pid = fork(); /* the leak checker wants this process as it is */
	if (pid == 0)
		_exit(unshare(CLONE_NEWPID) == 0 ? probe_within() : 3);
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_MAIN(cmocka_unit_test(explains_errors), cmocka_unit_test(names_the_missing_capability),
	cmocka_unit_test(names_a_pid_namespace))
