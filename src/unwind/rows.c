/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of an FDE are run up to the next one that moves the location; the state at that
 * point is one row. Registers that no rule uses are skipped. DW_CFA_restore sets a register back to
 * the rule of the CIE.
 */
#include "unwind/cfi.h"

/* clang-format off */
enum {
	DW_CFA_advance_loc = 0x40, DW_CFA_offset = 0x80, DW_CFA_restore = 0xc0,
	DW_CFA_nop = 0x00, DW_CFA_set_loc = 0x01, DW_CFA_advance_loc1 = 0x02,
	DW_CFA_advance_loc2 = 0x03, DW_CFA_advance_loc4 = 0x04, DW_CFA_offset_extended = 0x05,
	DW_CFA_restore_extended = 0x06, DW_CFA_undefined = 0x07, DW_CFA_same_value = 0x08,
	DW_CFA_register = 0x09, DW_CFA_remember_state = 0x0a, DW_CFA_restore_state = 0x0b,
	DW_CFA_def_cfa = 0x0c, DW_CFA_def_cfa_register = 0x0d, DW_CFA_def_cfa_offset = 0x0e,
	DW_CFA_def_cfa_expression = 0x0f, DW_CFA_expression = 0x10, DW_CFA_offset_extended_sf = 0x11,
	DW_CFA_def_cfa_sf = 0x12, DW_CFA_def_cfa_offset_sf = 0x13, DW_CFA_val_offset = 0x14,
	DW_CFA_val_offset_sf = 0x15, DW_CFA_val_expression = 0x16,
	DW_CFA_MIPS_advance_loc8 = 0x1d, DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2c,
	DW_CFA_GNU_window_save = 0x2d, DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
};
/* clang-format on */
#define OPCODE_HIGH 0xc0
#define OPCODE_LOW 0x3f

void cfi_rows_begin(struct cfi_rows *rows, const struct cfi_section *s,
	const struct cfi_registers *regs, const struct cfi_cie *cie, const struct cfi_fde *fde)
{
	size_t from = (size_t)(fde->instructions.p - s->bytes.p);
	rows->section = s;
	rows->cie = cie;
	rows->regs = regs;
	rows->r = reader_over(s->bytes.p, from + fde->instructions.len);
	reader_seek(&rows->r, from);
	rows->state = cie->initial;
	rows->at = fde->start;
	rows->next = fde->start;
	rows->end = fde->start + fde->length;
	rows->remembered = 0;
	rows->failed = false;
}

/* The rule of a register; NULL when it is not followed. */
static struct cfi_rule *rule_of(struct cfi_rows *rows, uint64_t reg)
{
	if (reg == rows->cie->ra_register)
		return &rows->state.ra;
	if (reg == rows->regs->fp)
		return &rows->state.fp;
	if (reg == rows->regs->sp)
		return &rows->state.sp;
	if (reg == rows->regs->bx)
		return &rows->state.bx;
	return NULL;
}

static void set_rule(struct cfi_rows *rows, uint64_t reg, enum cfi_kind kind, int64_t offset)
{
	struct cfi_rule *rule = rule_of(rows, reg);
	if (rule)
		*rule = (struct cfi_rule){ .kind = kind, .offset = offset };
}

static void restore(struct cfi_rows *rows, uint64_t reg)
{
	struct cfi_rule *rule = rule_of(rows, reg);
	const struct cfi_state *initial = &rows->cie->initial;
	if (rule == &rows->state.ra)
		*rule = initial->ra;
	else if (rule == &rows->state.fp)
		*rule = initial->fp;
	else if (rule == &rows->state.bx)
		*rule = initial->bx;
	else if (rule)
		*rule = initial->sp;
}

static void set_expression(struct cfi_rows *rows, enum cfi_kind kind)
{
	uint64_t reg = reader_uleb(&rows->r);
	struct str expression = reader_str(&rows->r, reader_uleb(&rows->r));
	struct cfi_rule *rule = rule_of(rows, reg);
	if (rule)
		*rule = (struct cfi_rule){ .kind = kind, .expression = expression };
}

static void set_cfa(struct cfi_rows *rows, uint64_t reg, int64_t offset)
{
	rows->state.cfa_register = reg;
	rows->state.cfa_offset = offset;
	rows->state.cfa_expression = (struct str){ 0 };
}

static void set_cfa_expression(struct cfi_rows *rows)
{
	/* An empty expression is an error, but must not look like "register and offset". */
	struct str expression = reader_str(&rows->r, reader_uleb(&rows->r));
	rows->state.cfa_expression = expression;
	if (expression.len == 0)
		rows->failed = true;
}

/* Offsets are factored by data_align; wrapping is the file's problem, not undefined behaviour. */
static int64_t factored(const struct cfi_rows *rows, uint64_t n)
{
	return (int64_t)(n * (uint64_t)rows->cie->data_align);
}

static void remember(struct cfi_rows *rows)
{
	if (rows->remembered == CFI_REMEMBER_MAX)
		rows->failed = true;
	else
		rows->stack[rows->remembered++] = rows->state;
}

static void restore_state(struct cfi_rows *rows)
{
	if (rows->remembered == 0)
		rows->failed = true;
	else
		rows->state = rows->stack[--rows->remembered];
}

