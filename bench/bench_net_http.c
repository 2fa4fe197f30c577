/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests a second and core of the server on a cheap call, over kept connections of HTTP/1.1, once
 * answered by the loop and once through the workers, and of nginx with a static file of the same
 * size where it is installed (or $FIRN_BENCH_NGINX); the memory of 5,000 idle connections, and of
 * 200 that write all the time. The clients are a process of their own, so that the server's CPU
 * time is its own.
 */
#include "base/clock.h"
#include "net/net.h"
#include "os/os.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <signal.h>
#include <stdatomic.h>

#define CONNECTIONS 64
#define WARM_NS (NS_PER_SEC / 2)
#define RUN_NS (3 * NS_PER_SEC)
#define IDLE_CONNECTIONS 5000
#define WRITERS 200
#define WRITE_BYTES ((size_t)1 << 20)
#define PORT_TRIES 100

static atomic_ullong *answered; /* by the client, in shared memory */

static void answer(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "text/plain";
	buf_cstr(&out->body, "healthy\n");
}

static int try_connect(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int connect_to(uint16_t port)
{
	int fd = try_connect(port);
	if (fd < 0)
		_exit(1);
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
			atomic_fetch_add(answered, 1);
		}
	}
}

static void sleep_ns(int64_t ns)
{
	usleep((useconds_t)(ns / 1000));
}

/* User and system time of a process: the 14th and 15th fields of its stat. */
static double cpu_seconds(pid_t pid)
{
	char path[64], text[1024] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	char *at = strrchr(text, ')');
	unsigned long user = 0, sys = 0;
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			   &sys) != 2)
		return 0;
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

struct rate {
	double per_core;
	double per_second;
};

static struct rate measure(pid_t server, uint16_t port, const char *path)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		client_main(port, path);
	sleep_ns(WARM_NS);
	uint64_t count = atomic_load(answered);
	double cpu = cpu_seconds(server);
	int64_t begun = clock_monotonic_ns();
	sleep_ns(RUN_NS);
	count = atomic_load(answered) - count;
	cpu = cpu_seconds(server) - cpu;
	double wall = (double)(clock_monotonic_ns() - begun) / 1e9;
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return (struct rate){ cpu > 0 ? (double)count / cpu : 0, (double)count / wall };
}

static void print_rate(const char *name, struct rate r, struct rate nginx, const char *note)
{
	printf("{\"name\":\"%s\",\"value\":%.0f,\"unit\":\"requests/s/core\",", name, r.per_core);
	if (nginx.per_core > 0)
		printf("\"against\":\"nginx %.0f\",\"ratio\":%.2f,", nginx.per_core,
			r.per_core / nginx.per_core);
	else
		printf("\"against\":null,\"ratio\":null,");
	printf("\"note\":\"%s, %d connections; %.0f requests/s by the clock%s\"}\n", note,
		CONNECTIONS, r.per_second, nginx.per_core > 0 ? "" : "; nginx is not there");
	fflush(stdout);
}

/* ---- nginx: one worker, the same eight bytes as a file ---- */

static bool write_file(const char *dir, const char *name, const char *text)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	bool ok = f && fputs(text, f) >= 0;
	return f && fclose(f) == 0 && ok;
}

/* A free port; 0: none. */
static uint16_t free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 &&
		  getsockname(fd, (struct sockaddr *)&a, &len) == 0;
	if (fd >= 0)
		close(fd);
	return ok ? ntohs(a.sin_port) : 0;
}

static pid_t start_nginx(const char *dir, uint16_t port)
{
	char conf[1024], path[200];
	const char *program = getenv("FIRN_BENCH_NGINX");
	snprintf(conf, sizeof(conf),
		"daemon off; master_process off; pid %s/pid; error_log %s/error;\n"
		"events { worker_connections 1024; }\n"
		"http { access_log off; keepalive_requests 1000000000; default_type text/plain;\n"
		"open_file_cache max=10; sendfile on; tcp_nodelay on;\n"
		"client_body_temp_path %s; proxy_temp_path %s; fastcgi_temp_path %s;\n"
		"uwsgi_temp_path %s; scgi_temp_path %s;\n"
		"server { listen 127.0.0.1:%u; root %s; } }\n",
		dir, dir, dir, dir, dir, dir, dir, port, dir);
	if (!write_file(dir, "conf", conf) || !write_file(dir, "healthy", "healthy\n"))
		return -1;
	snprintf(path, sizeof(path), "%s/conf", dir);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(127);
		execlp(program ? program : "nginx", "nginx", "-p", dir, "-c", path, "-g", "", NULL);
		_exit(127);
	}
	pid_t gone = 0;
	for (int i = 0; i < PORT_TRIES && (gone = waitpid(pid, NULL, WNOHANG)) == 0; i++) {
		int fd = try_connect(port);
		if (fd >= 0) {
			close(fd);
			return pid;
		}
		sleep_ns(100 * NS_PER_MS);
	}
	if (gone == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return -1;
}

