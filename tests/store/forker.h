/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forker: children that end at one operation after the other. A process grows with each store that
 * it opens, and a fork copies the tables of all its pages: so a process that opens none forks, as
 * small as the test was when it began. What a child is to do and what it tells is in memory that
 * all of them share.
 */
#pragma once

#include "tests/test.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKER_TOLD_MAX = 1024 };

struct forked {
	char dir[64];
	int at;         /* the operation at which it ends */
	int64_t now_ns; /* for whom the time matters */
	int status;     /* of waitpid() */
	uint8_t told[FORKER_TOLD_MAX];
};

struct forker {
	struct forked *child;
	pid_t pid;
	int turns;
};

/* A child for each byte that comes; the answer is a byte. */
static inline void forker_main(struct forked *child, void (*run)(struct forked *child), int turns)
{
	for (char turn; read(turns, &turn, 1) == 1;) {
		pid_t pid = fork();
		if (pid == 0) {
			run(child);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &child->status, 0) != pid ||
			write(turns, &turn, 1) != 1)
			_exit(3);
	}
	_exit(0);
}

/* `run` is called in each child, and may end it. */
static inline void forker_start(struct forker *f, void (*run)(struct forked *child))
{
	int fds[2];
	void *shared = mmap(
		NULL, sizeof(*f->child), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	f->child = shared;
	f->pid = fork();
	CHECK(f->pid >= 0);
	if (f->pid == 0) {
		close(fds[0]);
		forker_main(f->child, run, fds[1]);
	}
	close(fds[1]);
	f->turns = fds[0];
}

/* The exit status of a child that ends at operation `at` in f->child->dir. */
static inline int forker_run(struct forker *f, int at)
{
	char turn = 0;
	f->child->at = at;
	memset(f->child->told, 0, sizeof(f->child->told));
	CHECK(write(f->turns, &turn, 1) == 1 && read(f->turns, &turn, 1) == 1);
	CHECK(WIFEXITED(f->child->status));
	return WEXITSTATUS(f->child->status);
}

static inline void forker_stop(struct forker *f)
{
	int status;
	close(f->turns);
	CHECK(waitpid(f->pid, &status, 0) == f->pid && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == 0);
	munmap(f->child, sizeof(*f->child));
}
