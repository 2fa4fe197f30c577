/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever names addresses is shown. Over whole files.c: test_files.c. */
#include "test.h"

#include "agent/files/announce.h"
#include "gen/elf.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct shown {
	uint32_t count;
	uint32_t self_count; /* of these, this very program */
	char build_id[129];
	char path[OPEN_FILE_PATH_MAX];
	char magic[4];
	uint64_t bytes;
	uint32_t stop_after; /* 0: never */
};

static struct files_metrics metrics;

static void note(void *ctx, const char *build_id, const char *path, int fd)
{
	struct shown *s = ctx;
	struct stat st, self;
	CHECK(fstat(fd, &st) == 0 && stat("/proc/self/exe", &self) == 0);
	s->count++;
	s->self_count += st.st_ino == self.st_ino && st.st_dev == self.st_dev;
	snprintf(s->build_id, sizeof(s->build_id), "%s", build_id);
	snprintf(s->path, sizeof(s->path), "%s", path);
	s->bytes = (uint64_t)st.st_size;
	CHECK(pread(fd, s->magic, 4, 0) == 4);
}

static bool goes_on(void *ctx)
{
	const struct shown *s = ctx;
	return !s->stop_after || s->count < s->stop_after;
}

static struct announce offer_to(struct shown *s)
{
	return (struct announce){ .seen = note, .seen_ctx = s, .metrics = &metrics };
}

static void shows_a_file_by_a_descriptor_of_its_own(void **state)
{
	(void)state;
	struct gen_elf g;
	struct err e = { 0 };
	struct elf_load load = { .metrics = &metrics };
	struct opened o = { .file.fd = -1, .path = "/opt/app" };
	gen_elf_init(&g);
	gen_elf_finish(&g);
	int fd = memfd_create("app", MFD_CLOEXEC);
	CHECK_OK(os_write_full(fd, g.file.data, g.file.len, "app", &e), &e);
	CHECK_OK(open_file_init(&o.file, fd, o.path, &e), &e);
	CHECK_OK(elf_load_examine(&load, &o, &e), &e);
	struct shown s = { 0 };
	struct announce f = offer_to(&s);
	announce_show(&f, &o);
	CHECK(s.count == 1 && s.bytes == g.file.len &&
		memcmp(s.magic,
			"\x7f"
			"ELF",
			4) == 0);
	CHECK_STR(str_of(s.path), "/opt/app");
	CHECK_STR(str_of(s.build_id), o.build_id);
	CHECK(s.build_id[0] == 'x'); /* it has none of its own */
	f.seen = NULL;
	announce_show(&f, &o);
	CHECK(s.count == 1 && metric_get(&metrics.not_shared) == 0);
	opened_close(&o);
	gen_elf_deinit(&g);
}

static void shows_the_vdso_as_a_file(void **state)
{
	(void)state;
	struct objfile *vdso = NULL;
	struct str image = STR("");
	struct err e = { 0 };
	CHECK_OK(open_file_vdso(&vdso, &image, &e), &e);
	if (!vdso)
		skip();
	struct shown s = { 0 };
	struct announce f = offer_to(&s);
	announce_show_vdso(&f, vdso, image);
	CHECK(s.count == 1 && s.bytes == image.len);
	CHECK_STR(str_of(s.path), "[vdso]");
	CHECK_STR(str_of(s.build_id), objfile_build_id(vdso));
	objfile_close(vdso);
}

static void shows_all_that_is_mapped(void **state)
{
	(void)state;
	struct elf_load load = { .metrics = &metrics };
	struct shown s = { 0 };
	struct announce f = offer_to(&s);
	f.only_pid = getpid();
	announce_show_all(&f, &load, goes_on, &s);
	CHECK(s.self_count == 1 && s.count >= 3); /* and libc, ld.so */
	uint32_t all = s.count;
	s = (struct shown){ .stop_after = 2 };
	announce_show_all(&f, &load, goes_on, &s);
	CHECK(s.count == 2 && all > 2);
	f.seen = NULL;
	announce_show_all(&f, &load, goes_on, &s);
	CHECK(s.count == 2);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_a_file_by_a_descriptor_of_its_own),
		cmocka_unit_test(shows_the_vdso_as_a_file),
		cmocka_unit_test(shows_all_that_is_mapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
