/* SPDX-License-Identifier: Apache-2.0 */
/* The files of this very process, with a sampler that only writes down what it is told. */
#include "test.h"

#include "agent/broker/broker.h"
#include "agent/files/files.h"
#include "gen/elf.h"
#include "hanging_mount.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the sampler ---- */

#define PUBLISHED_MAX 4096
#define WAIT_NS (30 * NS_PER_SEC)

struct published {
	struct file_key key;
	uint32_t file_id;
	uint64_t rows; /* of its table; 0: none */
};

static struct {
	pthread_mutex_t lock;
	struct published v[PUBLISHED_MAX];
	size_t count;
	size_t retracted;
	struct runtime_record runtime; /* that was set last */
	bool over_budget;
	bool evicts;          /* what was published is not there any more */
	pthread_mutex_t gate; /* held by a test: the worker waits in sampler_publish() */
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .gate = PTHREAD_MUTEX_INITIALIZER };

enum status sampler_publish(struct sampler *s, const struct file_key *key, uint32_t file_id,
	const struct unwind_table *t, struct err *e)
{
	(void)s;
	pthread_mutex_lock(&fake.gate);
	pthread_mutex_unlock(&fake.gate);
	if (t && unwind_table_check(t, e) != OK)
		abort();
	pthread_mutex_lock(&fake.lock);
	assert_true(fake.count < PUBLISHED_MAX);
	fake.v[fake.count++] = (struct published){ *key, file_id, t ? t->row_count : 0 };
	bool over = fake.over_budget;
	pthread_mutex_unlock(&fake.lock);
	return over ? err_set(e, E_LIMIT, "over the budget") : OK;
}

enum status sampler_set_runtime(struct sampler *s, const struct file_key *key,
	const struct runtime_record *r, struct err *e)
{
	(void)s;
	(void)key;
	(void)e;
	pthread_mutex_lock(&fake.lock);
	fake.runtime = *r;
	pthread_mutex_unlock(&fake.lock);
	return OK;
}

void sampler_rest(struct sampler *s)
{
	(void)s;
}

bool sampler_knows(struct sampler *s, const struct file_key *key)
{
	(void)s;
	(void)key;
	pthread_mutex_lock(&fake.lock);
	bool knows = !fake.evicts;
	pthread_mutex_unlock(&fake.lock);
	return knows;
}

void sampler_retract(struct sampler *s, const struct file_key *key)
{
	(void)s;
	(void)key;
	pthread_mutex_lock(&fake.lock);
	fake.retracted++;
	pthread_mutex_unlock(&fake.lock);
}

static size_t published_of(const struct file_key *key, struct published *out)
{
	size_t n = 0;
	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < fake.count; i++) {
		if (fake.v[i].key.inode != key->inode || fake.v[i].key.dev != key->dev)
			continue;
		*out = fake.v[i];
		n++;
	}
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static int reset(void **state)
{
	(void)state;
	fake.count = 0;
	fake.retracted = 0;
	fake.over_budget = false;
	fake.evicts = false;
	return 0;
}

/* ---- files of our own ---- */

static char folder[] = "/tmp/firn-test-files-XXXXXX";

struct mapped {
	char path[128];
	struct file_notice notice;
	size_t len;
};

static struct file_key key_of(const char *path)
{
	struct stat st;
	CHECK(stat(path, &st) == 0);
	return (struct file_key){ st.st_ino, major(st.st_dev) << 20 | minor(st.st_dev), 0 };
}

