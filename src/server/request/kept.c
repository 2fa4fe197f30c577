/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that users keep on this server, in STORAGE/shared. Above the limits the oldest files are
 * removed: a tenant's own, so that no tenant pushes out another's files.
 *
 * A tenant's file is ID@TENANT and a suffix: a request of another tenant does not find it. A
 * profile's suffix is ".pb.gz", that of a file as it was uploaded ".file"; its id ends with
 * "-NAME".
 *
 * The id of a snapshot has the time when it expires: after the random letters are the minutes since
 * 1970, five bits in each letter. From then on it is not served, and the next request for it, or
 * the next file that is kept, removes it.
 *
 * A file is written whole under another name and then renamed, so that a reader never sees half of
 * one. Ids are random: a link cannot be guessed.
 */
#include "server/request/kept.h"
#include "server/request/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limits of a tenant, and of all tenants: beyond the first its own oldest file is removed, beyond
 * the second the oldest of the tenant with the most. */
#define SHARED_FILES_MAX 1000
#define SHARED_BYTES_MAX ((uint64_t)1 << 30)
#define SHARED_ALL_FILES_MAX 16000
#define SHARED_ALL_BYTES_MAX ((uint64_t)4 << 30)
#define NS_PER_MINUTE (60 * NS_PER_SEC)
#define SUFFIX_LEN 6
#define PATH_BYTES 4096
#define NAME_LEN (KEPT_ID_BYTES - 1 + 1 + STORE_TENANT_MAX + SUFFIX_LEN)
#define FILE_BYTES (PATH_BYTES + NAME_LEN + 2)

static const char *const suffixes[] = { [KEPT_PROFILE] = ".pb.gz", [KEPT_UPLOAD] = ".file" };
static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";

static enum status shared_dir(const struct server *s, char out[PATH_BYTES], struct err *e)
{
	if (snprintf(out, PATH_BYTES, "%s/shared", s->config->storage_path) >= PATH_BYTES)
		return err_set(e, E_INVALID, "the storage path is too long");
	return os_make_dirs(out, e);
}

/* ---- ids ---- */

static enum status make_id(enum kept_kind kind, struct str name, int64_t end_ns,
	char out[KEPT_ID_BYTES], struct err *e)
{
	uint8_t random[KEPT_LETTERS];
	char *p = out;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_os(e, "random bytes");
	while (p < out + KEPT_LETTERS) {
		*p = letters[random[p - out] % 32];
		p++;
	}
	if (kind == KEPT_UPLOAD) {
		assert(name.len <= KEPT_NAME_MAX);
		*p++ = '-';
		memcpy(p, name.p, name.len);
		p += name.len;
	} else if (end_ns) {
		uint64_t minutes = ((uint64_t)end_ns + NS_PER_MINUTE - 1) / NS_PER_MINUTE;
		p += KEPT_END_LETTERS;
		for (int i = 1; i <= KEPT_END_LETTERS; i++, minutes /= 32)
			p[-i] = letters[minutes % 32];
	}
	*p = 0;
	return OK;
}

static bool is_letters(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '2' && s.p[i] <= '7'))
			return false;
	return true;
}

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			c != '.' && c != '-' && c != '_')
			return false;
	}
	return s.len <= KEPT_NAME_MAX;
}

static bool is_id(enum kept_kind kind, struct str s)
{
	struct str rest = str_sub(s, KEPT_LETTERS, s.len);
	if (s.len < KEPT_LETTERS || !is_letters(str_sub(s, 0, KEPT_LETTERS)))
		return false;
	if (kind == KEPT_UPLOAD)
		return rest.len && rest.p[0] == '-' && is_name(str_sub(rest, 1, rest.len));
	return (rest.len == 0 || rest.len == KEPT_END_LETTERS) && is_letters(rest);
}

/* Whether the snapshot of this id has expired. */
static bool is_over(enum kept_kind kind, struct str id, int64_t now_ns)
{
	int64_t minutes = 0;
	if (kind != KEPT_PROFILE || id.len == KEPT_LETTERS)
		return false;
	for (size_t i = KEPT_LETTERS; i < id.len; i++)
		minutes = minutes * 32 + (strchr(letters, id.p[i]) - letters);
	return minutes <= now_ns / NS_PER_MINUTE;
}

struct file_name {
	enum kept_kind kind;
	struct str id, tenant; /* in the name */
};

