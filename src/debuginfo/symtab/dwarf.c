/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF by libdw, one compile unit after the other. Runs in the child only.
 *
 * A unit gives scopes (subprograms and inlined calls: the function, the call's place, the parent
 * scope), the address ranges of each, and rows of its line table. One sweep over the sorted ends of
 * ranges and rows turns them into pieces: the scope that began last and has not ended is the
 * innermost one. The parents of a scope are those in the tree of DIEs, whichever ranges overlap.
 *
 * libdw frees no memory before dwarf_end(), so a new session is begun every SESSION_BYTES_MAX of
 * heap: peak memory is that, plus one unit, plus the table itself.
 */
#include "debuginfo/symtab/readers.h"
#include "debuginfo/symtab/symtab.h"

#include "base/clock.h"

#include <dwarf.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Heap that libdw may use before a new session is begun. */
#define SESSION_BYTES_MAX ((uint64_t)64 << 20)
/* Compile units of one file. */
#define UNITS_MAX (1u << 22)
#define NO_SCOPE UINT32_MAX

struct scope {
	uint32_t function;
	uint32_t call_file; /* string */
	uint32_t call_line;
	uint32_t parent;    /* scope, or NO_SCOPE */
	uint32_t depth;     /* of inlining */
	uint32_t leaf_file; /* the file of leaf_node, 0: no node made yet */
	uint32_t leaf_node;
};

struct interval {
	uint64_t start;
	uint64_t end;
	uint32_t scope;
	uint32_t order;
};

struct row {
	uint64_t addr;
	uint32_t file; /* string; 0 with line 0: end of a sequence */
	uint32_t line;
};

struct function_key {
	Dwarf_Off die;
	uint32_t function;
};

struct dwarf_reader {
	struct debuginfo_builder *b;
	const struct debuginfo_dwarf_limits *limits;
	Dwarf *dw;
	jmp_buf out_of_memory; /* where to go on when libdw is out of memory */
	/* of the unit being read */
	VEC(struct scope) scopes;
	VEC(struct interval) intervals;
	VEC(struct row) rows;
	VEC(struct debuginfo_span) unit; /* the addresses of the unit itself; empty: unknown */
	VEC(uint64_t) points;
	VEC(uint32_t) open;  /* intervals */
	VEC(uint32_t) files; /* by DWARF's file number: string, UINT32_MAX: not looked up yet */
	VEC(struct function_key) keys;
	struct map key_index; /* of keys */
	bool is_c;            /* C or assembly: symbols are the names */
	const char *folder;   /* the unit's compilation directory; NULL: unknown */
	Dwarf_Files *file_table;
	size_t file_count;
	enum status status;
	bool damaged;
};

static bool failed(struct dwarf_reader *r, enum status s)
{
	if (s != OK)
		r->status = s;
	return s != OK;
}

static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();
	return (uint64_t)m.uordblks + (uint64_t)m.hblkhd;
}

static bool past_limits(const struct dwarf_reader *r)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return heap_bytes() > r->limits->memory_bytes ||
	       t.tv_sec * NS_PER_SEC + t.tv_nsec > r->limits->cpu_ns;
}

/* ---- functions ---- */

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (!name && dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	return name;
}

static bool key_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct dwarf_reader *r = ctx;
	return r->keys.v[value].die == *(const Dwarf_Off *)key;
}

