/* SPDX-License-Identifier: Apache-2.0 */
/* A section is read whole, and its checksum is compared before its bytes are read. */
#include "store/part/part_section.h"

#include "codec/codec.h"

#define SECTION_BYTES_MAX ((size_t)2 << 30)

static const struct part_section_entry *section_find(const struct part *p, enum part_section kind)
{
	for (size_t i = 0; i < p->section_count; i++)
		if (p->sections[i].kind == kind)
			return &p->sections[i];
	return NULL;
}

bool part_section_has(const struct part *p, enum part_section kind)
{
	return section_find(p, kind) != NULL;
}

enum status part_section_read(
	struct part *p, enum part_section kind, struct buf *out, struct err *e)
{
	const struct part_section_entry *x = section_find(p, kind);
	if (!x)
		return err_set(e, E_CORRUPT, "%s: no section %d", p->path, kind);
	if (x->length > SECTION_BYTES_MAX)
		return err_set(e, E_LIMIT, "%s: section %d of %llu bytes", p->path, kind,
			(unsigned long long)x->length);
	uint8_t *bytes = buf_extend(out, x->length);
	if (!bytes)
		return err_set(e, buf_status(out), "%s: no memory for section %d", p->path, kind);
	enum status s = object_read(p->object, x->offset, bytes, x->length, e);
	if (s == OK && codec_crc32c(0, bytes, x->length) != x->crc)
		return err_set(e, E_CORRUPT, "%s: checksum of section %d at +%llu", p->path, kind,
			(unsigned long long)x->offset);
	return s;
}
