/* SPDX-License-Identifier: Apache-2.0 */
/* How files are found and opened: of processes that live, have ended, or hang. */
#include "files_fixture.h"

static void a_file_that_is_no_elf_is_not_asked_for_again(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_file("text", "not an ELF file, but executable", 31);
	files_notice(f, &m.notice, getpid());
	struct published p = wait_published(&m.notice.key, 1);
	CHECK(p.rows == 0 && p.file_id >= FRAME_FILE_FIRST);
	wait_for(&files_metrics(f)->bad_elf, 1);
	struct file_info info;
	CHECK(files_get(f, p.file_id, &info));
	CHECK(info.build_id[0] == 0 && info.segment_count == 0 && !info.has_table);
	/* Asked again at once it stays quiet. */
	for (int i = 0; i < 100; i++)
		files_notice(f, &m.notice, getpid());
	unmap_file(&m);
	files_free(f);
	CHECK(published_of(&m.notice.key, &p) == 1);
}

static void a_deleted_file_is_opened_by_its_mapping(void **state)
{
	(void)state;
	if (!can_open_map_files())
		SKIP("/proc/PID/map_files cannot be opened: CAP_CHECKPOINT_RESTORE is missing");
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("gone.so", 10, 9);
	CHECK(unlink(m.path) == 0);
	files_notice(f, &m.notice, getpid());
	struct published p = wait_published(&m.notice.key, 1);
	struct file_info info;
	CHECK(p.rows > 0 && files_get(f, p.file_id, &info));
	CHECK_STR(str_of(info.path), m.path); /* without " (deleted)" */
	munmap((void *)m.notice.vma_start, m.len);
	files_free(f);
}

static void a_program_of_a_process_that_is_gone_is_found_by_its_inode(void **state)
{
	(void)state;
	if (access("/usr/bin/sort", R_OK) != 0)
		SKIP("there is no /usr/bin/sort");
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct file_notice n = {
		.key = key_of("/usr/bin/sort"), .vma_start = 4096, .vma_end = 8192
	};
	files_notice(f, &n, dead_child());
	struct published p = wait_published(&n.key, 1);
	struct file_info info;
	CHECK(files_get(f, p.file_id, &info));
	CHECK_STR(str_of(info.path), "/usr/bin/sort");
	files_free(f);
}

static void an_exec_notice_without_a_mapping_opens_the_program(void **state)
{
	(void)state;
	char self[256] = "";
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct file_notice n = { .key = key_of(self) };
	files_notice(f, &n, getpid());
	struct published p = wait_published(&n.key, 1);
	struct file_info info;
	CHECK(p.rows > 0 && files_get(f, p.file_id, &info));
	CHECK_STR(str_of(info.path), self);
	files_free(f);
}

static void preload_finds_what_every_process_maps(void **state)
{
	(void)state;
	struct seen seen = { 0 };
	struct files_config c = { .seen = note_seen, .seen_ctx = &seen };
	struct files *f = make_files(&c);
	struct err e = { 0 };
	CHECK_OK(files_preload(f, 4 * WAIT_NS, &e), &e); /* of all that runs on this host */
	char self[256] = "";
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	struct file_key key = key_of(self);
	struct published p = { 0 };
	CHECK(published_of(&key, &p) == 1 && p.rows > 0);
	struct file_info info;
	CHECK(files_get(f, p.file_id, &info));
	CHECK_STR(str_of(info.path), self);
	if (getauxval(AT_SYSINFO_EHDR)) {
		CHECK(files_get(f, FRAME_FILE_VDSO, &info));
		CHECK_STR(str_of(info.path), "[vdso]");
		CHECK(info.has_table);
	}
	CHECK(metric_get(&files_metrics(f)->tables) >= 3); /* this, libc, ld.so */
	CHECK(metric_get(&files_metrics(f)->rows) > 1000);
	CHECK(seen.count >= 3);
	print_message("%llu files, %llu tables, %llu rows, %llu ms of CPU\n",
		(unsigned long long)metric_get(&files_metrics(f)->known),
		(unsigned long long)metric_get(&files_metrics(f)->tables),
		(unsigned long long)metric_get(&files_metrics(f)->rows),
		(unsigned long long)metric_get(&files_metrics(f)->build_ns) / NS_PER_MS);
	struct buf text;
	buf_init(&text, 65536);
	files_write_metrics(f, &text);
	CHECK(memmem(text.data, text.len, "firn_agent_files_with_table", 27) != NULL);
	buf_deinit(&text);
	files_free(f);
}

