/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hanging_mount: a file on a file system (FUSE) that answers the first open() and keeps the others
 * waiting until it is told to answer. Its content begins as an ELF file does.
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

#define HANGING_FILE_BYTES 8192
#define HANGING_OPENS_MAX 64

struct hanging_mount {
	char path[128]; /* of the file, which is the mount */
	pid_t server;
	int tell; /* to the server */
};

struct hanging_server {
	int fuse, told;
	bool answers;
	unsigned opens, waiting;
	uint64_t kept[HANGING_OPENS_MAX];
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

static inline void hanging_open(struct hanging_server *s, uint64_t unique)
{
	const struct fuse_open_out out = { .fh = 1 };
	if (s->answers || s->opens++ == 0)
		hanging_reply(s, unique, 0, &out, sizeof(out));
	else if (s->waiting < HANGING_OPENS_MAX)
		s->kept[s->waiting++] = unique;
}

static inline void hanging_answer(struct hanging_server *s, const struct fuse_in_header *h)
{
	static const char content[HANGING_FILE_BYTES] = ELFMAG;
	const struct fuse_init_out init = { .major = 7,
		.minor = 31,
		.max_write = 4096,
		.max_background = 64,
		.congestion_threshold = 64 };
	const struct fuse_attr_out attr = { .attr_valid = 1000,
		.attr = { .ino = 1,
			.size = HANGING_FILE_BYTES,
			.mode = S_IFREG | 0755,
			.nlink = 1,
			.blksize = 4096 } };
	const struct fuse_read_in *read_in = (const void *)(h + 1);
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
		hanging_reply(
			s, h->unique, 0, content, MIN((size_t)read_in->size, sizeof(content)));
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		hanging_reply(s, h->unique, -ENOSYS, NULL, 0);
	}
}

static inline void hanging_serve(int fuse, int told)
{
	static _Alignas(8) char in[1 << 17];
	struct hanging_server s = { .fuse = fuse, .told = told };
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;) {
		struct pollfd p[] = { { fuse, POLLIN, 0 }, { s.told, POLLIN, 0 } };
		if (poll(p, 2, -1) < 0)
			_exit(1);
		if (p[1].revents) {
			s.answers = true;
			s.told = -1;
			while (s.waiting)
				hanging_open(&s, s.kept[--s.waiting]);
		}
		if (p[0].revents && read(fuse, in, sizeof(in)) <= 0)
			_exit(0);
		if (p[0].revents)
			hanging_answer(&s, (const void *)in);
	}
}

/* NULL, or why there is none. */
static inline const char *hanging_mount_init(struct hanging_mount *m, const char *dir)
{
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
		hanging_serve(fuse, told[0]);
	}
	close(told[0]);
	close(fuse);
	return NULL;
}

/* From now on each open() is answered, those that wait among them. */
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
