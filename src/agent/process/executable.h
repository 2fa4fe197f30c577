/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executable: reads facts about a program's file for labels: ids, compiler, static, stripped.
 * Private to agent/.
 *
 * A thread of its own reads them, since a file system may hang; it begins with the first request.
 * Files are told apart by device, inode, size and time, and read once. Thread safety: all functions
 * but executables_free() from any thread.
 */
#pragma once

#include "base/err.h"
#include "objfile/objfile.h"

/* Files remembered by the thread; at the limit all are forgotten. */
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

/* Processes that are asked for, or answered and remembered. If there are more, the oldest are
 * forgotten. */
#define EXECUTABLES_ASKED_MAX 1024

enum executables_answer {
	EXECUTABLES_NONE,  /* no ELF file, gone, or too many are asked for */
	EXECUTABLES_ASKED, /* ask again when the generation has changed */
	EXECUTABLES_KNOWN
};

struct executables;
NODISCARD enum status executables_new(struct executables **out, struct err *e);
void executables_free(struct executables *x);
/* The program that a process runs. Never waits. */
enum executables_answer executables_find(
	struct executables *x, int pid, uint64_t start_ticks, struct executable *out);
/* The process runs another program now. */
void executables_forget(struct executables *x, int pid, uint64_t start_ticks);
/* Changes with each answer; cheap. */
uint64_t executables_generation(struct executables *x);
