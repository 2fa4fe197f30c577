/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ShareProfile, and POST /api/snapshots: the profile is kept on this server, in STORAGE/shared, and
 * served again at /shared/ID; nothing leaves for another host. Above the limits the oldest go: a
 * tenant's own, so that nobody pushes another's out by sharing more.
 *
 * A tenant's profile is ID@TENANT.pb.gz: a request of another tenant does not find it.
 *
 * The id of a snapshot says when it ends: behind the random letters it has the minutes since 1970,
 * five bits a letter. From then on it is not served, and the next request for it, or the next
 * profile that is kept, removes it.
 *
 * A file is written whole under another name and then renamed, so that a reader never sees half of
 * one. Ids are random: a link cannot be guessed.
 */
#include "parca/parca.h"
#include "pb/pb.h"
#include "server/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a tenant, and of all: beyond the first its own oldest goes, beyond the second the oldest of
 * the tenant that has most. */
#define SHARED_FILES_MAX 1000
#define SHARED_BYTES_MAX ((uint64_t)1 << 30)
#define SHARED_ALL_FILES_MAX 16000
#define SHARED_ALL_BYTES_MAX ((uint64_t)4 << 30)
#define SHARED_FILE_MAX ((size_t)64 << 20)
#define ID_LEN 22
#define NS_PER_MINUTE (60 * NS_PER_SEC)
#define END_LEN 6 /* letters of the end */
#define ID_LEN_MAX (ID_LEN + END_LEN)
#define SUFFIX ".pb.gz"
#define PATH_BYTES 4096
#define NAME_LEN (ID_LEN_MAX + 1 + STORE_TENANT_MAX + sizeof(SUFFIX) - 1)
#define FILE_BYTES (PATH_BYTES + NAME_LEN + 2)

static enum status shared_dir(const struct server *s, char out[PATH_BYTES], struct err *e)
{
	if (snprintf(out, PATH_BYTES, "%s/shared", s->config->storage_path) >= PATH_BYTES)
		return err_set(e, E_INVALID, "the storage path is too long");
	return os_make_dirs(out, e);
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";

/* end_ns: 0 for none. */
static enum status make_id(int64_t end_ns, char out[ID_LEN_MAX + 1], struct err *e)
{
	uint8_t random[ID_LEN];
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_os(e, "random bytes");
	for (size_t i = 0; i < ID_LEN; i++)
		out[i] = letters[random[i] % 32];
	out[ID_LEN] = 0;
	if (end_ns == 0)
		return OK;
	uint64_t minutes = ((uint64_t)end_ns + NS_PER_MINUTE - 1) / NS_PER_MINUTE;
	for (size_t i = ID_LEN_MAX; i-- > ID_LEN; minutes /= 32)
		out[i] = letters[minutes % 32];
	out[ID_LEN_MAX] = 0;
	return OK;
}

/* Whether the end that an id names has come. */
static bool is_over(struct str id, int64_t now_ns)
{
	int64_t minutes = 0;
	for (size_t i = ID_LEN; i < id.len; i++)
		minutes = minutes * 32 + (strchr(letters, id.p[i]) - letters);
	return id.len > ID_LEN && minutes <= now_ns / NS_PER_MINUTE;
}

static bool is_id(struct str s)
{
	if (s.len != ID_LEN && s.len != ID_LEN_MAX)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '2' && s.p[i] <= '7'))
			return false;
	return true;
}

/* ---- the limits ---- */

