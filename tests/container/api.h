/* SPDX-License-Identifier: Apache-2.0 */
/* A Kubernetes API in this process that lists and is watched: what it says is put in by hand. */
#pragma once

#include "answers.h"

#include "base/clock.h"
#include "os/os.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum api_ending { API_GOES_ON, API_ENDS, API_BREAKS };

struct api {
	int fd;
	char address[64];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	bool stopping;
	const char *list;    /* the answer; NULL: 401 */
	int watch_status;    /* 200 */
	int node_status;     /* 200 */
	const char *refusal; /* the answer of other statuses than 200 */
	const char *token;   /* without it: 401; NULL: any will do */
	char events[65536];  /* not sent yet */
	enum api_ending ending;
	int lists, watches, nodes;
	char list_path[512], watch_path[512]; /* of the last */
};

static inline bool api_send(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

static inline bool api_answer(int fd, int code, const char *body)
{
	char head[128];
	int n = snprintf(head, sizeof(head), "HTTP/1.1 %d x\r\ncontent-length: %zu\r\n\r\n", code,
		strlen(body));
	return api_send(fd, head, (size_t)n) && api_send(fd, body, strlen(body));
}

/* In chunks that do not end where events do. */
static inline bool api_send_events(int fd, const char *events)
{
	char size[24];
	for (size_t len = strlen(events), at = 0; at < len;) {
		size_t n = MIN(len - at, (size_t)1000);
		int digits = snprintf(size, sizeof(size), "%zx\r\n", n);
		if (!api_send(fd, size, (size_t)digits) || !api_send(fd, events + at, n) ||
			!api_send(fd, "\r\n", 2))
			return false;
		at += n;
	}
	return true;
}

static inline bool api_is_closed(int fd)
{
	char byte;
	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Under the lock: until there is something to say, or nobody to say it to. */
static inline void api_wait_for_words(struct api *a, int fd)
{
	while (!a->stopping && !a->events[0] && a->ending == API_GOES_ON && !api_is_closed(fd)) {
		struct timespec at;
		clock_gettime(CLOCK_REALTIME, &at);
		at.tv_nsec += 5000000;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		(void)pthread_cond_timedwait(&a->changed, &a->lock, &at);
	}
}

/* False: the connection is over. */
static inline bool api_watch(struct api *a, int fd)
{
	static const char head[] = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
	static char events[sizeof(a->events)];
	bool good = api_send(fd, head, sizeof(head) - 1);
	while (good) {
		pthread_mutex_lock(&a->lock);
		api_wait_for_words(a, fd);
		/* What is to be said now is for the next who listens. */
		bool closed = api_is_closed(fd);
		enum api_ending ending = a->stopping || closed ? API_BREAKS : a->ending;
		events[0] = 0;
		if (!closed) {
			memcpy(events, a->events, sizeof(events));
			a->events[0] = 0;
			a->ending = API_GOES_ON;
		}
		pthread_mutex_unlock(&a->lock);
		good = api_send_events(fd, events) && ending != API_BREAKS;
		if (good && ending == API_ENDS)
			return api_send(fd, "0\r\n\r\n", 5);
	}
	return false;
}

static inline bool api_serve(struct api *a, int fd, const char *path, const char *request)
{
	bool is_watch = strstr(path, "watch=true"), is_node = strstr(path, "/nodes/");
	pthread_mutex_lock(&a->lock);
	if (is_watch)
		snprintf(a->watch_path, sizeof(a->watch_path), "%s", path);
	else if (!is_node)
		snprintf(a->list_path, sizeof(a->list_path), "%s", path);
	a->watches += is_watch;
	a->nodes += is_node;
	a->lists += !is_watch && !is_node;
	int watch_status = a->watch_status;
	int node_status = a->node_status;
	const char *list = a->list, *refusal = a->refusal;
	bool is_known = !a->token || strstr(request, a->token);
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	if (!is_known)
		return api_answer(fd, 401, refusal);
	if (is_node)
		return api_answer(fd, node_status, node_status == 200 ? NODE : refusal);
	if (!is_watch)
		return api_answer(fd, list ? 200 : 401, list ? list : "{}");
	return watch_status == 200 ? api_watch(a, fd) : api_answer(fd, watch_status, refusal);
}

static inline void api_converse(struct api *a, int fd)
{
	char request[8192];
	size_t len = 0;
	for (bool good = true; good;) {
		struct pollfd p[] = { { .fd = fd, .events = POLLIN },
			{ .fd = a->fd, .events = POLLHUP } };
		(void)poll(p, 2, -1);
		ssize_t n =
			p[1].revents ? 0 : recv(fd, request + len, sizeof(request) - 1 - len, 0);
		if (n <= 0)
			return;
		len += (size_t)n;
		request[len] = 0;
		char path[512];
		if (!strstr(request, "\r\n\r\n"))
			continue;
		len = 0;
		good = sscanf(request, "GET %511s", path) == 1 && api_serve(a, fd, path, request);
	}
}

static inline void *api_main(void *ctx)
{
	struct api *a = ctx;
	for (;;) {
		int fd = accept(a->fd, NULL, NULL);
		if (fd < 0)
			return NULL;
		api_converse(a, fd);
		close(fd);
	}
}

static inline void api_start(struct api *a, const char *list)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	struct err e;
	*a = (struct api){ .list = list, .watch_status = 200, .node_status = 200, .refusal = "{}" };
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	a->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(a->fd >= 0 && bind(a->fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
		listen(a->fd, 8) == 0 && getsockname(a->fd, (struct sockaddr *)&at, &len) == 0);
	snprintf(a->address, sizeof(a->address), "http://127.0.0.1:%d", ntohs(at.sin_port));
	CHECK_OK(os_thread_start(&a->thread, "api", api_main, a, &e), &e);
}

static inline void api_stop(struct api *a)
{
	pthread_mutex_lock(&a->lock);
	a->stopping = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	shutdown(a->fd, SHUT_RDWR);
	pthread_join(a->thread, NULL);
	close(a->fd);
}

static inline void api_say(struct api *a, const char *events, enum api_ending ending)
{
	pthread_mutex_lock(&a->lock);
	size_t len = strlen(a->events);
	snprintf(a->events + len, sizeof(a->events) - len, "%s", events);
	a->ending = ending;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

/* Changes what it answers from now on. */
static inline void api_set(struct api *a, const char *list, int watch_status)
{
	pthread_mutex_lock(&a->lock);
	a->list = list;
	a->watch_status = watch_status;
	pthread_mutex_unlock(&a->lock);
}

static inline void api_set_node(struct api *a, int status)
{
	pthread_mutex_lock(&a->lock);
	a->node_status = status;
	pthread_mutex_unlock(&a->lock);
}

/* The moment when as many watches have begun, and lists been answered, at least. */
static inline void api_wait(struct api *a, int lists, int watches)
{
	pthread_mutex_lock(&a->lock);
	while (a->lists < lists || a->watches < watches)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

static inline struct api api_look(struct api *a)
{
	pthread_mutex_lock(&a->lock);
	struct api copy = *a;
	pthread_mutex_unlock(&a->lock);
	return copy;
}
