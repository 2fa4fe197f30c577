/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/broker_held.h"
#include "os/os.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <unistd.h>

static struct broker_held held;

static int make(const char *text)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	CHECK(fd >= 0 && os_write_full(fd, text, strlen(text), "file", NULL) == OK);
	return fd;
}

static void reads_until_it_is_dropped(void **state)
{
	(void)state;
	char bytes[8];
	broker_held_init(&held);
	int fds[] = { make("first"), make("second") };
	int first = broker_held_add(&held, fds[0]);
	int second = broker_held_add(&held, fds[1]);
	CHECK(first >= 0 && second >= 0 && first != second);
	CHECK(broker_held_read(&held, (uint32_t)first, bytes, sizeof(bytes), 2) == 3);
	CHECK(memcmp(bytes, "rst", 3) == 0);
	CHECK(broker_held_read(&held, (uint32_t)second, bytes, 3, 0) == 3);
	CHECK(memcmp(bytes, "sec", 3) == 0);
	CHECK(broker_held_read(&held, (uint32_t)second, bytes, 3, 6) == 0);
	CHECK(broker_held_drop(&held, (uint32_t)first) == 0);
	CHECK(fcntl(fds[0], F_GETFD) == -1 && fcntl(fds[1], F_GETFD) >= 0);
	CHECK(broker_held_read(&held, (uint32_t)first, bytes, 1, 0) == -1 && errno == EBADF);
	CHECK(broker_held_drop(&held, (uint32_t)first) == -1 && errno == EBADF);
	CHECK(broker_held_read(&held, BROKER_HELD_MAX, bytes, 1, 0) == -1 && errno == EBADF);
	CHECK(broker_held_drop(&held, UINT32_MAX) == -1 && errno == EBADF);
	CHECK(broker_held_drop(&held, (uint32_t)second) == 0);
}

static void holds_so_many(void **state)
{
	(void)state;
	broker_held_init(&held);
	for (int i = 0; i < BROKER_HELD_MAX; i++)
		CHECK(broker_held_add(&held, make("")) == i);
	int fd = make("");
	CHECK(broker_held_add(&held, fd) == -1 && errno == ENFILE);
	CHECK(fcntl(fd, F_GETFD) == -1);
	CHECK(broker_held_drop(&held, 7) == 0);
	CHECK(broker_held_add(&held, make("")) == 7);
	for (uint32_t i = 0; i < BROKER_HELD_MAX; i++)
		CHECK(broker_held_drop(&held, i) == 0);
}

/* What is read is closed by who reads it. */
static void closes_nothing_that_is_read(void **state)
{
	(void)state;
	broker_held_init(&held);
	int fd = make("x");
	uint32_t handle = (uint32_t)broker_held_add(&held, fd);
	held.files[handle].users++; /* as somebody who hangs */
	CHECK(broker_held_drop(&held, handle) == 0);
	CHECK(fcntl(fd, F_GETFD) >= 0);
	CHECK(broker_held_drop(&held, handle) == -1 && errno == EBADF);
	close(fd);
}

static void knows_whom_to_wait_for(void **state)
{
	(void)state;
	CHECK(!broker_held_may_hang(EXT4_SUPER_MAGIC, true));
	CHECK(!broker_held_may_hang(BTRFS_SUPER_MAGIC, false));
	CHECK(!broker_held_may_hang(TMPFS_MAGIC, false));
	CHECK(!broker_held_may_hang(OVERLAYFS_SUPER_MAGIC, true));
	CHECK(broker_held_may_hang(OVERLAYFS_SUPER_MAGIC, false));
	CHECK(broker_held_may_hang(FUSE_SUPER_MAGIC, true));
	CHECK(broker_held_may_hang(NFS_SUPER_MAGIC, false));
	CHECK(broker_held_may_hang(V9FS_MAGIC, false));
	CHECK(broker_held_may_hang(0x12345, false));
}

TEST_MAIN(cmocka_unit_test(reads_until_it_is_dropped), cmocka_unit_test(holds_so_many),
	cmocka_unit_test(closes_nothing_that_is_read), cmocka_unit_test(knows_whom_to_wait_for))
