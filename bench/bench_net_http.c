/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests a second and core of the server on a cheap call, over kept connections of HTTP/1.1, once
 * answered by the loop and once through the workers; and the memory of an idle connection. The
 * clients are a process of their own, so that the server's CPU time is its own.
 */
#include "base/clock.h"
#include "net/net.h"
#include "os/os.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS 64
#define WARM_NS (NS_PER_SEC / 2)
#define RUN_NS (3 * NS_PER_SEC)
#define IDLE_CONNECTIONS 2000

static void answer(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "text/plain";
	buf_cstr(&out->body, "healthy\n");
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		exit(1);
	return fd;
}

/* Each connection asks again as soon as it has its answer; runs until it is killed. */
static void client_main(uint16_t port, const char *path)
{
	char request[200], answer_text[4096];
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nhost: h\r\n\r\n", path);
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[CONNECTIONS];
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = connect_to(port);
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };
		if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0 ||
			send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
			_exit(1);
	}
	for (;;) {
		int count = epoll_wait(ep, events, CONNECTIONS, -1);
		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;
			/* The answer is small: one read is one answer. */
			if (recv(fd, answer_text, sizeof(answer_text), 0) <= 0 ||
				send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
				_exit(1);
		}
	}
}

static uint64_t requests_of(struct net_server *s)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	net_server_write_metrics(s, &b);
	buf_u8(&b, 0);
	const char *line = strstr((const char *)b.data, "\nfirn_net_requests_total ");
	uint64_t n = line ? strtoull(line + 25, NULL, 10) : 0;
	buf_deinit(&b);
	return n;
}

static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void sleep_ns(int64_t ns)
{
	usleep((useconds_t)(ns / 1000));
}

static void measure(
	struct net_server *s, uint16_t port, const char *name, const char *path, const char *note)
{
	pid_t pid = fork();
	if (pid == 0)
		client_main(port, path);
	sleep_ns(WARM_NS);
	uint64_t requests = requests_of(s);
	double cpu = cpu_seconds();
	int64_t begun = clock_monotonic_ns();
	sleep_ns(RUN_NS);
	requests = requests_of(s) - requests;
	cpu = cpu_seconds() - cpu;
	double wall = (double)(clock_monotonic_ns() - begun) / 1e9;
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	printf("{\"name\":\"%s\",\"value\":%.0f,\"unit\":\"requests/s/core\",\"against\":null,"
	       "\"ratio\":null,\"note\":\"%s, %d connections; %.0f requests/s by the clock\"}\n",
		name, cpu > 0 ? (double)requests / cpu : 0, note, CONNECTIONS,
		(double)requests / wall);
	fflush(stdout);
}

static void measure_idle(uint16_t port)
{
	static int fds[IDLE_CONNECTIONS];
	struct rlimit limit = { 2 * IDLE_CONNECTIONS + 200, 2 * IDLE_CONNECTIONS + 200 };
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	uint64_t before = os_self_rss_bytes();
	char text[4096];
	static const char request[] = "GET /loop HTTP/1.1\r\nhost: h\r\n\r\n";
	for (int i = 0; i < IDLE_CONNECTIONS; i++) {
		fds[i] = connect_to(port);
		if (send(fds[i], request, sizeof(request) - 1, MSG_NOSIGNAL) < 0 ||
			recv(fds[i], text, sizeof(text), 0) <= 0)
			exit(1);
	}
	uint64_t after = os_self_rss_bytes();
	printf("{\"name\":\"net.idle_connection_bytes\",\"value\":%.0f,\"unit\":\"bytes\","
	       "\"against\":null,\"ratio\":null,\"note\":\"resident memory each of %d kept "
	       "connections of HTTP/1.1 between two requests\"}\n",
		(double)(after - before) / IDLE_CONNECTIONS, IDLE_CONNECTIONS);
	for (int i = 0; i < IDLE_CONNECTIONS; i++)
		close(fds[i]);
}

int main(void)
{
	const struct net_route routes[] = {
		{ .method = "GET", .path = "/loop", .fn = answer, .on_loop = true },
		{ .method = "GET", .path = "/worker", .fn = answer },
	};
	struct net_server_config config;
	struct net_server *s;
	struct err e;
	net_server_config_default(&config);
	config.address = "127.0.0.1:0";
	if (net_server_start(&config, routes, ARRAY_COUNT(routes), &s, &e) != OK) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	const char *address = net_server_address(s);
	uint16_t port = (uint16_t)atoi(strrchr(address, ':') + 1);
	measure_idle(port);
	measure(s, port, "net.http_requests_per_second_core", "/loop", "answered by the loop");
	measure(s, port, "net.http_worker_requests_per_second_core", "/worker", "through a worker");
	net_server_stop(s);
	return 0;
}
