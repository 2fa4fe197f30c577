/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for a build id. No source is trusted: a file counts if its bytes have the build id (or, for
 * debug files of programs without one, the checksum that .gnu_debuglink gives). Only headers, notes
 * and sections of an ELF file are read here, by objfile with pread; debuginfo's child reads the
 * rest.
 *
 * In this order: the offered descriptor; the mapping's own path; the executable that was uploaded;
 * the separate debug file (an uploaded one, by build id, by .gnu_debuglink); the file that the
 * debug file shares with others, by .gnu_debugaltlink. Uploads count for the build id that they
 * were uploaded for: those of programs without one do not carry it.
 */
#include "symbolize/find.h"

#include "base/reader.h"
#include "os/os.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Bytes of a debug file whose checksum must be computed. */
#define CHECKED_BYTES_MAX ((uint64_t)4 << 30)
#define LINK_SECTION_MAX 8192
#define VDSO_BYTES_MAX (1 << 20)

bool symbolize_id_is_valid(struct str id)
{
	if (id.len < 3 || id.len > SYMBOLIZE_ID_MAX)
		return false;
	for (size_t i = id.p[0] == 'x'; i < id.len; i++)
		if (!((id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f')))
			return false;
	return true;
}

void symbolize_files_deinit(struct symbolize_files *f)
{
	fd_cleanup(&f->files.fd);
	fd_cleanup(&f->files.debug_fd);
	fd_cleanup(&f->files.alt_fd);
}

static void objfile_cleanup(struct objfile **obj)
{
	objfile_close(*obj);
}

/* Opens a path that a sender or an ELF file gives. */
static int open_file(const char *path)
{
	int fd = -1;
	return os_open_regular(AT_FDCWD, path, &fd, NULL) == OK ? fd : -1;
}

/* A reader of the ELF file's plain facts over a copy of the descriptor; NULL: no ELF file. */
static struct objfile *read_elf(int fd)
{
	CLEANUP(fd_cleanup) int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct objfile *obj = NULL;
	if (copy < 0 || objfile_open_fd(copy, "", &obj, NULL) != OK)
		return NULL;
	copy = -1; /* objfile owns it now */
	return obj;
}

static bool carries_id(const struct objfile *obj, const char *build_id)
{
	char content[40];
	if (build_id[0] == 'x')
		return objfile_content_id(obj, content, NULL) == OK &&
		       strcmp(content, build_id) == 0;
	return strcmp(objfile_build_id(obj), build_id) == 0;
}

/* The file at `path` if it carries the id, else -1. */
static int open_with_id(const char *path, const char *build_id, struct objfile **out)
{
	CLEANUP(fd_cleanup) int fd = open_file(path);
	if (fd < 0)
		return -1;
	CLEANUP(objfile_cleanup) struct objfile *obj = read_elf(fd);
	if (!obj || !carries_id(obj, build_id))
		return -1;
	*out = STEAL_PTR(obj);
	return STEAL_FD(fd);
}

int symbolize_file_open(const char *path, const char *build_id)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	return open_with_id(path, build_id, &obj);
}

static bool has_section(const struct objfile *obj, const char *name)
{
	const struct objfile_section *s = obj ? objfile_section(obj, name) : NULL;
	return s && s->type != SHT_NOBITS && s->size > 0;
}

/* Our own vDSO is that of all processes: the kernel maps the same pages into each process. */
static int open_own_vdso(const char *build_id, struct objfile **out)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR); /* NOLINT */
	if (!eh)
		return -1;
	/* The kernel's own image: its section headers stand at its end. */
	size_t len = (size_t)eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
	CLEANUP(fd_cleanup) int fd = memfd_create("firn-vdso", MFD_CLOEXEC);
	if (fd < 0 || len > VDSO_BYTES_MAX || os_write_full(fd, eh, len, "vdso", NULL) != OK)
		return -1;
	CLEANUP(objfile_cleanup) struct objfile *obj = read_elf(fd);
	if (!obj || !carries_id(obj, build_id))
		return -1;
	*out = STEAL_PTR(obj);
	return STEAL_FD(fd);
}

static bool is_vdso(const char *path)
{
	return strcmp(path, "[vdso]") == 0 || strcmp(path, "linux-vdso.so.1") == 0;
}

/* ---- debug files ---- */

/* Next directory of a colon-separated list, NUL-terminated; false at the end. */
static bool next_dir(const char **list, char out[SYMBOLIZE_PATH_MAX])
{
	while (**list == ':')
		++*list;
	size_t len = strcspn(*list, ":");
	if (len == 0 || len >= SYMBOLIZE_PATH_MAX)
		return false;
	memcpy(out, *list, len);
	out[len] = '\0';
	*list += len;
	return true;
}

/* Concatenates the parts, up to NULL; false: they are too long. */
static bool concat(char out[SYMBOLIZE_PATH_MAX], const char *const *parts)
{
	size_t at = 0;
	for (; *parts; parts++) {
		size_t len = strlen(*parts);
		if (len >= SYMBOLIZE_PATH_MAX - at)
			return false;
		memcpy(out + at, *parts, len);
		at += len;
	}
	out[at] = '\0';
	return true;
}
#define CONCAT(out, ...) concat((out), (const char *const[]){ __VA_ARGS__, NULL })