/* Mangled names of C++, Rust, D and Swift, which say more than DWARF's bare names. */
static bool is_mangled(const char *name)
{
	static const char *const prefixes[] = { "_Z", "_R", "_D", "$s", "_$s" };
	for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* The name with its modules or class, if the linkage name is such a form of DWARF's bare name:
 * "debug.ElfFile.load" for "load" (Zig), "Fiber#run" for "run" from "*Fiber#run<Fiber>:Nil"
 * (Crystal). Empty: it is not. */
static struct str qualified_name(const char *name, const char *bare)
{
	size_t len = bare ? strlen(bare) : 0;
	const char *at = len ? strstr(name, bare) : NULL;
	for (; at; at = strstr(at + 1, bare))
		/* The name is followed by parameters, a type, or its end, which strchr() finds as
		 * well. */
		if (at > name && strchr(".#:", at[-1]) && strchr("<:(", at[len])) {
			name += name[0] == '*';
			return str_make(name, (size_t)(at - name) + len);
		}
	return str_make(NULL, 0);
}

/* The symbol of the function that begins at `start`, if it says more than DWARF's bare name: a
 * mangled symbol has the scopes (of "operator()"), an exported one is the name that callers use
 * ("malloc" for "__GI___libc_malloc"). Local symbols like "f.isra.0" are not taken. */
static struct str symbol_name(const struct dwarf_reader *r, uint64_t start, const char *bare)
{
	size_t i = start ? debuginfo_symbols_at(r->b, start) : r->b->symbols.len;
	if (i == r->b->symbols.len || r->b->symbols.v[i].start != start)
		return str_make(NULL, 0);
	const struct debuginfo_symbol *sym = &r->b->symbols.v[i];
	if (!sym->name)
		return str_make(NULL, 0);
	if (is_mangled(sym->name) || (r->is_c && sym->typed && !sym->local))
		return str_of(sym->name);
	return qualified_name(sym->name, bare);
}

static const char *folder_of(Dwarf_Die *cu)
{
	Dwarf_Attribute attr;
	return dwarf_attr(cu, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
}

/* A file's full path. It is relative to the directory of the unit being read, or of the unit of
 * `die` (for code inlined from another unit). */
static enum status path_text(
	struct dwarf_reader *r, const char *path, Dwarf_Die *die, uint32_t *out)
{
	char whole[DEBUGINFO_SOURCE_PATH_MAX];
	const char *folder = r->folder;
	Dwarf_Die cu;
	if (path && path[0] != '/' && die && dwarf_diecu(die, &cu, NULL, NULL))
		folder = folder_of(&cu);
	if (path && debuginfo_path_join(folder, path, whole))
		path = whole;
	return debuginfo_builder_text(r->b, path, out);
}

/* The name of a function that begins at `start`, 0 for an inlined call. */
static struct str function_name(const struct dwarf_reader *r, Dwarf_Die *die, uint64_t start)
{
	const char *linkage = linkage_name(die), *bare = dwarf_diename(die);
	if (linkage && is_mangled(linkage))
		return str_of(linkage);
	/* Other linkage names come from asm labels: "__GI_setegid". */
	struct str name = linkage ? qualified_name(linkage, bare) : str_make(NULL, 0);
	if (name.len == 0)
		name = symbol_name(r, start, bare);
	return name.len ? name : str_of(bare ? bare : linkage ? linkage : "");
}

static bool make_function(struct dwarf_reader *r, Dwarf_Die *die, uint64_t start, uint32_t *out)
{
	struct symtab_function f = { 0 };
	int line = 0;
	*out = 0;
	if (failed(r, debuginfo_builder_name(r->b, function_name(r, die, start), &f.name)))
		return false;
	if (f.name == 0)
		return true;
	if (dwarf_decl_line(die, &line) == 0 && line > 0)
		f.line = (uint32_t)line;
	return !failed(r, path_text(r, dwarf_decl_file(die), die, &f.file)) &&
	       !failed(r, debuginfo_builder_function(r->b, f, out));
}

/* The function of a subprogram or of an inlined call (`start` is 0 then). Functions are found by
 * the DIE that has the name: hundreds of inlined calls share one. */
static bool find_function(struct dwarf_reader *r, Dwarf_Die *die, uint64_t start, uint32_t *out)
{
	if (start)
		return make_function(r, die, start, out);
	Dwarf_Attribute attr;
	Dwarf_Die origin = *die;
	if (dwarf_attr(die, DW_AT_abstract_origin, &attr) && !dwarf_formref_die(&attr, &origin))
		origin = *die;
	/* DIEs of an alternative file have offsets of their own: the unit's pointer makes the key
	 * unique. */
	Dwarf_Off key = dwarf_dieoffset(&origin) ^ ((Dwarf_Off)(uintptr_t)origin.cu << 20);
	uint32_t at = map_find(&r->key_index, hash_u64(key), key_equal, r, &key);
	if (at != MAP_NONE) {
		*out = r->keys.v[at].function;
		return true;
	}
	if (!make_function(r, &origin, 0, out))
		return false;
	struct function_key k = { key, *out };
	if (!VEC_PUSH(&r->keys, k) ||
		!map_insert(&r->key_index, hash_u64(key), (uint32_t)(r->keys.len - 1)))
		return !failed(r, E_NOMEM);
	return true;
}

/* ---- scopes ---- */

static bool file_of(struct dwarf_reader *r, uint64_t number, uint32_t *out)
{
	*out = 0;
	if (number >= r->file_count)
		return true;
	uint32_t *slot = &r->files.v[number];
	if (*slot == UINT32_MAX &&
		failed(r,
			path_text(r, dwarf_filesrc(r->file_table, number, NULL, NULL), NULL, slot)))
		return false;
	*out = *slot;
	return true;
}

static bool call_site(struct dwarf_reader *r, Dwarf_Die *die, struct scope *s)
{
	Dwarf_Attribute attr;
	Dwarf_Word w;
	if (dwarf_attr(die, DW_AT_call_line, &attr) && dwarf_formudata(&attr, &w) == 0)
		s->call_line = w <= UINT32_MAX ? (uint32_t)w : 0;
	if (dwarf_attr(die, DW_AT_call_file, &attr) && dwarf_formudata(&attr, &w) == 0)
		return file_of(r, w, &s->call_file);
	return true;
}

/* Adds the ranges of a subprogram or inlined call. *out is its scope, or `parent` if it has no
 * code. */
static bool add_scope(
	struct dwarf_reader *r, Dwarf_Die *die, bool inlined, uint32_t parent, uint32_t *out)
{
	*out = parent;
	uint32_t id = NO_SCOPE;
	ptrdiff_t at = 0;
	Dwarf_Addr base, start, end;
	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		const struct debuginfo_span *code =
			start < end ? debuginfo_builder_code(r->b, start) : NULL;
		if (!code)
			continue;
		if (id == NO_SCOPE) {
			struct scope s = { .parent = inlined ? parent : NO_SCOPE };
			if (s.parent != NO_SCOPE)
				s.depth = r->scopes.v[s.parent].depth + 1;
			if (s.depth >= DEBUGINFO_FRAMES_MAX - 1)
				return true;
			if (!find_function(r, die, inlined ? 0 : start, &s.function))
				return false;
			if (inlined && !call_site(r, die, &s))
				return false;
			id = (uint32_t)r->scopes.len;
			if (!VEC_PUSH(&r->scopes, s))
				return !failed(r, E_NOMEM);
		}
		struct interval iv = { start, MIN(end, code->end), id, (uint32_t)r->intervals.len };
		if (!VEC_PUSH(&r->intervals, iv))
			return !failed(r, E_NOMEM);
	}
	if (at < 0)
		r->damaged = true;
	if (id != NO_SCOPE)
		*out = id;
	return true;
}

static bool holds_scopes(int tag)
{
	switch (tag) {
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_module:
	case DW_TAG_common_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return true;
	default:
		return false;
	}
}

/* Whether the function has no code of its own: it was inlined wherever it is called. Types within
 * it may have functions with code: its lambdas. */
static bool is_abstract(Dwarf_Die *die)
{
	return !dwarf_hasattr(die, DW_AT_low_pc) && !dwarf_hasattr(die, DW_AT_ranges);
}

static bool walk(struct dwarf_reader *r, Dwarf_Die *parent_die, uint32_t parent, int depth)
{
	Dwarf_Die die;
	int rc = depth < DEBUGINFO_DEPTH_MAX ? dwarf_child(parent_die, &die) : 1;
	for (; rc == 0; rc = dwarf_siblingof(&die, &die)) {
		int tag = dwarf_tag(&die);
		uint32_t scope = parent;
		bool code = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
		if (code && !add_scope(r, &die, tag == DW_TAG_inlined_subroutine, parent, &scope))
			return false;
		bool down = code ? scope != parent : holds_scopes(tag);
		if (!down && tag == DW_TAG_subprogram && is_abstract(&die)) {
			down = true;
			scope = NO_SCOPE;
		}
		if (down && dwarf_haschildren(&die) && !walk(r, &die, scope, depth + 1))
			return false;
	}
	if (rc < 0)
		r->damaged = true;
	return true;
}

/* ---- lines ---- */

static bool read_unit_spans(struct dwarf_reader *r, Dwarf_Die *cu)
{
	ptrdiff_t at = 0;
	Dwarf_Addr base;
	struct debuginfo_span span;
	while ((at = dwarf_ranges(cu, at, &base, &span.start, &span.end)) > 0)
		if (span.start < span.end && !VEC_PUSH(&r->unit, span))
			return !failed(r, E_NOMEM);
	if (r->unit.len)
		qsort(r->unit.v, r->unit.len, sizeof(span), debuginfo_span_cmp);
	return true;
}

/* Whether the row is code of the unit. libdw sorts rows at the very end of a sequence behind its
 * end; such a row would reach up to the next sequence. Its address is not one of the unit's. */
static bool row_counts(const struct dwarf_reader *r, uint64_t addr)
{
	return debuginfo_builder_code(r->b, addr) &&
	       (r->unit.len == 0 || debuginfo_span_find(r->unit.v, r->unit.len, addr));
}

static bool read_rows(struct dwarf_reader *r, Dwarf_Die *cu)
{
	Dwarf_Lines *lines = NULL;
	size_t count = 0;
	if (dwarf_getsrclines(cu, &lines, &count) != 0)
		return true; /* the unit has no lines, or damaged ones: its functions are kept */
	if (!VEC_RESERVE(&r->rows, count))
		return !failed(r, E_NOMEM);
	const char *last = NULL;
	uint32_t last_file = 0;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		Dwarf_Addr addr;
		int number = 0;
		bool end = false;
		if (!line || dwarf_lineaddr(line, &addr) != 0 || dwarf_lineno(line, &number) != 0 ||
			dwarf_lineendsequence(line, &end) != 0)
			continue;
		if (!end && !row_counts(r, addr))
			continue;
		const char *path = end ? NULL : dwarf_linesrc(line, NULL, NULL);
		if (path && path != last) {
			last = path;
			if (failed(r, path_text(r, path, NULL, &last_file)))
				return false;
		}
		r->rows.v[r->rows.len++] = (struct row){ addr, path ? last_file : 0,
			path && number > 0 ? (uint32_t)number : 0 };
	}
	return true;
}

