/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of docs/formats/handover.md, good and bad. symbolizer_offer() is stood in for. */
#include "test.h"

#include "base/clock.h"
#include "server/admin/admin.h"
#include "server/admin/handover.h"
#include "server/request/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_int offers;
static char offered_id[200], offered_path[5000];
static ino_t offered_inode;
static atomic_bool offer_full;

enum status symbolizer_offer(
	struct symbolizer *s, const char *build_id, const char *path, int fd, struct err *e)
{
	struct stat st;
	(void)s;
	snprintf(offered_id, sizeof(offered_id), "%s", build_id);
	snprintf(offered_path, sizeof(offered_path), "%s", path);
	CHECK(fstat(fd, &st) == 0);
	offered_inode = st.st_ino;
	close(fd);
	atomic_fetch_add(&offers, 1);
	return atomic_load(&offer_full) ? err_set(e, E_LIMIT, "full") : OK;
}

struct sent {
	uint32_t version;
	const char *id;
	const char *path;
	size_t path_len; /* 0: of `path` */
	int fds;
	const char *file;
	int cut; /* bytes left out at the end, or added */
};

static void send_message(int fd, const struct sent *m)
{
	uint8_t bytes[8192];
	int fds[16];
	uint16_t id_len = (uint16_t)strlen(m->id);
	uint16_t path_len = (uint16_t)(m->path_len ? m->path_len : strlen(m->path));
	memset(bytes, 'p', sizeof(bytes));
	memcpy(bytes, &m->version, 4);
	memcpy(bytes + 4, &id_len, 2);
	memcpy(bytes + 6, &path_len, 2);
	memcpy(bytes + 8, m->id, id_len);
	if (!m->path_len)
		memcpy(bytes + 8 + id_len, m->path, path_len);
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct iovec iov = { bytes, (size_t)(8 + id_len + path_len - m->cut) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (m->fds) {
		for (int i = 0; i < m->fds; i++)
			fds[i] = open(m->file ? m->file : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)m->fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)m->fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)m->fds);
	}
	CHECK(sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)iov.iov_len);
	for (int i = 0; i < m->fds; i++)
		close(fds[i]);
}

#define UNTIL(x)                                                       \
	do {                                                           \
		int64_t end_ = clock_monotonic_ns() + 30 * NS_PER_SEC; \
		while (!(x) && clock_monotonic_ns() < end_)            \
			usleep(1000);                                  \
		CHECK(x);                                              \
	} while (0)

static void takes_files(void **state)
{
	(void)state;
	struct server s = { 0 };
	struct err e;
	int pair[2];
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	s.handover_fd = pair[1];
	server_init_locks(&s);
	CHECK_OK(server_handover_start(&s, &e), &e);
	struct stat self;
	CHECK(stat("/proc/self/exe", &self) == 0);

	send_message(pair[0], &(struct sent){ 1, "00ffab", "/usr/bin/x y", 0, 1, NULL, 0 });
	UNTIL(atomic_load(&offers) == 1);
	assert_string_equal(offered_id, "00ffab");
	assert_string_equal(offered_path, "/usr/bin/x y");
	assert_int_equal(offered_inode, self.st_ino);
	send_message(pair[0],
		&(struct sent){ 1, "x0123456789abcdef0123456789abcdef", "", 0, 1, NULL, 0 });
	UNTIL(atomic_load(&offers) == 2);
	assert_string_equal(offered_path, "");
	send_message(pair[0], &(struct sent){ 1, "ab", "", 4096, 1, NULL, 0 });
	UNTIL(atomic_load(&offers) == 3);
	UNTIL(metric_get(&s.metrics.handover_files) == 3);
	assert_int_equal(strlen(offered_path), 4096);
	atomic_store(&offer_full, true);
	send_message(pair[0], &(struct sent){ 1, "ab", "/x", 0, 1, NULL, 0 });
	UNTIL(metric_get(&s.metrics.handover_dropped) == 1);
	atomic_store(&offer_full, false);
	close(pair[0]);
	server_handover_stop(&s);
}

