/* SPDX-License-Identifier: Apache-2.0 */
/* Text that this process has replaced by anonymous memory, and code that only lies beside a file.
 */
#include "test.h"

#include "agent/files/remapped.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 8

static uint8_t *map_file(const char *path, int fd)
{
	(void)path;
	uint8_t *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);
	CHECK(p != MAP_FAILED);
	return p;
}

static void replace(uint8_t *p, int prot)
{
	CHECK(mmap(p, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
}

static void finds_the_file(void **state)
{
	(void)state;
	static struct remapped r;
	char path[] = "/tmp/firn-test-remapped-XXXXXX";
	struct stat st;
	int fd = mkstemp(path);
	CHECK(fd >= 0 && ftruncate(fd, (PAGES + 1) * PAGE) == 0 && fstat(fd, &st) == 0);
	uint8_t *p = map_file(path, fd);
	/* Pages 2 and 3, with different rights, so that they are two mappings; 5 is data. */
	replace(p + 2 * PAGE, PROT_READ | PROT_EXEC);
	replace(p + 3 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	replace(p + 5 * PAGE, PROT_READ | PROT_WRITE);
	replace(p + 7 * PAGE, PROT_READ | PROT_EXEC); /* nothing behind it says whose it was */
	int pid = (int)getpid();
	const struct remapped_region *g = remapped_find(&r, pid, 1, (uint64_t)p + 3 * PAGE + 5);
	CHECK(g && g->key.inode == st.st_ino && g->start == (uint64_t)p + 3 * PAGE);
	CHECK(g->offset == 4 * PAGE && g->end == g->start + PAGE);
	g = remapped_find(&r, pid, 1, (uint64_t)p + 2 * PAGE);
	CHECK(g && g->offset == 3 * PAGE);
	static const int others[] = { 0, 1, 4, 5, 6, 7, 8 };
	for (size_t i = 0; i < ARRAY_COUNT(others); i++)
		CHECK(!remapped_find(&r, pid, 1, (uint64_t)p + (uint64_t)others[i] * PAGE));
	/* Another process of the number is looked at by itself; one that has ended has nothing. */
	munmap(p, PAGES * PAGE);
	CHECK(remapped_find(&r, pid, 1, (uint64_t)p + 2 * PAGE));
	CHECK(!remapped_find(&r, pid, 2, (uint64_t)p + 2 * PAGE));
	CHECK(!remapped_find(&r, 1 << 30, 1, (uint64_t)p + 2 * PAGE));
	/* The oldest gives way. */
	for (int i = 0; i < REMAPPED_PROCESSES_MAX; i++)
		CHECK(!remapped_find(&r, (1 << 30) + i, 3, 0));
	CHECK(!remapped_find(&r, pid, 1, (uint64_t)p + 2 * PAGE));
	close(fd);
	unlink(path);
}

TEST_MAIN(cmocka_unit_test(finds_the_file))
