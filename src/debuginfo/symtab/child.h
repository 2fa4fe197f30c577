/* SPDX-License-Identifier: Apache-2.0 */
/* child: what build.c and the child that it starts agree on. */
#pragma once

#include <stdbool.h>

/* Built with a sanitizer, which needs address space, and system calls to report. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEBUGINFO_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define DEBUGINFO_SANITIZED 1
#endif
#endif
#ifndef DEBUGINFO_SANITIZED
#define DEBUGINFO_SANITIZED 0
#endif

/* Descriptors of the child beside 0 (ELF file), 1 (table), 2 (sentence). */
#define DEBUGINFO_CHILD_DEBUG_FD 3
#define DEBUGINFO_CHILD_ALT_FD 4
/* Bits of the child's argument FILES: what is there, and whether DWARF is left alone, because a
 * child before this one did not survive it. */
enum debuginfo_child_file {
	DEBUGINFO_CHILD_DEBUG = 1,
	DEBUGINFO_CHILD_ALT = 2,
	DEBUGINFO_CHILD_NO_DWARF = 4,
};
bool debuginfo_child_is_ready(void);
