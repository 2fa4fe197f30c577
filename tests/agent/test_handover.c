/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/handover.h"
#include "base/reader.h"

#include "test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct pair {
	int agent;
	int server;
};

static struct pair pair_open(void)
{
	int ends[2];
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	return (struct pair){ ends[0], ends[1] };
}

/* One message as the document has it; false when there is none. */
static bool receive(int from, char build_id[200], char path[200], int *out_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	uint8_t bytes[8192];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return false;
	struct reader r = reader_over(bytes, (size_t)n);
	CHECK(reader_u32(&r) == 1);
	uint16_t id_len = reader_u16(&r), path_len = reader_u16(&r);
	struct str id = reader_str(&r, id_len), file = reader_str(&r, path_len);
	snprintf(build_id, 200, "%.*s", STR_ARG(id));
	snprintf(path, 200, "%.*s", STR_ARG(file));
	CHECK(reader_done(&r) && !r.failed);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	CHECK(c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)));
	memcpy(out_fd, CMSG_DATA(c), sizeof(int));
	return true;
}

static uint64_t counter(const struct handover *h, const char *name)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 4096);
	handover_write_metrics(h, &text);
	buf_u8(&text, 0);
	char line[100];
	snprintf(line, sizeof(line), "\n%s ", name);
	const char *at = strstr((const char *)text.data, line);
	CHECK(at);
	return strtoull(at + strlen(line), NULL, 10);
}

static void passes_the_file_itself(void **state)
{
	(void)state;
	struct pair p = pair_open();
	struct handover *h;
	struct err e;
	CHECK_OK(handover_new(p.agent, &h, &e), &e);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), got;
	handover_send(h, "abc123", "/usr/bin/x", fd);
	char build_id[200], path[200];
	CHECK(receive(p.server, build_id, path, &got));
	CHECK_STR(str_of(build_id), "abc123");
	CHECK_STR(str_of(path), "/usr/bin/x");
	struct stat a, b;
	CHECK(fstat(fd, &a) == 0 && fstat(got, &b) == 0 && a.st_ino == b.st_ino);
	CHECK(counter(h, "firn_agent_handover_sent_total") == 1);
	close(got);
	close(fd);
	handover_free(h);
	close(p.agent);
	close(p.server);
}

static void keeps_order_and_drops_beyond_its_list(void **state)
{
	(void)state;
	struct pair p = pair_open();
	struct handover *h;
	struct err e;
	CHECK_OK(handover_new(p.agent, &h, &e), &e);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	/* Nobody reads: the socket fills, then the list, then files are dropped. */
	char id[32];
	uint32_t offered = 0;
	while (counter(h, "firn_agent_handover_dropped_total") < 3 && offered < 5000) {
		snprintf(id, sizeof(id), "%x", offered++);
		handover_send(h, id, "", fd);
	}
	CHECK(offered < 5000 && handover_retry(h));
	uint32_t received = 0;
	for (bool more = true; more;) {
		char build_id[200], path[200];
		int got;
		while (receive(p.server, build_id, path, &got)) {
			snprintf(id, sizeof(id), "%x", received++);
			CHECK_STR(str_of(build_id), id);
			close(got);
		}
		more = handover_retry(h);
		if (!more)
			while (receive(p.server, build_id, path, &got)) {
				received++;
				close(got);
			}
	}
	CHECK(received == offered - 3);
	CHECK(counter(h, "firn_agent_handover_sent_total") == received);
	close(fd);
	handover_free(h);
	close(p.agent);
	close(p.server);
}

static void goes_on_without_the_server(void **state)
{
	(void)state;
	struct pair p = pair_open();
	struct handover *h;
	struct err e;
	CHECK_OK(handover_new(p.agent, &h, &e), &e);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	close(p.server);
	handover_send(h, "a", "", fd);
	handover_send(h, "b", "", fd);
	CHECK(!handover_retry(h));
	CHECK(counter(h, "firn_agent_handover_sent_total") == 0);
	handover_free(h);
	close(p.agent);
	CHECK_OK(handover_new(-1, &h, &e), &e);
	handover_send(h, "a", "", fd);
	CHECK(counter(h, "firn_agent_handover_dropped_total") == 0);
	handover_free(h);
	close(fd);
}

/* A datagram each, of its kind; what is too long is left out. */
static void tells_figures_and_the_page(void **state)
{
	(void)state;
	static char big[HANDOVER_PAGE_MAX + 1], got[70000];
	struct pair p = pair_open();
	struct handover *h = NULL;
	struct err e;
	memset(big, 'x', sizeof(big));
	CHECK_OK(handover_new(p.agent, &h, &e), &e);
	handover_send_figures(h, STR("a 1\n"));
	CHECK(recv(p.server, got, sizeof(got), MSG_DONTWAIT) == 8);
	CHECK(memcmp(got, "\2\0\0\0a 1\n", 8) == 0);
	handover_send_page(h, STR("<p>"));
	CHECK(recv(p.server, got, sizeof(got), MSG_DONTWAIT) == 7);
	CHECK(memcmp(got, "\3\0\0\0<p>", 7) == 0);
	handover_send_page(h, str_make(big, sizeof(big)));
	handover_send_page(h, STR(""));
	CHECK(recv(p.server, got, sizeof(got), MSG_DONTWAIT) < 0);
	handover_send_page(h, str_make(big, HANDOVER_PAGE_MAX));
	CHECK(recv(p.server, got, sizeof(got), MSG_DONTWAIT) == HANDOVER_PAGE_MAX + 4);
	close(p.server);
	handover_send_page(h, STR("<p>"));
	CHECK(!handover_is_connected(h));
	handover_free(h);
	close(p.agent);
}

static void hears_of_a_new_server(void **state)
{
	(void)state;
	struct pair p = pair_open();
	struct handover *h;
	struct err e;
	CHECK_OK(handover_new(p.agent, &h, &e), &e);
	CHECK(!handover_server_is_new(h));
	CHECK(send(p.server, "\4\0\0\0", 4, 0) == 4 && send(p.server, "\4\0\0\0", 4, 0) == 4);
	CHECK(handover_server_is_new(h));
	CHECK(!handover_server_is_new(h));
	CHECK(send(p.server, "\4\0\0\0\0", 5, 0) == 5 && send(p.server, "\1\0\0\0", 4, 0) == 4);
	CHECK(send(p.server, "\4", 1, 0) == 1);
	CHECK(!handover_server_is_new(h));
	close(p.server);
	CHECK(!handover_server_is_new(h));
	handover_free(h);
	close(p.agent);
	CHECK_OK(handover_new(-1, &h, &e), &e);
	CHECK(!handover_server_is_new(h));
	handover_free(h);
}

TEST_MAIN(cmocka_unit_test(passes_the_file_itself), cmocka_unit_test(tells_figures_and_the_page),
	cmocka_unit_test(keeps_order_and_drops_beyond_its_list),
	cmocka_unit_test(goes_on_without_the_server), cmocka_unit_test(hears_of_a_new_server))
