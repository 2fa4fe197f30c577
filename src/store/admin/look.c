/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory is walked as it is: log, parts, manifest. It may be in use, so a listed file that is
 * gone is no damage, and the parts can be listed again to find files that were added meanwhile.
 */
#include "store/admin/look.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_BYTES_MAX ((size_t)256 << 20)

void looking_deinit(struct looking *l)
{
	VEC_FREE(&l->parts);
}

void look_done(struct looking *l, enum status s, const struct err *e)
{
	l->gone = l->listed && s == E_NOTFOUND;
	if (l->gone)
		return;
	l->sound += s == OK;
	l->damaged += s == E_CORRUPT;
	l->newer += s == E_UNSUPPORTED;
	l->unreadable += s != OK && s != E_CORRUPT && s != E_UNSUPPORTED;
	if (s != OK && l->first_status == OK) {
		l->first_status = s;
		l->first = *e;
	}
}

enum status look_status(const struct looking *l, struct err *e)
{
	unsigned long long all = l->sound + l->damaged + l->newer + l->unreadable;
	if (l->damaged)
		return err_set(e, E_CORRUPT, "%llu of %llu files are damaged",
			(unsigned long long)l->damaged, all);
	if (l->newer)
		return err_set(e, E_UNSUPPORTED, "%llu of %llu files were written by a newer firn",
			(unsigned long long)l->newer, all);
	if (l->first_status != OK && e)
		*e = l->first;
	return l->first_status;
}

/* ---- files ---- */

static void one_file(struct looking *l, const char *path)
{
	char magic[8] = "";
	struct err e = { 0 };
	CLEANUP(fd_cleanup) int fd = -1;
	enum status s = os_open_regular(AT_FDCWD, path, &fd, &e);
	if (s != OK) {
		buf_printf(l->out, "unreadable %s: %s\n", path, err_text(&e, s));
		look_done(l, s, &e);
		return;
	}
	bool whole = pread(fd, magic, sizeof(magic), 0) == 8;
	struct str name = str_of(path);
	if ((whole && memcmp(magic, "FIRNWLOG", 8) == 0) || str_ends(name, STR(".log")))
		l->log(l, path);
	else if ((whole && memcmp(magic, "FIRNMANI", 8) == 0) || str_ends(name, STR("/MANIFEST")))
		l->manifest(l, path);
	else
		l->part(l, path);
}

/* Looks at a file of a listing, which may be gone: a store in use removes files it does not need.
 */
static void listed_file(struct looking *l, const char *path)
{
	size_t before = l->out->len;
	l->listed = true;
	l->gone = false;
	one_file(l, path);
	l->listed = false;
	if (l->gone)
		l->out->len = before;
}

bool look_met(const struct looking *l, uint64_t part)
{
	for (size_t i = 0; i < l->parts.len; i++)
		if (l->parts.v[i] == part)
			return true;
	return false;
}

/* `again`: only files that were not listed the first time. */
static void directory(
	struct looking *l, const char *path, const char *sub, const char *suffix, bool again)
{
	char dir[STORE_PATH_MAX], file[STORE_PATH_MAX];
	CLEANUP(arena_deinit) struct arena a;
	struct str *names;
	size_t n = 0;
	struct err e = { 0 };
	arena_init(&a, NAMES_BYTES_MAX);
	enum status s = store_path(dir, &e, "%s/%s", path, sub);
	if (s == OK)
		s = os_list_dir(dir, &a, &names, &n, &e);
	if (s != OK) {
		buf_printf(l->out, "unreadable %s/%s: %s\n", path, sub, err_text(&e, s));
		look_done(l, s, &e);
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t id;
		if (!str_ends(names[i], str_of(suffix)) ||
			store_path(file, NULL, "%s/%.*s", dir, STR_ARG(names[i])) != OK)
			continue;
		bool has_id = str_parse_u64(str_sub(names[i], 0, 16), 16, &id);
		if (again && (!has_id || look_met(l, id)))
			continue;
		if (has_id)
			(void)!VEC_PUSH(&l->parts, id); /* without memory it counts as lost */
		l->has_id = has_id && names[i].len == 16 + strlen(suffix);
		l->id = id;
		listed_file(l, file);
		l->has_id = false;
	}
}

