/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnet_memory: which method of .NET an address of a process' code belongs to, and the metadata in
 * its memory that name methods. Private to agent/: by the broker, or by the agent itself where
 * there is none. No state.
 *
 * Two things are given of a process' memory: numbers that the runtime's own tables of code lead to,
 * and bytes of metadata. Metadata must begin as those of every .NET assembly do, and are given up
 * to the length that they state. So a compromised agent reads no memory at will. A process can
 * forge its tables: it spoils its own names, and costs DOTNET_MEMORY_READS_MAX reads a request.
 * Source: dotnet/runtime, docs/design/datacontracts; ECMA-335 II.24.2.
 */
#pragma once

#include "base/str.h"

#include <sys/types.h>

/* Of one request. */
#define DOTNET_MEMORY_READS_MAX 4096
/* The beginning of a piece of code is searched backwards for this many bytes at most. */
#define DOTNET_MEMORY_CODE_BYTES_MAX ((uint64_t)1 << 20)
/* Metadata that state a greater length are refused. */
#define DOTNET_MEMORY_METADATA_BYTES_MAX ((uint64_t)64 << 20)
/* Versions whose tables are known. */
#define DOTNET_VERSION_FIRST 8
#define DOTNET_VERSION_LAST 10

struct dotnet_memory_code {
	uint64_t start, bytes; /* of the code; of a stub, one byte */
	uint64_t metadata;     /* address; 0: the method has none (a stub, or made at run time) */
	uint32_t method;       /* row of its table MethodDef, from 1 on */
	uint32_t is_stub;
};
static_assert(sizeof(struct dotnet_memory_code) == 32, "docs/formats/broker.md");

/* `table`: the address of g_dacTable. 0, or -1 with errno: EPROTO where the address belongs to no
 * method. */
int dotnet_memory_find(int pid, unsigned version, uint64_t table, uint64_t address,
	struct dotnet_memory_code *out);
/* As pread(2) within metadata; EPROTO: there are none. */
ssize_t dotnet_memory_read(int pid, uint64_t metadata, uint64_t offset, void *out, size_t len);
