/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Ruby is recognized by its variable ruby_version ("3.1.7") and its function rb_errinfo. Offsets
 * are fixed within a minor version; what differs between builds is read from small functions that
 * every build exports, whose instructions GCC and Clang write in one way each:
 *   rb_errinfo    reads the thread-local variable ruby_current_ec, whose offset is in the
 * instruction rb_iseq_eval  ends by a jump to vm_exec, the native function that runs Ruby's vm_exec
 * calls vm_exec_core, which executes the instructions and is by far the longest rb_id2str compares
 * with tLAST_OP_ID and jumps to the function that reads the list of names
 *
 * Source: Ruby, vm_core.h, iseq.c, symbol.c, method.h, internal/class.h. System V ABI x86-64, 11.2
 * (ELF Handling For Thread-Local Storage: code sequences).
 */
#include "runtimes/internal.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#define VERSION(major, minor) ((uint16_t)((major) << 8 | (minor)))
/* Bytes of a function's code that are read. */
#define CODE_BYTES_MAX 512
#define CALL_BYTES 5 /* e8 or e9, and how far, from its end: s32 */
/* tLAST_OP_ID counts the parser's tokens. */
#define LAST_OPERATOR_LEAST 100
#define LAST_OPERATOR_MOST 1000
#define FLAG_SINGLETON (1u << 12)
#define FLAG_SINGLETON_3_4 (1u << 13)

static const struct row {
	uint16_t version;
	struct ruby_layout layout;
} rows[] = {
	{ VERSION(2, 7), { .root = RUBY_ROOT_POINTER,
				 .context_thread = 56,
				 .thread_id = 72,
				 .frame_bytes = 56,
				 .body_lines = 120,
				 .line_bytes = 8,
				 .line_is_value = 1,
				 .text_data = 16,
				 .class_kind = RUBY_CLASS_TABLE,
				 .singleton_flag = FLAG_SINGLETON } },
	{ VERSION(3, 0), { .frame_bytes = 56,
				 .body_lines = 120,
				 .line_bytes = 8,
				 .line_is_value = 1,
				 .text_data = 16,
				 .class_kind = RUBY_CLASS_TABLE,
				 .singleton_flag = FLAG_SINGLETON } },
	{ VERSION(3, 1), { .frame_bytes = 64,
				 .body_lines = 120,
				 .line_bytes = 12,
				 .line_is_value = 1,
				 .text_data = 16,
				 .class_kind = RUBY_CLASS_TABLE,
				 .singleton_flag = FLAG_SINGLETON } },
	{ VERSION(3, 2),
		{ .frame_bytes = 64, .body_lines = 112, .line_bytes = 12, .text_data = 24 } },
	{ VERSION(3, 3), { .frame_bytes = 56,
				 .body_lines = 112,
				 .line_bytes = 12,
				 .text_data = 24,
				 .class_kind = RUBY_CLASS_FIELD,
				 .class_name = 152,
				 .class_attached = 128,
				 .singleton_flag = FLAG_SINGLETON } },
	{ VERSION(3, 4), { .frame_bytes = 56,
				 .body_lines = 112,
				 .line_bytes = 12,
				 .text_data = 24,
				 .class_kind = RUBY_CLASS_FIELD,
				 .class_name = 152,
				 .class_attached = 128,
				 .singleton_flag = FLAG_SINGLETON_3_4 } },
};

enum symbol {
	SYMBOL_VERSION,
	SYMBOL_ERRINFO,
	SYMBOL_EVAL,
	SYMBOL_NAMES,
	SYMBOL_POINTER, /* to 2.7 */
	SYMBOL_LOOP,
	SYMBOL_LOOP_STATIC,
	SYMBOL_COLD,
	SYMBOL_COLD_STATIC,
	SYMBOL_COUNT,
};

/* The first bytes of a function. */
struct code {
	uint64_t address;
	size_t len;
	uint8_t bytes[CODE_BYTES_MAX];
};

static bool read_code(const struct objfile *obj, uint64_t address, uint64_t len, struct code *out)
{
	out->address = address;
	out->len = (size_t)MIN(len, (uint64_t)CODE_BYTES_MAX);
	return address && bytes_at(obj, address, out->bytes, out->len, NULL) == OK;
}

/* Are these bytes at `at`? */
static bool has(const struct code *c, size_t at, const char *bytes, size_t len)
{
	return at <= c->len && c->len - at >= len && memcmp(c->bytes + at, bytes, len) == 0;
}

static int32_t number_at(const struct code *c, size_t at)
{
	int32_t n = 0;
	if (at + sizeof(n) <= c->len)
		memcpy(&n, c->bytes + at, sizeof(n));
	return n;
}