void look_again(struct looking *l)
{
	directory(l, l->directory, "parts", ".part", true);
}

void look_at(struct looking *l, const char *path)
{
	struct err e = { 0 };
	struct stat st;
	char manifest[STORE_PATH_MAX];
	if (stat(path, &st) < 0) {
		enum status s = err_os(&e, "stat %s", path);
		buf_printf(l->out, "unreadable %s: %s\n", path, e.text);
		look_done(l, s, &e);
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		one_file(l, path);
		return;
	}
	directory(l, path, "log", ".log", false);
	VEC_CLEAR(&l->parts);
	directory(l, path, "parts", ".part", false);
	l->directory = path;
	if (store_path(manifest, NULL, "%s/MANIFEST", path) == OK && access(manifest, F_OK) == 0)
		one_file(l, manifest);
}

/* ---- names ---- */

const char *part_section_name(unsigned kind)
{
	static const char *const names[] = { [PART_META] = "META",
		[PART_LABEL_STRINGS] = "LABEL_STRINGS",
		[PART_SERIES] = "SERIES",
		[PART_SERIES_LABELS] = "SERIES_LABELS",
		[PART_SAMPLE_NAMES] = "SAMPLE_NAMES",
		[PART_SAMPLE_STRINGS] = "SAMPLE_STRINGS",
		[PART_SAMPLE_SETS] = "SAMPLE_SETS",
		[PART_SYMBOL_STRINGS] = "SYMBOL_STRINGS",
		[PART_FUNCTIONS] = "FUNCTIONS",
		[PART_MAPPINGS] = "MAPPINGS",
		[PART_LOCATIONS] = "LOCATIONS",
		[PART_LINES] = "LINES",
		[PART_TRIE] = "TRIE",
		[PART_BLOCKS] = "BLOCKS",
		[PART_BATCHES] = "BATCHES",
		[PART_SERIES_SET_COUNTS] = "SERIES_SET_COUNTS",
		[PART_SERIES_SETS] = "SERIES_SETS",
		[PART_LOCATION_COUNTS] = "LOCATION_COUNTS",
		[PART_LOCATION_SERIES] = "LOCATION_SERIES",
		[PART_TOTALS] = "TOTALS",
		[PART_KINDS] = "KINDS",
		[PART_KIND_NAMES] = "KIND_NAMES",
		[PART_KIND_VALUES] = "KIND_VALUES",
		[PART_PROFILES] = "PROFILES",
		[PART_SAMPLES] = "SAMPLES" };
	return kind < ARRAY_COUNT(names) && names[kind] ? names[kind] : "unknown";
}

const char *part_column_name(unsigned id)
{
	static const char *const names[ROW_COLUMNS] = { "", "series", "time", "stack", "value",
		"set", "count" };
	return id < ROW_COLUMNS && names[id] ? names[id] : "unknown";
}

/* ---- a part in an export ---- */

struct slice {
	struct object object;
	struct object *file;
	uint64_t offset;
};

static enum status slice_read(
	struct object *o, uint64_t offset, void *out, size_t len, struct err *e)
{
	const struct slice *s = (const struct slice *)o;
	return object_read(s->file, s->offset + offset, out, len, e);
}

static void slice_close(struct object *o)
{
	struct slice *s = (struct slice *)o;
	object_close(s->file);
	free(s);
}

enum status look_open_slice(
	const char *path, uint64_t offset, uint64_t len, struct object **out, struct err *e)
{
	static const struct object_ops ops = { slice_read, slice_close };
	struct slice *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, E_NOMEM, "%s", path);
	enum status s = object_open_file(path, &x->file, e);
	if (s != OK) {
		free(x);
		return s;
	}
	x->object = (struct object){ .ops = &ops, .name = x->file->name, .bytes = len };
	x->offset = offset;
	*out = &x->object;
	return OK;
}