/* clang-format off */
static const struct { const char *name; struct sent m; } bad[] = {
	{ "other kind",        { 4, "ab", "/x", 0, 1, NULL, 0 } },
	{ "page with a file",  { 3, "ab", "/x", 0, 1, NULL, 0 } },
	{ "cut",               { 1, "ab", "/x", 0, 1, NULL, 1 } },
	{ "cut in the head",   { 1, "ab", "/x", 0, 1, NULL, 6 } },
	{ "longer",            { 1, "ab", "/x", 0, 1, NULL, -1 } },
	{ "no build id",       { 1, "", "/x", 0, 1, NULL, 0 } },
	{ "capital letters",   { 1, "AB", "/x", 0, 1, NULL, 0 } },
	{ "slash",             { 1, "../../ab", "/x", 0, 1, NULL, 0 } },
	{ "short content id",  { 1, "x0123", "/x", 0, 1, NULL, 0 } },
	{ "path too long",     { 1, "ab", "", 4097, 1, NULL, 0 } },
	{ "datagram too long", { 1, "ab", "", 8000, 1, NULL, 0 } },
	{ "no file",           { 1, "ab", "/x", 0, 0, NULL, 0 } },
	{ "two files",         { 1, "ab", "/x", 0, 2, NULL, 0 } },
	{ "many files",        { 1, "ab", "/x", 0, 16, NULL, 0 } },
	{ "folder",            { 1, "ab", "/x", 0, 1, "/", 0 } },
	{ "device",            { 1, "ab", "/x", 0, 1, "/dev/null", 0 } },
};
/* clang-format on */

static void refuses_messages(void **state)
{
	(void)state;
	struct server s = { 0 };
	struct err e;
	int pair[2];
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	s.handover_fd = pair[1];
	server_init_locks(&s);
	CHECK_OK(server_handover_start(&s, &e), &e);
	int before = atomic_load(&offers), descriptors = test_open_fds();
	uint64_t refused = 0;
	FOR_EACH_CASE (c, bad) {
		send_message(pair[0], &c->m);
		refused++;
		int64_t end = clock_monotonic_ns() + 30 * NS_PER_SEC;
		while (metric_get(&s.metrics.handover_refused) < refused &&
			clock_monotonic_ns() < end)
			usleep(1000);
		CHECK_CASE(c, metric_get(&s.metrics.handover_refused) == refused);
		CHECK_CASE(c, atomic_load(&offers) == before);
		UNTIL(test_open_fds() == descriptors);
	}
	/* The thread still takes good ones. */
	send_message(pair[0], &(struct sent){ 1, "ab", "/x", 0, 1, NULL, 0 });
	UNTIL(metric_get(&s.metrics.handover_files) == 1);
	/* Stopped while the agent lives; the next server gets a copy of the same socket. */
	CLEANUP(fd_cleanup) int copy = fcntl(pair[1], F_DUPFD_CLOEXEC, 0);
	server_handover_stop(&s);
	struct server next = { .handover_fd = STEAL_FD(copy) };
	server_init_locks(&next);
	CHECK_OK(server_handover_start(&next, &e), &e);
	send_message(pair[0], &(struct sent){ 1, "ab", "/x", 0, 1, NULL, 0 });
	UNTIL(metric_get(&next.metrics.handover_files) == 1);
	server_handover_stop(&next);
	close(pair[0]);
}

static void send_text(int fd, uint32_t kind, const char *text, size_t len)
{
	static uint8_t bytes[80000];
	memcpy(bytes, &kind, 4);
	memcpy(bytes + 4, text, len);
	CHECK(send(fd, bytes, 4 + len, MSG_NOSIGNAL) == (ssize_t)(4 + len));
}

static void shows_the_agents_figures(void **state)
{
	(void)state;
	struct server s = { 0 };
	struct err e;
	int pair[2];
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	s.handover_fd = pair[1];
	server_init_locks(&s);
	server_handover_write_figures(&s, &out); /* before it has begun */
	CHECK_OK(server_handover_start(&s, &e), &e);
	server_handover_write_figures(&s, &out);
	assert_int_equal(out.len, 0);

	static char big[65532];
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\n';
	send_text(pair[0], 2, big, sizeof(big));
	send_text(pair[0], 2, "firn_agent_x 1\n", 15);
	UNTIL(metric_get(&s.metrics.handover_figures) == 2);
	server_handover_write_figures(&s, &out);
	buf_u8(&out, 0);
	CHECK(str_starts(
		str_of((char *)out.data), STR("firn_agent_x 1\n# HELP firn_agent_figures_age")));

	send_text(pair[0], 2, "", 0);
	send_text(pair[0], 2, "no line", 7);
	send_text(pair[0], 2, "nul\0\n", 5);
	send_text(pair[0], 2, "\xc3\xa4\n", 3);
	send_text(pair[0], 2, big, sizeof(big));
	static char longer[65533];
	memset(longer, '\n', sizeof(longer));
	send_text(pair[0], 2, longer, sizeof(longer));
	UNTIL(metric_get(&s.metrics.handover_refused) == 5);
	UNTIL(metric_get(&s.metrics.handover_figures) == 3);
	close(pair[0]);
	server_handover_stop(&s);
}

/* GET /agent; the body with a NUL behind it. */
static const char *get_page_as(
	struct server *s, const struct net_request *r, struct net_response *out)
{
	*out = (struct net_response){ 0 };
	buf_init(&out->body, 1 << 20);
	server_handle_agent(s, r, out);
	buf_u8(&out->body, 0);
	return (const char *)out->body.data;
}

