/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/jitnames/jitfile.h"

#include "base/clock.h"
#include "procfs/procfs.h"
#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ALL ((uint64_t)1 << 30)

static char path[64];
static struct jitfiles files;
static struct jitfiles_known known;
static struct lock lock = LOCK_INIT(LOCK_JITNAMES);
static struct file_key key; /* inode 0: places are addresses */
static uint64_t time_ns;

static void tell_in(const char *file, const char *mode, const void *bytes, size_t len)
{
	FILE *f = fopen(file, mode);
	assert_non_null(f);
	CHECK(fwrite(bytes, 1, len, f) == len);
	fclose(f);
}

static void tell(const char *mode, const char *text)
{
	tell_in(path, mode, text, strlen(text));
}

static int begin(void **state)
{
	(void)state;
	struct err e;
	struct procfs_stat stat;
	int pid = (int)getpid();
	CHECK_OK(procfs_stat(pid, &stat, &e), &e);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	CHECK(jitfiles_init(&files, pid, stat.start_ticks * (1000000000 / ticks)) == OK);
	key = (struct file_key){ .inode = 0 };
	time_ns = (uint64_t)clock_monotonic_ns();
	return 0;
}

static int end(void **state)
{
	(void)state;
	jitfiles_deinit(&files);
	unlink(path);
	return 0;
}

static struct str name_at(uint64_t at)
{
	struct jit_found found;
	if (key.inode && !jitfiles_address(&files, &key, at, &at))
		return STR("nowhere");
	return jit_map_find(files.map, at, time_ns, &found) ? found.name : STR("none");
}

static struct str name_then(uint64_t at)
{
	jitfiles_open(&files, &known, &lock);
	(void)jitfiles_read(&files, &lock, ALL);
	return name_at(at);
}

static void reads_a_file_that_was_written_anew(void **state)
{
	(void)state;
	tell("w", "1000 10 before\n");
	CHECK_STR(name_then(0x1000), "before");
	tell("w", "4000 10 another and longer\n1000 10 after\n");
	CHECK_STR(name_then(0x4000), "another and longer");
	time_ns = (uint64_t)clock_monotonic_ns();
	CHECK_STR(name_at(0x1000), "after");
}

