/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's end of docs/formats/handover.md: one thread that waits for a message or for
 * handover_stop_fd. The socket is never shut down: `firn up` gives the same one to the server that
 * follows this one.
 */
#include "server/admin/handover.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/reader.h"
#include "os/os.h"
#include "server/admin/admin.h"
#include "server/request/request.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIND_FILE 1
#define KIND_FIGURES 2
#define KIND_PAGE 3
#define BUILD_ID_MAX 128
#define PATH_BYTES_MAX 4096
#define HEAD_BYTES 8
#define MESSAGE_MAX 65536 /* of figures and pages; messages about executables have 4,232 bytes */
#define PAGE_OLD_NS (30 * NS_PER_SEC)
/* With these the browser loads and runs nothing, whatever the agent wrote. */
#define PAGE_HEADERS                                                               \
	"content-security-policy: default-src 'none'; style-src 'unsafe-inline'; " \
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"          \
	"cache-control: no-store\r\n"
#define DESCRIPTORS_MAX 8 /* received, so that they can be closed; one is allowed */

struct message {
	uint8_t bytes[MESSAGE_MAX];
	size_t len;
	int fds[DESCRIPTORS_MAX];
	size_t fd_count;
	bool cut;
	char build_id[BUILD_ID_MAX + 1];
	char path[PATH_BYTES_MAX + 1];
};

static void close_all(struct message *m)
{
	for (size_t i = 0; i < m->fd_count; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	m->fd_count = 0;
}

/* Waits for a message. False: stop. */
static bool wait_for_message(int fd, int stop_fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
		{ .fd = stop_fd, .events = POLLIN } };
	int n;
	do {
		n = poll(fds, ARRAY_COUNT(fds), -1);
	} while (n < 0 && errno == EINTR);
	return n > 0 && !fds[1].revents;
}

