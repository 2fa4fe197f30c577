/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main() of all test programs. A program holds the tests of several files; its argument says
 * which file's run: `test_store_single tree` runs those of test_tree.c. A program of one file needs
 * no argument.
 */
#include "test_main.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct test_file *files;

void test_add(struct test_file *file)
{
	file->next = files;
	files = file;
}

/* Whether a file is ".../test_NAME.c". */
static bool is_named(const struct test_file *file, const char *name)
{
	const char *slash = strrchr(file->path, '/'), *base = slash ? slash + 1 : file->path;
	size_t len = strlen(name);
	return strncmp(base, "test_", 5) == 0 && strncmp(base + 5, name, len) == 0 &&
	       strcmp(base + 5 + len, ".c") == 0;
}

int main(int argc, char **argv)
{
	for (struct test_file *f = files; f; f = f->next) {
		int rc = f->hook ? f->hook(argc, argv) : -1;
		if (rc >= 0)
			return rc;
	}
	if (argc == 1 && files && !files->next)
		return files->run();
	for (struct test_file *f = files; argc == 2 && f; f = f->next)
		if (is_named(f, argv[1]))
			return f->run();
	fprintf(stderr, "usage: %s NAME, of the tests in one of these files:\n", argv[0]);
	for (struct test_file *f = files; f; f = f->next)
		fprintf(stderr, "  %s\n", f->path);
	return 2;
}
