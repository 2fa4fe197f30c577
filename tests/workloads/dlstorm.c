/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlstorm PLUGIN SECONDS: loads the shared object, calls it once and unloads it, as fast as it can,
 * 20 calls deep: most of its time is the dynamic linker's and the kernel's.
 */
#include "workload.h"

#include <dlfcn.h>

NOINLINE static uint64_t once(const char *path, uint64_t x)
{
	void *plugin = dlopen(path, RTLD_NOW);
	if (!plugin)
		exit(1);
	uint64_t (*run)(uint64_t) = (uint64_t(*)(uint64_t))dlsym(plugin, "plugin_twice");
	if (!run)
		exit(1);
	x = run(x) + 1;
	(void)dlclose(plugin);
	return x;
}

NOINLINE static uint64_t recurse(const char *path, int depth, uint64_t x)
{
	volatile char room[16];
	room[x & 15] = (char)depth;
	if (depth > 0) {
		uint64_t below = recurse(path, depth - 1, x + (uint64_t)depth);
		return below + (uint64_t)room[0];
	}
	while (!workload_is_over())
		x = once(path, x) + (uint64_t)room[1];
	return x;
}

int main(int argc, char **argv)
{
	workload_begin(argc, argv, 2);
	return argc > 1 && recurse(argv[1], 20, 1) == 42;
}
