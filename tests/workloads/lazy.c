/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lazy PLUGIN SECONDS: loads a shared object, calls through its PLT once into each of many
 * functions of this program, and unloads it: so that the dynamic linker binds symbols all the time.
 */
#include "lazy.h"
#include "workload.h"

#include <dlfcn.h>

#define LAZY_DEFINE(n)                         \
	uint64_t lazy_function_##n(uint64_t x) \
	{                                      \
		return x + n;                  \
	}
LAZY_FUNCTIONS(LAZY_DEFINE)

int main(int argc, char **argv)
{
	workload_begin(argc, argv, 2);
	uint64_t x = 1;
	while (argc > 1 && !workload_is_over()) {
		void *plugin = dlopen(argv[1], RTLD_LAZY);
		if (!plugin) {
			(void)fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		uint64_t (*run)(uint64_t) = (uint64_t(*)(uint64_t))dlsym(plugin, "lazy_run");
		if (run)
			x = run(x) + 1;
		(void)dlclose(plugin);
	}
	return x == 42;
}
