/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/process/child.h"
#include "fakes.h"
#include "os/os.h"
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *server_path = "/";

/* "CapEff:" and its like of /proc/self/status. */
static uint64_t set_of(const char *name)
{
	uint64_t set = ~(uint64_t)0;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	if (os_read_file("/proc/self/status", &b, NULL) != OK)
		return set;
	struct str text = buf_view(&b), line;
	while (str_split(&text, '\n', &line))
		if (str_starts(line, str_of(name)) &&
			!str_parse_u64(str_trim(str_sub(line, strlen(name), line.len)), 16, &set))
			return ~(uint64_t)0;
	return set;
}

static bool ignores(int number)
{
	struct sigaction a;
	return sigaction(number, NULL, &a) == 0 && a.sa_handler == SIG_IGN;
}

/* Each bit is something that is not as it should be. */
static enum status look_around(const char *name, bool privileged)
{
	char comm[16] = "";
	int death = 0;
	prctl(PR_GET_NAME, comm);
	prctl(PR_GET_PDEATHSIG, &death);
	int wrong = strcmp(comm, name) != 0;
	wrong |= (death != SIGTERM) << 1;
	wrong |= (!ignores(SIGINT) || !ignores(SIGHUP) || !ignores(SIGPIPE)) << 2;
	wrong |= (!privileged && (set_of("CapEff:") || set_of("CapPrm:"))) << 3;
	wrong |= (!privileged && geteuid() == 0 && !prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) << 4;
	if (wrong)
		_exit(100 + wrong);
	return OK;
}

static enum status look_as_server(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)c;
	(void)stop;
	(void)e;
	return look_around("firn-server", false);
}

static enum status look_as_agent(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)c;
	/* Somebody else's, as a service manager sends to all: not ours to follow. */
	raise(SIGTERM);
	if (*stop)
		return err_set(e, E_IO, "stopped by somebody else");
	kill(getppid(), SIGUSR1);
	for (int i = 0; i < 10000 && !*stop; i++)
		usleep(1000);
	return *stop ? look_around("firn-agent", true) : err_set(e, E_IO, "not stopped");
}

#define OTHER_USER 65534
#define THIRD_USER 12345

/* What is named in the configuration can be used, without any capability. */
static enum status look_at_storage(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)stop;
	char path[PATH_MAX];
	int wrong = look_around("firn-server", false) != OK;
	snprintf(path, sizeof(path), "%s/parts/new", c->storage_path);
	CLEANUP(fd_cleanup) int made = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	wrong |= (made < 0) << 5;
	snprintf(path, sizeof(path), "%s/parts/old", c->storage_path);
	CLEANUP(fd_cleanup) int old = open(path, O_RDWR | O_CLOEXEC);
	wrong |= (old < 0) << 6;
	int listens = 0;
	socklen_t len = sizeof(listens);
	if (c->http_address &&
		(getsockopt(c->listen_fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 ||
			!listens))
		wrong |= 1 << 7;
	return wrong ? err_set(e, E_INVALID, "%d", wrong) : OK;
}

static void make(const char *dir, const char *name, uid_t owner)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int rc = name[strlen(name) - 1] == '/' ? mkdir(path, 0700) : mknod(path, S_IFREG | 0600, 0);
	CHECK(rc == 0 && chown(path, owner, (gid_t)-1) == 0);
}

static uid_t owner_of(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK(lstat(path, &st) == 0);
	return st.st_uid;
}

static int run_server(const struct server_config *c)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		_exit(child_run_server(c, parent));
	int wait_status = 0;
	CHECK(waitpid(pid, &wait_status, 0) == pid && WIFEXITED(wait_status));
	return WEXITSTATUS(wait_status);
}

static void remove_tree(const char *dir)
{
	char command[PATH_MAX + 16];
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(system(command) == 0);
}

