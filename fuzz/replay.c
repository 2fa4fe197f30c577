/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one fuzz target over every file of its corpus, without a fuzzer: a test of every build.
 *   fuzz_replay TARGET FOLDER
 * Each file's name is printed before it is run, so that the last one is what failed.
 */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "os/os.h"

#define INPUT_MAX ((size_t)1 << 20)

#define FUZZ_TARGET(name) int fuzz_case_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS
#undef FUZZ_TARGET

static const struct target {
	const char *name;
	int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define FUZZ_TARGET(name) { #name, fuzz_case_##name },
	FUZZ_TARGETS
#undef FUZZ_TARGET
};

static const struct target *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(targets); i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}

static int is_input(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* The bytes lie in memory of exactly their length, so that a sanitizer sees a read beyond. */
static bool replay(const struct target *t, const char *folder, const char *name)
{
	char path[4096];
	struct buf bytes;
	struct err e;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	printf("%s\n", path);
	fflush(stdout);
	buf_init(&bytes, INPUT_MAX);
	if (os_read_file(path, &bytes, &e) != OK) {
		printf("%s\n", e.text);
		buf_deinit(&bytes);
		return false;
	}
	uint8_t *exact = (uint8_t *)malloc(MAX(bytes.len, (size_t)1));
	FUZZ_CHECK(exact);
	memcpy(exact, buf_view(&bytes).p ? buf_view(&bytes).p : "", bytes.len);
	(void)t->run(exact, bytes.len);
	free(exact);
	buf_deinit(&bytes);
	return true;
}

int main(int argc, char **argv)
{
	struct dirent **names = NULL;
	const struct target *t = argc == 3 ? find(argv[1]) : NULL;
	if (!t) {
		fprintf(stderr, "usage: fuzz_replay TARGET FOLDER\n");
		return 2;
	}
	/* Every target has these, also one without a corpus. */
	(void)t->run((const uint8_t *)"", 0);
	(void)t->run((const uint8_t *)"\0", 1);
	int count = scandir(argv[2], &names, is_input, alphasort);
	bool ok = true;
	for (int i = 0; i < count; i++) {
		ok &= replay(t, argv[2], names[i]->d_name);
		free(names[i]);
	}
	free(names);
	printf("%d inputs, and two of no corpus\n", MAX(count, 0));
	return ok ? 0 : 1;
}
