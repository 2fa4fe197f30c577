/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of the directory is in memory, sorted by name: entries are added at its end and taken
 * from its front. Only this process writes the directory (flock), so the index is the truth; a
 * file that is gone all the same counts as damaged when its turn comes.
 */
#include "agent/send/spool.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/reader.h"
#include "base/vec.h"
#include "codec/codec.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "FIRNSPL1"
#define HEADER_BYTES 24
#define NAME_BYTES 31 /* 16 + '-' + 8 + ".batch" */
/* A directory of as many names, other files among them. */
#define LISTING_BYTES_MAX ((size_t)16 << 20)
#define ZSTD_LEVEL 1

struct entry {
	uint64_t time_ns;
	uint32_t number;
	uint32_t samples;
	uint64_t bytes;
};

struct spool {
	char dir[PATH_MAX - 64];
	uint64_t bytes_max;
	int lock_fd;
	uint32_t next_number;
	VEC(struct entry) entries; /* entries.v[head ..] are there */
	size_t head;
	struct spool_sum content;
};

static void path_of(const struct spool *s, const struct entry *n, char out[PATH_MAX])
{
	int len = snprintf(out, PATH_MAX, "%s/%016" PRIx64 "-%08" PRIx32 ".batch", s->dir,
		n->time_ns, n->number);
	assert(len > 0 && len < PATH_MAX);
}

static bool parse_name(struct str name, struct entry *out)
{
	uint64_t time, number;
	if (name.len != NAME_BYTES || name.p[16] != '-' || !str_ends(name, STR(".batch")) ||
		!str_parse_u64(str_sub(name, 0, 16), 16, &time) ||
		!str_parse_u64(str_sub(name, 17, 8), 16, &number))
		return false;
	*out = (struct entry){ .time_ns = time, .number = (uint32_t)number };
	return true;
}

static void forget_front(struct spool *s)
{
	const struct entry *n = &s->entries.v[s->head++];
	s->content.batches--;
	s->content.samples -= n->samples;
	s->content.bytes -= n->bytes;
	if (s->head == s->entries.len || s->head >= 4096) {
		size_t left = s->entries.len - s->head;
		memmove(s->entries.v, s->entries.v + s->head, left * sizeof(*s->entries.v));
		s->entries.len = left;
		s->head = 0;
	}
}

static void remove_front(struct spool *s, struct spool_sum *sum)
{
	char path[PATH_MAX];
	const struct entry n = s->entries.v[s->head];
	path_of(s, &n, path);
	unlink(path);
	if (sum) {
		sum->batches++;
		sum->samples += n.samples;
		sum->bytes += n.bytes;
	}
	forget_front(s);
}

static bool append_entry(struct spool *s, const struct entry *n)
{
	if (!VEC_PUSH(&s->entries, *n))
		return false;
	s->content.batches++;
	s->content.samples += n->samples;
	s->content.bytes += n->bytes;
	return true;
}

/* ---- opening ---- */

static enum status take_lock(struct spool *s, struct err *e)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/lock", s->dir);
	s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	if (s->lock_fd < 0)
		return err_os(e, "open %s", path);
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return OK;
	if (errno == EWOULDBLOCK)
		return err_set(e, E_EXISTS, "%s: another agent uses this spool", s->dir);
	return err_os(e, "lock %s", path);
}

/* Size and samples of a file; a header that cannot be read gives 0 samples and fails later. */
static bool read_header(const struct spool *s, struct entry *n)
{
	char path[PATH_MAX];
	uint8_t header[HEADER_BYTES] = { 0 };
	struct stat st;
	path_of(s, n, path);
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n->bytes = (uint64_t)st.st_size;
	if (pread(fd, header, sizeof(header), 0) == HEADER_BYTES && memcmp(header, MAGIC, 8) == 0) {
		struct reader r = reader_over(header + 12, 4);
		n->samples = reader_u32(&r);
	}
	return true;
}

static enum status read_dir(struct spool *s, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, LISTING_BYTES_MAX);
	struct str *names;
	size_t count;
	enum status st = os_list_dir(s->dir, &a, &names, &count, e);
	if (st != OK)
		return st;
	for (size_t i = 0; i < count; i++) {
		struct entry n;
		if (str_ends(names[i], STR(".tmp"))) {
			char path[PATH_MAX];
			snprintf(path, sizeof(path), "%s/%.*s", s->dir, STR_ARG(names[i]));
			unlink(path);
		} else if (parse_name(names[i], &n) && read_header(s, &n)) {
			if (!append_entry(s, &n))
				return err_set(e, E_NOMEM, "%s", s->dir);
			s->next_number = MAX(s->next_number, n.number + 1);
		}
	}
	return OK;
}

static void spool_cleanup(struct spool **s)
{
	spool_close(*s);
}

enum status spool_open(const char *dir, uint64_t bytes_max, struct spool **out, struct err *e)
{
	CLEANUP(spool_cleanup) struct spool *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, E_NOMEM, "%s", dir);
	s->lock_fd = -1;
	s->bytes_max = bytes_max;
	size_t dir_len = strlen(dir);
	if (dir_len >= sizeof(s->dir))
		return err_set(e, E_INVALID, "path too long: %.100s…", dir);
	memcpy(s->dir, dir, dir_len + 1);
	enum status st = os_make_dirs(dir, e);
	if (st == OK)
		st = take_lock(s, e);
	if (st == OK)
		st = read_dir(s, e);
	if (st == OK)
		*out = STEAL_PTR(s);
	return st;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	fd_cleanup(&s->lock_fd);
	VEC_FREE(&s->entries);
	free(s);
}

/* ---- adding and taking ---- */

