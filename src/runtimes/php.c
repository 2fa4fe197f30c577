/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PHP is recognized by its function execute_ex, which executes its programs, and by its variable
 * executor_globals, which every build without threads exports. The version is in the header that it
 * sends, "X-Powered-By: PHP/8.2.36", in the program and in libphp alike. Offsets are fixed within a
 * minor version.
 *
 * In a build with threads (ZTS) executor_globals_offset says how far behind the thread's cache of
 * variables the globals are. The cache's own variable is no exported symbol, but
 * tsrm_get_ls_cache_tcb_offset (from 8.0 on) returns its place, by one instruction.
 *
 * Source: PHP, Zend/zend_compile.h, zend_globals.h, main/SAPI.h, TSRM/TSRM.c.
 */
#include "runtimes/internal.h"

#include <elf.h>
#include <stdio.h>

#define VERSION(major, minor) ((uint16_t)((major) << 8 | (minor)))

static const struct row {
	uint16_t version;
	struct php_layout layout;
} rows[] = {
	{ VERSION(7, 4), { .globals_frame = 488,
				 .function_count = 60,
				 .function_code = 64,
				 .function_file = 136,
				 .function_line = 144 } },
	{ VERSION(8, 0), { .globals_frame = 488,
				 .function_count = 68,
				 .function_code = 72,
				 .function_file = 144,
				 .function_line = 152 } },
	{ VERSION(8, 1), { .globals_frame = 488,
				 .function_count = 68,
				 .function_code = 72,
				 .function_file = 144,
				 .function_line = 152 } },
	{ VERSION(8, 2), { .globals_frame = 488,
				 .function_count = 80,
				 .function_code = 88,
				 .function_file = 152,
				 .function_line = 160 } },
	{ VERSION(8, 3), { .globals_frame = 488,
				 .function_count = 76,
				 .function_code = 80,
				 .function_file = 144,
				 .function_line = 152 } },
	{ VERSION(8, 4), { .globals_frame = 488,
				 .function_count = 96,
				 .function_code = 104,
				 .function_file = 168,
				 .function_line = 176 } },
	{ VERSION(8, 5), { .globals_frame = 512,
				 .function_count = 96,
				 .function_code = 104,
				 .function_file = 168,
				 .function_line = 176 } },
	{ VERSION(8, 6), { .globals_frame = 512,
				 .function_count = 96,
				 .function_code = 104,
				 .function_file = 168,
				 .function_line = 176 } },
};

enum symbol {
	SYMBOL_LOOP,
	SYMBOL_GLOBALS,
	SYMBOL_THREADS,
	SYMBOL_RESUME,
	SYMBOL_COLD,
	SYMBOL_CACHE,
	SYMBOL_COUNT,
};

static enum status find_row(const struct objfile *obj, const struct row **out, struct err *e)
{
	char text[16];
	unsigned major = 0, minor = 0;
	enum status s = version_in_constants(obj, "X-Powered-By: PHP/", text, e);
	if (s != OK || sscanf(text, "%3u.%3u", &major, &minor) != 2)
		return err_set(e, E_UNSUPPORTED, "%s: a PHP that does not say its version",
			objfile_name(obj));
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		if (rows[i].version != VERSION(major, minor))
			continue;
		*out = &rows[i];
		return OK;
	}
	return err_set(
		e, E_UNSUPPORTED, "%s: PHP %u.%u is not known", objfile_name(obj), major, minor);
}

/* mov $distance, %rax, or mov word(%rip), %rax, where the dynamic linker fills the word in. */
static enum status find_cache(const struct objfile *obj, uint64_t function, uint64_t root,
	struct php_layout *out, struct err *e)
{
	static const uint8_t mark[] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* endbr64 */
	uint8_t code[16];
	int32_t number;
	if (!function || bytes_at(obj, function, code, sizeof(code), NULL) != OK)
		return err_set(e, E_UNSUPPORTED,
			"%s: a PHP with threads that does not say where their variables are",
			objfile_name(obj));
	size_t at = memcmp(code, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;
	memcpy(&number, code + at + 3, sizeof(number));
	if (memcmp(code + at, "\x48\xc7\xc0", 3) == 0) {
		out->root = PHP_ROOT_FIXED;
		out->thread_at = number;
		return OK;
	}
	int64_t distance = (int64_t)(function + at + 7 - root) + number;
	if (memcmp(code + at, "\x48\x8b\x05", 3) != 0 || distance != (int32_t)distance)
		return err_set(e, E_UNSUPPORTED,
			"%s: a PHP with threads whose variables are found in an unknown way",
			objfile_name(obj));
	out->root = PHP_ROOT_OFFSET;
	out->thread_at = (int32_t)distance;
	return OK;
}

enum status php_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[SYMBOL_COUNT] = {
		[SYMBOL_LOOP] = { .name = "execute_ex" },
		[SYMBOL_GLOBALS] = { .name = "executor_globals" },
		[SYMBOL_THREADS] = { .name = "executor_globals_offset" },
		[SYMBOL_RESUME] = { .name = "zend_generator_resume" },
		[SYMBOL_COLD] = { .name = "execute_ex.cold" },
		[SYMBOL_CACHE] = { .name = "tsrm_get_ls_cache_tcb_offset" },
	};
	struct runtime_record r = { .kind = RUNTIME_PHP };
	const struct row *row = NULL;
	enum status s = symbols_find(obj, SHT_DYNSYM, symbols, SYMBOL_COUNT, e);
	if (s != OK)
		return s;
	if (!symbols[SYMBOL_LOOP].address ||
		(!symbols[SYMBOL_GLOBALS].address && !symbols[SYMBOL_THREADS].address))
		return err_set(e, E_NOTFOUND, "%s: no PHP", objfile_name(obj));
	s = find_row(obj, &row, e);
	if (s != OK)
		return s;
	bool has_threads = !symbols[SYMBOL_GLOBALS].address;
	uint64_t root = symbols[has_threads ? SYMBOL_THREADS : SYMBOL_GLOBALS].address;
	/* The second table is only needed for the loop's cold part. */
	s = symbols_find(obj, SHT_SYMTAB, symbols, SYMBOL_COUNT, e);
	if (s == OK || s == E_LIMIT)
		s = place_root(obj, root, symbols[SYMBOL_LOOP].address, &r, e);
	r.version = row->version;
	r.layout.php = row->layout;
	if (s == OK && has_threads)
		s = find_cache(obj, symbols[SYMBOL_CACHE].address, root, &r.layout.php, e);
	if (s != OK)
		return s;
	place_function(obj, &symbols[SYMBOL_LOOP], r.layout.php.loop);
	place_function(obj, &symbols[SYMBOL_RESUME], r.layout.php.resume);
	place_function(obj, &symbols[SYMBOL_COLD], r.layout.php.loop + 2);
	if (!r.layout.php.loop[2])
		place_cold(obj, &symbols[SYMBOL_LOOP], r.layout.php.loop + 2);
	*out = r;
	return OK;
}
