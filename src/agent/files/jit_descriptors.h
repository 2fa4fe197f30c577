/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit_descriptors: where a process has the descriptors by which its compilers tell debuggers of the
 * code that they make (runtimes_jit_descriptor()), and the runtime of .NET what it has compiled.
 * Private to agent/. One thread's.
 */
#pragma once

#include "agent/files/code_files.h"

/* Of one process: each library that has a compiler in it has its own. */
#define JIT_DESCRIPTORS_MAX 8

/* Their addresses; how many, 0 where there is none or the process has ended. */
uint32_t jit_descriptors_find(
	struct code_files_memory *known, int pid, uint64_t out[JIT_DESCRIPTORS_MAX]);

/* The runtime of .NET (runtimes_dotnet()); `known` is none that the other is asked with. False: it
 * has none, or has ended. */
bool jit_dotnet_find(
	struct code_files_memory *known, int pid, uint64_t *out_table, unsigned *out_version);
