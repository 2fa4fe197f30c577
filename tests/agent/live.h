/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live: a sampler on the real kernel, for tests and benchmarks: gives files their ids and tables,
 * runs programs, and keeps what was sampled. Include once.
 */
#pragma once

#include "agent/sample/sample.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/vec.h"
#include "os/os.h"
#include "runtimes/runtimes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct live_file {
	struct file_key key;
	char path[256];
};

struct live_sample {
	struct event_header h;
	uint64_t hash;
	uint32_t ppid;
	uint16_t kernel_count;
	uint16_t user_count;
	uint32_t first_frame; /* in frames, kernel and user */
};

/* A function of a language runtime. */
struct live_code {
	uint64_t number;
	uint32_t pid;
	struct event_code event; /* data[] as far as it was sent */
};

struct live {
	struct sampler *sampler;
	VEC(struct live_file) files; /* file id - FRAME_FILE_FIRST */
	VEC(struct live_sample) samples;
	VEC(uint64_t) frames;
	VEC(struct event_process) processes;
	VEC(struct event_resume) resumes;
	VEC(struct live_code) codes;
	uint32_t runtimes; /* files with one */
	uint64_t rows;
	struct file_notice last_notice; /* of a sample that ended in an unknown file */
};

static inline void live_fail(const char *what, const struct err *e)
{
	(void)fprintf(stderr, "%s: %s\n", what, e ? e->text : strerror(errno));
	abort();
}

static inline void live_on_sample(void *ctx, const struct event_sample *s)
{
	struct live *l = ctx;
	size_t count = (size_t)s->kernel_count + s->user_count;
	if (!VEC_RESERVE(&l->frames, l->frames.len + count) ||
		!VEC_PUSH(&l->samples,
			(struct live_sample){ s->h, s->stack_hash, s->ppid, s->kernel_count,
				s->user_count, (uint32_t)l->frames.len }))
		live_fail("memory", NULL);
	memcpy(l->frames.v + l->frames.len, s->frames, count * sizeof(uint64_t));
	l->frames.len += count;
	if (s->notice.key.inode)
		l->last_notice = s->notice;
}

static inline void live_on_process(void *ctx, const struct event_process *p)
{
	struct live *l = ctx;
	if (!VEC_PUSH(&l->processes, *p))
		live_fail("memory", NULL);
}

static inline void live_on_resume(void *ctx, const struct event_resume *r)
{
	struct live *l = ctx;
	if (!VEC_PUSH(&l->resumes, *r))
		live_fail("memory", NULL);
}

static inline void live_on_code(void *ctx, const struct event_code *c)
{
	struct live *l = ctx;
	struct live_code code = { .number = c->code, .pid = c->pid };
	memcpy(&code.event, c,
		offsetof(struct event_code, data) + c->name_bytes + c->file_bytes + c->lines_bytes);
	if (!VEC_PUSH(&l->codes, code))
		live_fail("memory", NULL);
}

static inline const uint64_t *live_user_frames(const struct live *l, const struct live_sample *s)
{
	return l->frames.v + s->first_frame + s->kernel_count;
}

/* The mapping in a maps file's text that holds `address`: its key. False: none. */
static inline bool live_key_at(struct str maps, uint64_t address, struct file_key *out)
{
	struct str line;
	while (str_split(&maps, '\n', &line)) {
		char text[512];
		uint64_t start, end, inode;
		unsigned major, minor;
		(void)snprintf(text, sizeof(text), "%.*s", STR_ARG(line));
		if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &start, &end,
			    &major, &minor, &inode) == 5 &&
			address >= start && address < end) {
			*out = (struct file_key){ inode, major << 20 | minor, 0 };
			return true;
		}
	}
	return false;
}

/* Give the file an id and, if it has one, its table. The id. */
static inline uint32_t live_publish_fd(struct live *l, int fd, const char *path)
{
	struct err e = { 0 };
	struct buf maps;
	struct file_key key = { 0 };
	void *at = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return 0; /* empty, or no regular file */
	buf_init(&maps, 16u << 20);
	if (os_read_file("/proc/self/maps", &maps, &e) != OK)
		live_fail(path, &e);
	bool found = live_key_at(buf_view(&maps), (uintptr_t)at, &key);
	buf_deinit(&maps);
	(void)munmap(at, 1);
	if (!found)
		live_fail(path, NULL);
	for (size_t i = 0; i < l->files.len; i++) {
		if (l->files.v[i].key.inode == key.inode && l->files.v[i].key.dev == key.dev)
			return (uint32_t)i + FRAME_FILE_FIRST;
	}
	struct live_file file = { .key = key };
	(void)snprintf(file.path, sizeof(file.path), "%s", path);
	uint32_t id = (uint32_t)l->files.len + FRAME_FILE_FIRST;
	struct objfile *obj = NULL;
	struct unwind_table *table = NULL;
	if (objfile_open(path, &obj, &e) == OK && unwind_table_build(obj, &table, &e) == OK)
		l->rows += table->row_count;
	enum status s = sampler_publish(l->sampler, &key, id, table, &e);
	struct runtime_record runtime;
	if (s == OK && obj && runtimes_find(obj, &runtime, NULL) == OK) {
		s = sampler_set_runtime(l->sampler, &key, &runtime, &e);
		l->runtimes++;
	}
	unwind_table_free(table);
	objfile_close(obj);
	if (s != OK || !VEC_PUSH(&l->files, file))
		live_fail(path, &e);
	return id;
}

