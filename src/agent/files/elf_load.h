/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_load: finds out what an opened executable is, and gets its unwind table: builds it, or reads
 * it from the cache on disk. Private to agent/. Not thread safe: one at a time.
 */
#pragma once

#include "agent/files/files.h"
#include "agent/files/open_file.h"
#include "agent/files/tablecache.h"

/* A table that took this much CPU time to build is cached, however small it is. */
#define ELF_LOAD_CACHE_CPU_NS (10 * NS_PER_MS)

struct elf_load {
	struct tablecache *cache; /* NULL: none */
	int64_t cache_cpu_ns;     /* ELF_LOAD_CACHE_CPU_NS */
	struct files_metrics *metrics;
	struct problems *problems; /* may be NULL */
	struct unwind_build limits;
	bool is_between; /* used in a pause of building another table, which counts the CPU time */
};

struct opened {
	struct open_file file;
	struct file_key key; /* as it was met; the caller's to set */
	struct objfile *obj; /* NULL: no ELF file for us */
	uint64_t owner;      /* its user, on its file system */
	char path[OPEN_FILE_PATH_MAX];
	char build_id[2 * OBJFILE_BUILD_ID_MAX + 1]; /* "": no ELF file */
	/* Made of build id, size, first and last bytes, and from elf_load_table() on also of the
	 * unwind table. So no table is taken for that of another file. */
	char identity[2 * OBJFILE_BUILD_ID_MAX + 96];
	/* The name of its unwind table in the cache on disk; "": it is not cached. */
	char cache_name[2 * OBJFILE_BUILD_ID_MAX + 160];
};

void opened_close(struct opened *o);
/* Finds out what an opened file is; o->path and o->file are set and stay. A file that is no ELF
 * file is counted, and known by its path and key, since JIT code of two processes may have one
 * path. E_TIMEOUT: its file system does not answer. */
NODISCARD enum status elf_load_examine(const struct elf_load *l, struct opened *o, struct err *e);
/* The same for a file that is known to be no ELF file and was not opened: o->path is set. */
void elf_load_examine_other(const struct elf_load *l, struct opened *o);
/* A descriptor of it for others: its own, or, where its file system may hang, that of a copy below
 * `dir` ("": in memory), which vanishes when it is closed. E_LIMIT: more
 * than ELF_LOAD_COPY_BYTES_MAX. */
#define ELF_LOAD_COPY_BYTES_MAX ((uint64_t)256 << 20)
NODISCARD enum status elf_load_share(
	const struct opened *o, const char *dir, int *out_fd, struct err *e);
/* Roughly the bytes of the sections that its table is built from. */
uint64_t elf_load_bytes(const struct opened *o);
/* *out stays NULL where there is no information: counted, and said to `problems`. */
NODISCARD enum status elf_load_build(const struct elf_load *l, const struct objfile *obj,
	struct unwind_table **out, struct err *e);
/* The same, from the cache if it is there; tables that are large or took long are put into it.
 * o->identity is complete then. */
NODISCARD enum status elf_load_table(
	const struct elf_load *l, struct opened *o, struct unwind_table **out, struct err *e);
