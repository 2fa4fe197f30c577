/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of .eh_frame and .debug_frame. The two differ in how a CIE is distinguished from an FDE,
 * in how an FDE names its CIE (backwards from the field; from the start of the section), and in
 * that only .eh_frame encodes its pointers.
 */
#include "unwind/cfi.h"

#define LENGTH_64_BIT 0xffffffffu
#define LENGTH_RESERVED 0xfffffff0u

static struct reader section_reader(const struct cfi_section *s, size_t from, size_t to)
{
	struct reader r = reader_over(s->bytes.p, to);
	reader_seek(&r, from);
	return r;
}

bool cfi_next_entry(
	const struct cfi_section *s, size_t *offset, struct cfi_entry *out, bool *broken)
{
	for (;;) {
		struct reader r = section_reader(s, *offset, s->bytes.len);
		if (reader_left(&r) < 4)
			return false;
		uint64_t length = reader_u32(&r);
		bool is_64_bit = length == LENGTH_64_BIT;
		if (is_64_bit)
			length = reader_u64(&r);
		size_t begin = reader_offset(&r);
		if (length == 0 && !s->ends_at_zero) { /* an object file ends, or padding */
			*offset = begin;
			continue;
		}
		if (length == 0)
			return false;
		uint32_t id_bytes = is_64_bit && !s->is_eh_frame ? 8 : 4;
		if (r.failed || (!is_64_bit && length >= LENGTH_RESERVED) ||
			length > reader_left(&r) || length < id_bytes) {
			*broken = true;
			return false;
		}
		uint64_t id = id_bytes == 8 ? reader_u64(&r) : reader_u32(&r);
		out->offset = *offset;
		out->body = begin + id_bytes;
		out->end = begin + length;
		*offset = out->end;
		if (s->is_eh_frame) {
			out->is_cie = id == 0;
			/* Wraps around if the id is wrong; then no CIE is found there. */
			out->cie_offset = begin - id;
		} else {
			out->is_cie = id == (id_bytes == 8 ? UINT64_MAX : UINT32_MAX);
			out->cie_offset = id;
		}
		return true;
	}
}

/* The augmentation's data. Data behind an unknown letter cannot be read, but with 'z' their end is
 * known, and no letter but 'R' and 'S' changes what we take from a CIE. */
static void read_augmentation(
	const struct cfi_section *s, struct reader *r, struct str letters, struct cfi_cie *cie)
{
	for (size_t i = 0; i < letters.len && !r->failed; i++) {
		switch (letters.p[i]) {
		case 'R':
			cie->pointer_encoding = reader_u8(r);
			break;
		case 'P': {
			uint8_t encoding = reader_u8(r) & (uint8_t)~DW_EH_PE_INDIRECT;
			/* Only to know its length: no base is needed. */
			if (encoding != DW_EH_PE_ALIGNED)
				encoding &= DW_EH_PE_FORMAT;
			cfi_read_pointer(s, r, encoding);
			break;
		}
		case 'L':
			reader_u8(r);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		default:
			return;
		}
	}
}

enum status cfi_read_cie(const struct cfi_section *s, const struct cfi_registers *regs,
	size_t offset, struct cfi_cie *out)
{
	struct cfi_entry entry;
	size_t at = offset;
	bool broken = false;
	struct cfi_section here = *s;
	here.ends_at_zero = true; /* else zeros would be skipped again for each of its functions */
	if (offset >= s->bytes.len || !cfi_next_entry(&here, &at, &entry, &broken) ||
		!entry.is_cie || entry.offset != offset || entry.end - offset > CFI_CIE_BYTES_MAX)
		return E_INVALID;
	struct reader r = section_reader(s, entry.body, entry.end);
	struct cfi_cie cie = { .offset = offset, .bytes = entry.end - offset };
	uint8_t version = reader_u8(&r);
	struct str augmentation = reader_cstr(&r);
	if (r.failed || (version != 1 && version != 3 && version != 4))
		return E_INVALID;
	if (version == 4) {
		uint8_t address_bytes = reader_u8(&r);
		uint8_t segment_bytes = reader_u8(&r);
		if (address_bytes != 8 || segment_bytes != 0)
			return E_INVALID;
	}
	if (str_eq(augmentation, STR("eh"))) { /* gcc 2: a pointer to its tables */
		reader_skip(&r, 8);
		augmentation.len = 0;
	}
	cie.code_align = reader_uleb(&r);
	cie.data_align = reader_sleb(&r);
	cie.ra_register = version == 1 ? reader_u8(&r) : reader_uleb(&r);
	if (augmentation.len && augmentation.p[0] == 'z') {
		cie.has_augmentation_data = true;
		uint64_t len = reader_uleb(&r);
		size_t begin = reader_offset(&r);
		if (r.failed || len > reader_left(&r))
			return E_INVALID;
		struct reader data = section_reader(s, begin, begin + len);
		read_augmentation(s, &data, str_sub(augmentation, 1, augmentation.len), &cie);
		if (data.failed)
			return E_INVALID;
		reader_skip(&r, len);
	} else if (augmentation.len) {
		return E_INVALID;
	}
	struct cfi_fde none = { .length = UINT64_MAX };
	none.instructions = reader_str(&r, reader_left(&r));
	if (r.failed)
		return E_INVALID;
	struct cfi_rows rows;
	cfi_rows_begin(&rows, s, regs, &cie, &none);
	if (!cfi_rows_next(&rows) || rows.next != none.length)
		return E_INVALID;
	cie.initial = rows.state;
	*out = cie;
	return OK;
}

enum status cfi_read_fde(const struct cfi_section *s, const struct cfi_entry *entry,
	const struct cfi_cie *cie, struct cfi_fde *out)
{
	struct reader r = section_reader(s, entry->body, entry->end);
	struct cfi_fde fde = { 0 };
	fde.start = cfi_read_pointer(s, &r, cie->pointer_encoding);
	fde.length = cfi_read_pointer(s, &r, cie->pointer_encoding & DW_EH_PE_FORMAT);
	if (cie->has_augmentation_data)
		reader_skip(&r, reader_uleb(&r));
	fde.instructions = reader_str(&r, reader_left(&r));
	if (r.failed || fde.length > UINT64_MAX - fde.start)
		return E_INVALID;
	*out = fde;
	return OK;
}
