/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PHP is told by its function execute_ex, which executes its programs, and by its variable
 * executor_globals, which every build exports that has no threads of its own. The version stands in
 * the header that it sends, "X-Powered-By: PHP/8.2.36", in the program and in libphp alike. Offsets
 * are fixed within a minor version.
 *
 * Source: PHP, Zend/zend_compile.h, zend_globals.h, main/SAPI.h.
 */
#include "runtimes/private.h"

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
};

enum symbol {
	SYMBOL_LOOP,
	SYMBOL_GLOBALS,
	SYMBOL_THREADS,
	SYMBOL_RESUME,
	SYMBOL_COLD,
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

enum status php_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[SYMBOL_COUNT] = {
		[SYMBOL_LOOP] = { .name = "execute_ex" },
		[SYMBOL_GLOBALS] = { .name = "executor_globals" },
		[SYMBOL_THREADS] = { .name = "executor_globals_offset" },
		[SYMBOL_RESUME] = { .name = "zend_generator_resume" },
		[SYMBOL_COLD] = { .name = "execute_ex.cold" },
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
	if (!symbols[SYMBOL_GLOBALS].address)
		return err_set(e, E_UNSUPPORTED, "%s: PHP with threads (ZTS) is not walked yet",
			objfile_name(obj));
	/* Only the loop's cold part is left to be found. */
	s = symbols_find(obj, SHT_SYMTAB, symbols, SYMBOL_COUNT, e);
	if (s == OK || s == E_LIMIT)
		s = place_root(
			obj, symbols[SYMBOL_GLOBALS].address, symbols[SYMBOL_LOOP].address, &r, e);
	if (s != OK)
		return s;
	r.version = row->version;
	r.layout.php = row->layout;
	place_function(obj, &symbols[SYMBOL_LOOP], r.layout.php.loop);
	place_function(obj, &symbols[SYMBOL_RESUME], r.layout.php.resume);
	place_function(obj, &symbols[SYMBOL_COLD], r.layout.php.loop + 2);
	if (!r.layout.php.loop[2])
		place_cold(obj, &symbols[SYMBOL_LOOP], r.layout.php.loop + 2);
	*out = r;
	return OK;
}
