/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit_descriptors: finds the descriptors by which a process' compilers tell debuggers about the
 * code that they make (runtimes_jit_descriptor()), and the table by which the runtime of .NET does.
 * Private to agent/. One thread's.
 */
#pragma once

#include "agent/files/code_files.h"

/* Of one process: each library that has a compiler in it has its own. */
#define JIT_DESCRIPTORS_MAX 8

/* Fills in the addresses of the descriptors and returns how many there are; 0: none, or the process
 * has ended. */
uint32_t jit_descriptors_find(
	struct code_files_memory *known, int pid, uint64_t out[JIT_DESCRIPTORS_MAX]);

/* The runtime of .NET (runtimes_dotnet()); `known` must not be the one that jit_descriptors_find()
 * gets. False: the process has none, or has ended. */
bool jit_dotnet_find(
	struct code_files_memory *known, int pid, uint64_t *out_table, unsigned *out_version);
