/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executable: what a program's file says of itself, for labels: ids, compiler, static, stripped.
 * Private to agent/. Not thread safe: the poll thread's.
 *
 * Files are told apart by device, inode, size and time, and read once.
 */
#pragma once

#include "base/err.h"
#include "objfile/objfile.h"

/* Files remembered; at the limit all are forgotten. */
#define EXECUTABLES_MAX 1024

struct executable {
	/* As OpenTelemetry's profiler names files: SHA-256 of the first and last 4 KiB and the
	 * size, 16 bytes of it in hex. */
	char file_id[33];
	char build_id[129]; /* GNU's in hex, else Go's; "" */
	char compiler[64]; /* "GCC 12.2.0", "Clang 14.0.6", "Go 1.21.5", "Rust 1.75.0"; "unknown" */
	bool is_static;    /* it names no dynamic linker */
	bool is_stripped;  /* it has no symbol table */
};

/* E_INVALID: the file changes while it is read. */
NODISCARD enum status executable_read(
	const struct objfile *obj, struct executable *out, struct err *e);

struct executables;
NODISCARD enum status executables_new(struct executables **out, struct err *e);
void executables_free(struct executables *x);
/* The program that a process runs; false when it cannot be read, or is no ELF file. */
bool executables_find(struct executables *x, int pid, struct executable *out);