/* DIR/.build-id/xx/rest.debug */
static int open_by_id(const char *debug_dirs, const char *build_id, struct objfile **out)
{
	char dir[SYMBOLIZE_PATH_MAX], path[SYMBOLIZE_PATH_MAX];
	char first[3] = { build_id[0], build_id[1], 0 };
	if (build_id[0] == 'x')
		return -1;
	for (const char *list = debug_dirs; next_dir(&list, dir);) {
		int fd = CONCAT(path, dir, "/.build-id/", first, "/", build_id + 2, ".debug")
				 ? open_with_id(path, build_id, out)
				 : -1;
		if (fd >= 0)
			return fd;
	}
	return -1;
}

static bool checksum_is(int fd, uint32_t want)
{
	static const size_t chunk = 1 << 16;
	CLEANUP(free_cleanup) uint8_t *p = malloc(chunk);
	uint32_t crc = 0;
	for (uint64_t at = 0; p && at < CHECKED_BYTES_MAX;) {
		ssize_t n = pread(fd, p, chunk, (off_t)at);
		if (n < 0)
			return false;
		if (n == 0)
			return crc == want;
		crc = (uint32_t)crc32(crc, p, (unsigned)n);
		at += (uint64_t)n;
	}
	return false;
}

/* A section of the form "text NUL …", at most LINK_SECTION_MAX bytes; false when it is not there.
 */
static bool read_link(const struct objfile *obj, const char *section, struct buf *out,
	struct reader *rest, struct str *text)
{
	const struct objfile_section *s = obj ? objfile_section(obj, section) : NULL;
	buf_init(out, LINK_SECTION_MAX);
	if (!s || objfile_read_section(obj, s, out, NULL) != OK)
		return false;
	*rest = reader_over(out->data, out->len);
	*text = reader_cstr(rest);
	return !rest->failed && text->len > 0 && text->len < SYMBOLIZE_PATH_MAX / 2;
}

struct link {
	const char *build_id;
	uint32_t crc;
};

static int open_linked(const char *path, const struct link *l, struct objfile **out)
{
	if (l->build_id[0] != 'x')
		return open_with_id(path, l->build_id, out);
	CLEANUP(fd_cleanup) int fd = open_file(path);
	if (fd < 0 || !checksum_is(fd, l->crc))
		return -1;
	struct objfile *obj = read_elf(fd);
	if (!obj)
		return -1;
	*out = obj;
	return STEAL_FD(fd);
}

/* By .gnu_debuglink: in the file's own folder, its .debug, and below each debug directory. */
static int open_by_link(
	const struct symbolize_request *r, const struct objfile *obj, struct objfile **out)
{
	CLEANUP(buf_deinit) struct buf bytes;
	struct reader rest;
	struct str name;
	if (!read_link(obj, ".gnu_debuglink", &bytes, &rest, &name) ||
		memchr(name.p, '/', name.len) || r->path[0] != '/')
		return -1;
	reader_skip(&rest, -reader_offset(&rest) & 3);
	struct link l = { r->build_id, reader_u32(&rest) };
	if (rest.failed)
		return -1;
	char folder[SYMBOLIZE_PATH_MAX], dir[SYMBOLIZE_PATH_MAX], path[SYMBOLIZE_PATH_MAX];
	size_t slash = str_rindex(str_of(r->path), '/');
	if (slash >= sizeof(folder))
		return -1;
	memcpy(folder, r->path, slash);
	folder[slash] = '\0';
	int fd = -1;
	if (r->local_files && CONCAT(path, folder, "/.debug/", name.p))
		fd = open_linked(path, &l, out);
	if (fd < 0 && r->local_files && CONCAT(path, folder, "/", name.p))
		fd = open_linked(path, &l, out);
	for (const char *list = r->debug_dirs; fd < 0 && next_dir(&list, dir);)
		if (CONCAT(path, dir, folder, "/", name.p))
			fd = open_linked(path, &l, out);
	return fd;
}

/* By .gnu_debugaltlink: path and build id of the file that dwz made. */
static int open_alt(const struct symbolize_request *r, const struct objfile *obj,
	char out_wanted[SYMBOLIZE_ID_MAX + 1])
{
	CLEANUP(buf_deinit) struct buf bytes;
	struct reader rest;
	struct str name;
	if (!read_link(obj, ".gnu_debugaltlink", &bytes, &rest, &name))
		return -1;
	size_t len = reader_left(&rest);
	const uint8_t *id = reader_bytes(&rest, len);
	char hex[SYMBOLIZE_ID_MAX + 1] = "";
	if (!id || len < 2 || len > SYMBOLIZE_ID_MAX / 2)
		return -1;
	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	CLEANUP(objfile_cleanup) struct objfile *alt = NULL;
	int fd = open_by_id(r->debug_dirs, hex, &alt);
	if (fd < 0 && r->local_files && name.p[0] == '/')
		fd = open_with_id(name.p, hex, &alt);
	/* Debian's are below DIR/.dwz, named relative to the debug file: ../../.dwz/… */
	char dir[SYMBOLIZE_PATH_MAX], path[SYMBOLIZE_PATH_MAX];
	size_t from = 0;
	while (str_starts(str_sub(name, from, name.len), STR("../")))
		from += 3;
	for (const char *list = r->debug_dirs; fd < 0 && from && next_dir(&list, dir);)
		if (CONCAT(path, dir, "/", name.p + from))
			fd = open_with_id(path, hex, &alt);
	if (fd < 0)
		memcpy(out_wanted, hex, sizeof(hex));
	return fd;
}

