/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/broker.h"
#include "os/os.h"
#include "temp_dir.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static bool works(void *ctx)
{
	return ctx == NULL;
}

static int exit_code_of(pid_t pid)
{
	int wait_status = 0;
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	CHECK(WIFEXITED(wait_status));
	return WEXITSTATUS(wait_status);
}

/* In a folder of nobody's that is closed to others, as a data directory in somebody's home. */
static int write_below(const char *closed)
{
	char path[PATH_MAX + 64];
	static struct privilege_dir d, none;
	struct privilege_dir *dirs[] = { &d, &none, NULL };
	struct err e = { 0 };
	snprintf(path, sizeof(path), "%s/spool", closed);
	if (privilege_dir_open(path, &d, &e) != OK || privilege_dir_open("", &none, &e) != OK)
		return 1;
	if (strcmp(d.path, path) != 0 || none.path[0])
		return 2;
	if (privilege_drop(works, NULL, dirs, &e) != OK)
		return 3;
	if (os_capabilities() != 0 || open(closed, O_RDONLY | O_CLOEXEC) >= 0)
		return 4;
	if (none.path[0] || strcmp(d.path, path) == 0)
		return 5;
	snprintf(path, sizeof(path), "%s/x", d.path);
	return os_replace_file(path, "x", 1, 0600, &e) == OK ? 0 : 6;
}