struct usage {
	struct str tenant; /* in `oldest` */
	char oldest[NAME_LEN + 1];
	struct timespec time;
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

/* ID.pb.gz or ID@TENANT.pb.gz. */
static bool is_shared_name(const char *name, struct str *out_tenant)
{
	struct str s = str_of(name);
	if (!str_ends(s, STR(SUFFIX)) || s.len > NAME_LEN)
		return false;
	s = str_sub(s, 0, s.len - strlen(SUFFIX));
	size_t at = str_index(s, '@');
	*out_tenant = str_sub(s, at + 1, s.len);
	return is_id(str_sub(s, 0, at));
}

static void put_path(char out[FILE_BYTES], const char *dir, struct str id, struct str tenant)
{
	snprintf(out, FILE_BYTES, "%s/%.*s%s%.*s" SUFFIX, dir, STR_ARG(id), tenant.len ? "@" : "",
		STR_ARG(tenant));
}

/* NULL: no memory. */
static struct usage *usage_of(struct usages *u, struct str tenant)
{
	for (size_t i = 0; i < u->v.len; i++)
		if (str_eq(u->v.v[i]->tenant, tenant))
			return u->v.v[i];
	struct usage *new = calloc(1, sizeof(*new));
	if (!new || !VEC_PUSH(&u->v, new)) {
		free(new);
		return NULL;
	}
	return new;
}

static bool count_file(struct usages *u, const char *name, struct str tenant, const struct stat *st)
{
	struct usage *of = usage_of(u, tenant);
	if (!of)
		return false;
	bool older =
		st->st_mtim.tv_sec < of->time.tv_sec ||
		(st->st_mtim.tv_sec == of->time.tv_sec && st->st_mtim.tv_nsec < of->time.tv_nsec);
	if (of->files == 0 || older) {
		assert(strlen(name) <= NAME_LEN);
		memcpy(of->oldest, name, strlen(name) + 1);
		(void)is_shared_name(of->oldest, &of->tenant);
		of->time = st->st_mtim;
	}
	of->files++;
	of->bytes += (uint64_t)st->st_size;
	u->files++;
	u->bytes += (uint64_t)st->st_size;
	return true;
}

/* Removes a snapshot whose end has come; whether it has. */
static bool remove_over(int dir, const char *name, int64_t now_ns)
{
	struct str id = str_of(name);
	id = str_sub(id, 0, MIN(str_index(id, '@'), str_index(id, '.')));
	return is_over(id, now_ns) && unlinkat(dir, name, 0) == 0;
}

static enum status find_usages(const char *dir, struct usages *out, struct err *e)
{
	int64_t now_ns = clock_realtime_ns();
	DIR *d = opendir(dir);
	if (!d)
		return err_os(e, "%s", dir);
	bool good = true;
	for (struct dirent *entry; good && (entry = readdir(d));) {
		struct stat st;
		struct str tenant;
		if (is_shared_name(entry->d_name, &tenant) &&
			!remove_over(dirfd(d), entry->d_name, now_ns) &&
			fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			good = count_file(out, entry->d_name, tenant, &st);
	}
	closedir(d);
	return good ? OK : err_set(e, E_NOMEM, "%s", dir);
}

/* The tenant that loses a shared profile to make room for `size` bytes more; NULL: there is room.
 */
static struct usage *who_gives_way(const struct usages *u, struct str tenant, uint64_t size)
{
	struct usage *most = NULL;
	for (size_t i = 0; i < u->v.len; i++) {
		struct usage *of = u->v.v[i];
		if (str_eq(of->tenant, tenant) &&
			(of->files >= SHARED_FILES_MAX || of->bytes + size > SHARED_BYTES_MAX))
			return of;
		if (!most || of->bytes > most->bytes ||
			(of->bytes == most->bytes && of->files > most->files))
			most = of;
	}
	bool full = u->files >= SHARED_ALL_FILES_MAX || u->bytes + size > SHARED_ALL_BYTES_MAX;
	return full ? most : NULL;
}

/* Room for one more of `size` bytes. */
static enum status make_room(
	struct server *s, struct str tenant, const char *dir, uint64_t size, struct err *e)
{
	for (;;) {
		CLEANUP(usages_deinit) struct usages all = { 0 };
		char path[FILE_BYTES];
		enum status st = find_usages(dir, &all, e);
		if (st != OK)
			return st;
		struct usage *of = who_gives_way(&all, tenant, size);
		if (!of)
			return OK;
		snprintf(path, sizeof(path), "%s/%s", dir, of->oldest);
		if (unlink(path) == 0)
			metric_add(&s->metrics.shared_dropped, 1);
		else if (errno != ENOENT) /* another request was first */
			return err_os(e, "%s", path);
	}
}

static enum status keep(struct server *s, struct str tenant, struct str profile, int64_t end_ns,
	char id[ID_LEN_MAX + 1], struct err *e)
{
	char dir[PATH_BYTES], path[FILE_BYTES];
	if (profile.len > SHARED_FILE_MAX)
		return err_set(e, E_LIMIT, "the profile has %zu MiB, at most %zu are shared",
			profile.len >> 20, SHARED_FILE_MAX >> 20);
	enum status st = shared_dir(s, dir, e);
	if (st == OK)
		st = make_room(s, tenant, dir, profile.len, e);
	if (st == OK)
		st = make_id(end_ns, id, e);
	if (st != OK)
		return st;
	put_path(path, dir, str_of(id), tenant);
	st = os_replace_file(path, profile.p, profile.len, 0640, e);
	if (st == OK)
		metric_add(&s->metrics.shared, 1);
	return st;
}

/* ---- handlers ---- */

/* Where the client found us. */
static void put_link(struct buf *out, struct server *s, const struct net_request *r, const char *id)
{
	struct str host = net_header_find(r, "host");
	const char *prefix = s->config->path_prefix ? s->config->path_prefix : "";
	bool tls = s->config->tls_cert_file ||
		   str_eq(net_header_find(r, "x-forwarded-proto"), STR("https"));
	if (host.len == 0)
		host = net_header_find(r, ":authority");
	if (host.len == 0 || host.len > 255)
		host = str_of(net_server_address(s->net));
	CLEANUP(buf_deinit) struct buf link;
	buf_init(&link, 1024);
	buf_printf(
		&link, "%s://%.*s%s/shared/%s", tls ? "https" : "http", STR_ARG(host), prefix, id);
	pb_put_str(out, 1, buf_view(&link)); /* ShareProfileResponse { link = 1 } */
}

static enum status share(struct server *s, const struct query_engine *engine,
	const struct net_request *r, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf profile;
	struct parca_share_request q;
	struct query_report info;
	struct str tenant;
	char id[ID_LEN_MAX + 1];
	arena_init(&a, 16 << 20);
	buf_init(&profile, SHARED_FILE_MAX);
	enum status st = server_tenant(s, r, &tenant, e);
	if (st == OK)
		st = parca_share_decode(r->body, &a, &q, e);
	if (st == OK)
		st = server_parca_report(s, engine, r, &q.query, &a, &profile, &info, e);
	if (st == OK)
		st = keep(s, tenant, buf_view(&profile), 0, id, e);
	if (st == OK)
		put_link(out, s, r, id);
	return st;
}

void server_parca_share(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct err e = { 0 };
	struct server_query query;
	if (!server_is_ready(s, out))
		return;
	enum status st = server_query_begin(s, r, &query, &e);
	if (st == OK)
		do
			st = share(s, &query.engine, r, &out->body, &e);
		while (server_query_again(&query, st));
	server_query_end(&query, st);
	if (st != OK)
		net_fail(out, st, &e);
}

enum status server_snapshot(struct server *s, struct str tenant, struct str profile, int64_t end_ns,
	struct buf *out, struct err *e)
{
	char id[ID_LEN_MAX + 1];
	enum status st = keep(s, tenant, profile, end_ns, id, e);
	if (st == OK)
		buf_printf(out, "{\"id\":\"%s\",\"path\":\"/shared/%s\",\"expires\":%lld}", id, id,
			(long long)(end_ns / NS_PER_MS));
	return st;
}

/* GET /shared/ID: gzipped profile.proto. */
void server_handle_shared(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct str id = str_sub(r->path, strlen("/shared/"), r->path.len);
	char dir[PATH_BYTES], path[FILE_BYTES];
	struct str tenant;
	struct err e = { 0 };
	enum status st = is_id(id) ? server_tenant(s, r, &tenant, &e)
				   : err_set(&e, E_NOTFOUND, "no such shared profile");
	if (st == OK)
		st = shared_dir(s, dir, &e);
	if (st == OK) {
		put_path(path, dir, id, tenant);
		bool over = is_over(id, clock_realtime_ns());
		if (over)
			(void)unlink(path);
		st = over ? E_NOTFOUND : os_read_file(path, &out->body, &e);
		if (st == E_NOTFOUND)
			err_set(&e, st, "%s",
				over ? "this snapshot has ended"
				     : "no such shared profile; the oldest are dropped");
	}
	if (st != OK) {
		net_fail(out, st, &e);
		return;
	}
	out->content_type = "application/octet-stream";
	out->no_compress = true;
	snprintf(out->headers, sizeof(out->headers),
		"content-disposition: attachment; filename=\"%.*s" SUFFIX "\"\r\n", STR_ARG(id));
}