/* ---- from scopes and rows to pieces ---- */

static int interval_cmp(const void *pa, const void *pb)
{
	const struct interval *a = pa, *b = pb;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* DIEs are ordered outer before inner. Of folded copies of a function the longer comes
	 * first, so that they nest. */
	return a->order < b->order ? -1 : a->order > b->order;
}

static int u64_cmp(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
	return a < b ? -1 : a > b;
}

/* The node of a scope with lines in `file`. Recursion is bounded by the depth of inlining. */
static bool scope_node(struct dwarf_reader *r, uint32_t id, uint32_t file, uint32_t *out)
{
	struct scope *s = &r->scopes.v[id];
	if (s->leaf_node && s->leaf_file == file) {
		*out = s->leaf_node;
		return true;
	}
	struct symtab_node n = { .function = s->function, .file = file };
	if (s->parent != NO_SCOPE) {
		n.call_line = s->call_line;
		if (!scope_node(r, s->parent, s->call_file, &n.parent))
			return false;
	}
	if (failed(r, debuginfo_builder_node(r->b, n, out)))
		return false;
	s->leaf_node = *out;
	s->leaf_file = file;
	return true;
}

/* Adds rows without a scope, which are assembly: symbols give the names. */
static bool add_rows_only(struct dwarf_reader *r, uint64_t start, uint64_t end, struct row row)
{
	struct debuginfo_builder *b = r->b;
	for (size_t i = debuginfo_symbols_at(b, start);
		i < b->symbols.len && b->symbols.v[i].start < end; i++) {
		struct symtab_node n = { .file = row.file };
		uint32_t node;
		struct debuginfo_piece p = { MAX(start, b->symbols.v[i].start),
			MIN(end, b->symbols.v[i].end), 0, row.line };
		if (failed(r, debuginfo_builder_symbol(b, i, &n.function)) ||
			failed(r, debuginfo_builder_node(b, n, &node)))
			return false;
		p.node = node;
		if (failed(r, debuginfo_builder_add(b, p)))
			return false;
	}
	return true;
}

