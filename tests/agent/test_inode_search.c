/* SPDX-License-Identifier: Apache-2.0 */
/* In folders of its own, as below "/": what is found, and what is not even looked at. */
#include "test.h"

#include "agent/files/inode_search.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char root[] = "/tmp/firn-test-inode_search-XXXXXX";

static struct file_key key_of(const char *path)
{
	struct stat st;
	CHECK(stat(path, &st) == 0);
	return (struct file_key){ st.st_ino, major(st.st_dev) << 20 | minor(st.st_dev), 0 };
}

/* Its key. */
static struct file_key make(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct err e = { 0 };
	snprintf(path, sizeof(path), "%s%s", root, folder);
	CHECK_OK(os_make_dirs(path, &e), &e);
	snprintf(path, sizeof(path), "%s%s/%s", root, folder, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	CHECK(fd >= 0 && close(fd) == 0);
	return key_of(path);
}

static bool finds(const struct file_key *key, const char *want)
{
	struct open_file f = { .fd = -1 };
	char path[OPEN_FILE_PATH_MAX] = "", whole[PATH_MAX];
	if (!inode_search(root, key, &f, path))
		return false;
	CHECK(f.pinned.stat.inode == key->inode && f.fd >= 0);
	open_file_close(&f);
	snprintf(whole, sizeof(whole), "%s%s", root, want);
	CHECK_STR(str_of(path), whole);
	return true;
}

static int setup(void **state)
{
	(void)state;
	strcpy(strrchr(root, '-'), "-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void finds_it_in_the_usual_folders(void **state)
{
	(void)state;
	static const char *const places[] = { "/usr/bin", "/usr/local/sbin", "/lib/arm64-linux-gnu",
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/gcc/x86_64-linux-gnu/12", "/bin" };
	make("/usr/bin", "other");
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		char want[PATH_MAX];
		struct file_key key = make(places[i], "it");
		snprintf(want, sizeof(want), "%s/it", places[i]);
		CHECK(finds(&key, want));
		key.dev ^= 1; /* the inode number alone is not enough */
		CHECK(!finds(&key, want));
	}
	struct file_key key = make("/opt/bin", "it");
	CHECK(!finds(&key, ""));
	key = make("/usr/lib/x86_64-linux-gnu/deeper", "it");
	CHECK(!finds(&key, ""));
	struct open_file f = { .fd = -1 };
	char path[OPEN_FILE_PATH_MAX];
	key = key_of("/usr/bin/env");
	CHECK(inode_search("", &key, &f, path));
	CHECK_STR(str_of(path), "/usr/bin/env");
	open_file_close(&f);
}

static void follows_no_link(void **state)
{
	(void)state;
	char from[PATH_MAX], to[PATH_MAX];
	struct file_key key = make("/elsewhere/bin", "it");
	make("/usr/bin", "other");
	snprintf(to, sizeof(to), "%s/elsewhere", root);
	snprintf(from, sizeof(from), "%s/usr/local", root);
	CHECK(symlink(to, from) == 0);
	CHECK(!finds(&key, ""));
	snprintf(from, sizeof(from), "%s/usr/bin/it", root);
	CHECK(symlink(to, from) == 0);
	CHECK(!finds(&key, ""));
}

/* A FUSE file system whose server never says anything: who opens anything there hangs. */
static int mount_silent(const char *folder)
{
	char options[96], path[PATH_MAX];
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0)
		return -1;
	make(folder, "covered");
	snprintf(path, sizeof(path), "%s%s", root, folder);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (mount("firn-test", path, "fuse.firn-test", MS_NOSUID | MS_NODEV, options) == 0)
		return fuse;
	close(fuse);
	return -1;
}

/* The last four folders are looked at, but for those that are looked at always. */
static void finds_it_in_folders_of_late(void **state)
{
	(void)state;
	static const char *const folders[] = { "/a", "/b", "/c", "/a", "/d", "/e" };
	struct inode_search_beside recent = { 0 };
	struct file_key keys[ARRAY_COUNT(folders)];
	for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
		char path[PATH_MAX];
		keys[i] = make(folders[i], "program");
		snprintf(path, sizeof(path), "%s%s/other", root, folders[i]);
		inode_search_beside_note(&recent, str_of(path));
		inode_search_beside_note(&recent, STR("/usr/bin/other"));
		inode_search_beside_note(&recent, STR("/usr/lib/x86_64-linux-gnu/other.so"));
		inode_search_beside_note(&recent, STR("[vdso]"));
	}
	CHECK(recent.count == INODE_SEARCH_BESIDE_MAX);
	for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
		struct open_file f = { .fd = -1 };
		char path[OPEN_FILE_PATH_MAX];
		bool found = inode_search_beside(&recent, &keys[i], &f, path);
		CHECK(found == (i != 1) && (!found || f.pinned.stat.inode == keys[i].inode));
		open_file_close(&f);
	}
}

static void unmount(const char *folder, int fuse)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s%s", root, folder);
	CHECK(close(fuse) == 0 && umount2(path, MNT_DETACH) == 0);
}

static void looks_at_nothing_that_hangs(void **state)
{
	(void)state;
	static const char *const places[] = { "/usr/local", "/usr/local/bin", "/usr/bin/tools",
		"/usr/lib/gcc/x86_64-linux-gnu" };
	struct file_key nowhere = make("/opt", "it"), found = make("/sbin", "it");
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		int fuse = mount_silent(places[i]);
		if (fuse < 0)
			SKIP("a FUSE file system cannot be mounted here");
		CHECK(!finds(&nowhere, ""));
		CHECK(finds(&found, "/sbin/it"));
		/* Its own device, whatever its number, too. */
		for (uint32_t n = 0; n < 256; n++)
			CHECK(!finds(&(struct file_key){ 1, n, 0 }, ""));
		unmount(places[i], fuse);
	}
}

TEST_MAIN(cmocka_unit_test_setup_teardown(finds_it_in_the_usual_folders, setup, teardown),
	cmocka_unit_test_setup_teardown(follows_no_link, setup, teardown),
	cmocka_unit_test_setup_teardown(finds_it_in_folders_of_late, setup, teardown),
	cmocka_unit_test_setup_teardown(looks_at_nothing_that_hangs, setup, teardown))
