/* SPDX-License-Identifier: Apache-2.0 */
/* A notice from one end to the other. */
#include "files_fixture.h"

static void binds_what_a_notice_names(void **state)
{
	(void)state;
	struct files_config c = { 0 };
	struct files *f = make_files(&c);
	struct mapped m = map_library("lib.so", 100, 1);
	files_notice(f, &m.notice, getpid());
	struct published p = wait_published(&m.notice.key, 1);
	CHECK(p.file_id >= FRAME_FILE_FIRST);
	CHECK(p.rows > 300);
	struct file_info info = { 0 };
	CHECK(files_get(f, p.file_id, &info));
	CHECK(strncmp(info.build_id, "010203", 6) == 0 && strlen(info.build_id) == 40);
	CHECK_STR(str_of(info.path), m.path);
	CHECK(info.segment_count == 1);
	uint64_t vaddr = 0;
	CHECK(file_info_vaddr(&info, 0x1010, &vaddr) && vaddr == 0x1010);
	CHECK(!file_info_vaddr(&info, 0x10, &vaddr));
	CHECK(!files_get(f, p.file_id + 1, &info));
	CHECK(!files_get(f, FRAME_FILE_ADDRESS, &info));
	unmap_file(&m);
	files_free(f);
}

FILES_TEST_MAIN(cmocka_unit_test_setup(binds_what_a_notice_names, reset))
