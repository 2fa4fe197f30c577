/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for others, by build id: found as for tables (find.c), but given out unchanged. The
 * executable is recognized by its code: a debug file has the headers of code sections, but not
 * their bytes. Also answers from tables other than names.
 */
#include "symbolize/find.h"
#include "symbolize/tables.h"

#include "base/clock.h"
#include "os/os.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void objfile_cleanup(struct objfile **obj)
{
	objfile_close(*obj);
}

/* Reads the file through a copy of the descriptor. */
static enum status read_elf(int fd, struct objfile **out, struct err *e)
{
	CLEANUP(fd_cleanup) int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return err_os(e, "copy a descriptor");
	enum status s = objfile_open_fd(copy, "", out, e);
	if (s == OK)
		(void)STEAL_FD(copy);
	return s;
}

/* An executable has the bytes of all its code. A debug file has the headers of code sections, and
 * the bytes of .plt at most. */
static bool has_code(const struct objfile *obj)
{
	const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
	uint32_t count = 0;
	const struct objfile_section *v = objfile_sections(obj, &count);
	bool any = false;
	for (uint32_t i = 0; i < count; i++) {
		if ((v[i].flags & code) != code || v[i].size == 0)
			continue;
		if (v[i].type == SHT_NOBITS)
			return false;
		any = true;
	}
	return any;
}

static bool has_dwarf(const struct objfile *obj)
{
	const struct objfile_section *s = objfile_section(obj, ".debug_info");
	return s && s->type == SHT_PROGBITS && s->size > 0;
}

static bool is_wanted(int fd, enum debuginfo_type type)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	if (fd < 0 || read_elf(fd, &obj, NULL) != OK)
		return false;
	return type == DEBUGINFO_EXECUTABLE ? has_code(obj) : has_dwarf(obj);
}

enum status symbolizer_file(struct symbolizer *s, struct str build_id, enum debuginfo_type type,
	bool for_all, int *out_fd, struct err *e)
{
	CLEANUP(symbolize_files_deinit)
	struct symbolize_files f = { .files = { -1, -1, -1 } };
	assert(type == DEBUGINFO_DEBUG || type == DEBUGINFO_EXECUTABLE);
	enum status st = symbolize_tables_files(symbolizer_tables(s), build_id, &f, e);
	if (st != OK)
		return st;
	int *const fds[] = { &f.files.debug_fd, &f.files.fd };
	const bool of_host[] = { f.debug_of_host, f.fd_of_host };
	for (size_t i = 0; i < ARRAY_COUNT(fds); i++) {
		if (!is_wanted(*fds[i], type) ||
			(for_all && of_host[i] && !os_readable_by_all(*fds[i])))
			continue;
		*out_fd = STEAL_FD(*fds[i]);
		return OK;
	}
	return err_set(e, E_NOTFOUND, "no %s of this build id",
		type == DEBUGINFO_EXECUTABLE ? "executable" : "debug information");
}

enum status symbolizer_program(
	struct symbolizer *s, struct str build_id, struct str path, int *out_fd, struct err *e)
{
	char id[SYMBOLIZE_ID_MAX + 1], name[SYMBOLIZE_PATH_MAX];
	CLEANUP(fd_cleanup) int fd = -1;
	if (symbolize_tables_are_local(symbolizer_tables(s)) && symbolize_id_is_valid(build_id) &&
		path.len && path.p[0] == '/' && path.len < sizeof(name) &&
		!memchr(path.p, 0, path.len)) {
		snprintf(id, sizeof(id), "%.*s", STR_ARG(build_id));
		snprintf(name, sizeof(name), "%.*s", STR_ARG(path));
		fd = symbolize_file_open(name, id);
	}
	if (!is_wanted(fd, DEBUGINFO_EXECUTABLE) || !os_readable_by_all(fd))
		return err_set(e, E_NOTFOUND, "no executable of this build id");
	*out_fd = STEAL_FD(fd);
	return OK;
}

enum status symbolizer_code(int fd, uint8_t *bytes, struct debuginfo_code *out, struct err *e)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	struct fileoff at;
	size_t len = out->bytes.len;
	enum status s = read_elf(fd, &obj, e);
	if (s != OK)
		return s;
	if (!objfile_fileoff_of(obj, (struct vaddr){ out->address }, &at))
		return err_set(e, E_NOTFOUND, "the function is not in the file");
	s = objfile_read(obj, at.v, bytes, len, e);
	if (s != OK)
		return s;
	out->machine = objfile_machine(obj);
	out->bytes = str_make(bytes, len);
	return OK;
}

enum status symbolizer_section(int fd, struct str name, struct buf *out, struct err *e)
{
	CLEANUP(objfile_cleanup) struct objfile *obj = NULL;
	uint32_t count = 0;
	enum status s = read_elf(fd, &obj, e);
	if (s != OK)
		return s;
	const struct objfile_section *v = objfile_sections(obj, &count);
	uint32_t i = 0;
	while (i < count && (!str_eq(v[i].name, name) || v[i].type == SHT_NOBITS))
		i++;
	if (i == count)
		return err_set(e, E_NOTFOUND, "no section %.*s", STR_ARG(str_sub(name, 0, 64)));
	if (v[i].size > out->max - out->len)
		return err_set(
			e, E_LIMIT, "a section of %llu bytes", (unsigned long long)v[i].size);
	uint8_t *to = v[i].size ? buf_reserve(out, v[i].size) : NULL;
	if (v[i].size && !to)
		return err_set(e, E_NOMEM, "a section");
	if (to)
		s = objfile_read(obj, v[i].offset, to, v[i].size, e);
	if (s == OK)
		out->len += v[i].size;
	return s;
}

enum status symbolizer_function(struct symbolizer *s, struct str build_id, uint64_t vaddr,
	uint64_t *out_begin, uint64_t *out_end, struct err *e)
{
	struct symbolize_tables *tables = symbolizer_tables(s);
	struct symbolize_ref *ref = NULL;
	bool pending = false;
	symbolize_tables_get(tables, build_id, STR(""), false, &ref, &pending);
	bool found =
		ref && debuginfo_table_bounds(symbolize_ref_table(ref), vaddr, out_begin, out_end);
	symbolize_ref_release(tables, ref);
	return found ? OK
		     : err_set(e, E_NOTFOUND, "where the function begins and ends is not known%s",
			       pending ? " yet" : "");
}

static enum status is_path(void *path, struct str file, struct err *e)
{
	(void)e;
	return str_eq(file, *(const struct str *)path) ? E_CANCELED
						       : OK; /* found: stop the search */
}

enum status symbolizer_names_source(
	struct symbolizer *s, struct str build_id, struct str path, int64_t until_ns, struct err *e)
{
	struct symbolize_tables *tables = symbolizer_tables(s);
	struct symbolize_ref *ref = NULL;
	bool pending = false;
	uint64_t seen = 0;
	do
		symbolize_tables_get(tables, build_id, STR(""), false, &ref, &pending);
	while (!ref && pending && clock_monotonic_ns() < until_ns &&
		symbolize_tables_wait(tables, &seen, until_ns));
	if (!ref && pending)
		return err_set(e, E_UNAVAILABLE, "the symbol table is being made: try again");
	enum status st =
		ref ? debuginfo_table_files(symbolize_ref_table(ref), is_path, &path, e) : OK;
	symbolize_ref_release(tables, ref);
	if (st == E_CANCELED)
		return OK;
	return st != OK ? st : err_set(e, E_NOTFOUND, "no such source of this build id");
}
