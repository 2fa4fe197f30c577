/* SPDX-License-Identifier: Apache-2.0 */
/* A real broker, which has what this test has: as root everything, as another user nothing much. */
#include "agent/broker/broker.h"
#include "hanging_mount.h"
#include "os/os.h"
#include "temp_dir.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool reads(int fd)
{
	char byte;
	return pread(fd, &byte, 1, 0) == 1;
}

static int open_as(const char *format, int pid, const char *rest)
{
	char path[PATH_MAX + 64];
	snprintf(path, sizeof(path), "/proc/%d/%s%s", pid, format, rest);
	return os_open_by_broker(path);
}

static void write_file(const char *path, const char *text)
{
	struct err e;
	CHECK_OK(os_replace_file(path, text, strlen(text), 0600, &e), &e);
}

static void opens_what_it_may(void **state)
{
	(void)state;
	struct err e = { 0 };
	CLEANUP(temp_dir_deinit) struct temp_dir dir;
	temp_dir_init(&dir);
	char own[PATH_MAX], text[PATH_MAX];
	snprintf(own, sizeof(own), "%s/token", dir.path);
	write_file(own, "secret");
	const struct broker_config c = { .own_files = { own } };
	CHECK_OK(broker_start(&c, &e), &e);
	CHECK(broker_pid() > 0);
	CLEANUP(fd_cleanup) int maps = open_as("maps", getpid(), "");
	CHECK(maps >= 0 && read(maps, text, 1) == 1);
	CLEANUP(fd_cleanup) int exe = open_as("exe", getpid(), "");
	CHECK(exe >= 0 && reads(exe));
	CLEANUP(fd_cleanup) int mine = os_open_by_broker(own);
	CHECK(mine >= 0 && reads(mine));
	CLEANUP(fd_cleanup) int root = open_as("root", getpid(), "/bin/sh");
	CHECK(root >= 0 && reads(root));
	CHECK((fcntl(root, F_GETFD) & FD_CLOEXEC) && (fcntl(maps, F_GETFD) & FD_CLOEXEC));
	CHECK(open_as("environ", getpid(), "") == -1 && errno == EPERM);
	CHECK(os_open_by_broker("/etc/passwd") == -1 && errno == EPERM);
	CHECK(open_as("maps", INT_MAX, "") == -1 && errno == ENOENT);
	CHECK(broker_cpu_ns() >= 0);
	CHECK(!broker_is_gone());
	broker_stop();
	CHECK(broker_pid() == 0 && os_open_by_broker(own) == -1 && errno == ENOSYS);
}

/* By another name for a process, or for a file, nothing is read that is no executable. */
static void shows_no_content_but_of_executables(void **state)
{
	(void)state;
	struct err e = { 0 };
	CLEANUP(temp_dir_deinit) struct temp_dir dir;
	temp_dir_init(&dir);
	char secret[PATH_MAX], link[PATH_MAX];
	snprintf(secret, sizeof(secret), "%s/secret", dir.path);
	snprintf(link, sizeof(link), "%s/link", dir.path);
	write_file(secret, "secret");
	const struct broker_config c = { .own_files = { NULL } };
	CHECK_OK(broker_start(&c, &e), &e);
	/* Nor a descriptor that names it: that could be opened again, past its closed folder. */
	CHECK(open_as("root", getpid(), secret) == -1 && errno == ENOEXEC);
	CHECK(open_as("root", getpid(), "/dev/null") == -1 && errno == EINVAL);
	CHECK(symlink("/proc/self/exe", link) == 0);
	CHECK(open_as("root", getpid(), link) == -1 && errno == ELOOP);
	broker_stop();
}

static void wait_until_gone(void)
{
	int64_t end = clock_monotonic_ns() + 4 * BROKER_SILENCE_NS;
	while (!broker_is_gone() && clock_monotonic_ns() < end)
		usleep(1000);
	CHECK(broker_is_gone());
}

static void says_when_it_is_gone(void **state)
{
	(void)state;
	struct err e = { 0 };
	const struct broker_config c = { .own_files = { NULL } };
	CHECK_OK(broker_start(&c, &e), &e);
	CHECK(open_as("maps", getpid(), "x") == -1 && errno == EPERM && !broker_is_gone());
	CHECK(kill(broker_pid(), SIGKILL) == 0);
	/* Also where nothing is asked. */
	wait_until_gone();
	CHECK(open_as("maps", getpid(), "") == -1);
	CHECK(broker_is_gone());
	broker_stop();
	CHECK_OK(broker_start(&c, &e), &e);
	broker_hang_up();
	CHECK(open_as("maps", getpid(), "") == -1);
	broker_stop();
}

