/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compilers write their names into .comment, one text after another: the linker gathers those of
 * all objects, so that a C++ program has GCC's of the start files beside Clang's of its own. The
 * more telling name wins: Go, then Rust, GHC, Clang, and GCC last, the highest of several.
 */
#include "agent/process/executable.h"

#include "agent/files/files.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/vec.h"
#include "os/os.h"
#include "procfs/procfs.h"

#include <elf.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define ID_PIECE_BYTES 4096
#define ID_BYTES 16
#define COMMENT_BYTES_MAX ((uint64_t)64 << 10)
#define NOTE_BYTES_MAX 1024
#define GO_NOTE_TYPE 4
#define GO_MAGIC "\xff Go buildinf:"
#define GO_HEADER_BYTES 32
#define GO_FLAGS_AT 15
#define GO_FLAG_INLINE 2 /* the version's text follows the header (Go 1.18) */
#define VERSION_BYTES_MAX 40

struct file_stamp {
	uint64_t dev, inode, size;
	int64_t time_s, time_ns;
};

struct known {
	struct file_stamp stamp;
	bool good;
	struct executable executable;
};

struct request {
	int pid;
	uint64_t start_ticks;
	uint64_t number; /* 0: an empty place */
	enum executables_answer answer;
	struct executable executable;
};

/* Requests in a ring: number n stands at n % EXECUTABLES_ASKED_MAX until it is overwritten. */
struct executables {
	struct lock lock;
	pthread_cond_t asked;
	pthread_t thread;
	bool started, stopping;
	uint64_t last;     /* number of the newest request */
	uint64_t answered; /* of the newest that the thread has looked at */
	struct request requests[EXECUTABLES_ASKED_MAX];
	_Atomic uint64_t generation;
	/* the thread's */
	VEC(struct known) known;
	struct map index;
};

/* ---- ids ---- */

