/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nullified: a debug file laid out as Parca's agent uploads it by default. Names, notes, DWARF,
 * Go's tables, relocations and .plt keep their bytes; every other section keeps its header only, as
 * SHT_NOBITS of size 0. Of the program headers PT_NOTE is left, at its old offset. Links between
 * sections are lost but for those of symbols to their strings. Source: parca-agent,
 * reporter/elfwriter, OnlyKeepDebug().
 */
#pragma once

#include "made.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>

#define NULLIFIED_SECTIONS_MAX 128

static inline bool nullified_keeps(const Elf64_Shdr *sh, const char *name)
{
	static const char *const names[] = { ".gosymtab", ".gopclntab", ".go.buildinfo",
		".data.rel.ro.gopclntab", ".plt", ".plt.got", ".comment" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, ".debug_", 7) == 0 || sh->sh_type == SHT_SYMTAB ||
	       sh->sh_type == SHT_DYNSYM || sh->sh_type == SHT_STRTAB || sh->sh_type == SHT_RELA ||
	       sh->sh_type == SHT_NOTE;
}

static inline void nullified_put(FILE *f, const void *bytes, size_t len)
{
	CHECK(len == 0 || fwrite(bytes, len, 1, f) == 1);
}

static inline Elf64_Word nullified_link(
	const Elf64_Shdr *v, const char *const *names, size_t count, size_t i)
{
	const char *want = strcmp(names[i], ".symtab") == 0   ? ".strtab"
			   : strcmp(names[i], ".dynsym") == 0 ? ".dynstr"
							      : "";
	for (size_t k = 0; v[i].sh_link && want[0] && k < count; k++)
		if (strcmp(names[k], want) == 0)
			return (Elf64_Word)k;
	return 0;
}

/* The sections of a whole file, its bytes in `in`. Returns their number. */
static inline size_t nullified_sections(const uint8_t *in, Elf64_Shdr *v, const char **names)
{
	const Elf64_Ehdr *h = (const void *)in;
	const Elf64_Shdr *sh = (const void *)(in + h->e_shoff);
	const char *text = (const char *)in + sh[h->e_shstrndx].sh_offset;
	size_t count = 0;
	CHECK(h->e_shnum < NULLIFIED_SECTIONS_MAX);
	for (size_t i = 0; i < h->e_shnum; i++) {
		if (i == h->e_shstrndx)
			continue;
		v[count] = sh[i];
		names[count++] = text + sh[i].sh_name;
	}
	v[count] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_addralign = 1 };
	names[count++] = ".shstrtab";
	return count;
}

static inline size_t nullified_notes(const uint8_t *in, FILE *f)
{
	const Elf64_Ehdr *h = (const void *)in;
	const Elf64_Phdr *ph = (const void *)(in + h->e_phoff);
	size_t count = 0;
	for (size_t i = 0; i < h->e_phnum; i++) {
		if (ph[i].p_type != PT_NOTE)
			continue;
		nullified_put(f, &ph[i], sizeof(ph[i]));
		count++;
	}
	return count;
}

static inline void nullified_write(const uint8_t *in, FILE *f)
{
	Elf64_Shdr v[NULLIFIED_SECTIONS_MAX];
	const char *names[NULLIFIED_SECTIONS_MAX];
	size_t count = nullified_sections(in, v, names);
	Elf64_Ehdr h = *(const Elf64_Ehdr *)in;
	nullified_put(f, &h, sizeof(h));
	h.e_phnum = (uint16_t)nullified_notes(in, f);
	for (size_t i = 1; i < count; i++) {
		const uint8_t *bytes = in + v[i].sh_offset;
		bool own = i + 1 == count;
		if (!own && !nullified_keeps(&v[i], names[i]))
			v[i].sh_type = SHT_NOBITS;
		if (v[i].sh_type == SHT_NOBITS)
			v[i].sh_size = 0;
		v[i].sh_link = nullified_link(v, names, count, i);
		v[i].sh_offset = (Elf64_Off)ftell(f);
		if (!own)
			nullified_put(f, bytes, v[i].sh_size);
	}
	nullified_put(f, "", 1);
	for (size_t i = 1; i < count; i++) {
		v[i].sh_name = (Elf64_Word)((Elf64_Off)ftell(f) - v[count - 1].sh_offset);
		nullified_put(f, names[i], strlen(names[i]) + 1);
	}
	v[count - 1].sh_size = (Elf64_Off)ftell(f) - v[count - 1].sh_offset;
	h.e_entry = 0;
	h.e_phoff = sizeof(h);
	h.e_shoff = (Elf64_Off)ftell(f);
	h.e_shnum = (uint16_t)count;
	h.e_shstrndx = (uint16_t)(count - 1);
	nullified_put(f, v, count * sizeof(*v));
	rewind(f);
	nullified_put(f, &h, sizeof(h));
}

/* Of the file `from` in the folder, as `to`. */
static inline void nullified_make(const char *from, const char *to)
{
	char path[128];
	struct stat st;
	struct err e = { 0 };
	int fd = made_open(from);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	uint8_t *in = malloc((size_t)st.st_size);
	CHECK_OK(os_pread_full(fd, in, (size_t)st.st_size, 0, from, &e), &e);
	close(fd);
	snprintf(path, sizeof(path), "%s/%s", made_dir, to);
	FILE *f = fopen(path, "w+e");
	CHECK(f);
	nullified_write(in, f);
	fclose(f);
	free(in);
}