/* What runs is handed out once more, and stays as it was published. */
static void offers_again_what_is_mapped(void **state)
{
	(void)state;
	struct mapped m = map_library("again.so", 10, 0x4d);
	struct seen seen = { .wanted = m.notice.key.inode };
	struct files_config c = { .seen = note_seen, .seen_ctx = &seen };
	struct files *f = make_files(&c);
	files_notice(f, &m.notice, getpid());
	wait_published(&m.notice.key, 1);
	CHECK(seen.wanted_count == 1);
	for (int round = 2; round < 4; round++) {
		CHECK(files_offer(f));
		int64_t end = clock_monotonic_ns() + WAIT_NS;
		while (seen.wanted_count < round && clock_monotonic_ns() < end)
			usleep(1000);
		CHECK(seen.wanted_count == round);
	}
	struct published p;
	CHECK(published_of(&m.notice.key, &p) == 1);
	unmap_file(&m);
	files_free(f);
}

static void *preload(void *ctx)
{
	struct err e = { 0 };
	CHECK_OK(files_preload(ctx, 4 * WAIT_NS, &e), &e);
	return NULL;
}

/* Its process may end any moment, those of the first pass live long. */
static void a_notice_comes_before_the_first_pass(void **state)
{
	(void)state;
	struct files *f = make_files(&(struct files_config){ 0 });
	struct mapped m = map_library("urgent.so", 10, 33);
	pthread_t thread;
	pthread_mutex_lock(&fake.gate); /* the first pass begins with the vDSO, and waits here */
	CHECK(pthread_create(&thread, NULL, preload, f) == 0);
	files_notice(f, &m.notice, getpid());
	pthread_mutex_unlock(&fake.gate);
	CHECK(pthread_join(thread, NULL) == 0);
	size_t at = 0;
	while (at < fake.count && (fake.v[at].key.inode != m.notice.key.inode ||
					  fake.v[at].key.dev != m.notice.key.dev))
		at++;
	CHECK(fake.count >= 4 && at <= 1);
	unmap_file(&m);
	files_free(f);
}

static atomic_int shown;

struct remote {
	struct hanging_mount mount;
	struct gen_elf library;
	struct file_notice notice;
	size_t len;
};