static enum status read_file_id(const struct objfile *obj, char out[33], struct err *e)
{
	uint8_t bytes[2 * ID_PIECE_BYTES + 8], digest[EVP_MAX_MD_SIZE];
	unsigned digest_len = 0;
	uint64_t size = objfile_size(obj);
	size_t piece = (size_t)MIN(size, (uint64_t)ID_PIECE_BYTES);
	enum status s = objfile_read(obj, 0, bytes, piece, e);
	if (s == OK)
		s = objfile_read(obj, size - piece, bytes + piece, piece, e);
	if (s != OK)
		return s;
	for (int i = 0; i < 8; i++)
		bytes[2 * piece + (size_t)i] = (uint8_t)(size >> (56 - 8 * i));
	if (EVP_Digest(bytes, 2 * piece + 8, digest, &digest_len, EVP_sha256(), NULL) != 1)
		return err_set(e, E_NOMEM, "SHA-256");
	assert(digest_len >= ID_BYTES);
	for (int i = 0; i < ID_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	return OK;
}

static bool read_small_section(
	const struct objfile *obj, const char *name, uint64_t max, struct buf *out)
{
	const struct objfile_section *s = objfile_section(obj, name);
	return s && s->size <= max && objfile_read_section(obj, s, out, NULL) == OK;
}

static void read_build_id(const struct objfile *obj, char *out, size_t size)
{
	CLEANUP(buf_deinit) struct buf note;
	Elf64_Nhdr head;
	buf_init(&note, NOTE_BYTES_MAX);
	snprintf(out, size, "%s", objfile_build_id(obj));
	if (out[0] || !read_small_section(obj, ".note.go.buildid", NOTE_BYTES_MAX, &note) ||
		note.len < sizeof(head))
		return;
	memcpy(&head, note.data, sizeof(head));
	size_t at = sizeof(head) + 4; /* "Go\0", filled up */
	if (head.n_type != GO_NOTE_TYPE || head.n_namesz != 4 || head.n_descsz > note.len - at)
		return;
	for (size_t i = 0; i < head.n_descsz; i++)
		if (note.data[at + i] < 0x20 || note.data[at + i] > 0x7E)
			return;
	snprintf(out, size, "%.*s", (int)head.n_descsz, (const char *)note.data + at);
}

/* ---- the compiler ---- */

/* Digits and points at the beginning: "12.2.0". */
static struct str version_at(struct str s)
{
	size_t len = 0;
	while (len < s.len && len < VERSION_BYTES_MAX &&
		((s.p[len] >= '0' && s.p[len] <= '9') || s.p[len] == '.'))
		len++;
	return str_sub(s, 0, len);
}

static struct str behind(struct str s, struct str word)
{
	for (size_t i = 0; i + word.len <= s.len; i++)
		if (str_eq(str_sub(s, i, word.len), word))
			return str_sub(s, i + word.len, s.len);
	return STR("");
}

/* Part by part as numbers. */
static bool is_higher(struct str a, struct str b)
{
	struct str x, y;
	while (str_split(&a, '.', &x)) {
		uint64_t m = 0, n = 0;
		if (!str_split(&b, '.', &y))
			return true;
		if (!str_parse_u64(x, 10, &m) || !str_parse_u64(y, 10, &n))
			return false;
		if (m != n)
			return m > n;
	}
	return false;
}

/* "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0": the last word. */
static struct str gcc_version(struct str text)
{
	if (!str_starts(text, STR("GCC: (")))
		return STR("");
	size_t close = str_rindex(text, ')');
	return version_at(str_trim(str_sub(text, close + 1, text.len)));
}

static void name_it(struct executable *out, const char *name, struct str version)
{
	snprintf(out->compiler, sizeof(out->compiler), "%s %.*s", name, STR_ARG(version));
}

static void read_comment(struct str texts, struct executable *out)
{
	/* clang-format off */
	static const struct { const char *name, *mark; } others[] = {
		{ "Rust", "rustc version " },
		{ "GHC", "GHC " },
		{ "Clang", "clang version " },
	};
	/* clang-format on */
	struct str text, gcc = STR("");
	size_t best = ARRAY_COUNT(others);
	while (str_split(&texts, 0, &text)) {
		struct str version = gcc_version(text);
		if (is_higher(version, gcc))
			gcc = version;
		for (size_t i = 0; i < best; i++) {
			version = version_at(behind(text, str_of(others[i].mark)));
			if (!version.len)
				continue;
			best = i;
			name_it(out, others[i].name, version);
		}
	}
	if (best == ARRAY_COUNT(others) && gcc.len)
		name_it(out, "GCC", gcc);
}

/* .go.buildinfo with the version's text in it; older ones point at it in memory. */
static bool read_go(const struct objfile *obj, struct executable *out)
{
	const struct objfile_section *s = objfile_section(obj, ".go.buildinfo");
	uint8_t bytes[GO_HEADER_BYTES + 1 + VERSION_BYTES_MAX];
	if (!s)
		return false;
	snprintf(out->compiler, sizeof(out->compiler), "Go (unknown version)");
	size_t len = (size_t)MIN(s->size, (uint64_t)sizeof(bytes));
	if (len <= GO_HEADER_BYTES || objfile_read(obj, s->offset, bytes, len, NULL) != OK ||
		memcmp(bytes, GO_MAGIC, sizeof(GO_MAGIC) - 1) != 0 ||
		!(bytes[GO_FLAGS_AT] & GO_FLAG_INLINE))
		return true;
	/* A text of less than 128 bytes has one byte of length. */
	struct str text = str_make(bytes + GO_HEADER_BYTES + 1,
		MIN((size_t)bytes[GO_HEADER_BYTES], len - GO_HEADER_BYTES - 1));
	if (str_starts(text, STR("go")) && version_at(str_sub(text, 2, text.len)).len)
		name_it(out, "Go", version_at(str_sub(text, 2, text.len)));
	return true;
}

enum status executable_read(const struct objfile *obj, struct executable *out, struct err *e)
{
	struct executable x = { .compiler = "unknown" };
	enum status s = read_file_id(obj, x.file_id, e);
	if (s != OK)
		return s;
	read_build_id(obj, x.build_id, sizeof(x.build_id));
	CLEANUP(buf_deinit) struct buf comment;
	buf_init(&comment, COMMENT_BYTES_MAX);
	if (!read_go(obj, &x) && read_small_section(obj, ".comment", COMMENT_BYTES_MAX, &comment))
		read_comment(buf_view(&comment), &x);
	struct objfile_segment interpreter;
	x.is_static = !objfile_program_header(obj, PT_INTERP, &interpreter);
	x.is_stripped = true;
	uint32_t count;
	const struct objfile_section *sections = objfile_sections(obj, &count);
	for (uint32_t i = 0; i < count; i++)
		x.is_stripped = x.is_stripped && sections[i].type != SHT_SYMTAB;
	*out = x;
	return OK;
}

/* ---- what is known ---- */

static bool stamp_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct executables *x = ctx;
	const struct file_stamp *a = &x->known.v[value].stamp, *b = key;
	return a->dev == b->dev && a->inode == b->inode && a->size == b->size &&
	       a->time_s == b->time_s && a->time_ns == b->time_ns;
}

static void remember(struct executables *x, const struct known *k)
{
	if (x->known.len == EXECUTABLES_MAX) {
		VEC_CLEAR(&x->known);
		map_clear(&x->index);
	}
	uint32_t at = (uint32_t)x->known.len;
	if (VEC_PUSH(&x->known, *k) && !map_insert(&x->index, hash_u64(k->stamp.inode), at))
		x->known.len--;
}

/* The device of a program that was never met is not known. */
#define DEVICE_UNKNOWN 0

