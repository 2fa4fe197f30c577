/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of a piece of code: the parent's half. It accepts the child's listing only if it is
 * printable and its addresses follow each other within the piece.
 */
#include "debuginfo/symtab/child.h"

#include <sys/mman.h>
#include <unistd.h>

#define HEAD_BYTES DEBUGINFO_CODE_HEAD_BYTES
#define MEMORY_BYTES ((uint64_t)256 << 20)
#define CPU_SECONDS 10
/* Of one instruction. */
#define INSTRUCTION_BYTES_MAX 16

static enum status make_piece(const struct debuginfo_code *code, int fd, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, HEAD_BYTES + DEBUGINFO_CODE_BYTES_MAX);
	buf_u64(&b, code->address);
	buf_u32(&b, code->machine);
	buf_u32(&b, 0);
	buf_str(&b, code->bytes);
	if (buf_status(&b) != OK)
		return err_set(e, buf_status(&b), "%zu bytes of code, at most %zu", code->bytes.len,
			DEBUGINFO_CODE_BYTES_MAX);
	return os_pwrite_full(fd, b.data, b.len, 0, "code", e);
}

/* "ADDRESS SIZE TEXT" */
static bool parse_line(struct str line, struct debuginfo_instruction *out)
{
	struct str address, size;
	uint64_t n;
	if (!str_split(&line, ' ', &address) || !str_split(&line, ' ', &size) ||
		!str_parse_u64(address, 16, &out->address) || !str_parse_u64(size, 16, &n) ||
		n == 0 || n > INSTRUCTION_BYTES_MAX || line.len == 0)
		return false;
	for (size_t i = 0; i < line.len; i++)
		if (line.p[i] < ' ' || line.p[i] > '~')
			return false;
	out->size = (uint32_t)n;
	out->text = line;
	return true;
}

static enum status parse_listing(const struct debuginfo_code *code, struct str text,
	struct debuginfo_instruction *v, size_t *out_count, struct err *e)
{
	uint64_t next = code->address, left = code->bytes.len;
	size_t count = 0;
	struct str line;
	while (text.len && str_split(&text, '\n', &line)) {
		struct debuginfo_instruction one;
		if (!parse_line(line, &one) || one.address != next || one.size > left)
			return err_set(
				e, E_CORRUPT, "the listing of code at instruction %zu", count);
		next += one.size;
		left -= one.size;
		v[count++] = one;
	}
	*out_count = count;
	return OK;
}

enum status debuginfo_disassemble(const struct debuginfo_code *code, struct buf *text,
	struct arena *a, struct debuginfo_instruction **out, size_t *out_count, struct err *e)
{
	const struct debuginfo_limits limits = {
		.memory_bytes = MEMORY_BYTES, .cpu_seconds = CPU_SECONDS, .output_bytes = text->max
	};
	if (!debuginfo_child_is_ready())
		return err_set(e, E_UNSUPPORTED,
			"this program cannot list instructions: it lacks debuginfo_child_main()");
	CLEANUP(fd_cleanup) int piece = memfd_create("code", MFD_CLOEXEC);
	CLEANUP(fd_cleanup) int listing = memfd_create("listing", MFD_CLOEXEC);
	if (piece < 0 || listing < 0)
		return err_os(e, "memory for instructions");
	const struct debuginfo_files files = { piece, -1, -1 };
	/* Each instruction has at least one byte. */
	struct debuginfo_instruction *v =
		ARENA_ARRAY(a, struct debuginfo_instruction, code->bytes.len + 1);
	if (!v)
		return err_set(e, arena_status(a), "instructions");
	enum status s = make_piece(code, piece, e);
	if (s == OK && lseek(piece, 0, SEEK_SET) != 0)
		s = err_os(e, "code");
	if (s == OK)
		s = debuginfo_child_run(&files, DEBUGINFO_CHILD_CODE, listing, &limits, e);
	if (s == OK && lseek(listing, 0, SEEK_SET) != 0)
		s = err_os(e, "listing");
	if (s == OK)
		s = os_read_fd(listing, "listing", text, e);
	if (s == OK)
		s = parse_listing(code, buf_view(text), v, out_count, e);
	if (s == OK)
		*out = v;
	return s;
}
