/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "gen/elf.h"
#include "objfile/objfile.h"

struct made {
	struct gen_elf g;
	struct buf notes;
	struct objfile *obj;
};

static void begin(struct made *m)
{
	gen_elf_init(&m->g);
	buf_init(&m->notes, 1 << 20);
}

/* The notes as a section, as a segment without section headers, or both. */
static const char *build_id(struct made *m, bool section, uint64_t align)
{
	uint32_t i = gen_section(&m->g, ".note.x", section ? SHT_NOTE : SHT_PROGBITS, SHF_ALLOC,
		0x1000, m->notes.data, m->notes.len);
	if (!section) {
		gen_segment(&m->g, i, PT_NOTE, PF_R);
		m->g.segments[0].header.p_align = align;
		m->g.no_section_headers = true;
	}
	gen_elf_finish(&m->g);
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(m->g.file.data, m->g.file.len, "made", &m->obj, &e), &e);
	return objfile_build_id(m->obj);
}

static void end(struct made *m)
{
	objfile_close(m->obj);
	gen_elf_deinit(&m->g);
	buf_deinit(&m->notes);
}

static void finds_the_build_id(void **state)
{
	(void)state;
	for (int section = 0; section < 2; section++) {
		struct made m = { 0 };
		begin(&m);
		gen_note(&m.notes, "Linux", 0x100, "xyz", 3);
		gen_note(&m.notes, "Go", NT_GNU_BUILD_ID, "nope", 4);
		gen_note(&m.notes, "GNU", NT_GNU_ABI_TAG, "abcd", 4);
		gen_note(&m.notes, "GNU", NT_GNU_BUILD_ID, "\x01\xfe\x00\xa5", 4);
		CHECK_STR(str_of(build_id(&m, section, 4)), "01fe00a5");
		end(&m);
	}
}

static void notes_of_eight_byte_alignment(void **state)
{
	(void)state;
	struct made m = { 0 };
	begin(&m);
	gen_note(&m.notes, "GNU", 5, "0123456789ab", 12); /* a property, padded to 8 */
	buf_zero(&m.notes, 4);
	gen_note(&m.notes, "GNU", NT_GNU_BUILD_ID, "\x11\x22\x33", 3);
	CHECK_STR(str_of(build_id(&m, false, 8)), "112233");
	end(&m);
}

static void the_last_note_may_lack_its_padding(void **state)
{
	(void)state;
	struct made m = { 0 };
	begin(&m);
	gen_note(&m.notes, "GNU", NT_GNU_BUILD_ID, "\x11\x22\x33", 3);
	m.notes.len--;
	CHECK_STR(str_of(build_id(&m, true, 4)), "112233");
	end(&m);
}

static void broken_notes_are_no_build_id(void **state)
{
	(void)state;
	static const uint8_t long_id[OBJFILE_BUILD_ID_MAX + 1] = { 1 };
	struct made m = { 0 };
	begin(&m);
	gen_note(&m.notes, "GNU", NT_GNU_BUILD_ID, long_id, sizeof(long_id));
	CHECK_STR(str_of(build_id(&m, true, 4)), "");
	end(&m);
	m = (struct made){ 0 };
	begin(&m);
	gen_note(&m.notes, "GNU", NT_GNU_BUILD_ID, long_id, OBJFILE_BUILD_ID_MAX);
	CHECK(strlen(build_id(&m, true, 4)) == 2 * OBJFILE_BUILD_ID_MAX);
	end(&m);
	m = (struct made){ 0 };
	begin(&m);
	gen_note(&m.notes, "GNU", NT_GNU_BUILD_ID, "\x11\x22\x33\x44", 4);
	gen_patch_u32(&m.notes, 4, UINT32_MAX); /* its length is a lie */
	CHECK_STR(str_of(build_id(&m, true, 4)), "");
	end(&m);
}

static void content_ids_tell_contents_apart(void **state)
{
	(void)state;
	char id[5][40];
	static uint8_t filler[20000];
	for (int i = 0; i < 5; i++) {
		struct made m = { 0 };
		begin(&m);
		filler[0] = i == 1;                     /* in the first 4 KiB */
		filler[sizeof(filler) - 1] = i == 2;    /* in the last */
		size_t len = sizeof(filler) - (i == 3); /* another size */
		buf_put(&m.notes, filler, len);
		gen_section(&m.g, ".data", SHT_PROGBITS, 0, 0, m.notes.data, len);
		m.g.no_section_headers = true;
		gen_elf_finish(&m.g);
		CHECK(objfile_open_bytes(m.g.file.data, m.g.file.len, "made", &m.obj, NULL) == OK);
		CHECK(objfile_content_id(m.obj, id[i], NULL) == OK);
		CHECK(id[i][0] == 'x' && strspn(id[i] + 1, "0123456789abcdef") == 32);
		end(&m);
	}
	for (int i = 1; i < 4; i++)
		CHECK(strcmp(id[0], id[i]) != 0);
	CHECK(strcmp(id[0], id[4]) == 0);
}

/* Two builds of the same size, without build ids, that differ between their ends. */
static void content_ids_tell_builds_apart(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t len, at;
	} cases[] = {
		{ "small, in the middle", 20000, 10000 },
		{ "behind the first block", 100000, 16384 },
		{ "as much as is read, near the end", (1 << 20) - 4096, (1 << 20) - 20000 },
		{ "large, all behind a place", 5 << 20, 2000000 },
	};
	static uint8_t filler[5 << 20];
	FOR_EACH_CASE (c, cases) {
		char id[2][40];
		for (int i = 0; i < 2; i++) {
			struct made m = { 0 };
			begin(&m);
			memset(filler, 0, sizeof(filler));
			/* A byte; of a large one, all between there and its last 4 KiB. */
			memset(filler + c->at, i, c->len > 1 << 20 ? c->len - c->at - 4096 : 1);
			gen_section(&m.g, ".data", SHT_PROGBITS, 0, 0, filler, c->len);
			m.g.no_section_headers = true;
			gen_elf_finish(&m.g);
			CHECK(objfile_open_bytes(
				      m.g.file.data, m.g.file.len, "made", &m.obj, NULL) == OK);
			CHECK(objfile_content_id(m.obj, id[i], NULL) == OK);
			end(&m);
		}
		CHECK_CASE(c, strcmp(id[0], id[1]) != 0);
	}
}

static void content_id_of_a_small_file(void **state)
{
	(void)state;
	struct made m = { 0 };
	begin(&m);
	m.g.no_section_headers = true;
	gen_elf_finish(&m.g);
	CHECK(objfile_open_bytes(m.g.file.data, sizeof(Elf64_Ehdr), "made", &m.obj, NULL) == OK);
	char id[40];
	CHECK(objfile_content_id(m.obj, id, NULL) == OK && strlen(id) == 33);
	end(&m);
}

TEST_MAIN(cmocka_unit_test(finds_the_build_id), cmocka_unit_test(notes_of_eight_byte_alignment),
	cmocka_unit_test(the_last_note_may_lack_its_padding),
	cmocka_unit_test(broken_notes_are_no_build_id),
	cmocka_unit_test(content_ids_tell_contents_apart),
	cmocka_unit_test(content_ids_tell_builds_apart),
	cmocka_unit_test(content_id_of_a_small_file))
