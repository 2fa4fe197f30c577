/* SPDX-License-Identifier: Apache-2.0 */
/* child: what build.c and the child that it starts agree on. */
#pragma once

#include "debuginfo/symtab/symtab.h"

#include <stdbool.h>

/* Further descriptors of the child; 0 is the ELF file, 1 the table, 2 the sentence of an error. */
#define DEBUGINFO_CHILD_DEBUG_FD 3
#define DEBUGINFO_CHILD_ALT_FD 4
/* Bits of the child's argument FILES: which descriptors it has, and whether it must not read DWARF,
 * because an earlier child did not survive that. */
enum debuginfo_child_file {
	DEBUGINFO_CHILD_DEBUG = 1,
	DEBUGINFO_CHILD_ALT = 2,
	DEBUGINFO_CHILD_NO_DWARF = 4,
	DEBUGINFO_CHILD_CODE = 8, /* 0 is a piece of code, 1 its listing; code.c */
};
bool debuginfo_child_is_ready(void);

/* build.c: starts the child with `files` and waits for it; `bits`: NO_DWARF, CODE. */
NODISCARD enum status debuginfo_child_run(const struct debuginfo_files *files, unsigned bits,
	int out_fd, const struct debuginfo_limits *limits, struct err *e);

/* Length of the head before the code in the child's input (listing.c). */
#define DEBUGINFO_CODE_HEAD_BYTES 16
/* code.c, in the child: loads libcapstone. To be called before the sandbox is entered, which
 * forbids to open files. E_UNSUPPORTED: it is not here, with the reason. */
NODISCARD enum status debuginfo_code_load(struct err *e);
/* Once it is loaded. */
NODISCARD enum status debuginfo_list_code(int fd, int out_fd, struct err *e);