static bool add_piece(
	struct dwarf_reader *r, uint64_t start, uint64_t end, uint32_t scope, struct row row)
{
	if (scope == NO_SCOPE)
		return row.file == 0 || add_rows_only(r, start, end, row);
	if (r->scopes.v[scope].function == 0)
		return true; /* without a name: the symbol is better */
	struct debuginfo_piece p = { start, end, 0, row.line };
	return scope_node(r, scope, row.file, &p.node) &&
	       !failed(r, debuginfo_builder_add(r->b, p));
}

static bool gather_points(struct dwarf_reader *r)
{
	if (!VEC_RESERVE(&r->points, r->rows.len + 2 * r->intervals.len) ||
		!VEC_RESERVE(&r->open, r->intervals.len))
		return !failed(r, E_NOMEM);
	for (size_t i = 0; i < r->rows.len; i++)
		r->points.v[r->points.len++] = r->rows.v[i].addr;
	for (size_t i = 0; i < r->intervals.len; i++) {
		r->points.v[r->points.len++] = r->intervals.v[i].start;
		r->points.v[r->points.len++] = r->intervals.v[i].end;
	}
	if (r->points.len)
		qsort(r->points.v, r->points.len, sizeof(uint64_t), u64_cmp);
	if (r->intervals.len)
		qsort(r->intervals.v, r->intervals.len, sizeof(*r->intervals.v), interval_cmp);
	return true;
}

