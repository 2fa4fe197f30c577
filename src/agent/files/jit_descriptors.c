/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/jit_descriptors.h"

#include "runtimes/runtimes.h"

struct found {
	uint64_t *out;
	uint32_t count;
};

static bool ask(void *ctx, const struct objfile *obj, uint64_t bias)
{
	struct found *f = ctx;
	struct vaddr at;
	if (!runtimes_jit_descriptor(obj, &at))
		return false;
	at.v += bias;
	for (uint32_t i = 0; i < f->count; i++)
		if (f->out[i] == at.v) /* its code is mapped in pieces */
			return true;
	f->out[f->count++] = at.v;
	return true;
}

uint32_t jit_descriptors_find(
	struct code_files_memory *known, int pid, uint64_t out[JIT_DESCRIPTORS_MAX])
{
	struct found f = { .out = out };
	const struct code_files_asked asked = { NULL, ask, NULL, &f, JIT_DESCRIPTORS_MAX };
	uint32_t count;
	if (code_files_each(known, pid, &asked, &count) != OK)
		return 0;
	return f.count;
}

struct dotnet {
	uint64_t table;
	unsigned version;
};

static bool ask_dotnet(void *ctx, const struct objfile *obj, uint64_t bias)
{
	struct dotnet *d = ctx;
	struct vaddr at;
	if (!runtimes_dotnet(obj, &at, &d->version))
		return false;
	d->table = at.v + bias;
	return true;
}

bool jit_dotnet_find(
	struct code_files_memory *known, int pid, uint64_t *out_table, unsigned *out_version)
{
	struct dotnet d = { 0 };
	const struct code_files_asked asked = { NULL, ask_dotnet, NULL, &d, 1 };
	uint32_t count;
	if (code_files_each(known, pid, &asked, &count) != OK || !d.table)
		return false;
	*out_table = d.table;
	*out_version = d.version;
	return true;
}
