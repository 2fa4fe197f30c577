/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/perfmap_open.h"

#include "os/os.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Beyond every pid that there is. */
#define NUMBER 4200000000u

static char name[64];   /* of the file */
static char inside[96]; /* the same, as the broker is asked for it */

static int begin(void **state)
{
	(void)state;
	uint32_t number = NUMBER + (uint32_t)getpid();
	snprintf(name, sizeof(name), "/tmp/perf-%u.map", number);
	snprintf(inside, sizeof(inside), "/proc/%d/root%s", (int)getpid(), name);
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (unlink(name) < 0)
		rmdir(name);
	return 0;
}

static void make(void)
{
	int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK(write(fd, "1000 10 f\n", 10) == 10);
	close(fd);
}

static void opens_its_own(void **state)
{
	(void)state;
	char text[16] = "";
	CHECK(perfmap_open(inside) == -1 && errno == ENOENT);
	make();
	int fd = perfmap_open(inside);
	CHECK(fd >= 0);
	CHECK(read(fd, text, sizeof(text)) == 10);
	CHECK(write(fd, "x", 1) == -1);
	close(fd);
}

static void follows_no_link(void **state)
{
	(void)state;
	CHECK(symlink("/etc/passwd", name) == 0);
	CHECK(perfmap_open(inside) == -1 && errno == ELOOP);
}

static void opens_nothing_that_waits(void **state)
{
	(void)state;
	CHECK(mkfifo(name, 0600) == 0);
	CHECK(perfmap_open(inside) == -1 && errno == EINVAL);
	CHECK(unlink(name) == 0 && mkdir(name, 0700) == 0);
	CHECK(perfmap_open(inside) == -1 && errno == EINVAL);
}

static void opens_nobody_elses(void **state)
{
	(void)state;
	if (geteuid() != 0)
		SKIP("only root can give a file away");
	make();
	CHECK(chown(name, 12345, 12345) == 0);
	CHECK(perfmap_open(inside) == -1 && errno == EACCES);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(opens_its_own, begin, end),
	cmocka_unit_test_setup_teardown(follows_no_link, begin, end),
	cmocka_unit_test_setup_teardown(opens_nothing_that_waits, begin, end),
	cmocka_unit_test_setup_teardown(opens_nobody_elses, begin, end))