/* The target of an instruction that ends at `end`, and with a 32-bit offset from there. */
static uint64_t target_of(const struct code *c, size_t end)
{
	return c->address + end + (uint64_t)(int64_t)number_at(c, end - 4);
}

/* The end of a call of __tls_get_addr at `at`; 0: there is no such call. */
static size_t skip_call(const struct code *c, size_t at)
{
	while (at < c->len && (c->bytes[at] == 0x66 || c->bytes[at] == 0x48))
		at++;
	if (has(c, at, "\xe8", 1))
		return at + CALL_BYTES;
	return has(c, at, "\xff\x15", 2) ? at + 6 : 0;
}

/* mov disp(%rax), %rax */
static bool takes_variable(const struct code *c, size_t at, int32_t *out)
{
	if (has(c, at, "\x48\x8b\x00", 3))
		*out = 0;
	else if (has(c, at, "\x48\x8b\x40", 3) && at + 4 <= c->len)
		*out = (int8_t)c->bytes[at + 3];
	else if (has(c, at, "\x48\x8b\x80", 3))
		*out = number_at(c, at + 3);
	else
		return false;
	return true;
}

/* Finds the first thread-local variable that this code reads, and its root variable. */
static bool find_thread_variable(const struct code *c, struct ruby_layout *out, uint64_t *out_root)
{
	for (size_t i = 0; i < c->len; i++) {
		if (has(c, i, "\x48\x8d\x3d", 3)) { /* lea pair(%rip), %rdi */
			size_t call = skip_call(c, i + 7);
			if (!call || !takes_variable(c, call, &out->root_at))
				continue;
			out->root = RUBY_ROOT_MODULE;
			*out_root = target_of(c, i + 7);
			return true;
		}
		if (has(c, i, "\x48\x8b\x05", 3) && has(c, i + 7, "\x64\x48\x8b", 3)) {
			out->root = RUBY_ROOT_OFFSET; /* mov word(%rip), %rax; mov %fs:(%rax) */
			*out_root = target_of(c, i + 7);
			return true;
		}
		if (has(c, i, "\x64\x48\x8b\x04\x25", 5) && number_at(c, i + 5) < 0) {
			out->root = RUBY_ROOT_FIXED; /* mov %fs:offset, %rax */
			out->root_at = number_at(c, i + 5);
			*out_root = c->address;
			return true;
		}
	}
	return false;
}

/* The target of a jump that leaves the code; 0: there is none. */
static uint64_t find_jump(const struct code *c)
{
	for (size_t i = 0; i + CALL_BYTES <= c->len; i++) {
		if (c->bytes[i] != 0xe9)
			continue;
		uint64_t to = target_of(c, i + CALL_BYTES);
		if (to - c->address >= c->len)
			return to;
	}
	return 0;
}

/* The list of names, global_symbols.ids, and the last operator. */
static void find_names(const struct objfile *obj, const struct runtime_symbol *symbol,
	uint64_t root, struct ruby_layout *out)
{
	struct code c;
	int32_t last = 0;
	if (!read_code(obj, symbol->address, symbol->size, &c))
		return;
	for (size_t i = 0; i + 7 <= c.len && !last; i++) {
		if (has(&c, i, "\x48\x81\xff", 3)) /* cmp $last, %rdi */
			last = number_at(&c, i + 3);
	}
	if (last < LAST_OPERATOR_LEAST || last > LAST_OPERATOR_MOST ||
		!read_code(obj, find_jump(&c), 160, &c))
		return;
	for (size_t i = 0; i + 7 <= c.len; i++) {
		if (!has(&c, i, "\x48\x8b\x3d", 3)) /* mov list(%rip), %rdi */
			continue;
		int64_t distance = (int64_t)(target_of(&c, i + 7) - root);
		if (distance != (int32_t)distance)
			return;
		out->last_operator = (uint16_t)last;
		out->symbols_at = (int32_t)distance;
		return;
	}
}

static void find_loop(
	const struct objfile *obj, struct runtime_symbol *symbols, struct ruby_layout *out)
{
	struct runtime_symbol *loop = &symbols[SYMBOL_LOOP];
	struct runtime_symbol *cold = &symbols[SYMBOL_COLD];
	struct code c;
	if (!loop->address)
		loop = &symbols[SYMBOL_LOOP_STATIC];
	if (!loop->address &&
		read_code(obj, symbols[SYMBOL_EVAL].address, symbols[SYMBOL_EVAL].size, &c)) {
		loop->address = find_jump(&c);
		loop->size = function_bytes(obj, loop->address);
	}
	if (!loop->address || !loop->size)
		return;
	place_function(obj, loop, out->loop);
	place_largest_callee(obj, loop, out->core);
	if (!cold->address)
		cold = &symbols[SYMBOL_COLD_STATIC];
	place_function(obj, cold, out->loop + 2);
	if (!out->loop[2])
		place_cold(obj, loop, out->loop + 2);
}