/* Root's files are the agent's own, whatever capabilities it has not. */
static int write_elsewhere(const char *dir)
{
	char path[PATH_MAX + 64], other[PATH_MAX + 64];
	static struct privilege_dir d, sockets;
	struct privilege_dir *dirs[] = { &d, &sockets, NULL };
	struct err e = { 0 };
	snprintf(path, sizeof(path), "%s/spool", dir);
	snprintf(other, sizeof(other), "unix:%s/sockets/s", dir);
	if (privilege_dir_open(path, &d, &e) != OK)
		return 1;
	privilege_socket_dir(other, &sockets);
	if (sockets.fd < 0 || privilege_drop(works, NULL, dirs, &e) != OK)
		return 2;
	snprintf(other, sizeof(other), "%s/passwd", dir);
	int fd = open(other, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 3;
	if (open(other, O_WRONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 4;
	if (open("/proc/self/comm", O_WRONLY | O_CLOEXEC) >= 0)
		return 5;
	if (unlink(other) == 0 || os_replace_file(other, "x", 1, 0600, &e) == OK)
		return 6;
	snprintf(path, sizeof(path), "%s/spool/x", dir);
	if (os_replace_file(path, "x", 1, 0600, &e) != OK || rename(path, other) == 0)
		return 7;
	snprintf(other, sizeof(other), "%s/sockets/s", dir);
	if (os_replace_file(other, "x", 1, 0600, &e) == OK)
		return 8;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	memcpy(a.sun_path, other, MIN(strlen(other), sizeof(a.sun_path) - 1));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || unlink(other) < 0)
		return 9;
	return unlink(path) == 0 ? 0 : 10;
}

static void writes_to_its_folders_alone(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir dir;
	char path[PATH_MAX];
	struct err e;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1)
		SKIP("needs Landlock, Linux 5.13");
	temp_dir_init(&dir);
	snprintf(path, sizeof(path), "%s/sockets", dir.path);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/passwd", dir.path);
	CHECK_OK(os_replace_file(path, "root", 4, 0600, &e), &e);
	pid_t pid = fork();
	if (pid == 0)
		_exit(write_elsewhere(dir.path));
	int code = exit_code_of(pid);
	CHECK(code == 0);
}

static void keeps_its_folders(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir dir;
	char spool[PATH_MAX], file[PATH_MAX + 64];
	if (geteuid() != 0)
		SKIP("needs root: nothing is closed to the one user");
	temp_dir_init(&dir);
	snprintf(spool, sizeof(spool), "%s/spool", dir.path);
	snprintf(file, sizeof(file), "%s/x", spool);
	CHECK(mkdir(spool, 0700) == 0 && chown(spool, NOBODY, NOBODY) == 0);
	CHECK(chown(dir.path, NOBODY, NOBODY) == 0 && chmod(dir.path, 0700) == 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(write_below(dir.path));
	CHECK(exit_code_of(pid) == 0);
	struct stat st;
	CHECK(stat(spool, &st) == 0 && st.st_uid == 0);
	CHECK(unlink(file) == 0 && rmdir(spool) == 0);
}

/* A home that was named by mistake. */
static void takes_no_folder_with_others_files(void **state)
{
	(void)state;
	CLEANUP(temp_dir_deinit) struct temp_dir dir;
	char file[PATH_MAX + 64];
	struct privilege_dir p;
	struct stat st;
	struct err e = { 0 };
	if (geteuid() != 0)
		SKIP("needs root: there is nobody else whose folder it could be");
	temp_dir_init(&dir);
	snprintf(file, sizeof(file), "%s/.profile", dir.path);
	CHECK_OK(os_replace_file(file, "x", 1, 0600, &e), &e);
	CHECK(chown(dir.path, NOBODY, NOBODY) == 0 && chown(file, NOBODY, NOBODY) == 0);
	CHECK(privilege_dir_open(dir.path, &p, &e) == E_INVALID && strstr(e.text, ".profile"));
	fd_cleanup(&p.fd);
	CHECK(stat(dir.path, &st) == 0 && st.st_uid == NOBODY);
	CHECK(stat(file, &st) == 0 && st.st_uid == NOBODY);
}

static int drop_where_bpf_is_closed(void)
{
	static char something;
	struct privilege_dir *dirs[] = { NULL };
	if (privilege_drop(works, &something, dirs, NULL) != OK)
		return 1;
	return os_capabilities() == (uint64_t)1 << 39 ? 0 : 2;
}

static void keeps_bpf_where_the_kernel_wants_it(void **state)
{
	(void)state;
	if (geteuid() != 0)
		SKIP("needs root: there is nothing to keep");
	pid_t pid = fork();
	if (pid == 0)
		_exit(drop_where_bpf_is_closed());
	CHECK(exit_code_of(pid) == 0);
}

static int drop_without_bpf(void)
{
	static char something;
	struct privilege_dir *dirs[] = { NULL };
	struct err e = { 0 };
	uint64_t admin = (uint64_t)1 << CAP_SYS_ADMIN;
	if (os_set_capabilities(admin, admin, &e) != OK)
		return 1;
	if (privilege_drop(works, &something, dirs, &e) != E_DENIED || !strstr(e.text, "CAP_BPF"))
		return 2;
	return os_capabilities() == 0 ? 0 : 3;
}

static void names_bpf_where_it_is_wanted_and_not_there(void **state)
{
	(void)state;
	if (geteuid() != 0)
		SKIP("needs root: there is nothing to give up");
	pid_t pid = fork();
	if (pid == 0)
		_exit(drop_without_bpf());
	CHECK(exit_code_of(pid) == 0);
}

static uint32_t bits_of(const char *names)
{
	uint32_t bits = 0;
	for (size_t i = 0; i < PRIVILEGE_WANTS; i++)
		if (strstr(names, privilege_wants[i].name))
			bits |= 1u << i;
	return bits;
}

/* What is missing, one bit each, with these capabilities and no others. */
static int miss(uint64_t have, bool keeps_all)
{
	pid_t pid = fork();
	struct err e;
	if (pid == 0)
		_exit(os_set_capabilities(have, have, &e) == OK ? (int)privilege_missing(keeps_all)
								: 255);
	return exit_code_of(pid);
}

static void says_what_is_missing(void **state)
{
	(void)state;
	static const char all[] = "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_CHECKPOINT_RESTORE "
				  "CAP_SYSLOG CAP_PERFMON CAP_BPF";
	const uint64_t admin = (uint64_t)1 << CAP_SYS_ADMIN, bpf = (uint64_t)3 << 38;
	const uint64_t ptrace = (uint64_t)1 << CAP_SYS_PTRACE;
	const struct {
		const char *name;
		uint64_t have;
		bool keeps_all;
		const char *missing;
	} cases[] = {
		{ "all", bpf | ptrace | 1 << 2 | (uint64_t)1 << 34 | (uint64_t)1 << 40, false, "" },
		{ "none", 0, false, all },
		{ "what it takes to begin", bpf, false,
			"CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_CHECKPOINT_RESTORE CAP_SYSLOG" },
		{ "one more", bpf | ptrace, false,
			"CAP_DAC_READ_SEARCH CAP_CHECKPOINT_RESTORE CAP_SYSLOG" },
		{ "an administrator's, not kept", admin, false, all },
		{ "and kept", admin, true, "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_SYSLOG" },
		{ "what is mightier is not looked at", bpf | 1 << CAP_DAC_OVERRIDE, false,
			"CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_CHECKPOINT_RESTORE CAP_SYSLOG" },
	};
	if (geteuid() != 0)
		SKIP("needs root: there is nothing to choose from");
	CHECK(bits_of(all) == (1u << PRIVILEGE_WANTS) - 1);
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, miss(c->have, c->keeps_all) == (int)bits_of(c->missing));
}

static int split_and_ask(pid_t stranger)
{
	char exe[64];
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)stranger);
	static const struct broker_config config = { .environment = false };
	static struct privilege_dir *dirs[] = { NULL };
	struct err e = { 0 };
	if (privilege_split(&config, &e) != OK || broker_pid() == 0)
		return 1;
	if (privilege_drop(works, NULL, dirs, &e) != OK)
		return 2;
	int fd = -1;
	if (open(exe, O_RDONLY | O_CLOEXEC) >= 0)
		return 3;
	if (os_open_regular(AT_FDCWD, exe, &fd, &e) != OK)
		return 4;
	broker_stop();
	return 0;
}

static void the_broker_keeps_what_was_given_up(void **state)
{
	(void)state;
	if (geteuid() != 0)
		SKIP("needs root: there is nothing to keep");
	int ends[2];
	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	pid_t stranger = fork();
	if (stranger == 0) {
		char byte;
		close(ends[1]);
		if (setresuid(NOBODY, NOBODY, NOBODY) < 0 || read(ends[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(split_and_ask(stranger));
	int code = exit_code_of(pid);
	close(ends[0]);
	close(ends[1]);
	CHECK(exit_code_of(stranger) == 0);
	CHECK(code == 0);
}

TEST_MAIN(cmocka_unit_test(keeps_its_folders), cmocka_unit_test(takes_no_folder_with_others_files),
	cmocka_unit_test(writes_to_its_folders_alone),
	cmocka_unit_test(keeps_bpf_where_the_kernel_wants_it),
	cmocka_unit_test(names_bpf_where_it_is_wanted_and_not_there),
	cmocka_unit_test(says_what_is_missing),
	cmocka_unit_test(the_broker_keeps_what_was_given_up))