static inline uint32_t live_publish_file(struct live *l, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint32_t id = fd >= 0 ? live_publish_fd(l, fd, path) : 0;
	fd_cleanup(&fd);
	return id;
}

/* Every executable file that a process has mapped now. */
static inline void live_publish_process(struct live *l, int pid)
{
	char path[64];
	struct buf maps;
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	buf_init(&maps, 16u << 20);
	if (os_read_file(path, &maps, NULL) == OK) {
		struct str text = buf_view(&maps);
		struct str line;
		while (str_split(&text, '\n', &line)) {
			char copy[512], mode[8], name[256] = "";
			(void)snprintf(copy, sizeof(copy), "%.*s", STR_ARG(line));
			if (sscanf(copy, "%*x-%*x %7s %*x %*x:%*x %*u %255s", mode, name) == 2 &&
				mode[2] == 'x' && name[0] == '/')
				(void)live_publish_file(l, name);
		}
	}
	buf_deinit(&maps);
}

/* A program and the libraries it needs, as the loader finds them. */
static inline void live_publish_program(struct live *l, const char *path)
{
	char command[1024], line[512], name[256];
	(void)live_publish_file(l, path);
	(void)snprintf(command, sizeof(command), "ldd %s 2>/dev/null", path);
	FILE *f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		const char *at = strchr(line, '/');
		if (at && sscanf(at, "%255s", name) == 1)
			(void)live_publish_file(l, name);
	}
	if (f)
		(void)pclose(f);
}

static inline void live_publish_vdso(struct live *l)
{
	struct err e = { 0 };
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct objfile *obj = NULL;
	struct unwind_table *table = NULL;
	if (!image)
		return;
	if (objfile_open_bytes(image, 4096 * 2, "[vdso]", &obj, &e) != OK ||
		unwind_table_build(obj, &table, &e) != OK ||
		sampler_publish(l->sampler, NULL, FRAME_FILE_VDSO, table, &e) != OK)
		live_fail("vdso", &e);
	unwind_table_free(table);
	objfile_close(obj);
}

/* With room for tables, and statistics. */
static inline void live_begin_with(struct live *l, const struct sampler_config *c)
{
	struct err e = { 0 };
	*l = (struct live){ 0 };
	struct sampler_config config = *c;
	config.table_bytes_max = 64u << 20;
	config.stats = true;
	const struct sampler_events events = { l, live_on_sample, live_on_process, NULL,
		live_on_resume, live_on_code };
	if (sampler_open(&config, &events, &l->sampler, &e) != OK)
		live_fail("sampler_open", &e);
	live_publish_vdso(l);
	live_publish_process(l, getpid());
}

static inline void live_begin(struct live *l, uint32_t frequency_hz, int only_pid)
{
	live_begin_with(
		l, &(struct sampler_config){ .frequency_hz = frequency_hz, .only_pid = only_pid });
}

static inline void live_start(struct live *l)
{
	struct err e = { 0 };
	if (sampler_start(l->sampler, &e) != OK)
		live_fail("sampler_start", &e);
}

static inline void live_poll(struct live *l, int timeout_ms)
{
	struct err e = { 0 };
	if (sampler_poll(l->sampler, timeout_ms, &e) != OK)
		live_fail("sampler_poll", &e);
}

/* No more samples; what the ring holds is delivered. */
static inline void live_stop(struct live *l)
{
	sampler_stop(l->sampler);
	live_poll(l, 0);
}

static inline void live_end(struct live *l)
{
	sampler_close(l->sampler);
	VEC_FREE(&l->files);
	VEC_FREE(&l->samples);
	VEC_FREE(&l->frames);
	VEC_FREE(&l->processes);
	VEC_FREE(&l->resumes);
	VEC_FREE(&l->codes);
}

/* Start a program, whose output goes to `out_fd` (below 0: nowhere). */
static inline int live_spawn(const char *const *args, int out_fd)
{
	int pid = fork();
	if (pid < 0)
		live_fail("fork", NULL);
	if (pid > 0)
		return pid;
	int null = open("/dev/null", O_RDWR);
	(void)dup2(null, 0);
	(void)dup2(out_fd >= 0 ? out_fd : null, 1);
	char *argv[16] = { NULL };
	for (int i = 0; args[i] && i < 15; i++)
		argv[i] = strdup(args[i]);
	(void)execvp(argv[0], argv);
	_exit(127);
}

/* CPU time that the machine below took, of all CPUs, from boot: "steal" of proc_stat(5). No timer
 * interrupts meanwhile, and a thread's own clock may count it all the same. */
static inline double live_stolen_ns(void)
{
	long long ticks = 0;
	FILE *f = fopen("/proc/stat", "re");
	if (!f || fscanf(f, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &ticks) != 1)
		live_fail("/proc/stat", NULL);
	(void)fclose(f);
	return (double)ticks * 1e9 / (double)sysconf(_SC_CLK_TCK);
}

static inline void live_kill(int pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}