/* All of its threads, when this is over. */
static void stop_broker(void)
{
	CHECK(kill(broker_pid(), SIGSTOP) == 0);
	CHECK(waitpid(broker_pid(), NULL, WUNTRACED) == broker_pid());
}

/* One that hangs costs one wait, and not one for each question. */
static void asks_nothing_behind_what_hangs(void **state)
{
	(void)state;
	struct err e = { 0 };
	const struct broker_config c = { .own_files = { NULL } };
	CHECK_OK(broker_start(&c, &e), &e);
	stop_broker();
	CHECK(broker_slab() == -1 && errno == ETIMEDOUT);
	int64_t begin = clock_monotonic_ns();
	for (int i = 0; i < 1000; i++)
		CHECK(broker_slab() == -1 && errno == ETIMEDOUT);
	CHECK(clock_monotonic_ns() - begin < 1000 * BROKER_PATIENCE_NS / 10);
	CHECK(kill(broker_pid(), SIGCONT) == 0);
	while (broker_slab() == -1 && errno == ETIMEDOUT)
		usleep(1000);
	CHECK(errno == EDQUOT && !broker_is_gone()); /* none may be asked for */
	broker_stop();
}

/* Killed, but a thread of it hangs: the channels stay open. */
static void is_gone_when_it_says_nothing(void **state)
{
	(void)state;
	struct err e = { 0 };
	const struct broker_config c = { .own_files = { NULL } };
	CHECK_OK(broker_start(&c, &e), &e);
	int64_t begin = clock_monotonic_ns();
	stop_broker();
	CHECK(broker_slab() == -1 && errno == ETIMEDOUT && !broker_is_gone());
	wait_until_gone();
	CHECK(clock_monotonic_ns() - begin >= BROKER_SILENCE_NS);
	CHECK(kill(broker_pid(), SIGKILL) == 0);
	broker_stop();
}

#define CONTENT_BYTES 8192
#define DEVICE_DISK ((8U << 20) | 1)
#define DEVICE_OTHER 99U

struct asked {
	const char *path;
	uint32_t device;
	int error;
};

/* One that is not pinned. */
static int open_on(const char *path, uint32_t device)
{
	struct broker_file f;
	return broker_open_executable(path, device, &f);
}

static void *ask_once(void *ctx)
{
	struct asked *a = ctx;
	int fd = open_on(a->path, a->device);
	a->error = fd < 0 ? errno : 0;
	fd_cleanup(&fd);
	return NULL;
}

/* As many devices as there may be hang at once, but for one. */
static void let_devices_hang(const char *path)
{
	pthread_t threads[BROKER_SLOW_MAX - 1];
	struct asked asked[BROKER_SLOW_MAX - 1];
	for (uint32_t i = 0; i < ARRAY_COUNT(threads); i++) {
		asked[i] = (struct asked){ path, i + 1, 0 };
		CHECK(pthread_create(&threads[i], NULL, ask_once, &asked[i]) == 0);
	}
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK(asked[i].error == ETIMEDOUT);
	}
}