/* Runs an opcode that neither has an operand in its low bits nor moves the location. */
static void run_extended(struct cfi_rows *rows, uint8_t opcode)
{
	struct reader *r = &rows->r;
	uint64_t reg;
	switch (opcode) {
	case DW_CFA_nop:
	case DW_CFA_AARCH64_negate_ra_state_with_pc:
	case DW_CFA_GNU_window_save: /* arm64: negate_ra_state */
		break;
	case DW_CFA_offset_extended:
		reg = reader_uleb(r);
		set_rule(rows, reg, CFI_OFFSET, factored(rows, reader_uleb(r)));
		break;
	case DW_CFA_offset_extended_sf:
		reg = reader_uleb(r);
		set_rule(rows, reg, CFI_OFFSET, factored(rows, (uint64_t)reader_sleb(r)));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		reg = reader_uleb(r);
		set_rule(rows, reg, CFI_OFFSET, factored(rows, -reader_uleb(r)));
		break;
	case DW_CFA_restore_extended:
		restore(rows, reader_uleb(r));
		break;
	case DW_CFA_undefined:
		set_rule(rows, reader_uleb(r), CFI_UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		set_rule(rows, reader_uleb(r), CFI_SAME, 0);
		break;
	case DW_CFA_register:
		reg = reader_uleb(r);
		set_rule(rows, reg, CFI_REGISTER, (int64_t)reader_uleb(r));
		break;
	case DW_CFA_remember_state:
		remember(rows);
		break;
	case DW_CFA_restore_state:
		restore_state(rows);
		break;
	case DW_CFA_def_cfa:
		reg = reader_uleb(r);
		set_cfa(rows, reg, (int64_t)reader_uleb(r));
		break;
	case DW_CFA_def_cfa_sf:
		reg = reader_uleb(r);
		set_cfa(rows, reg, factored(rows, (uint64_t)reader_sleb(r)));
		break;
	case DW_CFA_def_cfa_register:
		set_cfa(rows, reader_uleb(r), rows->state.cfa_offset);
		break;
	case DW_CFA_def_cfa_offset:
		rows->state.cfa_offset = (int64_t)reader_uleb(r);
		break;
	case DW_CFA_def_cfa_offset_sf:
		rows->state.cfa_offset = factored(rows, (uint64_t)reader_sleb(r));
		break;
	case DW_CFA_def_cfa_expression:
		set_cfa_expression(rows);
		break;
	case DW_CFA_expression:
		set_expression(rows, CFI_EXPRESSION);
		break;
	case DW_CFA_val_expression:
		set_expression(rows, CFI_VAL_EXPRESSION);
		break;
	case DW_CFA_val_offset:
		reg = reader_uleb(r);
		set_rule(rows, reg, CFI_VAL_OFFSET, factored(rows, reader_uleb(r)));
		break;
	case DW_CFA_val_offset_sf:
		reg = reader_uleb(r);
		set_rule(rows, reg, CFI_VAL_OFFSET, factored(rows, (uint64_t)reader_sleb(r)));
		break;
	case DW_CFA_GNU_args_size:
		reader_uleb(r);
		break;
	default:
		rows->failed = true;
	}
}

/* How far the opcode moves the location, in units of code_align. False: it does not move it. */
static bool read_advance(struct reader *r, uint8_t opcode, uint64_t *out)
{
	switch (opcode) {
	case DW_CFA_advance_loc1:
		*out = reader_u8(r);
		return true;
	case DW_CFA_advance_loc2:
		*out = reader_u16(r);
		return true;
	case DW_CFA_advance_loc4:
		*out = reader_u32(r);
		return true;
	case DW_CFA_MIPS_advance_loc8:
		*out = reader_u64(r);
		return true;
	default:
		*out = opcode & OPCODE_LOW;
		return (opcode & OPCODE_HIGH) == DW_CFA_advance_loc;
	}
}

static bool set_location(struct cfi_rows *rows)
{
	uint64_t to = cfi_read_pointer(rows->section, &rows->r, rows->cie->pointer_encoding);
	if (rows->r.failed || to < rows->at || to > rows->end) {
		rows->failed = true;
		return false;
	}
	rows->next = to;
	return to != rows->at;
}

/* Runs one instruction. True when it ends a row: rows->next has moved on. */
static bool run_one(struct cfi_rows *rows)
{
	uint8_t opcode = reader_u8(&rows->r);
	uint64_t delta;
	if (read_advance(&rows->r, opcode, &delta)) {
		uint64_t bytes;
		if (__builtin_mul_overflow(delta, rows->cie->code_align, &bytes) ||
			bytes > rows->end - rows->at)
			bytes = rows->end -
				rows->at; /* rows behind the end belong to no function */
		rows->next = rows->at + bytes;
		return bytes != 0 && !rows->r.failed;
	}
	if (opcode == DW_CFA_set_loc)
		return set_location(rows);
	if ((opcode & OPCODE_HIGH) == DW_CFA_offset)
		set_rule(rows, opcode & OPCODE_LOW, CFI_OFFSET,
			factored(rows, reader_uleb(&rows->r)));
	else if ((opcode & OPCODE_HIGH) == DW_CFA_restore)
		restore(rows, opcode & OPCODE_LOW);
	else
		run_extended(rows, opcode);
	return false;
}

bool cfi_rows_next(struct cfi_rows *rows)
{
	rows->at = rows->next;
	if (rows->failed || rows->at == rows->end)
		return false;
	while (!reader_done(&rows->r)) {
		if (run_one(rows))
			return true;
		if (rows->failed || rows->r.failed)
			break;
	}
	if (rows->failed || rows->r.failed) {
		rows->failed = true;
		rows->next = rows->at;
		return false;
	}
	rows->next = rows->end;
	return true;
}
