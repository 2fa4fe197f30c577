/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hanging_mount: a file on a file system (FUSE) that answers the first open(), and keeps others of
 * its users waiting until it is told to answer: those who open it, read more of it than its first
 * four bytes, or close it.
 */
#pragma once

#include "test.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANGING_FILE_BYTES 65536 /* at most */
#define HANGING_KEPT_MAX 64

enum { HANGS_OPEN = 1, HANGS_READ = 2, HANGS_CLOSE = 4 };

struct hanging_mount {
	char path[128]; /* of the file, which is the mount */
	pid_t server;
	int tell; /* to the server */
};

struct hanging_server {
	int fuse, told;
	unsigned hangs; /* HANGS_… */
	unsigned opens, waiting;
	uint64_t kept[HANGING_KEPT_MAX]; /* numbers of requests */
	const void *content;
	size_t len;
};

static inline void hanging_reply(
	const struct hanging_server *s, uint64_t unique, int error, const void *data, size_t len)
{
	static char out[sizeof(struct fuse_out_header) + HANGING_FILE_BYTES];
	struct fuse_out_header h = { (uint32_t)(sizeof(h) + len), error, unique };
	memcpy(out, &h, sizeof(h));
	if (len)
		memcpy(out + sizeof(h), data, len);
	(void)!write(s->fuse, out, sizeof(h) + len);
}

static inline bool hanging_keep(struct hanging_server *s, unsigned what, uint64_t unique)
{
	if (!(s->hangs & what) || s->opens < 2)
		return false;
	if (s->waiting < HANGING_KEPT_MAX)
		s->kept[s->waiting++] = unique;
	return true;
}

/* Others than the first see no cache, which what is mapped by the first stays in. */
static inline void hanging_open(struct hanging_server *s, uint64_t unique)
{
	const struct fuse_open_out out = { .fh = 1,
		.open_flags = s->opens ? FOPEN_DIRECT_IO | FOPEN_KEEP_CACHE : 0 };
	s->opens++;
	if (!hanging_keep(s, HANGS_OPEN, unique))
		hanging_reply(s, unique, 0, &out, sizeof(out));
}

static inline void hanging_read(
	struct hanging_server *s, uint64_t unique, const struct fuse_read_in *in)
{
	size_t at = MIN((size_t)in->offset, s->len);
	if (in->size > 4 && hanging_keep(s, HANGS_READ, unique))
		return;
	hanging_reply(
		s, unique, 0, (const char *)s->content + at, MIN((size_t)in->size, s->len - at));
}

static inline void hanging_answer(struct hanging_server *s, const struct fuse_in_header *h)
{
	const struct fuse_init_out init = { .major = 7,
		.minor = 31,
		.max_write = 4096,
		.max_background = 64,
		.congestion_threshold = 64 };
	const struct fuse_attr_out attr = { .attr_valid = 1000,
		.attr = { .ino = 1,
			.size = s->len,
			.mode = S_IFREG | 0755,
			.nlink = 1,
			.blksize = 4096 } };
	switch (h->opcode) {
	case FUSE_INIT:
		hanging_reply(s, h->unique, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		hanging_reply(s, h->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		hanging_open(s, h->unique);
		break;
	case FUSE_READ:
		hanging_read(s, h->unique, (const void *)(h + 1));
		break;
	case FUSE_FLUSH:
		if (!hanging_keep(s, HANGS_CLOSE, h->unique))
			hanging_reply(s, h->unique, 0, NULL, 0);
		break;
	case FUSE_RELEASE:
		hanging_reply(s, h->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		hanging_reply(s, h->unique, -ENOSYS, NULL, 0);
	}
}

/* What was kept is answered as if it had failed, but for files that are opened. */
static inline void hanging_let_go(struct hanging_server *s)
{
	const struct fuse_open_out out = { .fh = 1, .open_flags = FOPEN_DIRECT_IO };
	while (s->waiting) {
		uint64_t unique = s->kept[--s->waiting];
		if (s->hangs & HANGS_OPEN)
			hanging_reply(s, unique, 0, &out, sizeof(out));
		else
			hanging_reply(s, unique, -EIO, NULL, 0);
	}
	s->hangs = 0;
	s->told = -1;
}

static inline void hanging_serve(struct hanging_server s)
{
	static _Alignas(8) char in[1 << 17];
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;) {
		struct pollfd p[] = { { s.fuse, POLLIN, 0 }, { s.told, POLLIN, 0 } };
		if (poll(p, 2, -1) < 0)
			_exit(1);
		if (p[1].revents)
			hanging_let_go(&s);
		if (p[0].revents && read(s.fuse, in, sizeof(in)) <= 0)
			_exit(0);
		if (p[0].revents)
			hanging_answer(&s, (const void *)in);
	}
}

/* NULL, or why there is none. */
static inline const char *hanging_mount_init(
	struct hanging_mount *m, const char *dir, unsigned hangs, struct str content)
{
	CHECK(content.len <= HANGING_FILE_BYTES);
	char options[96];
	int told[2];
	snprintf(m->path, sizeof(m->path), "%s/hanging", dir);
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0)
		return "no /dev/fuse here";
	int place = open(m->path, O_CREAT | O_RDWR | O_CLOEXEC, 0755);
	CHECK(place >= 0 && close(place) == 0);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100000,user_id=0,group_id=0", fuse);
	if (mount("firn-test", m->path, "fuse.firn-test", MS_NOSUID | MS_NODEV, options) < 0) {
		close(fuse);
		return "a FUSE file system cannot be mounted here";
	}
	CHECK(pipe2(told, O_CLOEXEC) == 0);
	m->tell = told[1];
	m->server = fork();
	CHECK(m->server >= 0);
	if (m->server == 0) {
		close(told[1]);
		hanging_serve((struct hanging_server){ .fuse = fuse,
			.told = told[0],
			.hangs = hangs,
			.content = content.p,
			.len = content.len });
	}
	close(told[0]);
	close(fuse);
	return NULL;
}

/* From now on everything is answered, what waits too (reading has failed then). */
static inline void hanging_mount_let_go(struct hanging_mount *m)
{
	CHECK(write(m->tell, "x", 1) == 1);
}

static inline void hanging_mount_deinit(struct hanging_mount *m)
{
	CHECK(umount2(m->path, MNT_DETACH) == 0);
	CHECK(kill(m->server, SIGKILL) == 0 && waitpid(m->server, NULL, 0) == m->server);
	close(m->tell);
}