static void opens_others_while_devices_hang(void **state)
{
	(void)state;
	struct err e = { 0 };
	if (geteuid() != 0)
		SKIP("needs root: a file system that hangs");
	CLEANUP(temp_dir_deinit) struct temp_dir dir;
	temp_dir_init(&dir);
	struct hanging_mount m;
	static const char content[CONTENT_BYTES] = "\177ELF";
	const char *why =
		hanging_mount_init(&m, dir.path, HANGS_OPEN, str_make(content, sizeof(content)));
	if (why) {
		temp_dir_deinit(&dir);
		SKIP("%s", why);
	}
	char own[PATH_MAX], exe[64], mapped[96];
	snprintf(own, sizeof(own), "%s/token", dir.path);
	write_file(own, "secret");
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)getpid());
	int file = open(m.path, O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, CONTENT_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
	CHECK(file >= 0 && close(file) == 0 && at != MAP_FAILED);
	snprintf(mapped, sizeof(mapped), "/proc/%d/map_files/%lx-%lx", (int)getpid(), (long)at,
		(long)at + CONTENT_BYTES);
	const struct broker_config c = { .own_files = { own } };
	CHECK_OK(broker_start(&c, &e), &e);

	let_devices_hang(mapped);
	/* What owes an answer, and who comes behind it, wait no more. */
	int64_t begin = clock_monotonic_ns();
	for (int i = 0; i < 1000; i++)
		CHECK(open_on(mapped, 1) == -1 && errno == ETIMEDOUT);
	for (int i = 0; i < 1000; i++)
		CHECK(open_on(exe, DEVICE_OTHER) == -1 && errno == ETIMEDOUT);
	CHECK(clock_monotonic_ns() - begin < 2000 * BROKER_PATIENCE_NS / 10);
	/* Disks, and what was named at the start, are read. */
	CLEANUP(fd_cleanup) int disk = open_on(exe, DEVICE_DISK);
	CLEANUP(fd_cleanup) int mine = os_open_by_broker(own);
	CHECK(disk >= 0 && mine >= 0);
	CHECK(broker_slab() == -1 && errno == EDQUOT); /* what waits for nobody is answered */

	hanging_mount_let_go(&m);
	struct broker_file late;
	char magic[4];
	int got;
	while ((got = broker_open_executable(mapped, DEVICE_OTHER, &late)) == -1)
		CHECK(errno == ETIMEDOUT);
	CHECK(got == BROKER_IS_PINNED && broker_read(&late, magic, sizeof(magic), 0) == 4);
	CHECK(memcmp(magic, content, sizeof(magic)) == 0);
	broker_drop(&late);
	broker_stop();
	munmap(at, CONTENT_BYTES);
	hanging_mount_deinit(&m);
}

static void wait_for_figure(const char *line)
{
	CLEANUP(buf_deinit) struct buf b;
	int64_t end = clock_monotonic_ns() + 60 * NS_PER_SEC;
	bool is_there = false;
	buf_init(&b, 1 << 16);
	while (!is_there && clock_monotonic_ns() < end) {
		buf_clear(&b);
		broker_write_metrics(&b);
		buf_u8(&b, 0);
		is_there = strstr((char *)b.data, line);
		usleep(1000);
	}
	CHECK(is_there);
}

/* A mapping of it that was there before anything hung. */
static void *map_once(const char *path, char out_link[96])
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, CONTENT_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
	CHECK(file >= 0 && at != MAP_FAILED && close(file) == 0);
	snprintf(out_link, 96, "/proc/%d/map_files/%lx-%lx", (int)getpid(), (long)at,
		(long)at + CONTENT_BYTES);
	return at;
}

struct reading {
	struct hanging_mount m;
	struct temp_dir dir;
	char link[96], exe[64];
	void *at;
};

/* NULL, or why there is none. */
static const char *reading_init(struct reading *r, unsigned hangs)
{
	static const char content[CONTENT_BYTES] = "\177ELF";
	struct err e = { 0 };
	const struct broker_config c = { .own_files = { NULL } };
	if (geteuid() != 0)
		return "needs root: a file system that hangs";
	temp_dir_init(&r->dir);
	const char *why =
		hanging_mount_init(&r->m, r->dir.path, hangs, str_make(content, sizeof(content)));
	if (why) {
		temp_dir_deinit(&r->dir);
		return why;
	}
	snprintf(r->exe, sizeof(r->exe), "/proc/%d/exe", (int)getpid());
	r->at = map_once(r->m.path, r->link);
	CHECK_OK(broker_start(&c, &e), &e);
	return NULL;
}

static void reading_deinit(struct reading *r)
{
	broker_stop();
	munmap(r->at, CONTENT_BYTES);
	hanging_mount_deinit(&r->m);
	temp_dir_deinit(&r->dir);
}

static void reads_what_it_holds(void **state)
{
	(void)state;
	struct reading r;
	struct broker_file f, again;
	char bytes[CONTENT_BYTES];
	const char *why = reading_init(&r, 0);
	if (why)
		SKIP("%s", why);
	CHECK(broker_open_executable(r.link, DEVICE_OTHER, &f) == BROKER_IS_PINNED);
	CHECK(broker_open_executable(r.link, DEVICE_OTHER, &again) == BROKER_IS_PINNED);
	CHECK(f.handle != again.handle && f.stat.bytes == CONTENT_BYTES && f.stat.inode == 1);
	CHECK(broker_read(&f, bytes, sizeof(bytes), 0) == sizeof(bytes));
	CHECK(memcmp(bytes, r.at, sizeof(bytes)) == 0);
	CHECK(broker_read(&f, bytes, sizeof(bytes), CONTENT_BYTES - 1) == 1);
	CHECK(broker_read(&f, bytes, sizeof(bytes), CONTENT_BYTES) == 0);
	broker_drop(&f);
	CHECK(broker_read(&f, bytes, 1, 0) == -1 && errno == EBADF);
	CHECK(broker_read(&again, bytes, 1, 0) == 1);
	broker_drop(&again);
	/* What lies on a disk, or in memory, comes as a descriptor. */
	CLEANUP(fd_cleanup) int disk = broker_open_executable(r.exe, DEVICE_DISK, &f);
	CHECK(disk >= 0 && reads(disk));
	CHECK(broker_open_executable("/etc/passwd", DEVICE_DISK, &f) == -1 && errno == EPERM);
	reading_deinit(&r);
}

