/* SPDX-License-Identifier: Apache-2.0 */
/* How: dlopen() under pthread_once(); the library stays loaded. A failure is remembered too. */
#include "fetch/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct curl_functions functions;
static char problem[200];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	static const char *const names[] = {
#define CURL_NAME(name) "curl_" #name,
		CURL_FUNCTIONS(CURL_NAME)
#undef CURL_NAME
	};
	void *const places[] = {
#define CURL_PLACE(name) &functions.name,
		CURL_FUNCTIONS(CURL_PLACE)
#undef CURL_PLACE
	};
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(problem, sizeof(problem), "%s", dlerror());
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		void *found = dlsym(library, names[i]);
		if (!found) {
			snprintf(problem, sizeof(problem), "libcurl has no %s", names[i]);
			return;
		}
		memcpy(places[i], &found, sizeof(found));
	}
	if (functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		snprintf(problem, sizeof(problem), "libcurl does not start");
}

enum status curl_load(const struct curl_functions **out, struct err *e)
{
	pthread_once(&once, load);
	if (problem[0])
		return err_set(
			e, E_UNSUPPORTED, "HTTP needs libcurl (package libcurl4): %s", problem);
	*out = &functions;
	return OK;
}