static struct rate measure_nginx(uint16_t port)
{
	static const char *const made[] = { "conf", "healthy", "pid", "error" };
	struct rate r = { 0 };
	char dir[] = "/tmp/firn-nginx-XXXXXX", path[200];
	if (!mkdtemp(dir))
		return r;
	pid_t pid = start_nginx(dir, port);
	if (pid > 0) {
		r = measure(pid, port, "/healthy");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	for (size_t i = 0; i < ARRAY_COUNT(made); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, made[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
	return r;
}

/* ---- memory ---- */

static void raise_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Each connection gets one answer, then all wait. */
static void idle_main(uint16_t port)
{
	char text[4096];
	static const char request[] = "GET /loop HTTP/1.1\r\nhost: h\r\n\r\n";
	for (int i = 0; i < IDLE_CONNECTIONS; i++) {
		int fd = connect_to(port);
		if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0 ||
			recv(fd, text, sizeof(text), 0) <= 0)
			_exit(1);
		atomic_fetch_add(answered, 1);
	}
	for (;;)
		pause();
}

static void measure_idle(uint16_t port)
{
	uint64_t before = os_self_rss_bytes();
	atomic_store(answered, 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		idle_main(port);
	for (int i = 0; i < 600 && atomic_load(answered) < IDLE_CONNECTIONS; i++)
		sleep_ns(50 * NS_PER_MS);
	uint64_t after = os_self_rss_bytes();
	printf("{\"name\":\"net.idle_connection_bytes\",\"value\":%.0f,\"unit\":\"bytes\","
	       "\"against\":null,\"ratio\":null,\"note\":\"resident memory each of %llu kept "
	       "connections of HTTP/1.1 between two requests, %.1f MiB in all\"}\n",
		(double)(after - before) / IDLE_CONNECTIONS,
		(unsigned long long)atomic_load(answered), (double)(after - before) / (1 << 20));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct writer {
	int fd;
	size_t sent;
};

/* Each connection sends a body of WRITE_BYTES, then the next as soon as it has its answer. */
static void write_main(uint16_t port)
{
	static char body[WRITE_BYTES + 200];
	static struct writer writers[WRITERS];
	struct epoll_event events[WRITERS];
	char text[4096];
	int head = snprintf(body, 200,
		"POST /worker HTTP/1.1\r\nhost: h\r\ncontent-length: %zu\r\n\r\n", WRITE_BYTES);
	size_t whole = (size_t)head + WRITE_BYTES;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < WRITERS; i++) {
		writers[i].fd = connect_to(port);
		struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT, .data.ptr = &writers[i] };
		if (epoll_ctl(ep, EPOLL_CTL_ADD, writers[i].fd, &ev) != 0)
			_exit(1);
	}
	for (;;) {
		int count = epoll_wait(ep, events, WRITERS, -1);
		for (int i = 0; i < count; i++) {
			struct writer *w = events[i].data.ptr;
			if (w->sent < whole) {
				ssize_t n = send(w->fd, body + w->sent,
					MIN(whole - w->sent, (size_t)65536),
					MSG_NOSIGNAL | MSG_DONTWAIT);
				w->sent += n > 0 ? (size_t)n : 0;
			} else if (recv(w->fd, text, sizeof(text), MSG_DONTWAIT) > 0) {
				w->sent = 0;
				atomic_fetch_add(answered, 1);
			}
		}
	}
}

static void measure_writers(uint16_t port)
{
	uint64_t before = os_self_rss_bytes(), most = 0;
	atomic_store(answered, 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		write_main(port);
	int64_t begun = clock_monotonic_ns();
	while (clock_monotonic_ns() - begun < RUN_NS) {
		sleep_ns(20 * NS_PER_MS);
		uint64_t now = os_self_rss_bytes();
		most = MAX(most, now);
	}
	double mib = (double)atomic_load(answered) * WRITE_BYTES / (1 << 20);
	double seconds = (double)(clock_monotonic_ns() - begun) / 1e9;
	printf("{\"name\":\"net.writers_peak_mib\",\"value\":%.1f,\"unit\":\"MiB\",\"against\":"
	       "\"limit of bodies 256 MiB\",\"ratio\":%.2f,\"note\":\"resident memory above the "
	       "idle "
	       "server's with %d connections that each write %zu KiB after %zu KiB; %.0f MiB/s "
	       "taken\"}\n",
		(double)(most - before) / (1 << 20), (double)(most - before) / (256 << 20), WRITERS,
		WRITE_BYTES >> 10, WRITE_BYTES >> 10, mib / seconds);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct net_route routes[] = {
		{ .method = "GET", .path = "/loop", .fn = answer, .on_loop = true },
		{ .path = "/worker", .fn = answer },
	};
	struct net_server_config config;
	struct net_server *s;
	struct err e;
	raise_descriptors();
	answered = mmap(
		NULL, sizeof(*answered), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	net_server_config_default(&config);
	config.address = "127.0.0.1:0";
	if (answered == MAP_FAILED ||
		net_server_start(&config, routes, ARRAY_COUNT(routes), &s, &e) != OK) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	const char *address = net_server_address(s);
	uint16_t port = (uint16_t)atoi(strrchr(address, ':') + 1);
	measure_idle(port);
	measure_writers(port);
	struct rate nginx = measure_nginx(free_port());
	print_rate("net.http_requests_per_second_core", measure(getpid(), port, "/loop"), nginx,
		"answered by the loop");
	print_rate("net.http_worker_requests_per_second_core", measure(getpid(), port, "/worker"),
		nginx, "through a worker");
	net_server_stop(s);
	return 0;
}
