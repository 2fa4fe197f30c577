/* SPDX-License-Identifier: Apache-2.0 */
/* A list of what waits, oldest first; it is nearly always empty. */
#include "agent/send/handover.h"

#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define KIND_FILE 1
#define KIND_FIGURES 2
#define KIND_PAGE 3
#define KIND_NEW_SERVER 4 /* the only one that comes from the other side */
#define LOG_ONCE_MAX 16   /* read at a time */
#define BUILD_ID_BYTES_MAX 128
#define PATH_BYTES_MAX 4096

struct waiting {
	struct buf message;
	int fd;
};

struct handover {
	int socket; /* -1: there is no receiver, or not any more */
	struct lock lock;
	struct waiting waiting[HANDOVER_WAITING_MAX];
	uint32_t count;
	struct handover_metrics metrics;
};

enum status handover_new(int fd, struct handover **out, struct err *e)
{
	struct handover *h = calloc(1, sizeof(*h));
	if (!h)
		return err_set(e, E_NOMEM, "handover");
	h->socket = fd;
	lock_init(&h->lock, LOCK_HANDOVER);
	*out = h;
	return OK;
}

static void waiting_drop(struct waiting *w)
{
	buf_deinit(&w->message);
	fd_cleanup(&w->fd);
}

void handover_free(struct handover *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i < h->count; i++)
		waiting_drop(&h->waiting[i]);
	lock_destroy(&h->lock);
	free(h);
}

enum outcome { SENT, NO_ROOM, GONE };

static enum outcome send_one(int to, struct waiting *w)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { w->message.data, w->message.len };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &w->fd, sizeof(int));
	ssize_t n;
	do {
		n = sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return SENT;
	return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? NO_ROOM : GONE;
}

/* Send from the front while there is room. Called with the lock. */
static void flush(struct handover *h)
{
	uint32_t done = 0;
	enum outcome o = SENT;
	while (done < h->count && o != NO_ROOM) {
		o = h->socket >= 0 ? send_one(h->socket, &h->waiting[done]) : GONE;
		if (o == NO_ROOM)
			break;
		if (o == GONE)
			h->socket = -1;
		metric_add(o == SENT ? &h->metrics.sent : &h->metrics.dropped, 1);
		waiting_drop(&h->waiting[done++]);
	}
	h->count -= done;
	memmove(h->waiting, h->waiting + done, h->count * sizeof(h->waiting[0]));
}

static bool message_make(struct waiting *w, struct str build_id, struct str path, int fd)
{
	path = str_sub(path, 0, PATH_BYTES_MAX);
	if (build_id.len == 0 || build_id.len > BUILD_ID_BYTES_MAX)
		return false;
	w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (w->fd < 0)
		return false;
	buf_init(&w->message, 8 + BUILD_ID_BYTES_MAX + PATH_BYTES_MAX);
	buf_u32(&w->message, KIND_FILE);
	buf_u16(&w->message, (uint16_t)build_id.len);
	buf_u16(&w->message, (uint16_t)path.len);
	buf_str(&w->message, build_id);
	buf_str(&w->message, path);
	if (buf_status(&w->message) == OK)
		return true;
	waiting_drop(w);
	return false;
}

void handover_send(void *ctx, const char *build_id, const char *path, int fd)
{
	struct handover *h = ctx;
	lock_take(&h->lock);
	struct waiting w;
	if (h->socket < 0) {
		/* There is no receiver: no loss. */
	} else if (h->count < HANDOVER_WAITING_MAX &&
		   message_make(&w, str_of(build_id), str_of(path), fd)) {
		h->waiting[h->count++] = w;
		flush(h);
	} else {
		metric_add(&h->metrics.dropped, 1);
	}
	lock_release(&h->lock);
}

bool handover_retry(struct handover *h)
{
	lock_take(&h->lock);
	if (h->count)
		flush(h);
	bool more = h->count > 0;
	lock_release(&h->lock);
	return more;
}

bool handover_is_connected(struct handover *h)
{
	lock_take(&h->lock);
	bool connected = h->socket >= 0;
	lock_release(&h->lock);
	return connected;
}

bool handover_server_is_new(struct handover *h)
{
	static const uint8_t new_server[4] = { KIND_NEW_SERVER };
	bool is_new = false;
	lock_take(&h->lock);
	for (uint32_t i = 0; h->socket >= 0 && i < LOG_ONCE_MAX; i++) {
		uint8_t told[sizeof(new_server) + 1];
		ssize_t n = recv(h->socket, told, sizeof(told), MSG_DONTWAIT);
		if (n <= 0)
			break;
		is_new |= (size_t)n == sizeof(new_server) &&
			  memcmp(told, new_server, sizeof(new_server)) == 0;
	}
	lock_release(&h->lock);
	return is_new;
}

/* Never waits: newer ones follow. */
static void send_text(struct handover *h, uint8_t kind, struct str text, size_t most)
{
	uint8_t head[4] = { kind };
	struct iovec iov[] = { { head, sizeof(head) }, { (void *)(uintptr_t)text.p, text.len } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = ARRAY_COUNT(iov) };
	lock_take(&h->lock);
	if (h->socket >= 0 && text.len > 0 && text.len <= most &&
		sendmsg(h->socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EPIPE)
		h->socket = -1;
	lock_release(&h->lock);
}

void handover_send_figures(struct handover *h, struct str text)
{
	send_text(h, KIND_FIGURES, text, HANDOVER_FIGURES_MAX);
}

void handover_send_page(struct handover *h, struct str html)
{
	send_text(h, KIND_PAGE, html, HANDOVER_PAGE_MAX);
}

void handover_write_metrics(const struct handover *h, struct buf *out)
{
	static const struct metric_def defs[] = { HANDOVER_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &h->metrics.sent, ARRAY_COUNT(defs));
}