static const char *get_page(struct server *s, struct net_response *out)
{
	const struct net_request r = { .method = STR("GET") };
	return get_page_as(s, &r, out);
}

/* It is of the whole host. */
static void hides_the_page_from_tenants(struct server *s)
{
	struct http_header tenant = { .name = STR("x-scope-orgid"), .value = STR("a") };
	const struct net_request r = { .headers = &tenant, .header_count = 1 };
	const struct server_config config = { .tenant_header = "x-scope-orgid" };
	struct net_response out;
	CHECK(strstr(get_page_as(s, &r, &out), "<p>")); /* nobody is asked who it is */
	buf_deinit(&out.body);
	s->config = &config;
	CHECK(!strstr(get_page_as(s, &r, &out), "<p>") && out.status == E_NOTFOUND);
	buf_deinit(&out.body);
	CHECK(strstr(get_page(s, &out), "<p>"));
	buf_deinit(&out.body);
	tenant.value = STR("../a");
	CHECK(!strstr(get_page_as(s, &r, &out), "<p>") && out.status == E_INVALID);
	buf_deinit(&out.body);
	s->config = NULL;
}

/* A browser is sent to the view of agents, unless it asks for this page. */
static void sends_browsers_to_the_view(struct server *s)
{
	const struct http_header accept = { STR("accept"), STR("text/html,application/xml;q=0.9") };
	struct net_request r = { .headers = &accept, .header_count = 1 };
	struct net_response out;
	CHECK(str_eq(str_of(get_page_as(s, &r, &out)), STR("")));
	CHECK(out.http_status == 302 && strstr(out.headers, "location: ./?page=agents\r\n"));
	buf_deinit(&out.body);
	r.query = STR("plain");
	CHECK(strstr(get_page_as(s, &r, &out), "<p>") && out.http_status == 0);
	buf_deinit(&out.body);
}

static void shows_the_agents_page(void **state)
{
	(void)state;
	struct server s = { 0 };
	struct net_response out;
	struct err e;
	int pair[2];
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	s.handover_fd = pair[1];
	server_init_locks(&s);
	get_page(&s, &out); /* before it has begun */
	CHECK(out.status == E_UNAVAILABLE);
	buf_deinit(&out.body);
	CHECK_OK(server_handover_start(&s, &e), &e);

	static char big[65533];
	memset(big, 'x', sizeof(big));
	send_text(pair[0], 3, big, sizeof(big) - 1);
	send_text(pair[0], 3, "<p>na\303\257ve\n", 10);
	UNTIL(metric_get(&s.metrics.handover_pages) == 2);
	const char *page = get_page(&s, &out);
	CHECK(out.status == OK && strstr(out.headers, "default-src 'none'"));
	CHECK(strstr(page, "<p>na\303\257ve\n<p>Told by the agent ") == page);
	CHECK(strstr(page, "</body></html>\n") && !strstr(page, "stuck"));
	buf_deinit(&out.body);
	send_text(pair[0], 3, "<h1>a</h1>b", 11);
	UNTIL(metric_get(&s.metrics.handover_pages) == 3);
	page = get_page(&s, &out);
	CHECK(strstr(page, "<h1>a</h1><p><a href=\"./\">Back to the profiles</a></p>b<p>Told") ==
		page);
	buf_deinit(&out.body);
	hides_the_page_from_tenants(&s);
	sends_browsers_to_the_view(&s);

	lock_take(&s.figures_lock);
	s.page_at_ns -= 3600 * NS_PER_SEC;
	lock_release(&s.figures_lock);
	CHECK(strstr(get_page(&s, &out), "it does not run, or is stuck"));
	buf_deinit(&out.body);

	send_text(pair[0], 3, "", 0);
	send_text(pair[0], 3, "nul\0\n", 5);
	send_text(pair[0], 3, "\33[0m", 4);
	send_text(pair[0], 3, "na\357ve", 5);
	send_text(pair[0], 3, big, sizeof(big));
	UNTIL(metric_get(&s.metrics.handover_refused) == 5);
	CHECK(metric_get(&s.metrics.handover_pages) == 3);
	close(pair[0]);
	server_handover_stop(&s);
}

static void may_be_absent(void **state)
{
	(void)state;
	struct server s = { .handover_fd = -1 };
	struct net_response out;
	struct err e;
	server_init_locks(&s);
	get_page(&s, &out);
	CHECK(out.status == E_NOTFOUND && strstr(out.message, "--http-address"));
	buf_deinit(&out.body);
	CHECK_OK(server_handover_start(&s, &e), &e);
	server_handover_stop(&s);
}

TEST_MAIN(cmocka_unit_test(takes_files), cmocka_unit_test(refuses_messages),
	cmocka_unit_test(shows_the_agents_figures), cmocka_unit_test(shows_the_agents_page),
	cmocka_unit_test(may_be_absent))