/* Any mapping that may be executed; sanitizers have many others before it. */
static bool has_code(const struct broker_file *f)
{
	char bytes[4097];
	uint64_t offset = 0;
	ssize_t n;
	while ((n = broker_read(f, bytes, sizeof(bytes) - 1, offset)) > 0) {
		bytes[n] = 0; /* whole lines */
		if (strstr(bytes, " r-xp "))
			return true;
		offset += (uint64_t)n;
	}
	return false;
}

static void reads_memory_maps(void **state)
{
	(void)state;
	struct err e = { 0 };
	const struct broker_config c = { .own_files = { NULL } };
	struct broker_file f;
	char exe[64], path[PATH_MAX] = "", want[PATH_MAX] = "";
	CHECK_OK(broker_start(&c, &e), &e);
	CHECK(broker_open_maps(getpid(), &f) == BROKER_IS_PINNED);
	CHECK(has_code(&f));
	broker_drop(&f);
	CHECK(broker_open_maps(INT_MAX, &f) == -1 && errno == ENOENT);
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)getpid());
	CHECK(broker_read_mapping(getpid(), exe, path, sizeof(path) - 1) > 0);
	CHECK(readlink(exe, want, sizeof(want) - 1) > 0 && strcmp(path, want) == 0);
	/* A process that makes us wait is not asked again. */
	stop_broker();
	CHECK(broker_open_maps(getpid(), &f) == -1 && errno == ETIMEDOUT);
	int64_t begin = clock_monotonic_ns();
	for (int i = 0; i < 1000; i++)
		CHECK(broker_read_mapping(getpid(), exe, path, 64) == -1 && errno == ETIMEDOUT);
	CHECK(clock_monotonic_ns() - begin < 1000 * BROKER_PATIENCE_NS / 10);
	CHECK(kill(broker_pid(), SIGCONT) == 0);
	wait_for_figure("firn_agent_broker_overdue 0\n");
	broker_stop();
}

static void reads_what_a_process_publishes(void **state)
{
	(void)state;
	struct err e = { 0 };
	const struct broker_config c = { .own_files = { NULL } };
	static uint8_t got[CONTEXT_MEMORY_BYTES_MAX];
	static const char text[] = "told";
	const struct {
		char signature[8];
		uint32_t version, bytes;
		uint64_t published_ns;
		const char *text;
	} head = { "OTEL_CTX", 2, sizeof(text), 1, text };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uint64_t)(uintptr_t)page;
	CHECK(page != MAP_FAILED);
	memcpy(page, &head, sizeof(head));
	CHECK_OK(broker_start(&c, &e), &e);
	assert_int_equal(broker_context(getpid(), at, got), sizeof(text));
	CHECK(memcmp(got, text, sizeof(text)) == 0);
	CHECK(broker_context(getpid(), at + 8, got) == -1 && errno == EPROTO);
	/* A copy of it is in the broker's own memory, and in that of its threads. */
	CHECK(broker_context(broker_pid(), at, got) == -1 && errno == EPERM);
	CHECK(broker_jit_read(broker_pid(), at, at, 0, got, 64) == -1 && errno == EPERM);
	broker_stop();
	assert_int_equal(broker_context(getpid(), at, got), sizeof(text));
	munmap(page, 4096);
}