static void takes_no_file_of_a_process_before(void **state)
{
	(void)state;
	const struct timespec old[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	tell("w", "1000 10 not mine\n");
	CHECK(utimensat(AT_FDCWD, path, old, 0) == 0);
	CHECK_STR(name_then(0x1000), "none");
}

/* A header, and a function at 0x5000 since `since_ns`. */
static size_t make_dump(uint8_t out[4096], uint64_t since_ns)
{
	const uint32_t head[] = { 0x4A695444, 1, 40, EM_X86_64, 0, 1, 0, 0, 0, 0 };
	const uint32_t record[] = { 0, 16 + 40 + 8 };
	const uint64_t load[] = { 0, 0x5000, 0x5000, 64, 1 };
	memset(out, 0, 4096);
	memcpy(out, head, 40);
	memcpy(out + 40, record, 8);
	memcpy(out + 48, &since_ns, 8);
	memcpy(out + 56, load, 40);
	memcpy(out + 96, "dumped", 7);
	return 104;
}

static void finds_a_jitdump_by_its_mapping(void **state)
{
	(void)state;
	uint8_t bytes[4096];
	char dump[64], link[96];
	uint64_t now = (uint64_t)clock_monotonic_ns();
	snprintf(dump, sizeof(dump), "/tmp/jit-%d.dump", (int)getpid());
	tell_in(dump, "w", bytes, make_dump(bytes, now));
	int fd = open(dump, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	unlink(dump);
	CHECK(at != MAP_FAILED);
	snprintf(link, sizeof(link), "/proc/self/map_files/%lx-%lx", (long)at, (long)at + 4096);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		SKIP("/proc/PID/map_files cannot be opened: CAP_CHECKPOINT_RESTORE is missing");
	close(fd);
	time_ns = now + 1;
	CHECK_STR(name_then(0x5000), "dumped");
	time_ns = now - 10 * (uint64_t)NS_PER_SEC;
	CHECK_STR(name_at(0x5000), "none");
	munmap(at, 4096);
}

/* A frame of code in a memfd is an offset in it; its names are of addresses. */
static void knows_where_a_file_is_mapped(void **state)
{
	(void)state;
	char text[64];
	struct stat st;
	int fd = memfd_create("code", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, 3 * 4096) == 0 && fstat(fd, &st) == 0);
	/* As each region of a large program is one. */
	void *others[200];
	for (size_t i = 0; i < ARRAY_COUNT(others); i++)
		others[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	void *at = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 4096);
	CHECK(at != MAP_FAILED);
	snprintf(text, sizeof(text), "%lx 100 mapped\n", (long)at + 0x200);
	tell("w", text);
	key = (struct file_key){ .inode = st.st_ino,
		.dev = (uint32_t)(major(st.st_dev) << 20 | minor(st.st_dev)) };
	CHECK_STR(name_then(0x1234), "mapped");
	CHECK_STR(name_then(0x1134), "none");
	CHECK_STR(name_then(0x4000), "nowhere");
	munmap(at, 8192);
	CHECK(files.mapping_count >= ARRAY_COUNT(others));
	for (size_t i = 0; i < ARRAY_COUNT(others); i++)
		munmap(others[i], 4096);
	close(fd);
}

/* Beyond its share, it goes on with the next. */
static void reads_no_more_than_it_may(void **state)
{
	(void)state;
	static char text[JIT_DUMP_WINDOW_BYTES * 3];
	memset(text, 'x', sizeof(text));
	for (size_t at = 0; at + 64 <= sizeof(text); at += 64) {
		char line[65];
		snprintf(line, sizeof(line), "%zx 10 %050d", 0x10000 + at, 7);
		memcpy(text + at, line, strlen(line));
		text[at + 63] = '\n';
	}
	tell_in(path, "w", text, sizeof(text));
	jitfiles_open(&files, &known, &lock);
	uint64_t first = jitfiles_read(&files, &lock, 1);
	CHECK(first > 0 && first <= JIT_DUMP_WINDOW_BYTES);
	CHECK(jitfiles_read(&files, &lock, ALL) == sizeof(text) - first);
	assert_int_equal(jit_map_len(files.map), sizeof(text) / 64);
}

/* As one that is pinned in a broker is closed for another's sake, and opened again. */
static void reads_on_in_a_file_that_was_closed(void **state)
{
	(void)state;
	struct jitfile taken;
	tell("w", "1000 10 first\n");
	CHECK_STR(name_then(0x1000), "first");
	CHECK(!jitfiles_take_pinned(&files, &taken));
	close(files.perfmap.fd);
	files.perfmap.is_pinned = true;
	CHECK(jitfiles_take_pinned(&files, &taken));
	jitfile_close(&taken); /* there is no broker */
	CHECK(!jitfiles_has_any(&files));
	CHECK_STR(name_at(0x1000), "first");
	tell("a", "2000 10 second\n");
	CHECK_STR(name_then(0x2000), "second");
	assert_int_equal(jit_map_len(files.map), 2);
}

static void takes_a_pinned_file_to_have_grown(void **state)
{
	(void)state;
	tell("w", "1000 10 first\n");
	CHECK_STR(name_then(0x1000), "first");
	uint64_t read = (uint64_t)files.read_ns;
	CHECK(!jitfiles_have_grown(&files, read + 1000, 100));
	files.perfmap.is_pinned = true;
	CHECK(!jitfiles_have_grown(&files, read + 100, 100));
	CHECK(jitfiles_have_grown(&files, read + 101, 100));
	files.perfmap.is_pinned = false;
}

TEST_MAIN(cmocka_unit_test_setup_teardown(reads_a_file_that_was_written_anew, begin, end),
	cmocka_unit_test_setup_teardown(takes_no_file_of_a_process_before, begin, end),
	cmocka_unit_test_setup_teardown(finds_a_jitdump_by_its_mapping, begin, end),
	cmocka_unit_test_setup_teardown(reads_on_in_a_file_that_was_closed, begin, end),
	cmocka_unit_test_setup_teardown(takes_a_pinned_file_to_have_grown, begin, end),
	cmocka_unit_test_setup_teardown(knows_where_a_file_is_mapped, begin, end),
	cmocka_unit_test_setup_teardown(reads_no_more_than_it_may, begin, end))
