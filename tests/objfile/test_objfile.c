/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "gen/elf.h"
#include "objfile/objfile.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t code[64] = { 0xc3 };

static void make(struct gen_elf *g)
{
	gen_elf_init(g);
	uint32_t text = gen_section(
		g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x401000, code, sizeof(code));
	uint32_t data =
		gen_section(g, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x403010, "data", 4);
	gen_load(g, text, PF_R | PF_X);
	gen_load(g, data, PF_R | PF_W);
	g->header.e_entry = 0x401004;
	gen_elf_finish(g);
}

static void shows_what_is_in_the_file(void **state)
{
	(void)state;
	struct gen_elf g;
	make(&g);
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	CHECK_STR(str_of(objfile_name(obj)), "made");
	CHECK(objfile_machine(obj) == EM_X86_64 && objfile_type(obj) == ET_DYN);
	CHECK(objfile_size(obj) == g.file.len && objfile_entry(obj).v == 0x401004);
	uint32_t count = 0;
	const struct objfile_segment *segments = objfile_segments(obj, &count);
	CHECK(count == 2);
	CHECK(segments[0].vaddr == 0x401000 && segments[0].file_size == sizeof(code));
	CHECK(segments[0].flags == (PF_R | PF_X));
	(void)objfile_sections(obj, &count);
	CHECK(count == 4); /* null, .text, .data, .shstrtab */
	const struct objfile_section *s = objfile_section(obj, ".data");
	CHECK(s && s->addr == 0x403010 && s->size == 4);
	CHECK(!objfile_section(obj, ".dat") && !objfile_section(obj, ".data2"));
	char bytes[4];
	CHECK_OK(objfile_read(obj, s->offset, bytes, 4, &e), &e);
	CHECK(memcmp(bytes, "data", 4) == 0);
	CHECK(objfile_build_id(obj)[0] == 0);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

static void converts_addresses_by_the_segments(void **state)
{
	(void)state;
	struct gen_elf g;
	make(&g);
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	uint64_t offset = g.sections[1].header.sh_offset;
	struct vaddr addr = { 1 };
	struct fileoff off = { 1 };
	CHECK(objfile_vaddr_of(obj, (struct fileoff){ offset + 5 }, &addr) && addr.v == 0x401005);
	CHECK(objfile_fileoff_of(obj, (struct vaddr){ 0x401005 }, &off) && off.v == offset + 5);
	CHECK(!objfile_vaddr_of(obj, (struct fileoff){ offset + sizeof(code) }, &addr));
	CHECK(!objfile_fileoff_of(obj, (struct vaddr){ 0x400fff }, &off));
	CHECK(!objfile_fileoff_of(obj, (struct vaddr){ 0x401000 + sizeof(code) }, &off));
	CHECK(addr.v == 0x401005 && off.v == offset + 5); /* untouched */
	objfile_close(obj);
	gen_elf_deinit(&g);
}

static void break_magic(struct gen_elf *g)
{
	g->file.data[1] = 'X';
}
static void break_class(struct gen_elf *g)
{
	g->file.data[EI_CLASS] = ELFCLASS32;
}
static void break_endian(struct gen_elf *g)
{
	g->file.data[EI_DATA] = ELFDATA2MSB;
}
static void break_length(struct gen_elf *g)
{
	g->file.len = sizeof(Elf64_Ehdr) - 1;
}
static Elf64_Ehdr *header(struct gen_elf *g)
{
	return (Elf64_Ehdr *)g->file.data;
}
static void break_phoff(struct gen_elf *g)
{
	header(g)->e_phoff = g->file.len - 8;
}
static void break_phoff_wrap(struct gen_elf *g)
{
	header(g)->e_phoff = UINT64_MAX - 8;
}
static void break_phentsize(struct gen_elf *g)
{
	header(g)->e_phentsize = 32;
}
static void break_shoff(struct gen_elf *g)
{
	header(g)->e_shoff = g->file.len - 8;
}
static void break_shentsize(struct gen_elf *g)
{
	header(g)->e_shentsize = 40;
}
static void break_segment(struct gen_elf *g)
{
	((Elf64_Phdr *)(g->file.data + sizeof(Elf64_Ehdr)))->p_offset = UINT64_MAX;
}
static void break_count(struct gen_elf *g)
{
	header(g)->e_shnum = 0; /* then section 0 says how many */
	((Elf64_Shdr *)(g->file.data + header(g)->e_shoff))->sh_size = 1ull << 40;
}
static void break_names(struct gen_elf *g)
{
	Elf64_Shdr *s = (Elf64_Shdr *)(g->file.data + header(g)->e_shoff);
	s[header(g)->e_shstrndx].sh_offset = g->file.len;
}
static void break_names_size(struct gen_elf *g)
{
	Elf64_Shdr *s = (Elf64_Shdr *)(g->file.data + header(g)->e_shoff);
	s[header(g)->e_shstrndx].sh_size = 1ull << 40;
}

/* clang-format off */
static const struct {
	const char *name; void (*damage)(struct gen_elf *); enum status want;
} broken[] = {
	{ "magic",                   break_magic,      E_INVALID },
	{ "32 bits",                 break_class,      E_INVALID },
	{ "big endian",              break_endian,     E_INVALID },
	{ "cut in the header",       break_length,     E_INVALID },
	{ "program headers outside", break_phoff,      E_INVALID },
	{ "program headers wrap",    break_phoff_wrap, E_INVALID },
	{ "program header size",     break_phentsize,  E_INVALID },
	{ "section headers outside", break_shoff,      E_INVALID },
	{ "section header size",     break_shentsize,  E_INVALID },
	{ "segment wraps",           break_segment,    E_INVALID },
	{ "too many sections",       break_count,      E_LIMIT },
	{ "names outside",           break_names,      E_INVALID },
	{ "names too long",          break_names_size, E_LIMIT },
};
/* clang-format on */

static void refuses_broken_tables(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, broken) {
		struct gen_elf g;
		make(&g);
		c->damage(&g);
		struct objfile *obj = (struct objfile *)1;
		struct err e = { 0 };
		CHECK_CASE(c,
			objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e) == c->want);
		CHECK_CASE(c, obj == (struct objfile *)1 && e.text[0]);
		gen_elf_deinit(&g);
	}
}

