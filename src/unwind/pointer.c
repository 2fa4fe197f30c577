/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoded pointers (DW_EH_PE_*, Linux Standard Base, Core 10.5.1). One that is to be followed in
 * memory has no value in a file.
 */
#include "unwind/cfi.h"

uint64_t cfi_read_pointer(const struct cfi_section *s, struct reader *r, uint8_t encoding)
{
	uint64_t field = s->address + reader_offset(r);
	uint64_t v = 0;
	if (encoding == DW_EH_PE_OMIT || encoding & DW_EH_PE_INDIRECT) {
		r->failed = true;
		return 0;
	}
	if (encoding == DW_EH_PE_ALIGNED) {
		reader_skip(r, -field & 7);
		return reader_u64(r);
	}
	switch (encoding & DW_EH_PE_FORMAT) {
	case DW_EH_PE_ABSPTR:
	case DW_EH_PE_SIGNED:
	case DW_EH_PE_UDATA8:
	case DW_EH_PE_SDATA8:
		v = reader_u64(r);
		break;
	case DW_EH_PE_ULEB128:
		v = reader_uleb(r);
		break;
	case DW_EH_PE_SLEB128:
		v = (uint64_t)reader_sleb(r);
		break;
	case DW_EH_PE_UDATA2:
		v = reader_u16(r);
		break;
	case DW_EH_PE_SDATA2:
		v = (uint64_t)(int64_t)reader_i16(r);
		break;
	case DW_EH_PE_UDATA4:
		v = reader_u32(r);
		break;
	case DW_EH_PE_SDATA4:
		v = (uint64_t)(int64_t)reader_i32(r);
		break;
	default:
		r->failed = true;
		return 0;
	}
	uint64_t base = 0;
	switch (encoding & DW_EH_PE_BASE) {
	case 0:
		return v;
	case DW_EH_PE_PCREL:
		return v + field;
	case DW_EH_PE_TEXTREL:
		base = s->text_base;
		break;
	case DW_EH_PE_DATAREL:
		base = s->data_base;
		break;
	default:
		break;
	}
	if (base == 0)
		r->failed = true;
	return v + base;
}
