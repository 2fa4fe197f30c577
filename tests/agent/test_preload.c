/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/preload.h"
#include "test.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct preload_file *find(
	const struct preload_file *files, size_t count, const char *path)
{
	struct stat st;
	CHECK(stat(path, &st) == 0);
	for (size_t i = 0; i < count; i++) {
		if (files[i].notice.key.inode == st.st_ino &&
			files[i].notice.key.dev == (major(st.st_dev) << 20 | minor(st.st_dev)))
			return &files[i];
	}
	return NULL;
}

static void finds_what_is_mapped(void **state)
{
	(void)state;
	struct preload_file *files = NULL;
	size_t count = 0;
	struct err e = { 0 };
	int pid = fork(); /* so that two processes have our program */
	CHECK(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	CHECK_OK(preload_collect(&files, &count, &e), &e);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	const struct preload_file *self = find(files, count, "/proc/self/exe");
	CHECK(self && self->processes >= 2);
	CHECK(self->pid == pid || self->pid == getpid());
	CHECK(self->notice.vma_start < self->notice.vma_end && self->notice.key.generation == 0);
	for (size_t i = 1; i < count; i++)
		CHECK(files[i].processes <= files[i - 1].processes);
	CHECK(find(files, count, "/etc/passwd") == NULL); /* nobody runs it */
	free(files);
}

TEST_MAIN(cmocka_unit_test(finds_what_is_mapped))