static enum status encode_file(struct str message, uint32_t samples, struct buf *out, struct err *e)
{
	buf_put(out, MAGIC, 8);
	buf_u32(out, 0);
	buf_u32(out, samples);
	buf_u64(out, message.len);
	enum status s = codec_zstd_compress(message.p, message.len, ZSTD_LEVEL, out);
	if (s == OK)
		s = buf_status(out);
	if (s != OK)
		return err_set(e, s, "batch of %zu bytes: %s", message.len, status_text(s));
	uint32_t crc = codec_crc32c(0, out->data + 12, out->len - 12);
	memcpy(out->data + 8, &crc, sizeof(crc));
	return OK;
}

/* Makes the folder again after a user removed it. Its batches count as damaged when their turn
 * comes. */
static enum status make_again(struct spool *s)
{
	enum status st = os_make_dirs(s->dir, NULL);
	if (st != OK)
		return st;
	fd_cleanup(&s->lock_fd);
	return take_lock(s, NULL);
}

enum status spool_add(struct spool *s, struct str message, uint32_t samples, struct spool_sum *lost,
	struct err *e)
{
	if (message.len > SPOOL_MESSAGE_BYTES_MAX)
		return err_set(e, E_LIMIT, "batch of %zu bytes", message.len);
	CLEANUP(buf_deinit) struct buf file;
	buf_init(&file, SPOOL_MESSAGE_BYTES_MAX + ((size_t)1 << 20));
	enum status st = encode_file(message, samples, &file, e);
	if (st != OK)
		return st;
	if (file.len > s->bytes_max)
		return err_set(e, E_LIMIT, "batch of %zu bytes in a spool of %" PRIu64, file.len,
			s->bytes_max);
	while (s->content.bytes + file.len > s->bytes_max || s->content.batches >= SPOOL_FILES_MAX)
		remove_front(s, lost);
	struct entry n = { (uint64_t)clock_realtime_ns(), s->next_number, samples, file.len };
	/* The order is that of the names, whatever the wall clock did. */
	if (s->head < s->entries.len)
		n.time_ns = MAX(n.time_ns, s->entries.v[s->entries.len - 1].time_ns);
	char path[PATH_MAX];
	path_of(s, &n, path);
	st = os_replace_file(path, file.data, file.len, 0640, e);
	if (st == E_NOTFOUND && make_again(s) == OK)
		st = os_replace_file(path, file.data, file.len, 0640, e);
	if (st != OK)
		return st;
	s->next_number++;
	if (!append_entry(s, &n)) {
		unlink(path);
		return err_set(e, E_NOMEM, "%s", path);
	}
	return OK;
}

enum status spool_decode(struct str file, struct buf *out, uint32_t *out_samples, struct err *e)
{
	struct reader r = reader_over(file.p, file.len);
	struct str magic = reader_str(&r, 8);
	uint32_t crc = reader_u32(&r), samples = reader_u32(&r);
	uint64_t bytes = reader_u64(&r);
	if (r.failed || !str_eq(magic, STR(MAGIC)))
		return err_set(e, E_CORRUPT, "no header");
	if (codec_crc32c(0, file.p + 12, file.len - 12) != crc)
		return err_set(e, E_CORRUPT, "wrong checksum");
	if (bytes > SPOOL_MESSAGE_BYTES_MAX)
		return err_set(e, E_CORRUPT, "message of %" PRIu64 " bytes", bytes);
	uint8_t *to = buf_reserve(out, (size_t)bytes + 1);
	if (!to)
		return err_set(e, E_NOMEM, "message of %" PRIu64 " bytes", bytes);
	enum status s = codec_zstd_decompress_exact(r.at, reader_left(&r), to, (size_t)bytes, e);
	if (s != OK)
		return s;
	out->len += (size_t)bytes;
	*out_samples = samples;
	return OK;
}

enum status agent_read_batch(const char *path, struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf file;
	uint32_t samples;
	buf_init(&file, SPOOL_MESSAGE_BYTES_MAX + ((size_t)2 << 20));
	enum status st = os_read_file(path, &file, e);
	return st == OK ? spool_decode(buf_view(&file), out, &samples, e) : st;
}

/* *out_is_lost: it is gone or damaged. One that only could not be opened or read (descriptors, the
 * disk) may be there the next time. */
static enum status read_entry(
	const char *path, struct buf *out, uint32_t *out_samples, bool *out_is_lost, struct err *e)
{
	CLEANUP(buf_deinit) struct buf file;
	buf_init(&file, SPOOL_MESSAGE_BYTES_MAX + ((size_t)2 << 20));
	CLEANUP(fd_cleanup) int fd = os_open_read(path);
	if (fd < 0) {
		*out_is_lost = errno == ENOENT;
		return err_os(e, "open %s", path);
	}
	enum status st = os_read_fd(fd, path, &file, e);
	*out_is_lost = st == E_LIMIT; /* longer than any batch */
	if (st == OK) {
		st = spool_decode(buf_view(&file), out, out_samples, e);
		*out_is_lost = st != OK && st != E_NOMEM;
	}
	return st;
}

enum status spool_oldest(struct spool *s, struct buf *out, uint32_t *out_samples,
	struct spool_sum *damaged, struct err *e)
{
	while (s->head < s->entries.len) {
		char path[PATH_MAX];
		bool is_lost = false;
		path_of(s, &s->entries.v[s->head], path);
		enum status st = read_entry(path, out, out_samples, &is_lost, e);
		if (!is_lost)
			return st;
		remove_front(s, damaged);
	}
	return err_set(e, E_NOTFOUND, "the spool is empty");
}

void spool_remove_oldest(struct spool *s)
{
	assert(s->head < s->entries.len);
	remove_front(s, NULL);
}

struct spool_sum spool_content(const struct spool *s)
{
	return s->content;
}
