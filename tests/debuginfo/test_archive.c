/* SPDX-License-Identifier: Apache-2.0 */
/* Archives as GNU tar writes them in each of its formats, and bad ones. */
#include "test.h"

#include "codec/codec.h"
#include "debuginfo/debuginfo.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];
static char long_name[300];

PRINTF(1, 2) static void shell(const char *format, ...)
{
	char command[2048];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	CHECK(system(command) == 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/firn_archive_XXXXXX");
	CHECK(mkdtemp(dir));
	memset(long_name, 'n', 200);
	for (size_t i = 20; i < 200; i += 40)
		long_name[i] = '/';
	shell("mkdir -p %s/src/$(dirname %s) && cd %s && printf 'int main' > src/main.c && "
	      "printf deep > src/%s && : > src/empty.h && ln -s main.c src/link.c && "
	      "head -c 300000 /dev/urandom > src/big",
		dir, long_name, dir, long_name);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	shell("rm -rf %s", dir);
	return 0;
}

static enum status find(int fd, const char *path, struct buf *out, struct err *e)
{
	return debuginfo_archive_find(fd, str_of(path), NULL, NULL, out, e);
}

static int open_archive(const char *name)
{
	char path[256];
	int fd = -1;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK_OK(os_open_regular(-100, path, &fd, NULL), NULL);
	return fd;
}

static void each_format(void **state)
{
	(void)state;
	static const char *const formats[] = { "gnu", "posix", "ustar", "oldgnu" };
	for (size_t i = 0; i < 2 * ARRAY_COUNT(formats); i++) {
		const char *pack = i % 2 ? "gzip" : "zstd -q";
		char long_path[320];
		shell("cd %s && tar --format=%s -cf t src ./src/main.c && %s -f -c t > a.packed",
			dir, formats[i / 2], pack);
		CLEANUP(fd_cleanup) int fd = open_archive("a.packed");
		CLEANUP(buf_deinit) struct buf b;
		struct err e = { 0 };
		buf_init(&b, 1 << 20);
		CHECK_OK(find(fd, "/src/main.c", &b, &e), &e);
		CHECK_STR(buf_view(&b), "int main");
		buf_clear(&b);
		CHECK_OK(find(fd, "src/empty.h", &b, &e), &e);
		CHECK(b.len == 0);
		snprintf(long_path, sizeof(long_path), "./src/%s", long_name);
		CHECK_OK(find(fd, long_path, &b, &e), &e);
		CHECK_STR(buf_view(&b), "deep");
		CHECK(find(fd, "src/link.c", &b, &e) == E_NOTFOUND);
		CHECK(find(fd, "main.c", &b, &e) == E_NOTFOUND);
		buf_clear(&b);
		b.max = 100;
		CHECK(find(fd, "src/big", &b, &e) == E_LIMIT && b.len == 0);
	}
}

static bool say_yes(void *ctx)
{
	++*(int *)ctx;
	return true;
}

static void bad(void **state)
{
	(void)state;
	shell("cd %s && tar -cf t src && zstd -q -f -c t > good && head -c 200000 good > cut && "
	      "head -c 70000 t | gzip > torn && printf 'no archive at all, but %%600s' x | gzip > "
	      "text && : > empty && head -c 100 /dev/zero > zero && gzip < t > g && "
	      "(head -c 100000 g; head -c 1000 /dev/urandom; tail -c 100000 g) > holed && "
	      "head -c 200 t | gzip > short",
		dir);
	static const struct {
		const char *name, *says;
	} cases[] = { { "cut", "it ends too early, after " }, { "torn", "it ends too early" },
		{ "text", "no tar header before +512" }, { "empty", "neither gzip nor zstd" },
		{ "zero", "neither gzip nor zstd" }, { "holed", "after " },
		{ "short", "it ends too early, after 200 bytes" } };
	FOR_EACH_CASE (c, cases) {
		CLEANUP(fd_cleanup) int fd = open_archive(c->name);
		CLEANUP(buf_deinit) struct buf b;
		struct err e = { 0 };
		buf_init(&b, 1 << 20);
		enum status s = find(fd, "not/there", &b, &e);
		if (s != E_CORRUPT || !strstr(e.text, c->says))
			print_error("%s: %s\n", status_name(s), e.text);
		CHECK_CASE(c, s == E_CORRUPT && strstr(e.text, c->says));
	}
	CLEANUP(fd_cleanup) int fd = open_archive("good");
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	int asked = 0;
	buf_init(&b, 1 << 20);
	CHECK(debuginfo_archive_find(fd, STR("x"), say_yes, &asked, &b, &e) == E_CANCELED);
	CHECK(asked == 1);
}

/* A header of 512 bytes with its checksum. */
static void header(struct buf *b, const char *name, char kind, const char *size)
{
	char h[512] = "";
	unsigned sum = 0;
	snprintf(h, 100, "%s", name);
	memcpy(h + 124, size, 12);
	memcpy(h + 148, "        ", 8);
	h[156] = kind;
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	buf_put(b, h, sizeof(h));
}

static enum status find_in(struct buf *tar, const char *path, struct buf *out, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = memfd_create("archive", 0);
	CLEANUP(buf_deinit) struct buf packed;
	buf_init(&packed, 64 << 20);
	CHECK(fd >= 0 && codec_gzip(tar->data, tar->len, 1, &packed) == OK);
	CHECK_OK(os_write_full(fd, packed.data, packed.len, "it", e), e);
	return find(fd, path, out, e);
}

static void hostile_headers(void **state)
{
	(void)state;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf tar;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&tar, 64 << 20);
	buf_init(&out, DEBUGINFO_SOURCE_BYTES_MAX);
	header(&tar, "a", '0', "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
	CHECK(find_in(&tar, "b", &out, &e) == E_CORRUPT); /* so long, and ends here */
	CHECK(find_in(&tar, "a", &out, &e) == E_LIMIT);
	buf_clear(&tar);
	header(&tar, "a", '0', "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
	CHECK(find_in(&tar, "b", &out, &e) == E_CORRUPT);
	buf_clear(&tar);
	header(&tar, "a", 'L', "00000777777\0");
	CHECK(find_in(&tar, "b", &out, &e) == E_LIMIT);
	static const char *const pax[] = { "99 path=x\n", "5 path=x\n", "x", "3 \n",
		"11 size=abc\n", "18446744073709551616 path=x\n" };
	for (size_t i = 0; i < ARRAY_COUNT(pax); i++) {
		char size[16];
		buf_clear(&tar);
		snprintf(size, sizeof(size), "%011o", (unsigned)strlen(pax[i]));
		header(&tar, "a", 'x', size);
		buf_cstr(&tar, pax[i]);
		buf_zero(&tar, 512 - strlen(pax[i]));
		header(&tar, "a", '0', "00000000000\0");
		CHECK(find_in(&tar, "b", &out, &e) == E_CORRUPT);
	}
	/* A path over another: the last word before the file counts. */
	buf_clear(&tar);
	header(&tar, "a", 'x', "00000000015\0");
	buf_cstr(&tar, "13 path=/b/c\n");
	buf_zero(&tar, 512 - 13);
	header(&tar, "a", '0', "00000000002\0");
	buf_cstr(&tar, "hi");
	buf_zero(&tar, 510);
	CHECK_OK(find_in(&tar, "b/c", &out, &e), &e);
	CHECK_STR(buf_view(&out), "hi");
	CHECK(find_in(&tar, "a", &out, &e) == E_NOTFOUND);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(each_format, setup, teardown),
	cmocka_unit_test_setup_teardown(bad, setup, teardown), cmocka_unit_test(hostile_headers))
