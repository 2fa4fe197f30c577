/* SPDX-License-Identifier: Apache-2.0 */
/* Property: whatever debuginfo_table_open_bytes() accepts, no lookup leaves its bytes, and chains
 * end. The checksum is set right first: it is no defence against a hostile builder. */
#include "fuzz/fuzz.h"

#include "base/hash.h"
#include "debuginfo/symtab/format.h"
#include "debuginfo/symtab/table.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < sizeof(struct symtab_header))
		return 0;
	uint8_t *copy = aligned_alloc(8, (size + 7) & ~(size_t)7);
	FUZZ_CHECK(copy);
	memcpy(copy, data, size);
	struct symtab_header *h = (struct symtab_header *)copy;
	memcpy(h->magic, SYMTAB_MAGIC, sizeof(h->magic));
	h->version = SYMTAB_VERSION;
	h->file_bytes = size;
	h->checksum = hash64(copy + SYMTAB_CHECKSUM_FROM, size - SYMTAB_CHECKSUM_FROM);
	struct debuginfo_table *t;
	if (debuginfo_table_open_bytes(copy, size, &t, NULL) == OK) {
		struct debuginfo_frame f[DEBUGINFO_FRAMES_MAX];
		const struct symtab_extent *x = &h->sections[SYMTAB_REGIONS];
		const struct symtab_region *r = (const struct symtab_region *)(copy + x->offset);
		const uint64_t most = fuzz_thorough(data, size) ? 64 : 4;
		for (uint64_t i = 0; i < x->count && i < most; i++) {
			for (uint64_t d = 0; d < 64; d++) {
				uint64_t at = r[i].base + d * ((r[i].end - r[i].base) / 63);
				uint32_t n = debuginfo_table_find(t, at, f, DEBUGINFO_FRAMES_MAX);
				for (uint32_t k = 0; k < n; k++) {
					FUZZ_CHECK(strlen(f[k].name.p) <= f[k].name.len);
					FUZZ_CHECK(strlen(f[k].file.p) <= f[k].file.len);
				}
			}
		}
		struct debuginfo_table_info info;
		debuginfo_table_describe(t, &info);
		uint64_t vaddr;
		debuginfo_table_vaddr(t, size, &vaddr);
		debuginfo_table_close(t);
	}
	free(copy);
	return 0;
}
