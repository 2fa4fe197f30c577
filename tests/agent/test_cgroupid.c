/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/cgroupid.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

static void finds_groups_by_their_ids(void **state)
{
	(void)state;
	struct cgroupid c;
	struct stat root, child;
	char path[64], made[PATH_MAX], got[PATH_MAX];
	cgroupid_open(&c);
	if (c.root < 0)
		SKIP("no control groups of version 2 here");
	CHECK(!cgroupid_path(&c, 0x7fffffffffff, got));
	snprintf(path, sizeof(path), "/firn_test_%d", (int)getpid());
	snprintf(made, sizeof(made), "%s%s", c.root_path, path);
	if (geteuid() != 0 || mkdir(made, 0755) != 0) {
		cgroupid_close(&c);
		SKIP("no control group can be made here");
	}
	/* On 64 bits the id is the inode's number. */
	CHECK(stat(made, &child) == 0 && stat(c.root_path, &root) == 0);
	bool found = cgroupid_path(&c, child.st_ino, got);
	CHECK(rmdir(made) == 0);
	CHECK(found && strcmp(got, path) == 0);
	CHECK(cgroupid_path(&c, root.st_ino, got) && strcmp(got, "/") == 0);
	CHECK(!cgroupid_path(&c, child.st_ino, got));
	cgroupid_close(&c);
}

TEST_MAIN(cmocka_unit_test(finds_groups_by_their_ids))
