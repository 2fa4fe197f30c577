/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/pinned_files.h"
#include "os/os.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <unistd.h>

static struct pinned_files pinned;

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
	pinned_files_init(&pinned);
	int fds[] = { make("first"), make("second") };
	int first = pinned_files_add(&pinned, fds[0]);
	int second = pinned_files_add(&pinned, fds[1]);
	CHECK(first >= 0 && second >= 0 && first != second);
	CHECK(pinned_files_read(&pinned, (uint32_t)first, bytes, sizeof(bytes), 2) == 3);
	CHECK(memcmp(bytes, "rst", 3) == 0);
	CHECK(pinned_files_read(&pinned, (uint32_t)second, bytes, 3, 0) == 3);
	CHECK(memcmp(bytes, "sec", 3) == 0);
	CHECK(pinned_files_read(&pinned, (uint32_t)second, bytes, 3, 6) == 0);
	CHECK(pinned_files_drop(&pinned, (uint32_t)first) == 0);
	CHECK(fcntl(fds[0], F_GETFD) == -1 && fcntl(fds[1], F_GETFD) >= 0);
	CHECK(pinned_files_read(&pinned, (uint32_t)first, bytes, 1, 0) == -1 && errno == EBADF);
	CHECK(pinned_files_drop(&pinned, (uint32_t)first) == -1 && errno == EBADF);
	CHECK(pinned_files_read(&pinned, BROKER_PINNED_MAX, bytes, 1, 0) == -1 && errno == EBADF);
	CHECK(pinned_files_drop(&pinned, UINT32_MAX) == -1 && errno == EBADF);
	CHECK(pinned_files_drop(&pinned, (uint32_t)second) == 0);
}

static void holds_so_many(void **state)
{
	(void)state;
	pinned_files_init(&pinned);
	for (int i = 0; i < BROKER_PINNED_MAX; i++)
		CHECK(pinned_files_add(&pinned, make("")) == i);
	int fd = make("");
	CHECK(pinned_files_add(&pinned, fd) == -1 && errno == ENFILE);
	CHECK(fcntl(fd, F_GETFD) == -1);
	CHECK(pinned_files_drop(&pinned, 7) == 0);
	CHECK(pinned_files_add(&pinned, make("")) == 7);
	for (uint32_t i = 0; i < BROKER_PINNED_MAX; i++)
		CHECK(pinned_files_drop(&pinned, i) == 0);
}

/* What is read is closed by who reads it. */
static void closes_nothing_that_is_read(void **state)
{
	(void)state;
	pinned_files_init(&pinned);
	int fd = make("x");
	uint32_t handle = (uint32_t)pinned_files_add(&pinned, fd);
	pinned.files[handle].users++; /* as somebody who hangs */
	CHECK(pinned_files_drop(&pinned, handle) == 0);
	CHECK(fcntl(fd, F_GETFD) >= 0);
	CHECK(pinned_files_drop(&pinned, handle) == -1 && errno == EBADF);
	close(fd);
}

static void knows_whom_to_wait_for(void **state)
{
	(void)state;
	CHECK(!pinned_files_may_hang(EXT4_SUPER_MAGIC, true));
	CHECK(!pinned_files_may_hang(BTRFS_SUPER_MAGIC, false));
	CHECK(!pinned_files_may_hang(TMPFS_MAGIC, false));
	CHECK(!pinned_files_may_hang(OVERLAYFS_SUPER_MAGIC, true));
	CHECK(pinned_files_may_hang(OVERLAYFS_SUPER_MAGIC, false));
	CHECK(pinned_files_may_hang(FUSE_SUPER_MAGIC, true));
	CHECK(pinned_files_may_hang(NFS_SUPER_MAGIC, false));
	CHECK(pinned_files_may_hang(V9FS_MAGIC, false));
	CHECK(pinned_files_may_hang(0x12345, false));
}

TEST_MAIN(cmocka_unit_test(reads_until_it_is_dropped), cmocka_unit_test(holds_so_many),
	cmocka_unit_test(closes_nothing_that_is_read), cmocka_unit_test(knows_whom_to_wait_for))