static bool file_name_read(const char *name, struct file_name *out)
{
	struct str s = str_of(name);
	if (s.len > NAME_LEN)
		return false;
	out->kind = str_ends(s, str_of(suffixes[KEPT_PROFILE])) ? KEPT_PROFILE : KEPT_UPLOAD;
	struct str suffix = str_of(suffixes[out->kind]);
	if (!str_ends(s, suffix))
		return false;
	s = str_sub(s, 0, s.len - suffix.len);
	size_t at = str_index(s, '@');
	out->id = str_sub(s, 0, at);
	out->tenant = str_sub(s, at + 1, s.len);
	return is_id(out->kind, out->id);
}

static void put_path(char out[FILE_BYTES], const char *dir, enum kept_kind kind, struct str id,
	struct str tenant)
{
	snprintf(out, FILE_BYTES, "%s/%.*s%s%.*s%s", dir, STR_ARG(id), tenant.len ? "@" : "",
		STR_ARG(tenant), suffixes[kind]);
}

static int64_t time_of(const struct stat *st)
{
	return st->st_mtim.tv_sec * NS_PER_SEC + st->st_mtim.tv_nsec;
}

/* ---- what is there ---- */

typedef bool file_fn(
	void *ctx, const char *name, const struct file_name *parts, const struct stat *st);