static void every_cut_is_refused_or_harmless(void **state)
{
	(void)state;
	struct gen_elf g;
	make(&g);
	for (size_t len = 0; len < g.file.len; len++) {
		struct objfile *obj = NULL;
		uint8_t *copy = malloc(len + 1); /* exact, so that a sanitizer sees one byte more */
		memcpy(copy, g.file.data, len);
		CHECK(objfile_open_bytes(copy, len, "cut", &obj, NULL) == E_INVALID);
		free(copy);
	}
	gen_elf_deinit(&g);
}

static void counts_in_section_zero(void **state)
{
	(void)state;
	struct gen_elf g;
	make(&g);
	Elf64_Shdr *first = (Elf64_Shdr *)(g.file.data + header(&g)->e_shoff);
	first->sh_size = header(&g)->e_shnum;
	first->sh_link = header(&g)->e_shstrndx;
	first->sh_info = header(&g)->e_phnum;
	header(&g)->e_shnum = 0;
	header(&g)->e_shstrndx = SHN_XINDEX;
	header(&g)->e_phnum = PN_XNUM;
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	uint32_t count = 0;
	(void)objfile_segments(obj, &count);
	CHECK(count == 2 && objfile_section(obj, ".data"));
	objfile_close(obj);
	gen_elf_deinit(&g);
}