static bool sweep(struct dwarf_reader *r)
{
	if (!gather_points(r))
		return false;
	struct row row = { 0 };
	size_t next_row = 0, next_interval = 0;
	for (size_t i = 0; i + 1 < r->points.len; i++) {
		uint64_t at = r->points.v[i], end = r->points.v[i + 1];
		if (at == end)
			continue;
		for (; next_row < r->rows.len && r->rows.v[next_row].addr <= at; next_row++)
			row = r->rows.v[next_row];
		for (; next_interval < r->intervals.len &&
			r->intervals.v[next_interval].start <= at;
			next_interval++)
			r->open.v[r->open.len++] = (uint32_t)next_interval;
		while (r->open.len && r->intervals.v[r->open.v[r->open.len - 1]].end <= at)
			r->open.len--;
		uint32_t scope =
			r->open.len ? r->intervals.v[r->open.v[r->open.len - 1]].scope : NO_SCOPE;
		if (!add_piece(r, at, end, scope, row))
			return false;
	}
	return true;
}

/* ---- units ---- */

static bool read_unit(struct dwarf_reader *r, Dwarf_Die *cu)
{
	VEC_CLEAR(&r->scopes);
	VEC_CLEAR(&r->intervals);
	VEC_CLEAR(&r->rows);
	VEC_CLEAR(&r->unit);
	VEC_CLEAR(&r->points);
	VEC_CLEAR(&r->open);
	VEC_CLEAR(&r->files);
	VEC_CLEAR(&r->keys);
	map_clear(&r->key_index);
	int language = dwarf_srclang(cu);
	r->is_c = language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 ||
		  language == DW_LANG_C11 || language == DW_LANG_Mips_Assembler;
	r->folder = folder_of(cu);
	if (dwarf_getsrcfiles(cu, &r->file_table, &r->file_count) != 0)
		r->file_count = 0;
	if (!VEC_RESERVE(&r->files, r->file_count))
		return !failed(r, E_NOMEM);
	for (size_t i = 0; i < r->file_count; i++)
		r->files.v[r->files.len++] = UINT32_MAX;
	return read_unit_spans(r, cu) && walk(r, cu, NO_SCOPE, 0) && read_rows(r, cu) && sweep(r);
}

/* libdw calls this, in the one thread that the child has, and does not expect it to return. */
static struct dwarf_reader *current;

static __attribute__((noreturn)) void out_of_memory(void)
{
	longjmp(current->out_of_memory, 1);
}

static bool begin(struct dwarf_reader *r, Elf *elf, Dwarf *alt)
{
	r->dw = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!r->dw)
		return false;
	dwarf_new_oom_handler(r->dw, out_of_memory);
	if (alt)
		dwarf_setalt(r->dw, alt);
	return true;
}

/* Units from number `first` on, until the heap has grown by a session. *out_next is the number of
 * the first one not read, or UNITS_MAX at the end. */
