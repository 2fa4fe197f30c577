/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopener PLUGIN SECONDS: loads the shared object, burns in it for a while, unloads it, and again.
 */
#include "workload.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	workload_begin(argc, argv, 2);
	uint64_t x = 1;
	while (argc > 1 && !workload_is_over()) {
		void *plugin = dlopen(argv[1], RTLD_NOW);
		if (!plugin) {
			(void)fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		uint64_t (*run)(uint64_t) = (uint64_t(*)(uint64_t))dlsym(plugin, "plugin_run");
		for (int i = 0; run && i < 50; i++)
			x = run(x) + 1;
		(void)dlclose(plugin);
	}
	return x == 42;
}