/* To read, or to drop; then others are served as before. */
static void waits_no_more_for_what_hangs(struct reading *r, bool in_reading)
{
	struct broker_file f, other;
	char bytes[CONTENT_BYTES];
	CHECK(broker_open_executable(r->link, DEVICE_OTHER, &f) == BROKER_IS_PINNED);
	CHECK(broker_open_executable(r->link, DEVICE_OTHER, &other) == BROKER_IS_PINNED);
	if (in_reading)
		CHECK(broker_read(&f, bytes, sizeof(bytes), 0) == -1 && errno == ETIMEDOUT);
	broker_drop(&f);
	wait_for_figure("firn_agent_broker_overdue 1\n");
	int64_t begin = clock_monotonic_ns();
	for (int i = 0; i < 1000; i++)
		CHECK(broker_read(&other, bytes, 4, 0) == -1 && errno == ETIMEDOUT);
	broker_drop(&other);
	broker_drop_late();
	CHECK(clock_monotonic_ns() - begin < 1000 * BROKER_PATIENCE_NS / 10);
	for (uint32_t i = 0; i < 10; i++) { /* each on another device: none is in debt */
		CLEANUP(fd_cleanup) int disk = open_on(r->exe, DEVICE_DISK);
		CLEANUP(fd_cleanup) int memory = open_on(r->exe, DEVICE_OTHER + 1 + i);
		CHECK(disk >= 0 && memory >= 0);
	}
	hanging_mount_let_go(&r->m);
	wait_for_figure("firn_agent_broker_overdue 0\n");
	CHECK(!broker_is_gone());
}

static void others_go_on_while_reading_hangs(void **state)
{
	(void)state;
	struct reading r;
	const char *why = reading_init(&r, HANGS_READ);
	if (why)
		SKIP("%s", why);
	waits_no_more_for_what_hangs(&r, true);
	reading_deinit(&r);
}

static void others_go_on_while_closing_hangs(void **state)
{
	(void)state;
	struct reading r;
	const char *why = reading_init(&r, HANGS_CLOSE);
	if (why)
		SKIP("%s", why);
	waits_no_more_for_what_hangs(&r, false);
	reading_deinit(&r);
}

static void writes_its_figures(void **state)
{
	(void)state;
	struct err e = { 0 };
	const struct broker_config c = { .own_files = { NULL } };
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	broker_write_metrics(&b);
	CHECK(b.len == 0);
	CHECK_OK(broker_start(&c, &e), &e);
	CHECK(os_open_by_broker("/etc/shadow") == -1);
	broker_write_metrics(&b);
	buf_u8(&b, 0);
	CHECK(strstr((char *)b.data, "firn_agent_broker_refused_total 1\n"));
	CHECK(broker_perf_event(100000, 19) == -1 && errno != ENOSYS);
	broker_stop();
}

static void reads_links_and_control_groups(void **state)
{
	(void)state;
	struct err e = { 0 };
	char text[PATH_MAX], want[PATH_MAX], path[64];
	const struct broker_config c = { .slabs_max = 2 };
	if (geteuid() != 0)
		SKIP("needs root: control groups by id");
	CHECK_OK(broker_start(&c, &e), &e);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)getpid());
	ssize_t n = readlink(path, want, sizeof(want) - 1);
	CHECK(n > 0 && os_read_link(path, text, sizeof(text)) == n);
	CHECK(!broker_cgroup_path(0x7fffffffffff, text));
	struct stat st;
	if (stat("/sys/fs/cgroup/cgroup.controllers", &st) == 0 && stat("/sys/fs/cgroup", &st) == 0)
		CHECK(broker_cgroup_path(st.st_ino, text) && strcmp(text, "/") == 0);
	CLEANUP(fd_cleanup) int event = broker_perf_event(0, 19);
	CHECK(event >= 0);
	CLEANUP(fd_cleanup) int symbols = broker_perf_event(0, 0);
	CHECK(symbols >= 0);
	CLEANUP(fd_cleanup) int first = broker_slab();
	CLEANUP(fd_cleanup) int second = broker_slab();
	CHECK(first >= 0 && second >= 0);
	CHECK(broker_slab() == -1 && errno == EDQUOT);
	broker_stop();
}

TEST_MAIN(cmocka_unit_test(opens_what_it_may),
	cmocka_unit_test(shows_no_content_but_of_executables),
	cmocka_unit_test(says_when_it_is_gone), cmocka_unit_test(asks_nothing_behind_what_hangs),
	cmocka_unit_test(is_gone_when_it_says_nothing),
	cmocka_unit_test(opens_others_while_devices_hang), cmocka_unit_test(reads_what_it_holds),
	cmocka_unit_test(reads_memory_maps), cmocka_unit_test(reads_what_a_process_publishes),
	cmocka_unit_test(others_go_on_while_reading_hangs),
	cmocka_unit_test(others_go_on_while_closing_hangs), cmocka_unit_test(writes_its_figures),
	cmocka_unit_test(reads_links_and_control_groups))