/* Does the file name musl's library? */
static bool is_musl(const struct objfile *obj)
{
	static const char name[] = "libc.musl-";
	const struct objfile_section *s = objfile_section(obj, ".dynstr");
	CLEANUP(buf_deinit) struct buf names;
	buf_init(&names, RUNTIMES_NAMES_BYTES_MAX);
	return s && objfile_read_section(obj, s, &names, NULL) == OK && names.len &&
	       memmem(names.data, names.len, name, sizeof(name) - 1);
}

static enum status find_row(const struct objfile *obj, const struct runtime_symbol *symbol,
	const struct row **out, struct err *e)
{
	char text[8] = "";
	unsigned major = 0, minor = 0;
	enum status s = bytes_at(obj, symbol->address, text, sizeof(text) - 1, e);
	if (s != OK)
		return s;
	if (sscanf(text, "%2u.%2u.", &major, &minor) != 2)
		return err_set(e, E_UNSUPPORTED, "%s: a Ruby that does not say its version",
			objfile_name(obj));
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		if (rows[i].version != VERSION(major, minor))
			continue;
		*out = &rows[i];
		return OK;
	}
	return err_set(
		e, E_UNSUPPORTED, "%s: Ruby %u.%u is not known", objfile_name(obj), major, minor);
}

static bool find_root(const struct objfile *obj, const struct runtime_symbol *symbols,
	struct ruby_layout *out, uint64_t *out_root)
{
	struct code c;
	*out_root = symbols[SYMBOL_POINTER].address;
	if (out->root == RUBY_ROOT_POINTER)
		return *out_root != 0;
	return read_code(obj, symbols[SYMBOL_ERRINFO].address, symbols[SYMBOL_ERRINFO].size, &c) &&
	       find_thread_variable(&c, out, out_root);
}

enum status ruby_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[SYMBOL_COUNT] = {
		[SYMBOL_VERSION] = { .name = "ruby_version" },
		[SYMBOL_ERRINFO] = { .name = "rb_errinfo" },
		[SYMBOL_EVAL] = { .name = "rb_iseq_eval" },
		[SYMBOL_NAMES] = { .name = "rb_id2str" },
		[SYMBOL_POINTER] = { .name = "ruby_current_execution_context_ptr" },
		[SYMBOL_LOOP] = { .name = "rb_vm_exec" },
		[SYMBOL_LOOP_STATIC] = { .name = "vm_exec" },
		[SYMBOL_COLD] = { .name = "rb_vm_exec.cold" },
		[SYMBOL_COLD_STATIC] = { .name = "vm_exec.cold" },
	};
	struct runtime_record r = { .kind = RUNTIME_RUBY };
	struct ruby_layout *l = &r.layout.ruby;
	const struct row *row = NULL;
	uint64_t root = 0;
	enum status s = symbols_find(obj, SHT_DYNSYM, symbols, SYMBOL_COUNT, e);
	if (s != OK)
		return s;
	if (!symbols[SYMBOL_VERSION].address || !symbols[SYMBOL_ERRINFO].address)
		return err_set(e, E_NOTFOUND, "%s: no Ruby", objfile_name(obj));
	s = find_row(obj, &symbols[SYMBOL_VERSION], &row, e);
	if (s != OK)
		return s;
	s = symbols_find(obj, SHT_SYMTAB, symbols, SYMBOL_COUNT, e);
	if (s != OK && s != E_LIMIT)
		return s;
	r.version = row->version;
	*l = row->layout;
	find_loop(obj, symbols, l);
	if (!l->loop[1] || !find_root(obj, symbols, l, &root))
		return err_set(e, E_UNSUPPORTED, "%s: a Ruby %u.%u whose %s is not found",
			objfile_name(obj), r.version >> 8, r.version & 255,
			l->loop[1] ? "thread's state (ruby_current_ec)" : "loop (vm_exec)");
	s = place_root(obj, root, symbols[SYMBOL_ERRINFO].address, &r, e);
	if (s != OK)
		return s;
	find_names(obj, &symbols[SYMBOL_NAMES], root, l);
	l->is_musl = is_musl(obj);
	*out = r;
	return OK;
}
