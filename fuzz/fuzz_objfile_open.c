/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what opens can be asked everything, and each answer lies inside the file or its limits.
 */
#include "fuzz/fuzz.h"

#include "objfile/objfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct objfile *obj = NULL;
	if (objfile_open_bytes(data, size, "fuzz", &obj, NULL) != OK)
		return 0;
	uint32_t count = 0;
	const struct objfile_section *sections = objfile_sections(obj, &count);
	FUZZ_CHECK(count <= OBJFILE_SECTIONS_MAX);
	for (uint32_t i = 0; i < count && i < 64; i++) {
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1 << 20);
		FUZZ_CHECK(memchr(sections[i].name.p, 0, sections[i].name.len + 1));
		if (objfile_read_section(obj, &sections[i], &out, NULL) == OK)
			FUZZ_CHECK(sections[i].type == 8 || out.len <= out.max);
		else
			FUZZ_CHECK(out.len == 0);
	}
	const struct objfile_segment *segments = objfile_segments(obj, &count);
	FUZZ_CHECK(count <= OBJFILE_SEGMENTS_MAX);
	for (uint32_t i = 0; i < count && i < 64; i++) {
		struct vaddr addr;
		if (objfile_vaddr_of(obj, (struct fileoff){ segments[i].offset }, &addr)) {
			struct fileoff back;
			(void)objfile_fileoff_of(obj, addr, &back);
		}
	}
	FUZZ_CHECK(strlen(objfile_build_id(obj)) <= 2 * OBJFILE_BUILD_ID_MAX);
	char id[40];
	FUZZ_CHECK(objfile_content_id(obj, id, NULL) == OK && strlen(id) == 33);
	objfile_close(obj);
	return 0;
}