/* Calls fn for each file that has not expired, and removes the others. `fn` false: no memory. */
static enum status each_file(const char *dir, file_fn *fn, void *ctx, struct err *e)
{
	int64_t now_ns = clock_realtime_ns();
	DIR *d = opendir(dir);
	if (!d)
		return err_os(e, "%s", dir);
	bool good = true;
	for (struct dirent *entry; good && (entry = readdir(d));) {
		struct stat st;
		struct file_name f;
		if (!file_name_read(entry->d_name, &f))
			continue;
		if (is_over(f.kind, f.id, now_ns) && unlinkat(dirfd(d), entry->d_name, 0) == 0)
			continue;
		if (fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			good = fn(ctx, entry->d_name, &f, &st);
	}
	closedir(d);
	return good ? OK : err_set(e, E_NOMEM, "%s", dir);
}

/* ---- the limits ---- */

struct usage {
	char tenant[STORE_TENANT_MAX + 1];
	char oldest[NAME_LEN + 1];
	int64_t time_ns;
	uint64_t files, bytes;
};

struct usages {
	VEC(struct usage *) v;
	uint64_t files, bytes;
};

static void usages_deinit(struct usages *u)
{
	for (size_t i = 0; i < u->v.len; i++)
		free(u->v.v[i]);
	VEC_FREE(&u->v);
}

/* NULL: no memory. */
static struct usage *usage_of(struct usages *u, struct str tenant)
{
	for (size_t i = 0; i < u->v.len; i++)
		if (str_eq(str_of(u->v.v[i]->tenant), tenant))
			return u->v.v[i];
	struct usage *new = calloc(1, sizeof(*new));
	if (!new || !VEC_PUSH(&u->v, new)) {
		free(new);
		return NULL;
	}
	memcpy(new->tenant, tenant.p, MIN(tenant.len, sizeof(new->tenant) - 1));
	return new;
}

static bool count_file(
	void *ctx, const char *name, const struct file_name *parts, const struct stat *st)
{
	struct usages *u = ctx;
	struct usage *of = usage_of(u, parts->tenant);
	if (!of)
		return false;
	if (of->files == 0 || time_of(st) < of->time_ns) {
		snprintf(of->oldest, sizeof(of->oldest), "%s", name);
		of->time_ns = time_of(st);
	}
	of->files++;
	of->bytes += (uint64_t)st->st_size;
	u->files++;
	u->bytes += (uint64_t)st->st_size;
	return true;
}

/* The tenant that loses a file to make room for `size` bytes more; NULL: there is room. */
static struct usage *who_gives_way(const struct usages *u, struct str tenant, uint64_t size)
{
	struct usage *most = NULL;
	for (size_t i = 0; i < u->v.len; i++) {
		struct usage *of = u->v.v[i];
		if (str_eq(str_of(of->tenant), tenant) &&
			(of->files >= SHARED_FILES_MAX || of->bytes + size > SHARED_BYTES_MAX))
			return of;
		if (!most || of->bytes > most->bytes ||
			(of->bytes == most->bytes && of->files > most->files))
			most = of;
	}
	bool full = u->files >= SHARED_ALL_FILES_MAX || u->bytes + size > SHARED_ALL_BYTES_MAX;
	return full ? most : NULL;
}

/* Makes room for one more file of `size` bytes. */
static enum status make_room(
	struct server *s, struct str tenant, const char *dir, uint64_t size, struct err *e)
{
	for (;;) {
		CLEANUP(usages_deinit) struct usages all = { 0 };
		char path[FILE_BYTES];
		enum status st = each_file(dir, count_file, &all, e);
		if (st != OK)
			return st;
		struct usage *of = who_gives_way(&all, tenant, size);
		if (!of)
			return OK;
		snprintf(path, sizeof(path), "%s/%s", dir, of->oldest);
		if (unlink(path) == 0)
			metric_add(&s->metrics.shared_dropped, 1);
		else if (errno != ENOENT) /* another request has removed it already */
			return err_os(e, "%s", path);
	}
}

/* ---- keeping, reading, listing ---- */

enum status kept_put(struct server *s, struct str tenant, enum kept_kind kind, struct str name,
	struct str bytes, int64_t end_ns, struct kept *out, struct err *e)
{
	char dir[PATH_BYTES], path[FILE_BYTES];
	struct stat st;
	if (bytes.len > KEPT_FILE_MAX)
		return err_set(e, E_LIMIT, "the profile has %zu MiB, at most %zu are shared",
			bytes.len >> 20, KEPT_FILE_MAX >> 20);
	enum status s1 = shared_dir(s, dir, e);
	if (s1 == OK)
		s1 = make_room(s, tenant, dir, bytes.len, e);
	if (s1 == OK)
		s1 = make_id(kind, name, end_ns, out->id, e);
	if (s1 != OK)
		return s1;
	put_path(path, dir, kind, str_of(out->id), tenant);
	s1 = os_replace_file(path, bytes.p, bytes.len, 0640, e);
	if (s1 == OK)
		metric_add(&s->metrics.shared, 1);
	out->time_ns = stat(path, &st) == 0 ? time_of(&st) : clock_realtime_ns();
	return s1;
}

enum status kept_get(const struct server *s, struct str tenant, enum kept_kind kind, struct str id,
	struct buf *out, int64_t *out_time_ns, struct err *e)
{
	char dir[PATH_BYTES], path[FILE_BYTES];
	struct stat st;
	if (!is_id(kind, id))
		return err_set(e, E_NOTFOUND, "no such shared profile");
	enum status s1 = shared_dir(s, dir, e);
	if (s1 != OK)
		return s1;
	put_path(path, dir, kind, id, tenant);
	bool over = is_over(kind, id, clock_realtime_ns());
	if (over)
		(void)unlink(path);
	s1 = over ? E_NOTFOUND : os_read_file(path, out, e);
	if (s1 == E_NOTFOUND)
		return err_set(e, s1, "%s",
			over ? "this snapshot has ended"
			     : "no such shared profile; the oldest are dropped");
	*out_time_ns = stat(path, &st) == 0 ? time_of(&st) : 0;
	return s1;
}

struct list {
	struct str tenant;
	enum kept_kind kind;
	VEC(struct kept) v;
};

static bool list_file(
	void *ctx, const char *name, const struct file_name *parts, const struct stat *st)
{
	struct list *l = ctx;
	struct kept k = { .time_ns = time_of(st) };
	(void)name;
	if (parts->kind != l->kind || !str_eq(parts->tenant, l->tenant))
		return true;
	memcpy(k.id, parts->id.p, parts->id.len); /* is_id() limits its length */
	return VEC_PUSH(&l->v, k);
}

static int by_age(const void *a, const void *b)
{
	int64_t x = ((const struct kept *)a)->time_ns, y = ((const struct kept *)b)->time_ns;
	return (x < y) - (x > y);
}

enum status kept_list(const struct server *s, struct str tenant, enum kept_kind kind,
	struct arena *a, struct kept **out, size_t *out_count, struct err *e)
{
	char dir[PATH_BYTES];
	struct list l = { .tenant = tenant, .kind = kind };
	enum status s1 = shared_dir(s, dir, e);
	if (s1 == OK)
		s1 = each_file(dir, list_file, &l, e);
	if (s1 == OK && l.v.len) {
		qsort(l.v.v, l.v.len, sizeof(*l.v.v), by_age);
		*out = ARENA_ARRAY(a, struct kept, l.v.len);
		if (*out)
			memcpy(*out, l.v.v, l.v.len * sizeof(*l.v.v));
		else
			s1 = err_set(e, arena_status(a), "the list of files");
	}
	*out_count = l.v.len;
	VEC_FREE(&l.v);
	return s1;
}
