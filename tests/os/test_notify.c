/* SPDX-License-Identifier: Apache-2.0 */
#include "os/os.h"
#include "test.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TEMPLATE "/tmp/firn-notify-XXXXXX"

static char dir[sizeof(TEMPLATE)];
static char path[sizeof(TEMPLATE) + 8];

/* A service manager's end: of a path, or of a name where it begins with '@'. */
static int manager(const char *at)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = strlen(at);
	memcpy(a.sun_path, at, len);
	if (at[0] == '@')
		a.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(bind(fd, (struct sockaddr *)&a,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0);
	setenv("NOTIFY_SOCKET", at, 1);
	return fd;
}

static void check_told(int fd, const char *wanted)
{
	char text[64] = "";
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
	assert_string_equal(n < 0 ? "" : text, wanted);
}

static void tells(void **state)
{
	(void)state;
	char name[64];
	snprintf(name, sizeof(name), "@firn-notify-%d", (int)getpid());
	const char *places[] = { path, name };
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		CLEANUP(fd_cleanup) int fd = manager(places[i]);
		os_notify_open();
		CHECK(!getenv("NOTIFY_SOCKET"));
		os_notify("READY=1");
		check_told(fd, "READY=1");
		CHECK(os_notify_alive() == INT64_MAX);
		check_told(fd, "");
		os_notify_close();
		os_notify("STOPPING=1");
		check_told(fd, "");
	}
	unlink(path);
}

static void is_watched(void **state)
{
	(void)state;
	char pid[32];
	CLEANUP(fd_cleanup) int fd = manager(path);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	setenv("WATCHDOG_USEC", "7200000000", 1);
	os_notify_open();
	int64_t before = clock_monotonic_ns(), next = os_notify_alive();
	CHECK(next >= before + 3600 * NS_PER_SEC);
	CHECK(next <= clock_monotonic_ns() + 3600 * NS_PER_SEC);
	check_told(fd, "WATCHDOG=1");
	CHECK(os_notify_alive() == next);
	check_told(fd, "");
	CHECK(!getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID"));

	/* Of another process, and nonsense. */
	setenv("NOTIFY_SOCKET", path, 1);
	setenv("WATCHDOG_PID", "1", 1);
	setenv("WATCHDOG_USEC", "7200000000", 1);
	os_notify_open();
	CHECK(os_notify_alive() == INT64_MAX);
	setenv("WATCHDOG_USEC", "soon", 1);
	os_notify_open();
	CHECK(os_notify_alive() == INT64_MAX);
	check_told(fd, "");
	os_notify_close();
	unlink(path);
}

static void bears_nonsense(void **state)
{
	(void)state;
	static char longest[200];
	memset(longest, '/', sizeof(longest) - 1);
	const char *places[] = { "", "/", "relative", "/nonexistent/socket", longest };
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		setenv("NOTIFY_SOCKET", places[i], 1);
		os_notify_open();
		os_notify("READY=1");
	}
	os_notify_close();
}

static int setup(void **state)
{
	(void)state;
	memcpy(dir, TEMPLATE, sizeof(dir));
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/s", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(tells, setup, teardown),
	cmocka_unit_test_setup_teardown(is_watched, setup, teardown),
	cmocka_unit_test(bears_nonsense))
