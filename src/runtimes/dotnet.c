/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime of .NET (libcoreclr, or a program that is linked with it) exports a table for
 * debuggers, and its version is among its data. Its code keeps frame pointers, so it needs no walk
 * of its own: names are found in the process (agent/broker/dotnet_memory.h).
 */
#include "runtimes/internal.h"

#include <elf.h>
#include <stdio.h>

#define PREFIX "@(#)Version "
#define VERSION_FIRST 8
#define VERSION_LAST 10

static bool find_table(const struct objfile *obj, uint64_t *out)
{
	struct runtime_symbol table = { .name = "g_dacTable" };
	*out = symbols_find(obj, SHT_DYNSYM, &table, 1, NULL) == OK ? table.address : 0;
	return *out != 0;
}

static unsigned find_version(const struct objfile *obj)
{
	char text[16];
	unsigned major = 0;
	if (version_in_section(obj, ".data", PREFIX, text, NULL) != OK &&
		version_in_constants(obj, PREFIX, text, NULL) != OK)
		return 0;
	if (sscanf(text, "%3u", &major) != 1)
		return 0;
	return major;
}

bool runtimes_dotnet(const struct objfile *obj, struct vaddr *out, unsigned *out_version)
{
	uint64_t table;
	if (!find_table(obj, &table))
		return false;
	unsigned version = find_version(obj);
	if (version < VERSION_FIRST || version > VERSION_LAST)
		return false;
	out->v = table;
	*out_version = version;
	return true;
}

enum status dotnet_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_record r = { .kind = RUNTIME_DOTNET };
	uint64_t table;
	if (!find_table(obj, &table))
		return err_set(e, E_NOTFOUND, "%s: no .NET", objfile_name(obj));
	unsigned version = find_version(obj);
	if (version < VERSION_FIRST || version > VERSION_LAST)
		return err_set(
			e, E_UNSUPPORTED, "%s: .NET %u is not known", objfile_name(obj), version);
	r.version = (uint16_t)(version << 8);
	*out = r;
	return OK;
}
