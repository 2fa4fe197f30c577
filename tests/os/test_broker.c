/* SPDX-License-Identifier: Apache-2.0 */
#include "os/os.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static char asked[128];

static int fake_open(const char *path)
{
	snprintf(asked, sizeof(asked), "%s", path);
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static ssize_t fake_link(const char *path, char *out, size_t size)
{
	snprintf(asked, sizeof(asked), "%s", path);
	return snprintf(out, size, "/somewhere");
}

/* Exit status of a child that may do nothing special. */
static int as_nobody(int (*fn)(void))
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0 ? 99 : fn());
	int wait_status = 0;
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 98;
}

static int ask_for_what_is_refused(void)
{
	char text[64];
	int fd = -1;
	struct buf b;
	/* Without a broker the kernel's word is the last. */
	if (os_open_read("/proc/1/environ") >= 0 || errno != EACCES)
		return 1;
	if (os_open_by_broker("/proc/1/environ") >= 0 || errno != ENOSYS)
		return 2;
	if (os_open_regular(AT_FDCWD, "/proc/1/exe", &fd, NULL) != E_DENIED || fd != -1)
		return 3;
	os_set_broker(fake_open, fake_link);
	if (os_open_read("/proc/1/environ") < 0 || strcmp(asked, "/proc/1/environ") != 0)
		return 4;
	if (os_read_link("/proc/1/exe", text, sizeof(text)) != 10 ||
		strcmp(asked, "/proc/1/exe") != 0)
		return 5;
	asked[0] = 0;
	if (os_open_regular(AT_FDCWD, "/proc/1/exe", &fd, NULL) != OK || fd < 0 || !asked[0])
		return 6;
	buf_init(&b, 100);
	asked[0] = 0;
	if (os_read_file("/proc/1/environ", &b, NULL) != OK || !asked[0])
		return 7;
	return 0;
}

static void the_broker_is_asked_for_what_is_refused(void **state)
{
	(void)state;
	CHECK(as_nobody(ask_for_what_is_refused) == 0);
}

static int ask_for_what_is_not(void)
{
	os_set_broker(fake_open, fake_link);
	if (os_open_read("/proc/self/stat") < 0 || asked[0])
		return 1;
	if (os_open_read("/proc/no such file") >= 0 || errno != ENOENT || asked[0])
		return 2;
	return 0;
}

static void and_for_nothing_else(void **state)
{
	(void)state;
	CHECK(as_nobody(ask_for_what_is_not) == 0);
}

TEST_MAIN(cmocka_unit_test(the_broker_is_asked_for_what_is_refused),
	cmocka_unit_test(and_for_nothing_else))
