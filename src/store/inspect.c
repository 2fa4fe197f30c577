/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `path` is a part, a log segment, or a store's directory (then everything in it is looked at).
 */
#include "store/state.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_BYTES_MAX ((size_t)256 << 20)

typedef enum status file_fn(const char *path, struct buf *out, struct err *e);

/* ---- verify ---- */

static void part_cleanup(struct part **p)
{
	part_unref(*p);
}

static enum status verify_part(const char *path, struct buf *out, struct err *e)
{
	CLEANUP(part_cleanup) struct part *p = NULL;
	enum status s = part_open(path, &p, e);
	if (s == OK)
		s = part_verify(p, e);
	if (s == OK)
		buf_printf(out, "ok %s: %llu rows, %llu bytes\n", path,
			(unsigned long long)part_meta(p)->rows,
			(unsigned long long)part_file_bytes(p));
	else
		buf_printf(out, "damaged %s: %s\n", path, err_text(e, s));
	return s;
}

struct log_sum {
	uint64_t records, samples_bytes, first, last, damaged, torn;
};

static enum status read_log(const char *path, struct log_sum *sum, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b, scratch;
	buf_init(&b, LOG_SEGMENT_BYTES_MAX * 2);
	buf_init(&scratch, LOG_SEGMENT_BYTES_MAX);
	struct log_cursor c;
	struct log_record rec;
	struct str payload;
	enum status s = os_read_file(path, &b, e);
	if (s == OK)
		s = log_cursor_open(buf_view(&b), path, &c, e);
	if (s != OK)
		return s;
	sum->damaged += b.len < c.size;
	for (enum log_event ev = LOG_EVENT_RECORD; ev != LOG_EVENT_END;) {
		ev = log_cursor_next(&c, &rec);
		sum->torn += ev == LOG_EVENT_TORN;
		sum->damaged += ev == LOG_EVENT_DAMAGE;
		if (ev != LOG_EVENT_RECORD)
			continue;
		sum->first = sum->records++ ? sum->first : rec.sequence;
		sum->last = rec.sequence;
		sum->damaged += log_payload(&rec, &scratch, &payload, e) != OK;
	}
	return sum->damaged ? err_set(e, E_CORRUPT, "%s: %llu damaged places", path,
				      (unsigned long long)sum->damaged)
			    : OK;
}

static enum status verify_log(const char *path, struct buf *out, struct err *e)
{
	struct log_sum sum = { 0 };
	enum status s = read_log(path, &sum, e);
	buf_printf(out, "%s %s: %llu records, %llu to %llu%s%s%s\n", s == OK ? "ok" : "damaged",
		path, (unsigned long long)sum.records, (unsigned long long)sum.first,
		(unsigned long long)sum.last, sum.torn ? ", a torn write at the end" : "",
		s == OK ? "" : ": ", s == OK ? "" : err_text(e, s));
	return s;
}

/* ---- inspect ---- */

static const char *section_name(unsigned kind)
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
		[PART_FUNCTION_COUNTS] = "FUNCTION_COUNTS",
		[PART_FUNCTION_SERIES] = "FUNCTION_SERIES",
		[PART_NEEDS] = "NEEDS",
		[PART_SAMPLES] = "SAMPLES" };
	return kind < ARRAY_COUNT(names) && names[kind] ? names[kind] : "unknown";
}

static void inspect_columns(const struct part *p, struct buf *out)
{
	static const char *const names[] = { "", "series", "time", "stack", "value", "set",
		"count" };
	static const char *const encodings[] = { "const", "planes", "delta", "runs", "dict",
		"scale", "bytes", "ticks" };
	size_t n;
	const struct part_block *b = part_blocks(p, &n);
	for (unsigned id = ROW_SERIES; id < ROW_COLUMNS; id++) {
		uint64_t bytes = 0, uses[COLUMN_ENCODINGS] = { 0 };
		for (size_t i = 0; i < n; i++) {
			bytes += column_stored_len(&b[i].columns[id]);
			if (b[i].columns[id].encoding < COLUMN_ENCODINGS)
				uses[b[i].columns[id].encoding]++;
		}
		buf_printf(out, "  column %-7s %12llu bytes, blocks:", names[id],
			(unsigned long long)bytes);
		for (unsigned k = 0; k < COLUMN_ENCODINGS; k++)
			if (uses[k])
				buf_printf(
					out, " %s %llu", encodings[k], (unsigned long long)uses[k]);
		buf_u8(out, '\n');
	}
}