/* ---- uploads ---- */

static int open_upload(const struct symbolize_request *r, const char *build_id,
	enum debuginfo_type type, struct objfile **out)
{
	CLEANUP(fd_cleanup) int fd = -1;
	if (!r->uploads ||
		debuginfo_uploads_any(r->uploads, str_of(build_id), type, &fd, NULL) != OK)
		return -1;
	struct objfile *obj = read_elf(fd);
	if (!obj)
		return -1;
	*out = obj;
	return STEAL_FD(fd);
}

/* ---- all of them ---- */

static enum status open_main(const struct symbolize_request *r, struct symbolize_files *f,
	struct objfile **obj, struct err *e)
{
	if (r->fd >= 0) {
		CLEANUP(objfile_cleanup) struct objfile *offered = read_elf(r->fd);
		if (!offered || !carries_id(offered, r->build_id))
			return err_set(e, E_INVALID, "%s does not carry build id %s", r->path,
				r->build_id);
		f->files.fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 0);
		if (f->files.fd < 0)
			return err_os(e, "copy the descriptor of %s", r->path);
		*obj = STEAL_PTR(offered);
	} else if (is_vdso(r->path)) {
		f->files.fd = open_own_vdso(r->build_id, obj);
	} else if (r->local_files && r->path[0] == '/') {
		f->files.fd = open_with_id(r->path, r->build_id, obj);
	}
	f->fd_of_host = f->files.fd >= 0 && !is_vdso(r->path);
	if (f->files.fd < 0) {
		f->files.fd = open_upload(r, r->build_id, DEBUGINFO_EXECUTABLE, obj);
		f->uploaded = f->files.fd >= 0;
	}
	return OK;
}

/* The separate debug file. One without DWARF is better than none. */
static void find_debug_file(const struct symbolize_request *r, const struct objfile *obj,
	struct symbolize_files *f, struct objfile **debug)
{
	CLEANUP(objfile_cleanup) struct objfile *upload = NULL;
	CLEANUP(fd_cleanup) int upload_fd = open_upload(r, r->build_id, DEBUGINFO_DEBUG, &upload);
	/* Agents that name files by a hash may upload files with a build id too: others may have
	 * uploaded more for that build id, and debug directories know it. */
	const struct objfile *known = upload ? upload : obj;
	const char *carried = known ? objfile_build_id(known) : "";
	bool other = carried[0] && strcmp(carried, r->build_id) != 0;
	if (other && !has_section(upload, ".debug_info"))
		f->files.debug_fd = open_upload(r, carried, DEBUGINFO_DEBUG, debug);
	f->uploaded |= *debug != NULL;
	if (!*debug && !has_section(upload, ".debug_info"))
		f->files.debug_fd = open_by_id(r->debug_dirs, r->build_id, debug);
	if (!*debug && other && !has_section(upload, ".debug_info"))
		f->files.debug_fd = open_by_id(r->debug_dirs, carried, debug);
	if (obj && !*debug && !has_section(upload, ".debug_info")) {
		f->files.debug_fd = open_by_link(r, obj, debug);
		f->debug_of_host = *debug != NULL;
	}
	if (*debug || !upload)
		return;
	f->files.debug_fd = STEAL_FD(upload_fd);
	f->uploaded = true;
	*debug = STEAL_PTR(upload);
}

enum status symbolize_files_find(
	const struct symbolize_request *r, struct symbolize_files *out, struct err *e)
{
	CLEANUP(symbolize_files_deinit) struct symbolize_files f = { .files = { -1, -1, -1 } };
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	CLEANUP(objfile_cleanup) struct objfile *debug = NULL;
	enum status s = open_main(r, &f, &obj, e);
	if (s != OK)
		return s;
	if (!has_section(obj, ".debug_info"))
		find_debug_file(r, obj, &f, &debug);
	if (f.files.fd < 0 && f.files.debug_fd < 0)
		return err_set(e, E_NOTFOUND, "no file with build id %s", r->build_id);
	f.files.alt_fd = open_alt(r, debug ? debug : obj, f.alt_wanted);
	f.has_dwarf = has_section(obj, ".debug_info") || has_section(debug, ".debug_info");
	if (f.files.fd < 0)
		f.files.fd = STEAL_FD(f.files.debug_fd);
	*out = f;
	f.files = (struct debuginfo_files){ -1, -1, -1 };
	return OK;
}
