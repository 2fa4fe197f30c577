/* SPDX-License-Identifier: Apache-2.0 */
/* What is packed comes out again, by our own reader and by tar. */
#include "made.h"

#include "codec/codec.h"

#include <sys/mman.h>

static char long_path[DEBUGINFO_ARCHIVE_PATH_MAX + 2];

static struct str path_of(size_t len)
{
	for (size_t i = 0; i < len; i++)
		long_path[i] = i % 50 == 49 ? '/' : 'd';
	return str_make(long_path, len);
}

static struct debuginfo_pack *begin(int *out_fd)
{
	struct debuginfo_pack *p;
	struct err e = { 0 };
	*out_fd = memfd_create("archive", MFD_CLOEXEC);
	CHECK(*out_fd >= 0);
	CHECK_OK(debuginfo_pack_new(*out_fd, &p, &e), &e);
	return p;
}

static void check_found(int fd, struct str path, struct str want)
{
	CLEANUP(buf_deinit) struct buf got;
	struct err e = { 0 };
	buf_init(&got, DEBUGINFO_SOURCE_BYTES_MAX);
	CHECK_OK(debuginfo_archive_find(fd, path, NULL, NULL, &got, &e), &e);
	CHECK(str_eq(buf_view(&got), want));
}

/* Several frames, since more than 4 MiB of text go in. */
static void finds_what_was_packed(void **state)
{
	(void)state;
	static char big[6 << 20];
	struct err e = { 0 };
	int fd;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)('a' + (i * i >> 7) % 23);
	struct debuginfo_pack *p = begin(&fd);
	CHECK_OK(debuginfo_pack_add(p, STR("/src/main.c"), STR("int main"), &e), &e);
	CHECK_OK(debuginfo_pack_add(p, STR("big"), str_make(big, sizeof(big)), &e), &e);
	CHECK_OK(debuginfo_pack_add(p, STR("empty"), STR(""), &e), &e);
	CHECK_OK(debuginfo_pack_add(p, path_of(100), STR("100"), &e), &e);
	CHECK_OK(debuginfo_pack_add(p, path_of(101), STR("101"), &e), &e);
	CHECK_OK(debuginfo_pack_add(p, path_of(DEBUGINFO_ARCHIVE_PATH_MAX), STR("most"), &e), &e);
	CHECK_OK(debuginfo_pack_end(p, &e), &e);
	debuginfo_pack_free(p);
	check_found(fd, STR("src/main.c"), STR("int main"));
	check_found(fd, STR("big"), str_make(big, sizeof(big)));
	check_found(fd, STR("empty"), STR(""));
	check_found(fd, path_of(100), STR("100"));
	check_found(fd, path_of(101), STR("101"));
	check_found(fd, path_of(DEBUGINFO_ARCHIVE_PATH_MAX), STR("most"));
	close(fd);
}

static void is_read_by_tar(void **state)
{
	(void)state;
	struct err e = { 0 };
	int fd;
	struct debuginfo_pack *p = begin(&fd);
	CHECK_OK(debuginfo_pack_add(p, STR("src/main.c"), STR("int main"), &e), &e);
	CHECK_OK(debuginfo_pack_add(p, path_of(151), STR("deep"), &e), &e);
	CHECK_OK(debuginfo_pack_end(p, &e), &e);
	debuginfo_pack_free(p);
	CLEANUP(buf_deinit) struct buf packed, plain;
	buf_init(&packed, 1 << 20);
	buf_init(&plain, 1 << 20);
	ssize_t n = pread(fd, buf_reserve(&packed, 65536), 65536, 0);
	CHECK(n > 0);
	CHECK_OK(codec_zstd_decompress(packed.data, (size_t)n, &plain, &e), &e);
	char path[128], command[512];
	snprintf(path, sizeof(path), "%s/a.tar", made_dir);
	CHECK_OK(os_replace_file(path, plain.data, plain.len, 0644, &e), &e);
	made_run("tar xf a.tar && printf 'int main' | cmp - src/main.c");
	snprintf(command, sizeof(command), "printf deep | cmp - %.151s", long_path);
	made_run(command);
	made_run("test $(tar tvf a.tar | wc -l) = 2");
	close(fd);
}

static void has_limits(void **state)
{
	(void)state;
	struct err e = { 0 };
	int fd;
	struct debuginfo_pack *p = begin(&fd);
	CHECK(debuginfo_pack_add(p, path_of(DEBUGINFO_ARCHIVE_PATH_MAX + 1), STR(""), &e) ==
		E_LIMIT);
	CHECK(debuginfo_pack_add(p, STR("x"), str_make("", DEBUGINFO_SOURCE_BYTES_MAX + 1), &e) ==
		E_LIMIT);
	CHECK(strstr(e.text, "x: 33554433 bytes"));
	debuginfo_pack_free(p);
	close(fd);
	debuginfo_pack_free(NULL);
}

static void tells_what_cannot_be_written(void **state)
{
	(void)state;
	struct debuginfo_pack *p;
	struct err e = { 0 };
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	CHECK(full >= 0);
	CHECK_OK(debuginfo_pack_new(full, &p, &e), &e);
	CHECK_OK(debuginfo_pack_add(p, STR("x"), STR("y"), &e), &e);
	CHECK(debuginfo_pack_end(p, &e) != OK && e.text[0]);
	debuginfo_pack_free(p);
	close(full);
}

TEST_MAIN(MADE(finds_what_was_packed), MADE(is_read_by_tar), MADE(has_limits),
	MADE(tells_what_cannot_be_written))
