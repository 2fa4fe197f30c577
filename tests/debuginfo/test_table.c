/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in a known table, and tables with one bit wrong. */
#include "known.h"

static void walks_inlined_calls(void **state)
{
	(void)state;
	uint32_t outer = node("outer", "a.c", 0, 0);
	uint32_t middle = node("middle", "b.h", 11, outer);
	uint32_t inner = node("inner", "c.h", 22, middle);
	CHECK(node("inner", "c.h", 22, middle) == inner); /* once */
	add(0x1000, 0x1010, outer, 1);
	add(0x1010, 0x1020, inner, 33);
	add(0x1020, 0x1030, outer, 2);
	struct debuginfo_table *t = finish();
	check_frame(t, 0x1000, 0, "outer", "a.c", 1);
	check_frame(t, 0x100f, 0, "outer", "a.c", 1);
	check_frame(t, 0x1010, 0, "inner", "c.h", 33);
	check_frame(t, 0x1010, 1, "middle", "b.h", 22);
	check_frame(t, 0x1010, 2, "outer", "a.c", 11);
	check_frame(t, 0x102f, 0, "outer", "a.c", 2);
	struct debuginfo_frame f[2];
	CHECK(debuginfo_table_find(t, 0xfff, f, 2) == 0);
	CHECK(debuginfo_table_find(t, 0x1030, f, 2) == 0);
	CHECK(debuginfo_table_find(t, 0x1010, f, 2) == 2);
	struct debuginfo_table_info info;
	debuginfo_table_describe(t, &info);
	CHECK(info.ranges == 3 && info.functions == 3 && info.bytes == len);
	debuginfo_table_close(t);
}

/* Every byte of a table matters: to the checksum, and with a checksum that is right again, either
 * to a check or to nothing but a name. Lookups stay within bounds (this runs under ASan). */
static void refuses_damage(void **state)
{
	(void)state;
	uint32_t outer = node("outer", "a.c", 0, 0);
	uint32_t inner = node("inner", "b.c", 5, outer);
	add(0x1000, 0x1010, outer, 1);
	add(0x1010, 0x1020, inner, 2);
	add(0x9000000, 0x9000010, inner, 3);
	CHECK(VEC_PUSH(&b.segments, (struct symtab_segment){ 0, 0x1000, 0x100 }));
	debuginfo_table_close(finish());
	struct symtab_header *h = (struct symtab_header *)bytes;
	uint8_t *p = (uint8_t *)bytes;
	struct debuginfo_table *t;
	size_t accepted = 0;
	for (size_t i = 0; i < len; i++) {
		for (int bit = 0; bit < 8; bit += 7) {
			p[i] ^= (uint8_t)(1 << bit);
			CHECK(debuginfo_table_open_bytes(bytes, len, &t, NULL) == E_CORRUPT);
			uint64_t checksum = h->checksum;
			h->checksum = hash64(p + SYMTAB_CHECKSUM_FROM, len - SYMTAB_CHECKSUM_FROM);
			if (debuginfo_table_open_bytes(bytes, len, &t, NULL) == OK) {
				struct debuginfo_frame f[DEBUGINFO_FRAMES_MAX];
				for (uint64_t a = 0xff0; a < 0x1030; a++)
					debuginfo_table_find(t, a, f, DEBUGINFO_FRAMES_MAX);
				debuginfo_table_find(t, 0x9000000, f, DEBUGINFO_FRAMES_MAX);
				debuginfo_table_close(t);
				accepted++;
			}
			h->checksum = checksum;
			p[i] ^= (uint8_t)(1 << bit);
		}
	}
	CHECK(accepted < 2 * len);
	for (size_t cut = 0; cut < len; cut++)
		CHECK(debuginfo_table_open_bytes(bytes, cut, &t, NULL) == E_CORRUPT);
	CHECK(debuginfo_table_open_bytes(bytes, len, &t, NULL) == OK);
	debuginfo_table_close(t);
}

TEST_MAIN(KNOWN(walks_inlined_calls), KNOWN(refuses_damage))
