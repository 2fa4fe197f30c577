/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what the parts of objfile share. */
#pragma once

#include "objfile/objfile.h"

#include <elf.h>

struct objfile {
	int fd;                       /* -1 when over `bytes` or `source` */
	const uint8_t *bytes;         /* NULL when over another */
	struct objfile_source source; /* `read` NULL when over another */
	uint64_t size;
	char *name;
	Elf64_Ehdr header;
	Elf64_Phdr *program_headers;
	uint32_t program_header_count;
	struct objfile_segment *segments; /* the PT_LOAD ones among them */
	uint32_t segment_count;
	struct objfile_section *sections;
	uint32_t section_count;
	char *section_names; /* the string table, with one NUL more at its end */
	char build_id[2 * OBJFILE_BUILD_ID_MAX + 1];
};

/* Fills obj->build_id from the notes; "": they have none. Broken notes are no error. */
void objfile_build_id_load(struct objfile *obj);