/* Receives a message. False: stop, the agent has closed the socket, or it has failed. */
static bool receive(int fd, int stop_fd, struct message *m)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * DESCRIPTORS_MAX)];
	} control;
	struct iovec iov = { m->bytes, sizeof(m->bytes) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t n;
	do {
		if (!wait_for_message(fd, stop_fd))
			return false;
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n <= 0)
		return false;
	m->len = (size_t)n;
	m->fd_count = 0;
	m->cut = (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count && m->fd_count < DESCRIPTORS_MAX; i++)
			memcpy(&m->fds[m->fd_count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
	return true;
}

/* Whether the build id is lower-case hex, or 'x' and 32 digits of a content id. */
static bool build_id_ok(struct str id)
{
	struct str digits = id;
	if (id.len && id.p[0] == 'x') {
		digits = str_sub(id, 1, id.len);
		if (digits.len != 32)
			return false;
	}
	for (size_t i = 0; i < digits.len; i++)
		if (!((digits.p[i] >= '0' && digits.p[i] <= '9') ||
			    (digits.p[i] >= 'a' && digits.p[i] <= 'f')))
			return false;
	return digits.len > 0 && id.len <= BUILD_ID_MAX;
}

static bool parse_file(struct message *m)
{
	struct reader r = reader_over(m->bytes, m->len);
	uint32_t kind = reader_u32(&r);
	uint16_t id_len = reader_u16(&r), path_len = reader_u16(&r);
	struct str id = reader_str(&r, id_len), path = reader_str(&r, path_len);
	struct stat st;
	if (m->cut || m->fd_count != 1 || r.failed || r.at != r.end || kind != KIND_FILE)
		return false;
	if (!build_id_ok(id) || path.len > PATH_BYTES_MAX || str_index(path, 0) < path.len)
		return false;
	if (fstat(m->fds[0], &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	memcpy(m->build_id, id.p, id.len);
	m->build_id[id.len] = 0;
	if (path.len)
		memcpy(m->path, path.p, path.len);
	m->path[path.len] = 0;
	return true;
}

/* Only printable lines are accepted, so that no byte can be misread in /metrics. */
static bool parse_figures(const struct message *m, struct str *out)
{
	struct reader r = reader_over(m->bytes, m->len);
	uint32_t kind = reader_u32(&r);
	struct str text = reader_str(&r, reader_left(&r));
	if (m->cut || m->fd_count || r.failed || kind != KIND_FIGURES || text.len == 0)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (text.p[i] != '\n' && (text.p[i] < 0x20 || text.p[i] > 0x7e))
			return false;
	*out = text;
	return text.p[text.len - 1] == '\n';
}

static void keep_figures(struct server *s, struct str text)
{
	lock_take(&s->figures_lock);
	buf_clear(&s->figures);
	buf_str(&s->figures, text);
	s->figures_at_ns = clock_monotonic_ns();
	lock_release(&s->figures_lock);
	metric_add(&s->metrics.handover_figures, 1);
}

void server_handover_write_figures(struct server *s, struct buf *out)
{
	if (s->handover_fd < 0)
		return;
	lock_take(&s->figures_lock);
	if (s->figures.len && buf_status(&s->figures) == OK) {
		buf_str(out, buf_view(&s->figures));
		buf_printf(out,
			"# HELP firn_agent_figures_age_seconds Since the agent told its figures.\n"
			"# TYPE firn_agent_figures_age_seconds gauge\n"
			"firn_agent_figures_age_seconds %.3f\n",
			(double)(clock_monotonic_ns() - s->figures_at_ns) / (double)NS_PER_SEC);
	}
	lock_release(&s->figures_lock);
}

/* Takes the page as UTF-8 in lines. Its content is trusted, since the agent has more privileges
 * than the server. */
static bool parse_page(const struct message *m, struct str *out)
{
	struct reader r = reader_over(m->bytes, m->len);
	uint32_t kind = reader_u32(&r);
	struct str html = reader_str(&r, reader_left(&r));
	if (m->cut || m->fd_count || r.failed || kind != KIND_PAGE || html.len == 0)
		return false;
	for (size_t i = 0; i < html.len; i++)
		if (html.p[i] == 0x7f || ((uint8_t)html.p[i] < 0x20 && html.p[i] != '\n'))
			return false;
	*out = html;
	return str_is_utf8(html);
}

static void keep_page(struct server *s, struct str html)
{
	lock_take(&s->figures_lock);
	buf_clear(&s->page);
	buf_str(&s->page, html);
	s->page_at_ns = clock_monotonic_ns();
	lock_release(&s->figures_lock);
	metric_add(&s->metrics.handover_pages, 1);
}

#define HEADING_END "</h1>"
#define LINK_BACK "<p><a href=\"./\">Back to the profiles</a></p>"

/* Writes the agent's page, with a link to the profiles below its heading, which the agent cannot
 * know. */
static void put_page(struct str page, struct buf *out)
{
	const char *end = memmem(page.p, page.len, HEADING_END, strlen(HEADING_END));
	size_t head = end ? (size_t)(end - page.p) + strlen(HEADING_END) : 0;
	buf_str(out, str_sub(page, 0, head));
	if (head)
		buf_cstr(out, LINK_BACK);
	buf_str(out, str_sub(page, head, page.len));
}

static bool write_page(struct server *s, struct buf *out)
{
	lock_take(&s->figures_lock);
	bool is_there = s->page.len && buf_status(&s->page) == OK;
	int64_t age_ns = clock_monotonic_ns() - s->page_at_ns;
	if (is_there) {
		put_page(buf_view(&s->page), out);
		buf_printf(out,
			"<p>Told by the agent %lld s ago%s. <a href=\"./\">Back to the "
			"profiles</a></p>",
			(long long)(age_ns / NS_PER_SEC),
			age_ns > PAGE_OLD_NS ? ": it does not run, or is stuck" : "");
		buf_cstr(out, "</body></html>\n");
	}
	lock_release(&s->figures_lock);
	return is_there;
}

/* The page names processes and files of the whole host, whose samples belong to the tenant without
 * a name. */
static enum status may_see_page(const struct server *s, const struct net_request *r, struct err *e)
{
	struct str tenant;
	enum status st = server_tenant(s, r, &tenant, e);
	if (st != OK)
		return st;
	if (s->handover_fd < 0)
		return err_set(e, E_NOTFOUND,
			"there is no agent beside this server: the page of one elsewhere is at its "
			"--http-address");
	if (tenant.len)
		return err_set(e, E_NOTFOUND,
			"the agent beside this server is of the tenant without a name");
	return OK;
}

/* A browser gets the page's view of agents, which links to this page. A client that does not ask
 * for HTML (curl, a probe), and a request with "?plain", gets this page. */
static bool wants_view(const struct net_request *r)
{
	struct str accept = net_header_find(r, "accept");
	return accept.len && memmem(accept.p, accept.len, "text/html", strlen("text/html")) &&
	       !str_eq(r->query, STR("plain"));
}

void server_handle_agent(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = (struct server *)ctx;
	struct err e;
	enum status st = may_see_page(s, r, &e);
	if (st != OK) {
		net_fail(out, st, &e);
		return;
	}
	out->content_type = "text/html; charset=utf-8";
	if (wants_view(r)) {
		snprintf(out->headers, sizeof(out->headers),
			"location: ./?page=agents\r\ncache-control: no-store\r\nvary: accept\r\n");
		out->http_status = 302;
		return;
	}
	if (write_page(s, &out->body))
		snprintf(out->headers, sizeof(out->headers), "%s", PAGE_HEADERS);
	else
		net_fail(out, err_set(&e, E_UNAVAILABLE, "the agent has told nothing yet"), &e);
}

static void take_file(struct server *s, struct message *m)
{
	struct err e;
	m->fd_count = 0; /* the symbolizer takes it over */
	if (symbolizer_offer(s->engine.symbolizer, m->build_id, m->path, m->fds[0], &e) == OK)
		metric_add(&s->metrics.handover_files, 1);
	else
		metric_add(&s->metrics.handover_dropped, 1);
}

static void *handover_main(void *ctx)
{
	struct server *s = (struct server *)ctx;
	struct message *m = malloc(sizeof(*m));
	while (m && receive(s->handover_fd, s->handover_stop_fd, m)) {
		struct str text;
		if (parse_figures(m, &text)) {
			keep_figures(s, text);
		} else if (parse_page(m, &text)) {
			keep_page(s, text);
		} else if (parse_file(m)) {
			take_file(s, m);
		} else {
			metric_add(&s->metrics.handover_refused, 1);
			close_all(m);
		}
	}
	free(m);
	return NULL;
}

enum status server_handover_start(struct server *s, struct err *e)
{
	if (s->handover_fd < 0)
		return OK;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return err_os(e, "eventfd");
	s->handover_stop_fd = fd;
	lock_take(&s->figures_lock); /* /metrics is asked already */
	buf_init(&s->figures, MESSAGE_MAX);
	buf_init(&s->page, MESSAGE_MAX);
	lock_release(&s->figures_lock);
	enum status st = os_thread_start(&s->handover, "handover", handover_main, s, e);
	s->handover_runs = st == OK;
	if (st != OK)
		close(fd);
	return st;
}

void server_handover_stop(struct server *s)
{
	if (s->handover_fd < 0)
		return;
	if (s->handover_runs) {
		uint64_t one = 1;
		ssize_t n = write(s->handover_stop_fd, &one, sizeof(one));
		assert(n == sizeof(one)); /* the first one always fits */
		pthread_join(s->handover, NULL);
		close(s->handover_stop_fd);
		s->handover_runs = false;
	}
	buf_deinit(&s->figures);
	buf_deinit(&s->page);
	close(s->handover_fd);
	s->handover_fd = -1;
}
