/* SPDX-License-Identifier: Apache-2.0 */
/* files_fixture: the files of this very process, with a sampler that only writes down what it is
 * told.
 */
#pragma once

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

static inline size_t published_of(const struct file_key *key, struct published *out)
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

static inline int reset(void **state)
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

static inline struct file_key key_of(const char *path)
{
	struct stat st;
	CHECK(stat(path, &st) == 0);
	return (struct file_key){ st.st_ino, major(st.st_dev) << 20 | minor(st.st_dev), 0 };
}

static inline struct mapped map_file(const char *name, const void *bytes, size_t len)
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

static inline void unmap_file(struct mapped *m)
{
	munmap((void *)m->notice.vma_start, m->len);
	unlink(m->path);
}

/* A library of `functions` functions of 32 bytes with four rows each. */
static inline void make_library(struct gen_elf *g, uint32_t functions, uint8_t build_id)
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

static inline struct mapped map_library(const char *name, uint32_t functions, uint8_t build_id)
{
	struct gen_elf g;
	make_library(&g, functions, build_id);
	struct mapped m = map_file(name, g.file.data, g.file.len);
	gen_elf_deinit(&g);
	return m;
}

static inline struct files *make_files(const struct files_config *c)
{
	struct files *f = NULL;
	struct err e = { 0 };
	CHECK_OK(files_new(c, NULL, &f, &e), &e);
	return f;
}

static inline void nap(void)
{
	struct timespec t = { .tv_nsec = NS_PER_MS };
	nanosleep(&t, NULL);
}

static inline void wait_for(const metric_value *m, uint64_t at_least)
{
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (metric_get(m) < at_least && clock_monotonic_ns() < end)
		nap();
	CHECK(metric_get(m) >= at_least);
}

/* Until a key has been published `times` times. */
static inline struct published wait_published(const struct file_key *key, size_t times)
{
	struct published p = { 0 };
	int64_t end = clock_monotonic_ns() + WAIT_NS;
	while (published_of(key, &p) < times && clock_monotonic_ns() < end)
		nap();
	CHECK(published_of(key, &p) >= times);
	return p;
}

static inline int can_open_map_files(void)
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

static inline int dead_child(void)
{
	int pid = fork();
	if (pid == 0)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
	return pid;
}

struct seen {
	int count;
	char build_id[129];
	uint64_t size;
	uint64_t wanted; /* inode; 0: none is asked for */
	_Atomic int wanted_count;
};

static inline void note_seen(void *ctx, const char *build_id, const char *path, int fd)
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

static inline int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	(void)state;
	char command[256];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* Runs them, and sees that no descriptor is left open. */
#define FILES_TEST_MAIN(...)                                                                 \
	TEST_PROGRAM()                                                                       \
	{                                                                                    \
		const struct CMUnitTest tests[] = { __VA_ARGS__ };                           \
		int before = test_open_fds();                                                \
		int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);      \
		int after = test_open_fds();                                                 \
		if (after != before)                                                         \
			fprintf(stderr, "descriptors leaked: %d before, %d after\n", before, \
				after);                                                      \
		return failed || after != before;                                            \
	}
