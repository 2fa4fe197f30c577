/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/preload.h"
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

static bool counts(void *ctx)
{
	int *asked = ctx;
	return ++*asked != 0;
}

static void finds_what_is_mapped(void **state)
{
	(void)state;
	struct preload_file *files = NULL;
	size_t count = 0;
	int asked = 0;
	struct err e = { 0 };
	int pid = fork(); /* so that two processes have our program */
	CHECK(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	CHECK_OK(preload_collect(0, counts, &asked, &files, &count, &e), &e);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	const struct preload_file *self = find(files, count, "/proc/self/exe");
	CHECK(self && self->processes >= 2);
	CHECK(self->pid == pid || self->pid == getpid());
	CHECK(self->notice.vma_start < self->notice.vma_end && self->notice.key.generation == 0);
	for (size_t i = 1; i < count; i++)
		CHECK(files[i].processes <= files[i - 1].processes);
	CHECK(find(files, count, "/etc/passwd") == NULL); /* nobody runs it */
	CHECK(asked >= 2);
	free(files);
	asked = -1; /* after the first process it is enough */
	CHECK_OK(preload_collect(0, counts, &asked, &files, &count, &e), &e);
	CHECK(asked == 0);
	free(files);
}

/* Of a child that has gone from here only what it and its own child have. */
static void stays_below_one_process(void **state)
{
	(void)state;
	struct preload_file *files = NULL;
	size_t count = 0;
	int asked = 0;
	struct err e = { 0 };
	int ready[2], hold[2], pids[2], own;
	char byte;
	CHECK(pipe(ready) == 0 && pipe(hold) == 0);
	int pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(hold[1]); /* so that both end with us */
		pid = fork();
		own = getpid();
		if (pid < 0 || write(ready[1], &own, sizeof(own)) != sizeof(own) ||
			read(hold[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	for (int i = 0; i < 2; i++)
		CHECK(read(ready[0], &pids[i], sizeof(pids[i])) == sizeof(pids[i]));
	CHECK(pids[0] != pids[1] && (pids[0] == pid || pids[1] == pid));
	CHECK_OK(preload_collect(pid, counts, &asked, &files, &count, &e), &e);
	const struct preload_file *self = find(files, count, "/proc/self/exe");
	CHECK(self && self->processes == 2);
	for (size_t i = 0; i < count; i++)
		CHECK(files[i].pid == pids[0] || files[i].pid == pids[1]);
	free(files);
	CHECK_OK(preload_collect(getpid(), counts, &asked, &files, &count, &e), &e);
	self = find(files, count, "/proc/self/exe");
	CHECK(self && self->processes >= 3);
	free(files);
	close(hold[1]);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(hold[0]);
	close(ready[0]);
	close(ready[1]);
	CHECK_OK(preload_collect(pid, counts, &asked, &files, &count, &e), &e);
	CHECK(count == 0);
	free(files);
}

TEST_MAIN(cmocka_unit_test(finds_what_is_mapped), cmocka_unit_test(stays_below_one_process))
