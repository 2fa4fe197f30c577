/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what this process, or a dead one, has mapped. test_files.c has the rest. */
#include "test.h"

#include "agent/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 8192

struct mapped {
	char path[64];
	struct file_notice notice;
};

static struct file_key key_of(const char *path)
{
	struct stat st;
	CHECK(stat(path, &st) == 0);
	return (struct file_key){ st.st_ino, major(st.st_dev) << 20 | minor(st.st_dev), 0 };
}

static struct mapped map_it(void)
{
	struct mapped m = { .path = "/tmp/firn-test-fileopen-XXXXXX" };
	int fd = mkstemp(m.path);
	CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	m.notice = (struct file_notice){ key_of(m.path), (uint64_t)p, (uint64_t)p + BYTES, 0 };
	return m;
}

static void unmap_it(struct mapped *m)
{
	munmap((void *)m->notice.vma_start, BYTES);
	unlink(m->path);
}

/* The open file is the one of the key; its path, for the caller. */
static void expect(int pid, const struct file_notice *n, const char *want)
{
	struct open_file f = { .fd = -1 };
	char path[OPEN_FILE_PATH_MAX];
	struct err e = { 0 };
	CHECK_OK(mapped_file_open(pid, n, &f, path, &e), &e);
	struct stat st;
	int fd = f.fd;
	CHECK(fstat(fd, &st) == 0 && st.st_ino == n->key.inode && !f.is_pinned);
	CHECK(f.pinned.stat.inode == st.st_ino && f.pinned.stat.bytes == (uint64_t)st.st_size);
	CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	CHECK_STR(str_of(path), want);
	open_file_close(&f);
	CHECK(f.fd == -1 && fcntl(fd, F_GETFD) == -1);
}

static void refuse(int pid, const struct file_notice *n)
{
	struct open_file f = { .fd = -77 };
	char path[OPEN_FILE_PATH_MAX];
	struct err e = { 0 };
	CHECK(mapped_file_open(pid, n, &f, path, &e) == E_NOTFOUND && f.fd == -77 && e.text[0]);
}

static void opens_the_mapping(void **state)
{
	(void)state;
	struct mapped m = map_it();
	expect(getpid(), &m.notice, m.path);
	unmap_it(&m);
}

static void opens_a_mapping_that_was_split(void **state)
{
	(void)state;
	struct mapped m = map_it();
	CHECK(mprotect((void *)m.notice.vma_start, 4096, PROT_READ) == 0);
	expect(getpid(), &m.notice, m.path);
	unmap_it(&m);
}

static void another_file_at_the_same_address_is_refused(void **state)
{
	(void)state;
	struct mapped a = map_it();
	struct mapped b = map_it();
	int fd = open(b.path, O_RDONLY | O_CLOEXEC);
	void *at = (void *)a.notice.vma_start;
	CHECK(mmap(at, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == at);
	close(fd);
	unlink(a.path); /* else it is found beside the other one */
	refuse(getpid(), &a.notice);
	unmap_it(&a);
	unmap_it(&b);
}

/* It was there for a moment, as plugins are that are loaded for one call: beside the program. */
static void a_library_that_is_mapped_no_more(void **state)
{
	(void)state;
	char self[200] = "", path[256];
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(path, sizeof(path), "%.*s/firn-test-plugin-XXXXXX",
		(int)(strrchr(self, '/') - self), self);
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	struct file_notice n = { .key = key_of(path), .vma_start = 4096, .vma_end = 8192 };
	expect(getpid(), &n, path);
	n.key.dev ^= 1;
	refuse(getpid(), &n);
	unlink(path);
}

static int dead_child(void)
{
	int pid = fork();
	if (pid == 0)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
	return pid;
}

static void a_process_that_is_gone(void **state)
{
	(void)state;
	int pid = dead_child();
	struct mapped m = map_it();
	refuse(pid, &m.notice); /* /tmp is no folder of programs */
	m.notice.vma_start = 0;
	refuse(pid, &m.notice);
	unmap_it(&m);
	struct file_notice n = {
		.key = key_of("/usr/bin/env"), .vma_start = 4096, .vma_end = 8192
	};
	expect(pid, &n, "/usr/bin/env");
	n.key.dev ^= 1; /* the inode number alone is not enough */
	refuse(pid, &n);
}

static void the_program_itself(void **state)
{
	(void)state;
	char self[256] = "";
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	struct file_notice n = { .key = key_of(self) };
	expect(getpid(), &n, self);
}

/* Code of a runtime's own, which the broker opens for nobody: in a file, a memfd, shared memory. */
static void says_what_is_no_elf_file(void **state)
{
	(void)state;
	static const struct broker_config config = { .own_files = { NULL } };
	static const char *const paths[] = { NULL, "/memfd:code", "/dev/zero" };
	struct err e = { 0 };
	CHECK_OK(broker_start(&config, &e), &e);
	for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
		struct mapped m = map_it();
		void *at = (void *)m.notice.vma_start;
		int fd = i == 1 ? memfd_create("code", MFD_CLOEXEC) : -1;
		CHECK(fd < 0 || ftruncate(fd, BYTES) == 0);
		if (i > 0)
			CHECK(mmap(at, BYTES, PROT_READ | PROT_EXEC,
				      MAP_SHARED | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0), fd,
				      0) == at);
		if (fd >= 0)
			close(fd);
		char link[96];
		struct stat st;
		snprintf(link, sizeof(link), "/proc/self/map_files/%llx-%llx",
			(unsigned long long)m.notice.vma_start,
			(unsigned long long)m.notice.vma_end);
		CHECK(stat(link, &st) == 0);
		m.notice.key.inode = st.st_ino;
		m.notice.key.dev = major(st.st_dev) << 20 | minor(st.st_dev);
		struct open_file f = { .fd = -77 };
		char path[OPEN_FILE_PATH_MAX] = "";
		CHECK(mapped_file_open(getpid(), &m.notice, &f, path, &e) == E_INVALID &&
			f.fd == -77);
		CHECK_STR(str_of(path), paths[i] ? paths[i] : m.path);
		/* Not for sure the one of the notice: it stays unknown. */
		m.notice.key.inode |= 1ull << 62; /* of no file: the next number may be another's */
		path[0] = 0;
		CHECK(mapped_file_open(getpid(), &m.notice, &f, path, &e) != OK && !path[0]);
		unmap_it(&m);
	}
	broker_stop();
}

TEST_MAIN(cmocka_unit_test(says_what_is_no_elf_file),
	cmocka_unit_test(a_library_that_is_mapped_no_more), cmocka_unit_test(opens_the_mapping),
	cmocka_unit_test(opens_a_mapping_that_was_split),
	cmocka_unit_test(another_file_at_the_same_address_is_refused),
	cmocka_unit_test(a_process_that_is_gone), cmocka_unit_test(the_program_itself))
