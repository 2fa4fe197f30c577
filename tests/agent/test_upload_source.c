/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes are sent of a file, and of which file. Without a broker, as its own user. */
#include "test.h"

#include "agent/uploader/upload_source.h"
#include "gen/elf.h"
#include "os/os.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

static struct file_key key;
static bool is_known;
static struct upload_source source;

static bool find_key(void *ctx, uint32_t file_id, struct file_key *out)
{
	(void)ctx;
	CHECK(file_id == 7);
	*out = key;
	return is_known;
}

/* A program of 20 KiB of code, with a build id, and symbols if asked for. */
static int make_file(const char *symbols)
{
	static const uint8_t code[20480];
	static const uint8_t symbol_bytes[72];
	struct gen_elf g;
	struct buf notes;
	uint8_t id[20] = { 0xab, 0xcd };
	gen_elf_init(&g);
	uint32_t i = gen_section(
		&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof(code));
	gen_load(&g, i, PF_R | PF_X);
	buf_init(&notes, 4096);
	gen_note(&notes, "GNU", 3, id, sizeof(id));
	gen_section(&g, ".note.gnu.build-id", SHT_NOTE, 0, 0, notes.data, notes.len);
	buf_deinit(&notes);
	if (symbols)
		gen_section(&g, symbols, SHT_SYMTAB, 0, 0, symbol_bytes, sizeof(symbol_bytes));
	gen_elf_finish(&g);
	int fd = memfd_create("app", MFD_CLOEXEC);
	CHECK(fd >= 0 && os_write_full(fd, g.file.data, g.file.len, "app", NULL) == OK);
	gen_elf_deinit(&g);
	return fd;
}

#define ID_REST "cd000000000000000000000000000000000000"
#define ID "ab" ID_REST

static struct upload_job job_of(const char *id, int fd)
{
	struct upload_job job = { .file_id = 7, .pid = getpid(), .fd = fd };
	snprintf(job.build_id, sizeof(job.build_id), "%s", id);
	snprintf(job.path, sizeof(job.path), "%s", "/nowhere/app");
	return job;
}

static enum status open_job(const struct upload_job *job, bool strip, struct err *e)
{
	const struct upload_source_config c = { .strip = strip };
	return upload_source_open(job, &c, find_key, NULL, &source, e);
}

static bool is_same(const struct upload_job *job)
{
	return upload_source_is_same(&source, job, find_key, NULL);
}

static void gives_what_has_names(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct stat st;
	uint8_t magic[4];
	int fd = make_file(".symtab");
	CHECK(fstat(fd, &st) == 0);
	struct upload_job job = job_of(ID, fd);
	for (int strip = 0; strip < 2; strip++) {
		CHECK_OK(open_job(&job, strip, &e), &e);
		CHECK(strip ? source.bytes < 2000 : source.bytes == (uint64_t)st.st_size);
		CHECK(source.id_type == UPLOAD_ID_GNU && strlen(source.hash) == 33);
		CHECK_OK(upload_source_read(&source, 0, magic, 4, &e), &e);
		CHECK(memcmp(magic,
			      "\x7f"
			      "ELF",
			      4) == 0);
		CHECK(is_same(&job));
		upload_source_close(&source);
	}
	close(fd);
	fd = make_file(NULL);
	job = job_of(ID, fd);
	CHECK(open_job(&job, true, &e) == E_UNSUPPORTED);
	CHECK(strstr(e.text, "nothing in it names a function") != NULL);
	close(fd);
}

static void sees_that_it_changed(void **state)
{
	(void)state;
	struct err e = { 0 };
	uint8_t bytes[2000];
	const struct timespec other[2] = { { 1, 0 }, { 1, 0 } };
	int fd = make_file(".symtab");
	struct upload_job job = job_of(ID, fd);
	CHECK_OK(open_job(&job, true, &e), &e);
	CHECK(is_same(&job) && futimens(fd, other) == 0 && !is_same(&job));
	upload_source_close(&source);
	CHECK_OK(open_job(&job, true, &e), &e);
	CHECK(source.bytes < sizeof(bytes) && is_same(&job) && ftruncate(fd, 100) == 0 &&
		!is_same(&job));
	/* Headers were read; of what is not there any more nothing is made up. */
	CHECK(upload_source_read(&source, 0, bytes, 64, &e) == OK);
	CHECK(upload_source_read(&source, 0, bytes, source.bytes, &e) == E_INVALID);
	upload_source_close(&source);
	CHECK(open_job(&job, true, &e) == E_INVALID);
	close(fd);
}

static void takes_no_other_file(void **state)
{
	(void)state;
	struct err e = { 0 };
	int fd = make_file(".symtab");
	struct upload_job job = job_of("abcdef", fd);
	CHECK(open_job(&job, true, &e) == E_NOTFOUND);
	CHECK(strstr(e.text, "another file by now") != NULL);
	close(fd);
	is_known = false;
	job = job_of("abcdef", -1);
	CHECK(open_job(&job, true, &e) != OK);
	job.pid = 0;
	CHECK(open_job(&job, true, &e) != OK);
	strcpy(job.path, "[heap]");
	CHECK(open_job(&job, true, &e) == E_NOTFOUND);
}

