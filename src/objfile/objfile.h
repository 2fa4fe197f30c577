/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objfile: one ELF file, opened read-only and validated; segments, sections, build id.
 *
 * Layer 2 (may use base, os, codec). Files of other processes are read with pread, never mapped.
 * Thread safety: an open objfile is immutable; share it freely. Source: System V gABI ch. 4-5;
 * build-id note: type 3, owner "GNU".
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "os/os.h"

/* A larger file is refused with E_LIMIT before any of it is read. */
#define OBJFILE_BYTES_MAX ((uint64_t)16 << 30)
#define OBJFILE_SECTIONS_MAX 65536
#define OBJFILE_SEGMENTS_MAX 4096
#define OBJFILE_BUILD_ID_MAX 64 /* bytes */
/* One section read into memory. */
#define OBJFILE_SECTION_BYTES_MAX ((uint64_t)1 << 30)

/* Address kinds are types, so that mixing them does not compile. */
struct vaddr {
	uint64_t v;
}; /* virtual address in the ELF file */
struct fileoff {
	uint64_t v;
};

struct objfile_segment { /* PT_LOAD */
	uint64_t offset;
	uint64_t vaddr;
	uint64_t file_size;
	uint64_t mem_size;
	uint32_t flags; /* PF_X, … */
	uint64_t align; /* as the file says it */
};

struct objfile_section {
	struct str name;
	uint32_t type;
	uint64_t flags;
	uint64_t addr;
	uint64_t offset;
	uint64_t size;
	uint32_t link;
	uint64_t entry_size;
};

struct objfile;

/* Takes the descriptor over on OK. `name` is for messages. E_INVALID: not a 64-bit little-endian
 * ELF file, with what is wrong and at which offset. */
NODISCARD enum status objfile_open_fd(
	int fd, const char *name, struct objfile **out, struct err *e);
NODISCARD enum status objfile_open(const char *path, struct objfile **out, struct err *e);
/* Opens bytes in memory, which must stay valid (the vDSO, tests, fuzzing). */
NODISCARD enum status objfile_open_bytes(
	const void *bytes, size_t len, const char *name, struct objfile **out, struct err *e);
/* Opens a file that the caller reads for us; `read` fills all of `out`, or says why not. `ctx`
 * stays the caller's, and is used until objfile_close(). */
typedef enum status objfile_read_fn(
	void *ctx, uint64_t offset, void *out, size_t len, struct err *e);
struct objfile_source {
	objfile_read_fn *read;
	void *ctx;
	uint64_t bytes; /* of the file */
};
NODISCARD enum status objfile_open_source(
	const struct objfile_source *source, const char *name, struct objfile **out, struct err *e);
void objfile_close(struct objfile *obj); /* NULL is fine */

const char *objfile_name(const struct objfile *obj); /* as given to open */
uint16_t objfile_machine(const struct objfile *obj); /* EM_X86_64, EM_AARCH64 */
uint16_t objfile_type(const struct objfile *obj);    /* ET_EXEC, ET_DYN, … */
uint64_t objfile_size(const struct objfile *obj);
struct vaddr objfile_entry(const struct objfile *obj); /* e_entry */
const struct objfile_segment *objfile_segments(const struct objfile *obj, uint32_t *out_count);
/* The first program header of a type (PT_INTERP, PT_GNU_EH_FRAME, …); false when absent. */
bool objfile_program_header(const struct objfile *obj, uint32_t type, struct objfile_segment *out);
const struct objfile_section *objfile_sections(const struct objfile *obj, uint32_t *out_count);
/* NULL when absent. */
const struct objfile_section *objfile_section(const struct objfile *obj, const char *name);
/* The section's bytes, decompressed if SHF_COMPRESSED, appended to `out`. */
NODISCARD enum status objfile_read_section(
	const struct objfile *obj, const struct objfile_section *s, struct buf *out, struct err *e);
/* Exactly `len` bytes of the file; E_INVALID when it is shorter. */
NODISCARD enum status objfile_read(
	const struct objfile *obj, uint64_t offset, void *out, size_t len, struct err *e);

/* Lower-case hex of the GNU build id, with a NUL; "" when the file has none. */
const char *objfile_build_id(const struct objfile *obj);
/* An id made of the content, for use where there is no build id: "x" and the 32 hex digits of
 * XXH3-128 over the first and last 4 KiB and the size; in a file without a build id also over 64
 * blocks of 16 KiB from all over it. */
NODISCARD enum status objfile_content_id(const struct objfile *obj, char out[40], struct err *e);

/* Converts by the PT_LOAD segments; false if no segment has it. */
bool objfile_vaddr_of(const struct objfile *obj, struct fileoff off, struct vaddr *out);
bool objfile_fileoff_of(const struct objfile *obj, struct vaddr addr, struct fileoff *out);