static struct mapped map_file(const char *name, const void *bytes, size_t len)
{
	struct mapped m = { .len = len };
	snprintf(m.path, sizeof(m.path), "%s/%s", folder, name);
	int fd = open(m.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	CHECK(fd >= 0);
	CHECK(os_write_full(fd, bytes, len, m.path, NULL) == OK);
	void *p = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	m.notice.key = key_of(m.path);
	m.notice.vma_start = (uint64_t)p;
	m.notice.vma_end = ((uint64_t)p + len + 4095) & ~4095ull;
	return m;
}

static void unmap_file(struct mapped *m)
{
	munmap((void *)m->notice.vma_start, m->len);
	unlink(m->path);
}

/* A library of `functions` functions of 32 bytes with four rows each. */
static void make_library(struct gen_elf *g, uint32_t functions, uint8_t build_id)
{
	static const uint8_t rows[] = { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x50, 0x0c, 7, 8 };
	uint64_t text = 0x1000;
	uint64_t frames = text + (((uint64_t)functions * 32 + 0xffff) & ~0xfffull);
	gen_elf_init(g);
	uint32_t i = gen_section(
		g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, NULL, functions * 32);
	buf_zero(&g->sections[i].bytes, functions * 32);
	gen_load(g, i, PF_R | PF_X);
	struct gen_cfi c;
	gen_cfi_init(&c, frames);
	size_t cie = gen_cie(&c);
	for (uint32_t n = 0; n < functions; n++)
		gen_fde(&c, cie, text + n * 32, 32, rows, sizeof(rows));
	gen_section(g, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, frames, c.bytes.data, c.bytes.len);
	buf_deinit(&c.bytes);
	/* Those that ask see a CPython that does not say its version. */
	gen_section(g, ".PyRuntime", SHT_PROGBITS, 0, 0x10, "runtime", 8);
	struct buf notes;
	buf_init(&notes, 4096);
	uint8_t id[20] = { build_id, 2, 3 };
	gen_note(&notes, "GNU", 3, id, sizeof(id));
	gen_section(g, ".note.gnu.build-id", SHT_NOTE, 0, 0, notes.data, notes.len);
	buf_deinit(&notes);
	gen_elf_finish(g);
}

static struct mapped map_library(const char *name, uint32_t functions, uint8_t build_id)
{
	struct gen_elf g;
	make_library(&g, functions, build_id);
	struct mapped m = map_file(name, g.file.data, g.file.len);
	gen_elf_deinit(&g);
	return m;
}

static struct files *make_files(const struct files_config *c)
{
	struct files *f = NULL;
	struct err e = { 0 };
	CHECK_OK(files_new(c, NULL, &f, &e), &e);
	return f;
}

static void nap(void)
{
	struct timespec t = { .tv_nsec = NS_PER_MS };
	nanosleep(&t, NULL);
}

static void wait_for(const metric_value *m, uint64_t at_least)
{
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (metric_get(m) < at_least && clock_monotonic_ns() < end)
		nap();
	CHECK(metric_get(m) >= at_least);
}

/* Until a key has been published `times` times. */
static struct published wait_published(const struct file_key *key, size_t times)
{
	struct published p = { 0 };
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (published_of(key, &p) < times && clock_monotonic_ns() < end)
		nap();
	CHECK(published_of(key, &p) >= times);
	return p;
}

static int can_open_map_files(void)
{
	struct mapped m = map_file("probe", "probe", 5);
	char link[96];
	snprintf(link, sizeof(link), "/proc/self/map_files/%llx-%llx",
		(unsigned long long)m.notice.vma_start, (unsigned long long)m.notice.vma_end);
	int fd = open(link, O_RDONLY | O_CLOEXEC);
	unmap_file(&m);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* ---- the tests ---- */

static void binds_what_a_notice_names(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 100, 1);
	files_notice(f, &m.notice, getpid());
	struct published p = wait_published(&m.notice.key, 1);
	CHECK(p.file_id >= FRAME_FILE_FIRST);
	CHECK(p.rows > 300);
	struct file_info info = { 0 };
	CHECK(files_get(f, p.file_id, &info));
	CHECK(strncmp(info.build_id, "010203", 6) == 0 && strlen(info.build_id) == 40);
	CHECK_STR(str_of(info.path), m.path);
	CHECK(info.segment_count == 1);
	uint64_t vaddr = 0;
	CHECK(file_info_vaddr(&info, 0x1010, &vaddr) && vaddr == 0x1010);
	CHECK(!file_info_vaddr(&info, 0x10, &vaddr));
	CHECK(!files_get(f, p.file_id + 1, &info));
	CHECK(!files_get(f, FRAME_FILE_ADDRESS, &info));
	unmap_file(&m);
	files_free(f);
}

static void one_content_is_one_file(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped a = map_library("a.so", 50, 1);
	struct mapped b = map_library("b.so", 50, 1);
	struct mapped other = map_library("c.so", 60, 1); /* borrows the build id */
	files_notice(f, &a.notice, getpid());
	struct published pa = wait_published(&a.notice.key, 1);
	files_notice(f, &b.notice, getpid());
	struct published pb = wait_published(&b.notice.key, 1);
	files_notice(f, &other.notice, getpid());
	struct published pc = wait_published(&other.notice.key, 1);
	CHECK(pa.file_id == pb.file_id && pa.rows == pb.rows);
	CHECK(pc.file_id != pa.file_id);
	CHECK(metric_get(&files_metrics(f)->known) == 2);
	unmap_file(&a);
	unmap_file(&b);
	unmap_file(&other);
	files_free(f);
}

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

static void what_cannot_be_opened_is_counted_and_tried_later(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	struct file_notice lie = m.notice;
	lie.key.inode += 1000000; /* not the inode that is mapped there */
	files_notice(f, &lie, getpid());
	wait_for(&files_metrics(f)->open_failed, 1);
	struct published p;
	CHECK(published_of(&lie.key, &p) == 0);
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (metric_get(&files_metrics(f)->open_failed) < 2 && clock_monotonic_ns() < end) {
		files_notice(f, &lie, getpid());
		nap();
	}
	CHECK(metric_get(&files_metrics(f)->open_failed) >= 2);
	CHECK(metric_get(&files_metrics(f)->known) == 0);
	unmap_file(&m);
	files_free(f);
}

static int dead_child(void)
{
	int pid = fork();
	if (pid == 0)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
	return pid;
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

static void a_file_behind_a_reused_inode_replaces_the_old_one(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	files_notice(f, &m.notice, getpid());
	struct published before = wait_published(&m.notice.key, 1);
	struct gen_elf g; /* the same inode, another content */
	make_library(&g, 20, 2);
	int fd = open(m.path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && os_write_full(fd, g.file.data, g.file.len, m.path, NULL) == OK);
	close(fd);
	gen_elf_deinit(&g);
	m.notice.key.generation = 77;
	/* The first one is published before it is done with. */
	struct published after = before;
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (published_of(&m.notice.key, &after) < 2 && clock_monotonic_ns() < end) {
		files_notice(f, &m.notice, getpid());
		nap();
	}
	CHECK(after.file_id != before.file_id && after.key.generation == 77);
	unmap_file(&m);
	files_free(f);
}

/* Until it was published `times` times, or for a while. The times. */
static size_t notice_until(struct files *f, const struct mapped *m, size_t times, int64_t most_ns)
{
	struct published p;
	int64_t end = clock_monotonic_ns() + most_ns;
	while (published_of(&m->notice.key, &p) < times && clock_monotonic_ns() < end) {
		files_notice(f, &m->notice, getpid());
		nap();
	}
	return published_of(&m->notice.key, &p);
}

static void wait_bound(struct files *f, const struct mapped *m)
{
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (!files_find(f, &m->notice.key) && clock_monotonic_ns() < end)
		nap();
	CHECK(files_find(f, &m->notice.key));
}

/* By a notice that says whose the inode is: of the same file nothing comes, another one is loaded
 * at once, and what was bound without is made sure of once. */
static void tells_files_of_one_inode_apart(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	uint32_t id = 0;
	CHECK(notice_until(f, &m, 1, WAIT_NS) == 1);
	wait_bound(f, &m);
	m.notice.key.generation = 5;
	CHECK(files_look_up(f, &m.notice.key, &id) == FILES_KNOWN); /* as far as one can tell */
	CHECK(notice_until(f, &m, 2, WAIT_NS) == 2);
	wait_bound(f, &m);
	CHECK(notice_until(f, &m, 3, 1500 * NS_PER_MS) == 2);
	wait_bound(f, &m);
	m.notice.key.generation = 6;
	CHECK(files_find(f, &m.notice.key) == 0);
	CHECK(files_look_up(f, &m.notice.key, &id) == FILES_UNKNOWN);
	CHECK(notice_until(f, &m, 3, WAIT_NS) == 3);
	wait_bound(f, &m);
	m.notice.key.generation = 5;
	CHECK(files_find(f, &m.notice.key) == 0);
	struct published p;
	CHECK(published_of(&m.notice.key, &p) == 3 && p.key.generation == 6);
	unmap_file(&m);
	files_free(f);
}

/* What was bound without a generation cannot be opened any more: it stays, and is not tried again
 * with each program that is executed. */
static void gives_up_slowly_on_what_cannot_be_made_sure_of(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	CHECK(notice_until(f, &m, 1, WAIT_NS) == 1);
	wait_bound(f, &m);
	uint32_t id = files_find(f, &m.notice.key);
	unmap_file(&m);
	m.notice.key.generation = 5;
	uint64_t failed = metric_get(&files_metrics(f)->open_failed);
	CHECK(notice_until(f, &m, 2, 2500 * NS_PER_MS) == 1);
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (metric_get(&files_metrics(f)->open_failed) == failed && clock_monotonic_ns() < end)
		nap();
	wait_bound(f, &m);
	/* At once, and two seconds later. */
	failed = metric_get(&files_metrics(f)->open_failed) - failed;
	CHECK(failed >= 1 && failed <= 2);
	CHECK(files_find(f, &m.notice.key) == id && fake.retracted == 0);
	files_free(f);
}

static void a_program_executed_again_is_loaded_again_only_when_evicted(void **state)
{
	(void)state;
	struct files_config c = { .runtimes = 1u << RUNTIME_CPYTHON };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	struct published p;
	files_notice(f, &m.notice, getpid());
	wait_published(&m.notice.key, 1);
	/* Longer than a bound file is left alone. */
	int64_t end = clock_monotonic_ns() + 1500 * NS_PER_MS;
	while (clock_monotonic_ns() < end) {
		files_notice(f, &m.notice, getpid());
		nap();
	}
	CHECK(published_of(&m.notice.key, &p) == 1);
	CHECK(metric_get(&files_metrics(f)->built) == 1);
	int64_t work_ns = files_work_ns(f); /* also of what is not done */
	CHECK(work_ns > 0 && (uint64_t)work_ns >= metric_get(&files_metrics(f)->build_ns));
	pthread_mutex_lock(&fake.lock);
	fake.evicts = true;
	pthread_mutex_unlock(&fake.lock);
	end = clock_monotonic_ns() + WAIT_NS;
	while (published_of(&m.notice.key, &p) < 2 && clock_monotonic_ns() < end) {
		files_notice(f, &m.notice, getpid());
		nap();
	}
	CHECK(published_of(&m.notice.key, &p) == 2);
	/* It is not looked into for a runtime again, nor is another of the same content. */
	struct mapped last = map_library("last.so", 10, 1);
	files_notice(f, &last.notice, getpid());
	wait_published(&last.notice.key, 1);
	CHECK(metric_get(&files_metrics(f)->runtimes_refused) == 1);
	unmap_file(&last);
	unmap_file(&m);
	files_free(f);
}

static void a_full_queue_drops_and_counts(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	pthread_mutex_lock(&fake.gate);
	files_notice(f, &m.notice, getpid());
	/* As fast as they are looked at, and faster: some time the queue is full. */
	for (uint32_t i = 0; i < 1u << 24 && metric_get(&files_metrics(f)->notices_dropped) < 9;
		i++) {
		struct file_notice n = { .key = { 1u << 30 | i, 1, 0 } };
		files_notice(f, &n, getpid()); /* does not block */
	}
	CHECK(metric_get(&files_metrics(f)->notices_dropped) >= 9);
	pthread_mutex_unlock(&fake.gate);
	unmap_file(&m);
	files_free(f);
}

/* It is executed again when the queue is full: it is published still, and nothing else. */
static void a_full_queue_takes_nothing_from_a_bound_file(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 10, 1);
	files_notice(f, &m.notice, getpid());
	struct published p = wait_published(&m.notice.key, 1);
	while (!files_find(f, &m.notice.key)) /* it is published before it is done with */
		nap();
	/* It is looked at again a second after it was bound. */
	int64_t end = clock_monotonic_ns() + 2 * NS_PER_SEC;
	uint32_t next = 0, id = 0;
	while (clock_monotonic_ns() < end) {
		uint64_t dropped = metric_get(&files_metrics(f)->notices_dropped);
		while (metric_get(&files_metrics(f)->notices_dropped) == dropped) {
			struct file_notice n = { .key = { 1u << 30 | next++, 1, 0 } };
			files_notice(f, &n, getpid());
		}
		files_notice(f, &m.notice, getpid());
		CHECK(files_look_up(f, &m.notice.key, &id) == FILES_KNOWN && id == p.file_id);
	}
	CHECK(fake.retracted == 0);
	unmap_file(&m);
	files_free(f);
}

/* And is loaded anew when the sampler has evicted it, to have it come again. */
static void over_the_budget_a_file_is_known_without_a_table(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	fake.over_budget = true;
	struct mapped m = map_library("lib.so", 10, 1);
	files_notice(f, &m.notice, getpid());
	wait_for(&files_metrics(f)->over_budget, 1);
	struct published p = wait_published(&m.notice.key, 1);
	struct file_info info;
	CHECK(files_get(f, p.file_id, &info) && !info.has_table);
	CHECK(metric_get(&files_metrics(f)->tables) == 0);
	int64_t now = clock_monotonic_ns(), end = now + 60 * NS_PER_SEC;
	while (!files_find(f, &m.notice.key) && clock_monotonic_ns() < end)
		usleep(1000);
	CHECK(files_find(f, &m.notice.key) == p.file_id); /* samples under way name it */
	pthread_mutex_lock(&fake.lock);
	fake.over_budget = false;
	fake.evicts = true;
	pthread_mutex_unlock(&fake.lock);
	/* Whoever is bound is looked at once a second. */
	while (!metric_get(&files_metrics(f)->tables) && clock_monotonic_ns() < end) {
		files_notice(f, &m.notice, getpid());
		usleep(10000);
	}
	CHECK(files_get(f, p.file_id, &info) && info.has_table);
	unmap_file(&m);
	files_free(f);
}

struct seen {
	int count;
	char build_id[129];
	uint64_t size;
	uint64_t wanted; /* inode; 0: none is asked for */
	_Atomic int wanted_count;
};

static void note_seen(void *ctx, const char *build_id, const char *path, int fd)
{
	struct seen *s = ctx;
	struct stat st;
	(void)path;
	s->count++;
	snprintf(s->build_id, sizeof(s->build_id), "%s", build_id);
	if (fstat(fd, &st) != 0)
		return;
	s->size = (uint64_t)st.st_size;
	s->wanted_count += st.st_ino == s->wanted;
}

static void large_tables_come_from_the_cache(void **state)
{
	(void)state;
	char cache[160];
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	struct seen seen = { 0 };
	struct files_config c = { .cache_dir = cache, .seen = note_seen, .seen_ctx = &seen };
	struct mapped m = map_library("large.so", 40000, 5);
	uint64_t rows[2];
	for (int round = 0; round < 2; round++) {
		reset(NULL);
		struct files *f = make_files(&c);
		files_notice(f, &m.notice, getpid());
		rows[round] = wait_published(&m.notice.key, 1).rows;
		CHECK(metric_get(&files_metrics(f)->built) == (round == 0));
		CHECK(metric_get(&files_metrics(f)->cached) == (round == 1));
		files_free(f);
		CHECK(seen.count == round + 1);
		CHECK(strncmp(seen.build_id, "050203", 6) == 0 && seen.size == m.len);
	}
	CHECK(rows[0] == rows[1] && rows[0] > 100000);
	unmap_file(&m);
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
	struct published p;
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

/* Where a file was published; fake.count: it was not. */
static size_t place_of(const struct mapped *m)
{
	size_t i = 0;
	while (i < fake.count && fake.v[i].key.inode != m->notice.key.inode)
		i++;
	return i;
}

/* The small one is told of second and done first, unless the machine let its opener wait for the
 * whole of the large one: then it is tried again. */
static void a_small_file_does_not_wait_for_a_large_one(void **state)
{
	(void)state;
	bool is_first = false;
	for (uint8_t round = 0; round < 20 && !is_first; round++) {
		struct files *f = make_files(&(struct files_config){ .cpu_percent = 5 });
		struct mapped large = map_library("large.so", 300000, round);
		struct mapped small = map_library("small.so", 10, (uint8_t)(100 + round));
		fake.count = 0;
		files_notice(f, &large.notice, getpid());
		files_notice(f, &small.notice, getpid());
		wait_published(&large.notice.key, 1);
		wait_published(&small.notice.key, 1);
		is_first = place_of(&small) < place_of(&large);
		files_free(f);
		CHECK(fake.count == 2);
		unmap_file(&large);
		unmap_file(&small);
	}
	CHECK(is_first);
}

/* It cannot be read again (its process is gone): what is published stays as long as the sampler has
 * it, and is taken back when it does not. */
static void keeps_what_it_cannot_read_again(void **state)
{
	(void)state;
	for (int keeps = 0; keeps < 2; keeps++) {
		struct files *f = make_files(&(struct files_config){ 0 });
		struct mapped m = map_library(keeps ? "kept" : "lost", 20, (uint8_t)(70 + keeps));
		files_notice(f, &m.notice, getpid());
		wait_published(&m.notice.key, 1);
		uint32_t id = 0;
		int64_t end = clock_monotonic_ns() + WAIT_NS;
		while (files_look_up(f, &m.notice.key, &id) != FILES_KNOWN &&
			clock_monotonic_ns() < end)
			nap();
		size_t retracted = fake.retracted;
		m.notice.key.generation = 5; /* it may be another one: it is to be read again */
		fake.evicts = !keeps;
		int64_t second = clock_monotonic_ns() + NS_PER_SEC + 100 * NS_PER_MS;
		unmap_file(&m);
		while (clock_monotonic_ns() < second)
			nap();
		files_notice(f, &m.notice, dead_child());
		wait_for(&files_metrics(f)->open_failed, 1);
		enum files_state want = keeps ? FILES_KNOWN : FILES_FAILED;
		end = clock_monotonic_ns() + WAIT_NS;
		while (files_look_up(f, &m.notice.key, &id) != want && clock_monotonic_ns() < end)
			nap();
		CHECK(files_look_up(f, &m.notice.key, &id) == want);
		CHECK((fake.retracted > retracted) == !keeps);
		files_free(f);
	}
}

/* ---- on a file system that may hang ---- */

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
	const struct broker_config c = { .own_files = { NULL } };
	struct err e = { 0 };
	CHECK_OK(broker_start(&c, &e), &e);
}

/* Until it is: on a machine that has no time its answers come late, and it rests for a while. */
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

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[256];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(binds_what_a_notice_names, reset),
		cmocka_unit_test_setup(one_content_is_one_file, reset),
		cmocka_unit_test_setup(a_file_that_is_no_elf_is_not_asked_for_again, reset),
		cmocka_unit_test_setup(a_deleted_file_is_opened_by_its_mapping, reset),
		cmocka_unit_test_setup(what_cannot_be_opened_is_counted_and_tried_later, reset),
		cmocka_unit_test_setup(
			a_program_of_a_process_that_is_gone_is_found_by_its_inode, reset),
		cmocka_unit_test_setup(an_exec_notice_without_a_mapping_opens_the_program, reset),
		cmocka_unit_test_setup(a_file_behind_a_reused_inode_replaces_the_old_one, reset),
		cmocka_unit_test_setup(
			a_program_executed_again_is_loaded_again_only_when_evicted, reset),
		cmocka_unit_test_setup(keeps_what_it_cannot_read_again, reset),
		cmocka_unit_test_setup(tells_files_of_one_inode_apart, reset),
		cmocka_unit_test_setup(gives_up_slowly_on_what_cannot_be_made_sure_of, reset),
		cmocka_unit_test_setup(a_full_queue_drops_and_counts, reset),
		cmocka_unit_test_setup(a_full_queue_takes_nothing_from_a_bound_file, reset),
		cmocka_unit_test_setup(over_the_budget_a_file_is_known_without_a_table, reset),
		cmocka_unit_test_setup(large_tables_come_from_the_cache, reset),
		cmocka_unit_test_setup(preload_finds_what_every_process_maps, reset),
		cmocka_unit_test_setup(offers_again_what_is_mapped, reset),
		cmocka_unit_test_setup(a_notice_comes_before_the_first_pass, reset),
		cmocka_unit_test_setup(a_small_file_does_not_wait_for_a_large_one, reset),
		cmocka_unit_test_setup(a_file_that_may_hang_is_known_like_others, reset),
		cmocka_unit_test_setup(a_file_that_hangs_holds_up_no_other, reset),
	};
	int before = test_open_fds();
	int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);
	int after = test_open_fds();
	if (after != before)
		fprintf(stderr, "descriptors leaked: %d before, %d after\n", before, after);
	return failed || after != before;
}
