/* SPDX-License-Identifier: Apache-2.0 */
/* table: opened tables, as build.c, tests and benchmarks need them. */
#pragma once

#include "debuginfo/symtab/symtab.h"

NODISCARD enum status debuginfo_table_open_fd(
	int fd, const char *name, struct debuginfo_table **out, struct err *e);
/* Id of the range that holds the address, UINT32_MAX when no region does: what lookup costs without
 * the names. */
uint32_t debuginfo_table_range(const struct debuginfo_table *t, uint64_t vaddr);