/* The server has no capability, whosever the directory is, and wherever it lies. */
static void has_no_capability_in_the_end(void **state)
{
	(void)state;
	char top[] = "/tmp/firn-test-child-XXXXXX", storage[PATH_MAX], link[PATH_MAX + 16];
	if (geteuid() != 0)
		SKIP("needs root: there are no capabilities to give up");
	CHECK(mkdtemp(top));
	make(top, "closed/", OTHER_USER);
	make(top, "closed/data/", OTHER_USER);
	snprintf(storage, sizeof(storage), "%s/closed/data", top);
	make(storage, "parts/", OTHER_USER);
	make(storage, "parts/old", OTHER_USER);
	make(storage, "third", THIRD_USER);
	make(top, "outside", OTHER_USER);
	snprintf(link, sizeof(link), "%s/parts/link", storage);
	CHECK(symlink("../../../outside", link) == 0 && lchown(link, OTHER_USER, (gid_t)-1) == 0);
	fake_server_run = look_at_storage;
	/* No other program listens on this address of the loopback network, nor this one at the
	 * same time. */
	char address[32];
	unsigned pid = (unsigned)getpid();
	snprintf(address, sizeof(address), "127.%u.%u.%u:81", 64 + (pid >> 16 & 127),
		pid >> 8 & 255, pid & 255);
	const struct server_config c = { .storage_path = storage, .http_address = address };
	CHECK(run_server(&c) == CLI_OK);
	CHECK(owner_of(storage, ".") == 0 && owner_of(storage, "parts") == 0);
	CHECK(owner_of(storage, "parts/old") == 0);
	/* What the owner of the directory has not may not be taken from who has it. */
	CHECK(owner_of(storage, "third") == THIRD_USER && owner_of(top, "outside") == OTHER_USER);
	CHECK(owner_of(top, "closed") == OTHER_USER);
	remove_tree(top);

	char own[] = "/tmp/firn-test-child-XXXXXX";
	CHECK(mkdtemp(own));
	make(own, "parts/", 0);
	make(own, "parts/old", 0);
	const struct server_config plain = { .storage_path = own };
	CHECK(run_server(&plain) == CLI_OK);
	remove_tree(own);
}

/* A home that was named by mistake stays its owner's. */
static void takes_no_directory_with_others_files(void **state)
{
	(void)state;
	char home[] = "/tmp/firn-test-child-XXXXXX";
	if (geteuid() != 0)
		SKIP("needs root: there is nobody else whose directory it could be");
	CHECK(mkdtemp(home) && chown(home, OTHER_USER, (gid_t)-1) == 0);
	make(home, "parts/", OTHER_USER);
	make(home, ".profile", OTHER_USER);
	const struct server_config c = { .storage_path = home };
	fake_server_run = look_at_storage;
	CHECK(run_server(&c) == CLI_FAILED);
	CHECK(owner_of(home, ".") == OTHER_USER && owner_of(home, ".profile") == OTHER_USER);
	CHECK(owner_of(home, "parts") == OTHER_USER);
	remove_tree(home);
}

static volatile sig_atomic_t ready;

static void on_ready(int number)
{
	(void)number;
	ready = 1;
}

static int end_of(pid_t pid)
{
	int wait_status = 0;
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	CHECK(WIFEXITED(wait_status));
	return WEXITSTATUS(wait_status);
}

static void settles(void **state)
{
	(void)state;
	fflush(NULL);
	fake_server_run = look_as_server;
	fake_agent_run = look_as_agent;
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		struct server_config c = { .storage_path = server_path };
		_exit(child_run_server(&c, parent));
	}
	assert_int_equal(end_of(pid), CLI_OK);
	struct sigaction a = { .sa_handler = on_ready };
	sigaction(SIGUSR1, &a, NULL);
	pid = fork();
	if (pid == 0) {
		struct agent_config c = { 0 };
		_exit(child_run_agent(&c, parent));
	}
	for (int i = 0; i < 10000 && !ready; i++)
		usleep(1000);
	kill(pid, SIGTERM);
	assert_int_equal(end_of(pid), CLI_OK);
}

static void ends_without_a_parent(void **state)
{
	(void)state;
	fflush(NULL);
	fake_agent_run = NULL; /* would wait for ever */
	pid_t pid = fork();
	if (pid == 0) {
		struct agent_config c = { 0 };
		_exit(child_run_agent(&c, getpid()));
	}
	assert_int_equal(end_of(pid), CLI_FAILED);
}

static void describes_ends(void **state)
{
	(void)state;
	char text[128];
	CHECK_STR(str_of(child_describe_end(3 << 8, text, sizeof(text))), "ended with status 3");
	CHECK_STR(str_of(child_describe_end(SIGSEGV, text, sizeof(text))),
		"was killed by signal 11 (Segmentation fault)");
	CHECK(strstr(child_describe_end(SIGKILL, text, sizeof(text)), "memory is short"));
}

TEST_MAIN(cmocka_unit_test(settles), cmocka_unit_test(has_no_capability_in_the_end),
	cmocka_unit_test(takes_no_directory_with_others_files),
	cmocka_unit_test(ends_without_a_parent), cmocka_unit_test(describes_ends))
