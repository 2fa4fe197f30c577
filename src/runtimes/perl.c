/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Perl is recognized by Perl_runops_standard, which executes its programs, and PL_curinterp,
 * which builds with several interpreters export. The version is in PL_revision, PL_version and
 * PL_subversion, a byte each. From 5.36 on a program has each thread's interpreter in
 * PL_current_context, a thread-local variable right below the thread pointer in the program itself,
 * not in libperl.
 *
 * Source: Perl, perl.h, cop.h, cv.h, hv.h, intrpvar.h.
 */
#include "runtimes/internal.h"

#include <elf.h>

#define REVISION 5
#define VERSION_MIN 28
#define VERSION_MAX 44
/* PL_current_context must be the program's only thread-local variable, so that no alignment moves
 * it. */
#define CONTEXT_BYTES 8

enum symbol {
	SYMBOL_LOOP,
	SYMBOL_INTERPRETER,
	SYMBOL_REVISION,
	SYMBOL_VERSION,
	SYMBOL_CONTEXT,
	SYMBOL_SORT,
	SYMBOL_STACK, /* a variable in builds with only one interpreter */
	SYMBOL_COUNT,
};

static enum status find_version(const struct objfile *obj, const struct runtime_symbol *symbols,
	uint8_t *out, struct err *e)
{
	uint8_t revision, version;
	enum status s = bytes_at(obj, symbols[SYMBOL_REVISION].address, &revision, 1, e);
	if (s == OK)
		s = bytes_at(obj, symbols[SYMBOL_VERSION].address, &version, 1, e);
	if (s != OK)
		return s;
	if (revision != REVISION || version < VERSION_MIN || version > VERSION_MAX || version % 2)
		return err_set(e, E_UNSUPPORTED, "%s: Perl %u.%u is not known", objfile_name(obj),
			revision, version);
	*out = version;
	return OK;
}

static void place_context(
	const struct objfile *obj, const struct runtime_symbol *context, struct perl_layout *out)
{
	struct objfile_segment interp, tls;
	if (context->size && objfile_program_header(obj, PT_INTERP, &interp) &&
		objfile_program_header(obj, PT_TLS, &tls) && tls.mem_size == CONTEXT_BYTES)
		out->thread_at = CONTEXT_BYTES;
}

enum status perl_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[SYMBOL_COUNT] = {
		[SYMBOL_LOOP] = { .name = "Perl_runops_standard" },
		[SYMBOL_INTERPRETER] = { .name = "PL_curinterp" },
		[SYMBOL_REVISION] = { .name = "PL_revision" },
		[SYMBOL_VERSION] = { .name = "PL_version" },
		[SYMBOL_CONTEXT] = { .name = "PL_current_context" },
		[SYMBOL_SORT] = { .name = "Perl_pp_sort" },
		[SYMBOL_STACK] = { .name = "PL_curstackinfo" },
	};
	struct runtime_record r = { .kind = RUNTIME_PERL };
	uint8_t version = 0;
	enum status s = symbols_find(obj, SHT_DYNSYM, symbols, SYMBOL_COUNT, e);
	if (s != OK)
		return s;
	if (!symbols[SYMBOL_LOOP].address || !symbols[SYMBOL_REVISION].address ||
		!symbols[SYMBOL_VERSION].address)
		return err_set(e, E_NOTFOUND, "%s: no Perl", objfile_name(obj));
	s = find_version(obj, symbols, &version, e);
	if (s != OK)
		return s;
	if (symbols[SYMBOL_STACK].address || !symbols[SYMBOL_INTERPRETER].address)
		return err_set(e, E_UNSUPPORTED,
			"%s: Perl 5.%u without threads (MULTIPLICITY) is not walked yet",
			objfile_name(obj), version);
	s = place_root(
		obj, symbols[SYMBOL_INTERPRETER].address, symbols[SYMBOL_LOOP].address, &r, e);
	if (s != OK)
		return s;
	r.version = (uint16_t)(REVISION << 8 | version);
	struct perl_layout *l = &r.layout.perl;
	l->interp_stack = version >= 34 ? 224 : 240;
	l->interp_cop = version >= 34 ? 208 : 224;
	l->has_body_aux = version >= 36;
	l->stack_type = version >= 32 ? 44 : 40;
	l->context_bytes = version >= 32 ? 104 : 96;
	l->context_cv = version >= 32 ? 72 : 64;
	place_context(obj, &symbols[SYMBOL_CONTEXT], l);
	place_function(obj, &symbols[SYMBOL_LOOP], l->loop);
	place_function(obj, &symbols[SYMBOL_SORT], l->sort);
	*out = r;
	return OK;
}
