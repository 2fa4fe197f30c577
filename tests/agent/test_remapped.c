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

static struct remapped r;
static int64_t now_ns = 1;

static const struct remapped_region *find(int pid, uint64_t start_ns, const uint8_t *address)
{
	return remapped_find(&r, pid, start_ns, (uint64_t)address, now_ns);
}

static void finds_the_file(void **state)
{
	(void)state;
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
	const struct remapped_region *g = find(pid, 1, p + 3 * PAGE + 5);
	CHECK(g && g->key.inode == st.st_ino && g->start == (uint64_t)p + 3 * PAGE);
	CHECK(g->offset == 4 * PAGE && g->end == g->start + PAGE);
	g = find(pid, 1, p + 2 * PAGE);
	CHECK(g && g->offset == 3 * PAGE);
	static const int others[] = { 0, 1, 4, 5, 6, 7, 8 };
	for (size_t i = 0; i < ARRAY_COUNT(others); i++)
		CHECK(!find(pid, 1, p + (size_t)others[i] * PAGE));
	/* Another process of the number is looked at by itself; one that has ended has nothing. */
	munmap(p, PAGES * PAGE);
	CHECK(find(pid, 1, p + 2 * PAGE));
	CHECK(!find(pid, 2, p + 2 * PAGE));
	CHECK(!find(1 << 30, 1, p + 2 * PAGE));
	/* Three places are taken. One too many is not read before the oldest may give way. */
	for (int i = 0; i < REMAPPED_PROCESSES_MAX - 3; i++)
		CHECK(!find((1 << 30) + 1 + i, 3, NULL));
	p = map_file(path, fd);
	replace(p + 2 * PAGE, PROT_READ | PROT_EXEC);
	CHECK(!find(pid, 3, p + 2 * PAGE));
	now_ns += REMAPPED_READ_NS + 1;
	CHECK(find(pid, 3, p + 2 * PAGE));
	munmap(p, PAGES * PAGE);
	close(fd);
	unlink(path);
}

TEST_MAIN(cmocka_unit_test(finds_the_file))