static bool read_session(struct dwarf_reader *r, uint32_t first, uint32_t *out_next)
{
	uint64_t before = heap_bytes();
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die, sub;
	for (uint32_t n = 0; n < UNITS_MAX; n++) {
		int rc = dwarf_get_units(r->dw, cu, &cu, &version, &type, &die, &sub);
		if (rc < 0)
			r->damaged = true;
		if (rc != 0)
			break;
		if (n < first || type == DW_UT_type || type == DW_UT_partial)
			continue;
		*out_next = n + 1;
		if (!read_unit(r, &die))
			return false;
		if (past_limits(r)) {
			r->b->flags |= SYMTAB_DWARF_CUT;
			return false;
		}
		if (heap_bytes() > before + SESSION_BYTES_MAX)
			return true;
	}
	*out_next = UNITS_MAX;
	return true;
}

/* Unmaps the file's pages that this process has read; they stay in the page cache. */
static void drop_file_pages(Elf *elf)
{
	size_t size;
	char *p = elf_rawfile(elf, &size);
	/* libelf maps the file from its beginning, read-only. If it has read it into memory
	 * instead, the address is not page aligned, or madvise() fails. */
	if (p && (uintptr_t)p % (uintptr_t)sysconf(_SC_PAGESIZE) == 0)
		madvise(p, size, MADV_DONTNEED);
}

static void read_all(struct dwarf_reader *r, Elf *elf, Dwarf *alt)
{
	volatile uint32_t next = 0;
	if (setjmp(r->out_of_memory)) {
		r->b->flags |= SYMTAB_DWARF_CUT;
		return; /* libdw's memory is freed when the process ends */
	}
	current = r;
	for (bool more = true; more && next < UNITS_MAX;) {
		if (!begin(r, elf, alt))
			break;
		r->b->flags |= SYMTAB_DWARF;
		uint32_t after = next;
		more = read_session(r, next, &after) && after > next;
		next = after;
		dwarf_end(r->dw);
		drop_file_pages(elf);
	}
}

/* Any .debug_info at all, plain or compressed? Its size once decompressed, together with all other
 * debug sections that are compressed. */
static bool has_dwarf(Elf *elf, uint64_t *out_compressed)
{
	size_t names;
	bool found = false;
	*out_compressed = 0;
	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		GElf_Chdr ch;
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!name || sh.sh_type == SHT_NOBITS)
			continue;
		if (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)
			found = true;
		if (strncmp(name, ".debug_", 7) == 0 && (sh.sh_flags & SHF_COMPRESSED) &&
			gelf_getchdr(scn, &ch))
			*out_compressed += MIN(ch.ch_size, UINT64_MAX >> 16);
	}
	return found;
}

static void reader_deinit(struct dwarf_reader *r)
{
	VEC_FREE(&r->scopes);
	VEC_FREE(&r->intervals);
	VEC_FREE(&r->rows);
	VEC_FREE(&r->unit);
	VEC_FREE(&r->points);
	VEC_FREE(&r->open);
	VEC_FREE(&r->files);
	VEC_FREE(&r->keys);
	map_deinit(&r->key_index);
}

void debuginfo_read_dwarf(struct debuginfo_builder *b, Elf *elf, Elf *alt,
	const struct debuginfo_dwarf_limits *limits)
{
	uint64_t compressed;
	if (!has_dwarf(elf, &compressed))
		return;
	if (compressed > limits->memory_bytes) {
		b->flags |= SYMTAB_DWARF_CUT;
		return;
	}
	if (debuginfo_repair_lines(elf) != OK) {
		b->flags |= SYMTAB_DWARF_CUT;
		return;
	}
	CLEANUP(reader_deinit) struct dwarf_reader r = { .b = b, .limits = limits };
	Dwarf *alt_dw = alt ? dwarf_begin_elf(alt, DWARF_C_READ, NULL) : NULL;
	read_all(&r, elf, alt_dw);
	if (alt_dw)
		dwarf_end(alt_dw);
	if (r.damaged)
		b->flags |= SYMTAB_DWARF_DAMAGED;
	/* Out of memory for the table: it is cut as if libdw had run out, and what it has is
	 * consistent. */
	if (r.status == E_NOMEM || r.status == E_LIMIT)
		b->flags |= SYMTAB_DWARF_CUT;
}