static enum status inspect_part(const char *path, struct buf *out, struct err *e)
{
	CLEANUP(part_cleanup) struct part *p = NULL;
	enum status s = part_open(path, &p, e);
	struct tabs t;
	if (s == OK)
		s = part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, e);
	if (s != OK)
		return s;
	const struct part_meta *m = part_meta(p);
	size_t n;
	const struct part_section_entry *x = part_sections(p, &n);
	buf_printf(out, "part %s\n", path);
	buf_printf(out, "  level %u, order %s, resolution %lld ns\n", m->level,
		m->order == PART_ORDER_STACK ? "series stack time" : "series time stack",
		(long long)m->resolution_ns);
	buf_printf(out, "  %llu rows of %llu samples, %lld to %lld ns\n",
		(unsigned long long)m->rows, (unsigned long long)m->samples, (long long)m->first_ns,
		(long long)m->last_ns);
	buf_printf(out, "  %u series, %u sets, %u functions, %u locations, %u trie nodes\n",
		t.series_count, t.set_count, t.function_count, t.location_count, t.node_count);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "  section %-15s %12llu bytes at +%llu\n", section_name(x[i].kind),
			(unsigned long long)x[i].length, (unsigned long long)x[i].offset);
	inspect_columns(p, out);
	part_unpin(p);
	return OK;
}

static enum status inspect_log(const char *path, struct buf *out, struct err *e)
{
	struct log_sum sum = { 0 };
	enum status s = read_log(path, &sum, e);
	buf_printf(out, "log %s\n  %llu records, %llu to %llu, %llu damaged, %llu torn\n", path,
		(unsigned long long)sum.records, (unsigned long long)sum.first,
		(unsigned long long)sum.last, (unsigned long long)sum.damaged,
		(unsigned long long)sum.torn);
	return s == E_CORRUPT ? OK : s;
}

/* ---- files and directories ---- */

static enum status one_file(
	const char *path, file_fn *part, file_fn *log, struct buf *out, struct err *e)
{
	char magic[8] = "";
	CLEANUP(fd_cleanup) int fd = -1;
	enum status s = store_io_open(path, O_RDONLY, 0, &fd, e);
	if (s != OK)
		return s;
	ssize_t n = pread(fd, magic, sizeof(magic), 0);
	if (n == 8 && memcmp(magic, "FIRNWLOG", 8) == 0)
		return log(path, out, e);
	if (n == 8 && memcmp(magic, "FIRNPART", 8) == 0)
		return part(path, out, e);
	if (str_ends(str_of(path), STR(".log")))
		return log(path, out, e);
	return part(path, out, e);
}

static enum status directory(const char *path, const char *sub, const char *suffix, file_fn *part,
	file_fn *log, struct buf *out, struct err *e)
{
	char dir[STORE_PATH_MAX], file[STORE_PATH_MAX];
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, NAMES_BYTES_MAX);
	struct str *names;
	size_t n;
	enum status s = store_path(dir, e, "%s/%s", path, sub), first = OK;
	if (s == OK)
		s = os_list_dir(dir, &a, &names, &n, e);
	if (s != OK)
		return s;
	struct err local;
	for (size_t i = 0; i < n; i++) {
		if (!str_ends(names[i], str_of(suffix)))
			continue;
		s = store_path(file, &local, "%s/%.*s", dir, STR_ARG(names[i]));
		if (s == OK)
			s = one_file(file, part, log, out, &local);
		if (s != OK && first == OK) {
			first = s;
			if (e)
				*e = local;
		}
	}
	return first;
}

static enum status look(
	const char *path, file_fn *part, file_fn *log, struct buf *out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	struct stat st;
	if (stat(path, &st) < 0)
		return err_os(e, "stat %s", path);
	if (!S_ISDIR(st.st_mode))
		return one_file(path, part, log, out, e);
	enum status s = directory(path, "parts", ".part", part, log, out, e);
	enum status t = directory(path, "log", ".log", part, log, out, s == OK ? e : &local);
	return s == OK ? t : s;
}

enum status store_verify(const char *path, struct buf *out, struct err *e)
{
	return look(path, verify_part, verify_log, out, e);
}

enum status store_inspect(const char *path, struct buf *out, struct err *e)
{
	return look(path, inspect_part, inspect_log, out, e);
}