static void reads_stop_at_the_end(void **state)
{
	(void)state;
	struct gen_elf g;
	make(&g);
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	char bytes[16];
	CHECK(objfile_read(obj, g.file.len - 8, bytes, 8, &e) == OK);
	CHECK(objfile_read(obj, g.file.len - 8, bytes, 9, &e) == E_INVALID);
	CHECK(objfile_read(obj, UINT64_MAX - 3, bytes, 8, &e) == E_INVALID);
	CHECK(objfile_read(obj, g.file.len, bytes, 0, &e) == OK);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

static void a_file_cut_short_after_opening_is_invalid(void **state)
{
	(void)state;
	struct gen_elf g;
	make(&g);
	int fd = memfd_create("made", MFD_CLOEXEC);
	CHECK(fd >= 0 && write(fd, g.file.data, g.file.len) == (ssize_t)g.file.len);
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_fd(fd, "made", &obj, &e), &e);
	CHECK(ftruncate(fd, 100) == 0);
	char bytes[16];
	CHECK(objfile_read(obj, 96, bytes, 16, &e) == E_INVALID && e.status == E_INVALID);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

static void opens_regular_files_only(void **state)
{
	(void)state;
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK(objfile_open("/dev/null", &obj, &e) == E_INVALID);
	CHECK(objfile_open("/tmp", &obj, &e) == E_INVALID);
	CHECK(objfile_open("/nowhere/at/all", &obj, &e) == E_NOTFOUND);
	char fifo[] = "/tmp/firn-test-fifo-XXXXXX";
	CHECK(mkdtemp(fifo));
	char path[64];
	snprintf(path, sizeof(path), "%s/fifo", fifo);
	CHECK(mkfifo(path, 0600) == 0);
	CHECK(objfile_open(path, &obj, &e) == E_INVALID); /* and does not wait for a writer */
	unlink(path);
	rmdir(fifo);
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && objfile_open_fd(fd, "passwd", &obj, &e) == E_INVALID);
	CHECK(fcntl(fd, F_GETFD) >= 0); /* stays ours */
	close(fd);
	CHECK_OK(objfile_open("/proc/self/exe", &obj, &e), &e);
	struct objfile_segment interp;
	CHECK(objfile_program_header(obj, PT_INTERP, &interp) && interp.file_size > 0);
	CHECK(!objfile_program_header(obj, 0x12345678, &interp));
	objfile_close(obj);
	objfile_close(NULL);
}

struct reading {
	const struct buf *file;
	uint64_t fails_at;
};

static enum status read_or_fail(void *ctx, uint64_t offset, void *out, size_t len, struct err *e)
{
	const struct reading *r = ctx;
	CHECK(offset + len <= r->file->len);
	if (offset <= r->fails_at && r->fails_at < offset + len)
		return err_set(e, E_TIMEOUT, "no answer at +%llu", (unsigned long long)offset);
	memcpy(out, r->file->data + offset, len);
	return OK;
}

static void reads_by_somebody_else(void **state)
{
	(void)state;
	struct gen_elf g;
	make(&g);
	struct reading reading = { &g.file, UINT64_MAX };
	struct objfile_source source = { read_or_fail, &reading, g.file.len };
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_source(&source, "made", &obj, &e), &e);
	const struct objfile_section *s = objfile_section(obj, ".data");
	char bytes[4];
	CHECK(s && objfile_size(obj) == g.file.len);
	CHECK_OK(objfile_read(obj, s->offset, bytes, 4, &e), &e);
	CHECK(memcmp(bytes, "data", 4) == 0);
	reading.fails_at = s->offset;
	CHECK(objfile_read(obj, s->offset, bytes, 4, &e) == E_TIMEOUT && e.text[0]);
	CHECK(objfile_read(obj, g.file.len, bytes, 1, &e) == E_INVALID);
	objfile_close(obj);
	obj = NULL;
	reading.fails_at = 0;
	CHECK(objfile_open_source(&source, "made", &obj, &e) == E_TIMEOUT && !obj);
	source.bytes = OBJFILE_BYTES_MAX + 1;
	CHECK(objfile_open_source(&source, "made", &obj, &e) == E_LIMIT && !obj);
	gen_elf_deinit(&g);
}

TEST_MAIN(cmocka_unit_test(reads_by_somebody_else), cmocka_unit_test(shows_what_is_in_the_file),
	cmocka_unit_test(converts_addresses_by_the_segments),
	cmocka_unit_test(refuses_broken_tables), cmocka_unit_test(every_cut_is_refused_or_harmless),
	cmocka_unit_test(counts_in_section_zero), cmocka_unit_test(reads_stop_at_the_end),
	cmocka_unit_test(a_file_cut_short_after_opening_is_invalid),
	cmocka_unit_test(opens_regular_files_only))