static void remote_map(struct remote *r, unsigned hangs)
{
	if (geteuid() != 0 || !can_open_map_files())
		SKIP("needs root: a file system that hangs");
	make_library(&r->library, 500, 11);
	r->len = r->library.file.len;
	const char *why = hanging_mount_init(&r->mount, folder, hangs, buf_view(&r->library.file));
	if (why) {
		gen_elf_deinit(&r->library);
		SKIP("%s", why);
	}
	r->notice.key = key_of(r->mount.path);
	int fd = open(r->mount.path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, r->len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(fd >= 0 && at != MAP_FAILED && close(fd) == 0);
	r->notice.vma_start = (uint64_t)at;
	r->notice.vma_end = (r->notice.vma_start + r->len + 4095) & ~4095ull;
	const struct broker_config c = { .device_credit_ns = hangs ? 0 : 4 * WAIT_NS };
	struct err e = { 0 };
	CHECK_OK(broker_start(&c, &e), &e);
}

/* Until it is: on a machine that has no time its answers come late. */
static struct published remote_publish(struct files *f, const struct remote *r, size_t times)
{
	struct published p = { 0 };
	int64_t end = clock_monotonic_ns() + 4 * WAIT_NS;
	while (published_of(&r->notice.key, &p) < times && clock_monotonic_ns() < end) {
		files_notice(f, &r->notice, getpid());
		nap();
	}
	CHECK(published_of(&r->notice.key, &p) >= times);
	return p;
}

static void remote_unmap(struct remote *r)
{
	munmap((void *)r->notice.vma_start, r->len);
	hanging_mount_deinit(&r->mount);
	gen_elf_deinit(&r->library);
	unlink(r->mount.path);
}

/* Bytes of what was handed over, which are those of the file. */
static void compare(void *ctx, const char *build_id, const char *path, int fd)
{
	struct remote *r = ctx;
	struct stat st;
	CHECK(strncmp(build_id, "0b0203", 6) == 0);
	CHECK_STR(str_of(path), r->mount.path);
	CHECK(fstat(fd, &st) == 0 && (size_t)st.st_size == r->len && S_ISREG(st.st_mode));
	CHECK(key_of(r->mount.path).inode != st.st_ino || st.st_nlink == 0);
	CLEANUP(free_cleanup) uint8_t *bytes = malloc(r->len);
	CHECK(bytes && pread(fd, bytes, r->len, 0) == (ssize_t)r->len);
	CHECK(memcmp(bytes, r->library.file.data, r->len) == 0);
	atomic_fetch_add(&shown, 1);
}

static void a_file_that_may_hang_is_known_like_others(void **state)
{
	(void)state;
	char cache[sizeof(folder) + 8];
	snprintf(cache, sizeof(cache), "%s/copies", folder);
	for (int in_memory = 0; in_memory < 2; in_memory++) {
		struct remote r = { .len = 0 };
		remote_map(&r, 0);
		atomic_store(&shown, 0);
		struct files_config c = {
			.seen = compare, .seen_ctx = &r, .cache_dir = in_memory ? "" : cache
		};
		struct files *f = make_files(&c);
		struct published p = remote_publish(f, &r, (size_t)in_memory + 1);
		struct file_info info;
		CHECK(p.rows > 500 && files_get(f, p.file_id, &info));
		CHECK(strncmp(info.build_id, "0b0203", 6) == 0);
		CHECK_STR(str_of(info.path), r.mount.path);
		int64_t end = clock_monotonic_ns() + WAIT_NS;
		while (!atomic_load(&shown) && !metric_get(&files_metrics(f)->not_shared) &&
			clock_monotonic_ns() < end)
			nap();
		/* Where it rests meanwhile it is not copied. */
		CHECK(atomic_load(&shown) + (int)metric_get(&files_metrics(f)->not_shared) == 1);
		files_free(f);
		broker_stop();
		remote_unmap(&r);
	}
}

/* Neither the opener nor the builder waits for it longer than once, nor does the end. */
static void a_file_that_hangs_holds_up_no_other(void **state)
{
	(void)state;
	static const unsigned ways[] = { HANGS_OPEN, HANGS_READ, HANGS_CLOSE };
	for (uint32_t i = 0; i < ARRAY_COUNT(ways); i++) {
		struct remote r = { .len = 0 };
		char name[32];
		remote_map(&r, ways[i]);
		struct files_config c = { 0 };
		struct files *f = make_files(&c);
		files_notice(f, &r.notice, getpid());
		if (ways[i] == HANGS_CLOSE)
			remote_publish(f, &r, 1);
		else
			wait_for(&files_metrics(f)->open_failed, 1);
		for (uint32_t n = 0; n < 3; n++) {
			snprintf(name, sizeof(name), "lib%u.so", i * 3 + n);
			struct mapped m = map_library(name, 20 + i * 3 + n, 12);
			files_notice(f, &r.notice, getpid());
			files_notice(f, &m.notice, getpid());
			CHECK(wait_published(&m.notice.key, 1).rows > 0);
			unmap_file(&m);
		}
		broker_hang_up();
		files_free(f);
		hanging_mount_let_go(&r.mount);
		broker_stop();
		remote_unmap(&r);
		reset(NULL);
	}
}

FILES_TEST_MAIN(cmocka_unit_test_setup(a_file_that_is_no_elf_is_not_asked_for_again, reset),
	cmocka_unit_test_setup(a_deleted_file_is_opened_by_its_mapping, reset),
	cmocka_unit_test_setup(a_program_of_a_process_that_is_gone_is_found_by_its_inode, reset),
	cmocka_unit_test_setup(an_exec_notice_without_a_mapping_opens_the_program, reset),
	cmocka_unit_test_setup(preload_finds_what_every_process_maps, reset),
	cmocka_unit_test_setup(offers_again_what_is_mapped, reset),
	cmocka_unit_test_setup(a_notice_comes_before_the_first_pass, reset),
	cmocka_unit_test_setup(a_file_that_may_hang_is_known_like_others, reset),
	cmocka_unit_test_setup(a_file_that_hangs_holds_up_no_other, reset))
