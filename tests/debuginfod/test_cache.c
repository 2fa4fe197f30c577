/* SPDX-License-Identifier: Apache-2.0 */
/* Files in their places, and the oldest go. */
#include "test.h"

#include "debuginfod/cache.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *dir, const char *id, int64_t age_s)
{
	char path[PATH_MAX], name[PATH_MAX];
	struct err e;
	static char bytes[8192];
	CHECK_OK(debuginfod_cache_temporary(dir, path, &e), &e);
	CHECK_OK(os_replace_file(path, bytes, sizeof(bytes), 0600, &e), &e);
	CHECK_OK(debuginfod_cache_keep(dir, path, id, DEBUGINFOD_CACHE_DEBUG, &e), &e);
	snprintf(name, sizeof(name), "%.999s/.build-id/%.2s/%.128s.debug", dir, id, id + 2);
	const struct timespec times[2] = { { .tv_sec = 1000000 - age_s },
		{ .tv_sec = 1000000 - age_s } };
	CHECK(utimensat(AT_FDCWD, name, times, 0) == 0);
}

static bool has(const char *dir, const char *id)
{
	return debuginfod_cache_has(dir, id, DEBUGINFOD_CACHE_DEBUG);
}

static void keeps_the_youngest(void **state)
{
	(void)state;
	char dir[64], path[PATH_MAX];
	struct err e;
	uint64_t removed = 0;
	snprintf(dir, sizeof(dir), "/tmp/firn-test-cache-XXXXXX");
	CHECK(mkdtemp(dir));
	CHECK(debuginfod_cache_trim(dir, 1000, NULL, &removed) == 0);
	put(dir, "aabbccdd", 30);
	put(dir, "aabbccee", 10);
	put(dir, "ffbbccee", 20);
	CHECK(has(dir, "aabbccdd") && !has(dir, "aabbccdf"));
	/* What was not whole goes, too. */
	CHECK_OK(debuginfod_cache_temporary(dir, path, &e), &e);
	CHECK_OK(os_replace_file(path, "x", 1, 0600, &e), &e);
	CHECK(debuginfod_cache_trim(dir, 3 * 8192, NULL, &removed) == 3 * 8192 && removed == 0);
	CHECK(access(path, F_OK) < 0);
	CHECK(debuginfod_cache_trim(dir, 2 * 8192, NULL, &removed) == 2 * 8192 && removed == 1);
	CHECK(!has(dir, "aabbccdd"));
	char keep[PATH_MAX];
	CHECK_OK(debuginfod_cache_path(dir, "ffbbccee", DEBUGINFOD_CACHE_DEBUG, keep, &e), &e);
	CHECK(debuginfod_cache_trim(dir, 8192, keep, &removed) == 8192 && removed == 2);
	CHECK(has(dir, "ffbbccee"));
	CHECK(debuginfod_cache_trim(dir, 0, NULL, &removed) == 0 && removed == 3);
	char command[100];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0); /* NOLINT */
}

TEST_MAIN(cmocka_unit_test(keeps_the_youngest))
