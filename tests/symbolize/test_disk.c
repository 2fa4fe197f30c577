/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of tables keeps to its size: what was used lately stays. */
#include "own.h"

#include "base/clock.h"

#include <sys/stat.h>

#define KIB ((uint64_t)1024)

/* DIR/aa/0N.sym of so many KiB, used so many hours ago. */
static void put_table(int number, int kib, int hours)
{
	shell("mkdir -p %s/aa && head -c %dK /dev/urandom > %s/aa/%02d.sym && "
	      "touch -d '%d hours ago' %s/aa/%02d.sym",
		t.dir, kib, t.dir, number, hours, t.dir, number);
}

static bool has_table(const char *name)
{
	char path[1100];
	snprintf(path, sizeof(path), "%s/%s", t.dir, name);
	return access(path, F_OK) == 0;
}

static uint64_t bytes_on_disk(void)
{
	char path[256];
	struct stat st;
	uint64_t bytes = 0;
	for (int i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "%s/aa/%02d.sym", t.dir, i);
		bytes += stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
	}
	return bytes;
}

static void start_again(uint64_t disk_bytes)
{
	symbolizer_free(t.s);
	t.config.disk_bytes = disk_bytes;
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
}

static void ask_for_own(void)
{
	CHECK_OK(profile_clear(&t.p), NULL);
	uint32_t a = add_location(
		add_mapping(t.exe, t.build_id, 0, 0, 0), outer_function(1) - base(), FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
}

static void leaves_what_fits(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		put_table(i, 100, i);
	start_again(KIB * KIB);
	CHECK(bytes_on_disk() >= 400 * KIB);
	CHECK(metric("firn_symbolizer_disk_bytes") == bytes_on_disk());
	CHECK(metric("firn_symbolizer_tables_dropped_total") == 0);
}

static void drops_the_longest_unused_at_the_start(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		put_table(i, 100, 10 - i);
	shell("echo mine > %s/aa/notes", t.dir);
	start_again(900 * KIB);
	CHECK(bytes_on_disk() <= 675 * KIB && bytes_on_disk() > 500 * KIB);
	CHECK(!has_table("aa/00.sym") && !has_table("aa/01.sym") && has_table("aa/09.sym"));
	CHECK(has_table("aa/notes"));
	CHECK(metric("firn_symbolizer_disk_bytes") == bytes_on_disk());
	CHECK(metric("firn_symbolizer_tables_dropped_total") >= 3);
}

/* A table that is made makes others go, and not itself, however large it is. */
static void makes_room_for_a_new_one(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		put_table(i, 100, 5);
	start_again(500 * KIB);
	CHECK(bytes_on_disk() >= 400 * KIB);
	t.config.disk_bytes = 1;
	start_again(1);
	CHECK(bytes_on_disk() == 0);
	ask_for_own();
	char own[1024];
	snprintf(own, sizeof(own), "%.2s/%s.sym", t.build_id, t.build_id + 2);
	CHECK(has_table(own));
	put_table(1, 100, 5);
	start_again(1);
	CHECK(!has_table(own) && !has_table("aa/01.sym"));
	ask_for_own(); /* the file is there, so it is made again */
	CHECK(has_table(own));
}

static void knows_what_is_used(void **state)
{
	(void)state;
	char own[1024];
	struct stat st;
	ask_for_own();
	snprintf(own, sizeof(own), "%s/%.2s/%s.sym", t.dir, t.build_id, t.build_id + 2);
	shell("touch -d '100 hours ago' %s", own);
	put_table(1, 4096, 50);
	start_again((uint64_t)1 << 40);
	ask_for_own();
	CHECK(stat(own, &st) == 0 && clock_realtime_ns() / NS_PER_SEC - st.st_mtim.tv_sec < 3600);
	start_again((uint64_t)st.st_blocks * 512 + 2048 * KIB);
	CHECK(stat(own, &st) == 0 && !has_table("aa/01.sym"));
}

TEST_MAIN_WITH(debuginfo_child_main, CASE(leaves_what_fits),
	CASE(drops_the_longest_unused_at_the_start), CASE(makes_room_for_a_new_one),
	CASE(knows_what_is_used))