static bool read_program(struct executables *x, int pid, struct executable *out)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	CLEANUP(open_file_close) struct open_file file = { .fd = -1 };
	if (open_file_open(path, DEVICE_UNKNOWN, &file, NULL) != OK)
		return false;
	const struct broker_stat *st = &file.pinned.stat;
	struct known k = { .stamp = { st->device, st->inode, st->bytes, st->modified_s,
				   st->modified_ns } };
	uint32_t at = map_find(&x->index, hash_u64(st->inode), stamp_equal, x, &k.stamp);
	if (at == MAP_NONE) {
		struct objfile *obj = NULL;
		enum status s = open_file_objfile(&file, path, &obj, NULL);
		if (s == OK)
			s = executable_read(obj, &k.executable, NULL);
		objfile_close(obj);
		k.good = s == OK;
		if (s != E_TIMEOUT)
			remember(x, &k);
	} else {
		k = x->known.v[at];
	}
	*out = k.executable;
	return k.good;
}

/* ---- requests ---- */

static struct request *request_find(struct executables *x, int pid, uint64_t start_ticks)
{
	for (size_t i = 0; i < EXECUTABLES_ASKED_MAX; i++) {
		struct request *q = &x->requests[i];
		if (q->number && q->pid == pid && q->start_ticks == start_ticks)
			return q;
	}
	return NULL;
}

/* Without the lock. The pid may belong to another process by now: the start time tells. */
static void answer(struct executables *x, struct request *q)
{
	struct procfs_stat stat;
	bool good = read_program(x, q->pid, &q->executable) &&
		    procfs_stat(q->pid, &stat, NULL) == OK && stat.start_ticks == q->start_ticks;
	q->answer = good ? EXECUTABLES_KNOWN : EXECUTABLES_NONE;
}

static void *run(void *ctx)
{
	struct executables *x = ctx;
	lock_take(&x->lock);
	while (!x->stopping) {
		if (x->answered == x->last) {
			lock_wait(&x->asked, &x->lock);
			continue;
		}
		struct request *place = &x->requests[++x->answered % EXECUTABLES_ASKED_MAX];
		if (place->number != x->answered)
			continue; /* forgotten */
		struct request q = *place;
		lock_release(&x->lock);
		answer(x, &q);
		lock_take(&x->lock);
		if (place->number == q.number)
			*place = q;
		atomic_fetch_add(&x->generation, 1);
	}
	lock_release(&x->lock);
	return NULL;
}

static enum executables_answer ask(struct executables *x, int pid, uint64_t start_ticks)
{
	if (!x->started)
		x->started = os_thread_start(&x->thread, "executables", run, x, NULL) == OK;
	/* The thread may hang: what it has not looked at is not overwritten. */
	if (!x->started || x->last - x->answered >= EXECUTABLES_ASKED_MAX - 1)
		return EXECUTABLES_NONE;
	x->last++;
	x->requests[x->last % EXECUTABLES_ASKED_MAX] = (struct request){ .pid = pid,
		.start_ticks = start_ticks,
		.number = x->last,
		.answer = EXECUTABLES_ASKED };
	pthread_cond_signal(&x->asked);
	return EXECUTABLES_ASKED;
}

enum executables_answer executables_find(
	struct executables *x, int pid, uint64_t start_ticks, struct executable *out)
{
	lock_take(&x->lock);
	const struct request *q = request_find(x, pid, start_ticks);
	enum executables_answer a = q ? q->answer : ask(x, pid, start_ticks);
	if (q && a == EXECUTABLES_KNOWN)
		*out = q->executable;
	lock_release(&x->lock);
	return a;
}

void executables_forget(struct executables *x, int pid, uint64_t start_ticks)
{
	lock_take(&x->lock);
	/* Where no sample asks there are a thousand places to look through for each exec. */
	struct request *q = x->started ? request_find(x, pid, start_ticks) : NULL;
	if (q)
		q->number = 0;
	lock_release(&x->lock);
}

uint64_t executables_generation(struct executables *x)
{
	return atomic_load(&x->generation);
}

/* ---- life ---- */

enum status executables_new(struct executables **out, struct err *e)
{
	struct executables *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, E_NOMEM, "executables");
	lock_init(&x->lock, LOCK_EXECUTABLES);
	pthread_cond_init(&x->asked, NULL);
	*out = x;
	return OK;
}

void executables_free(struct executables *x)
{
	if (!x)
		return;
	if (x->started) {
		lock_take(&x->lock);
		x->stopping = true;
		pthread_cond_signal(&x->asked);
		lock_release(&x->lock);
		pthread_join(x->thread, NULL);
	}
	VEC_FREE(&x->known);
	map_deinit(&x->index);
	pthread_cond_destroy(&x->asked);
	lock_destroy(&x->lock);
	free(x);
}