/* What a process runs now, and what is at its path when it has ended. */
static void opens_it_once_more(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct stat st;
	struct objfile *obj;
	char content[40], path[UPLOAD_QUEUE_PATH_MAX] = "";
	CHECK_OK(objfile_open("/proc/self/exe", &obj, &e), &e);
	CHECK_OK(objfile_content_id(obj, content, &e), &e);
	const char *id = objfile_build_id(obj)[0] ? objfile_build_id(obj) : content;
	CHECK(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	CHECK(stat("/proc/self/exe", &st) == 0);
	key = (struct file_key){ .dev = major(st.st_dev) << 20 | minor(st.st_dev),
		.inode = st.st_ino };
	is_known = true;
	struct upload_job job = job_of(id, -1);
	CHECK_OK(open_job(&job, false, &e), &e);
	CHECK(source.bytes == (uint64_t)st.st_size && is_same(&job));
	upload_source_close(&source);
	objfile_close(obj);
	job.pid = 0;
	strcpy(job.path, path);
	CHECK_OK(open_job(&job, true, &e), &e);
	upload_source_close(&source);
}

static void put(const char *folder, int fd)
{
	char path[PATH_MAX];
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf bytes;
	snprintf(path, sizeof(path), "%s/.build-id/ab", folder);
	CHECK_OK(os_make_dirs(path, &e), &e);
	snprintf(path, sizeof(path), "%s/.build-id/ab/" ID_REST ".debug", folder);
	buf_init(&bytes, 1 << 20);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK_OK(os_read_fd(fd, "file", &bytes, &e), &e);
	CHECK_OK(os_replace_file(path, bytes.data, bytes.len, 0644, &e), &e);
	close(fd);
}

/* In the folders that are named, in their order; one without names is none. */
static void takes_the_separate_debug_file(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct stat st;
	char root[] = "/tmp/firn-test-upload_source-XXXXXX", first[64], second[64], command[96];
	CHECK(mkdtemp(root));
	snprintf(first, sizeof(first), "%s/first", root);
	snprintf(second, sizeof(second), "%s/second", root);
	const char *const folders[] = { "/nowhere", first, second, NULL };
	const struct upload_source_config c = { .debug_folders = folders };
	int fd = make_file(NULL);
	struct upload_job job = job_of(ID, fd);
	CHECK(fstat(fd, &st) == 0);
	put(first, make_file(NULL));
	CHECK(upload_source_open(&job, &c, find_key, NULL, &source, &e) == E_UNSUPPORTED);
	put(second, make_file(".symtab"));
	CHECK_OK(upload_source_open(&job, &c, find_key, NULL, &source, &e), &e);
	CHECK(objfile_section(source.obj, ".symtab") && source.bytes > (uint64_t)st.st_size);
	CHECK(is_same(&job) && source.id_type == UPLOAD_ID_GNU);
	upload_source_close(&source);
	/* One that names itself is sent itself. */
	close(fd);
	fd = make_file(".symtab");
	job = job_of(ID, fd);
	CHECK_OK(upload_source_open(&job, &c, find_key, NULL, &source, &e), &e);
	CHECK(fcntl(source.file.fd, F_GETFD) >= 0);
	struct stat opened;
	CHECK(fstat(fd, &st) == 0 && fstat(source.file.fd, &opened) == 0);
	CHECK(st.st_ino == opened.st_ino && st.st_dev == opened.st_dev);
	upload_source_close(&source);
	close(fd);
	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(system(command) == 0);
}

static void sends_the_vdso(void **state)
{
	(void)state;
	struct err e = { 0 };
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct objfile *obj;
	if (!image)
		skip();
	CHECK_OK(objfile_open_bytes(image, 4096 * 2, "[vdso]", &obj, &e), &e);
	struct upload_job job = job_of(objfile_build_id(obj), -1);
	objfile_close(obj);
	job.file_id = FRAME_FILE_VDSO;
	strcpy(job.path, "[vdso]");
	CHECK_OK(open_job(&job, true, &e), &e);
	CHECK(source.bytes > 500 && source.bytes < 65536 && is_same(&job));
	uint8_t *bytes = malloc(source.bytes);
	CHECK_OK(upload_source_read(&source, 0, bytes, source.bytes, &e), &e);
	CHECK_OK(objfile_open_bytes(bytes, source.bytes, "sent", &obj, &e), &e);
	assert_string_equal(objfile_build_id(obj), job.build_id);
	CHECK(objfile_section(obj, ".dynsym")->size > 24);
	objfile_close(obj);
	free(bytes);
	upload_source_close(&source);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_has_names),
		cmocka_unit_test(sees_that_it_changed),
		cmocka_unit_test(takes_no_other_file),
		cmocka_unit_test(opens_it_once_more),
		cmocka_unit_test(takes_the_separate_debug_file),
		cmocka_unit_test(sends_the_vdso),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
