/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/source: the lines of a source file with their values, and its text if it can be found:
 * uploaded for one of the builds that ran, from another debuginfod server for one of them, or the
 * file of that path on this host.
 *
 * Symbols name files, and any user may run a program with any symbols. So a file of this host is
 * sent only if every user of the host may read it where it lies, its name ends as those of sources
 * do, the samples that were asked for name it (for debuginfod.c: the symbol table of the build id),
 * and the client is authenticated or on this host.
 */
#include "server/debuginfo/source.h"
#include "base/clock.h"
#include "os/os.h"
#include "query/query.h"
#include "server/debuginfo/files.h"
#include "server/request/request.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_BYTES_MAX ((size_t)256 << 20)

static const char *const suffixes[] = { ".c", ".h", ".i", ".inc", ".def", ".cc", ".hh", ".cpp",
	".hpp", ".cxx", ".hxx", ".c++", ".ipp", ".tcc", ".s", ".S", ".asm", ".go", ".rs", ".py",
	".pyx", ".java", ".kt", ".scala", ".clj", ".js", ".mjs", ".ts", ".tsx", ".rb", ".php",
	".pl", ".pm", ".d", ".di", ".zig", ".swift", ".m", ".mm", ".f", ".f90", ".adb", ".ads",
	".pas", ".lua", ".ml", ".hs", ".erl", ".ex", ".cs", ".l", ".y", ".re2c" };

struct asked {
	struct server *s;
	const struct net_request *r;
	struct str tenant;
	struct str file, build_id;
};

struct text {
	const char *origin; /* "upload", "debuginfod", "host"; NULL: no text */
	struct buf bytes;
	int64_t modified_ns; /* of a file on this host */
};

static bool is_source(struct str file)
{
	struct str name = str_base_name(file);
	for (size_t i = 0; i < ARRAY_COUNT(suffixes); i++)
		if (str_ends(name, str_of(suffixes[i])))
			return true;
	return false;
}

static bool may_read_host(const struct server *s, const struct net_request *r)
{
	const struct server_config *c = s->config;
	bool known = s->auth && auth_is_required(s->auth);
	return c->local_files && !c->tenant_header && !r->caller.has_tenant &&
	       (known || !c->allow_unauthenticated);
}

bool server_host_source(const struct server *s, const struct net_request *r, struct str file,
	struct buf *out, struct stat *out_stat)
{
	CLEANUP(fd_cleanup) int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	size_t before = out->len;
	if (!may_read_host(s, r) || !is_source(file) || file.len >= sizeof(path) ||
		file.p[0] != '/' || memchr(file.p, 0, file.len))
		return false;
	memcpy(path, file.p, file.len);
	path[file.len] = 0;
	if (os_open_regular(AT_FDCWD, path, &fd, NULL) != OK || !os_readable_by_all(fd) ||
		fstat(fd, &st) < 0 || (uint64_t)st.st_size > SERVER_HOST_SOURCE_BYTES_MAX)
		return false;
	if (os_read_fd(fd, path, out, NULL) != OK ||
		(out->len > before && memchr(out->data + before, 0, out->len - before))) {
		out->len = before;
		return false;
	}
	*out_stat = st;
	return true;
}

static void read_host(const struct asked *a, struct text *out)
{
	struct stat st;
	if (!server_host_source(a->s, a->r, a->file, &out->bytes, &st))
		return;
	out->origin = "host";
	out->modified_ns = (int64_t)st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec;
}

static bool is_gone(void *ctx)
{
	const struct net_request *r = ctx;
	return r->gone(r);
}

/* Finds the text. A failure of an archive does not fail the report, as the lines' values are useful
 * alone. */
static void find_text(const struct asked *a, const struct query_places *p, struct text *out)
{
	int64_t until = clock_monotonic_ns() + SERVER_SOURCE_WAIT_NS;
	for (uint32_t i = 0; i < p->build_count && !out->origin; i++) {
		if (a->build_id.len && !str_eq(a->build_id, p->builds[i]))
			continue;
		const char *origin;
		if (server_source_text(a->s, a->tenant, p->builds[i], a->file, until, is_gone,
			    (void *)(uintptr_t)a->r, &origin, &out->bytes, NULL) == OK)
			out->origin = origin;
		else
			buf_clear(&out->bytes);
	}
	if (!out->origin && p->count)
		read_host(a, out);
}

void server_write_places(const struct query_places *p, struct buf *b)
{
	buf_cstr(b, "{\"unit\":");
	buf_json_str(b, p->unit);
	buf_printf(
		b, ",\"total\":%lld,\"pending\":%u,\"builds\":[", (long long)p->total, p->pending);
	for (uint32_t i = 0; i < p->build_count; i++) {
		buf_cstr(b, i ? "," : "");
		buf_json_str(b, p->builds[i]);
	}
	buf_u8(b, ']');
}

static void write_lines(const struct query_places *p, struct buf *b)
{
	buf_cstr(b, ",\"places\":[");
	for (uint32_t i = 0; i < p->count; i++)
		buf_printf(b, "%s[%llu,%lld,%lld]", i ? "," : "", (unsigned long long)p->v[i].at,
			(long long)p->v[i].self, (long long)p->v[i].total);
	buf_u8(b, ']');
}

static void write_source(const struct query_places *p, const struct text *text, struct buf *b)
{
	server_write_places(p, b);
	write_lines(p, b);
	if (text->origin) {
		buf_printf(b, ",\"origin\":\"%s\",\"text\":", text->origin);
		buf_json_str(b, buf_view(&text->bytes));
	}
	if (text->modified_ns)
		buf_printf(b, ",\"modified\":%lld", (long long)(text->modified_ns / NS_PER_MS));
	buf_u8(b, '}');
}

enum status server_source(struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct query_request *q, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf bytes;
	struct asked asked = { .s = s, .r = r, .tenant = q->tenant };
	struct query_places places;
	arena_init(&a, ARENA_BYTES_MAX);
	buf_init(&bytes, 3 * DEBUGINFO_SOURCE_BYTES_MAX);
	(void)net_query_param(r, "build_id", 0, &a, &asked.build_id);
	if (!net_query_param(r, "file", 0, &a, &asked.file) || asked.file.len == 0)
		return err_set(e, E_INVALID, "file: the path of a source file is expected");
	enum status st = query_source_places(engine, q, asked.file, asked.build_id, &a, &places, e);
	if (st != OK)
		return st;
	struct text text = { .bytes = bytes };
	find_text(&asked, &places, &text);
	write_source(&places, &text, out);
	bytes = text.bytes;
	return buf_status(out) == OK ? OK : err_set(e, buf_status(out), "the answer is too large");
}
