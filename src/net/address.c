/* SPDX-License-Identifier: Apache-2.0 */
/* Names are resolved by getaddrinfo(); a port must be a number. */
#include "net/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <errno.h>

#define LISTEN_BACKLOG 1024
#define HOST_BYTES_MAX 256

static enum status parse_unix(struct str path, struct net_address *out, struct err *e)
{
	struct sockaddr_un *u = (struct sockaddr_un *)&out->storage;
	if (path.len == 0 || path.len >= sizeof(u->sun_path))
		return err_set(e, E_INVALID, "unix: path must have 1 to %zu bytes",
			sizeof(u->sun_path) - 1);
	u->sun_family = AF_UNIX;
	memcpy(u->sun_path, path.p, path.len);
	memcpy(out->unix_path, path.p, path.len);
	out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + 1);
	return OK;
}

static enum status split(struct str text, struct str *host, struct str *port, struct err *e)
{
	size_t colon = str_rindex(text, ':');
	uint64_t n;
	if (colon == text.len)
		return err_set(e, E_INVALID, "address \"%.*s\" has no :PORT", STR_ARG(text));
	*host = str_sub(text, 0, colon);
	*port = str_sub(text, colon + 1, text.len);
	if (!str_parse_u64(*port, 10, &n) || n > 65535)
		return err_set(e, E_INVALID,
			"address \"%.*s\": \"%.*s\" is not a port (0 to 65535)", STR_ARG(text),
			STR_ARG(*port));
	if (host->len >= 2 && host->p[0] == '[' && host->p[host->len - 1] == ']')
		*host = str_sub(*host, 1, host->len - 2);
	else if (str_index(*host, ':') < host->len)
		return err_set(e, E_INVALID, "an IPv6 address needs brackets: [%.*s]:%.*s",
			STR_ARG(*host), STR_ARG(*port));
	if (host->len >= HOST_BYTES_MAX)
		return err_set(e, E_INVALID, "host name too long");
	return OK;
}

static struct str without_scheme(struct str s)
{
	if (str_starts(s, STR("https://")))
		s = str_sub(s, 8, s.len);
	else if (str_starts(s, STR("http://")))
		s = str_sub(s, 7, s.len);
	if (str_ends(s, STR("/")) && !str_starts(s, STR("unix:")))
		s.len--;
	return s;
}

enum status net_address_check(const char *text, struct err *e)
{
	struct net_address parsed;
	struct str s = without_scheme(str_of(text)), host, port;
	if (str_starts(s, STR("unix:"))) {
		memset(&parsed, 0, sizeof(parsed));
		return parse_unix(str_sub(s, 5, s.len), &parsed, e);
	}
	return split(s, &host, &port, e);
}

enum status net_address_parse(const char *text, bool listening, struct net_address *out, size_t max,
	size_t *out_count, struct err *e)
{
	struct str s = without_scheme(str_of(text)), host, port;
	memset(out, 0, max * sizeof(*out));
	if (str_starts(s, STR("unix:"))) {
		*out_count = 1;
		return parse_unix(str_sub(s, 5, s.len), out, e);
	}
	enum status st = split(s, &host, &port, e);
	if (st != OK)
		return st;
	char host_text[HOST_BYTES_MAX], port_text[8];
	snprintf(host_text, sizeof(host_text), "%.*s", STR_ARG(host));
	snprintf(port_text, sizeof(port_text), "%.*s", STR_ARG(port));
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | (listening ? AI_PASSIVE : 0) };
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(host.len ? host_text : NULL, port_text, &hints, &found);
	if (rc != 0)
		return err_set(e, rc == EAI_MEMORY ? E_NOMEM : E_UNAVAILABLE, "resolve %s: %s",
			host_text, gai_strerror(rc));
	size_t n = 0;
	for (struct addrinfo *a = found; a && n < max; a = a->ai_next) {
		if (a->ai_addrlen > sizeof(out[n].storage))
			continue;
		memcpy(&out[n].storage, a->ai_addr, a->ai_addrlen);
		out[n++].len = a->ai_addrlen;
	}
	freeaddrinfo(found);
	*out_count = n;
	return n ? OK : err_set(e, E_UNAVAILABLE, "resolve %s: no address", host_text);
}

void net_address_format(const struct sockaddr_storage *a, char *out, size_t out_size)
{
	char host[64], port[8];
	if (a->ss_family == AF_UNIX) {
		snprintf(out, out_size, "unix");
		return;
	}
	socklen_t len =
		a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	if (getnameinfo((const struct sockaddr *)a, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, out_size, "?");
	else if (a->ss_family == AF_INET6)
		snprintf(out, out_size, "[%s]:%s", host, port);
	else
		snprintf(out, out_size, "%s:%s", host, port);
}

bool net_address_is_public(const char *text)
{
	struct net_address found[8];
	size_t count;
	enum status s = net_address_parse(text, true, found, ARRAY_COUNT(found), &count, NULL);
	if (s != OK)
		return s == E_UNAVAILABLE;
	bool others = false;
	for (size_t i = 0; i < count; i++) {
		const struct sockaddr_storage *a = &found[i].storage;
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
		if (a->ss_family == AF_INET)
			others |= ntohl(v4->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
		else if (a->ss_family == AF_INET6)
			others |= !IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
	}
	return others;
}

/* Removes a socket file without a listener, left by a server that was killed. */
static enum status remove_stale(const struct net_address *a, struct err *e)
{
	struct stat st;
	if (lstat(a->unix_path, &st) != 0)
		return OK;
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, E_EXISTS, "%s exists and is no socket", a->unix_path);
	CLEANUP(fd_cleanup) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_os(e, "socket");
	if (connect(fd, (const struct sockaddr *)&a->storage, a->len) == 0 || errno != ECONNREFUSED)
		return err_set(e, E_EXISTS, "%s: another program listens there", a->unix_path);
	return unlink(a->unix_path) == 0 ? OK : err_os(e, "unlink %s", a->unix_path);
}

static enum status listen_at(const struct net_address *a, int *out_fd, struct err *e)
{
	int one = 1, zero = 0;
	CLEANUP(fd_cleanup)
	int fd = socket(a->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_os(e, "socket");
	if (a->storage.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (a->storage.ss_family != AF_UNIX)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&a->storage, a->len) != 0)
		return err_os(e, "bind");
	if (listen(fd, LISTEN_BACKLOG) != 0)
		return err_os(e, "listen");
	*out_fd = STEAL_FD(fd);
	return OK;
}

enum status net_listen(
	const char *text, int *out_fd, char *out_text, size_t out_size, struct err *e)
{
	struct net_address found[8];
	size_t count;
	enum status s = net_address_parse(text, true, found, ARRAY_COUNT(found), &count, e);
	if (s != OK)
		return err_prefix(e, s, "listen on %s", text);
	if (found[0].unix_path[0]) {
		s = remove_stale(&found[0], e);
		if (s == OK)
			s = listen_at(&found[0], out_fd, e);
		if (s == OK)
			snprintf(out_text, out_size, "unix:%s", found[0].unix_path);
		return s == OK ? OK : err_prefix(e, s, "listen on %s", text);
	}
	/* ":PORT" means both families where the host has both: IPv6 is tried first, as it accepts
	 * IPv4 too. */
	bool any = text[0] == ':';
	for (int pass = any ? 0 : 1; pass < 2; pass++) {
		for (size_t i = 0; i < count; i++) {
			if (pass == 0 && found[i].storage.ss_family != AF_INET6)
				continue;
			s = listen_at(&found[i], out_fd, e);
			if (s != OK)
				continue;
			struct sockaddr_storage here = { 0 };
			socklen_t len = sizeof(here);
			if (getsockname(*out_fd, (struct sockaddr *)&here, &len) != 0) {
				close(*out_fd);
				return err_os(e, "getsockname");
			}
			net_address_format(&here, out_text, out_size);
			return OK;
		}
	}
	return err_prefix(e, s, "listen on %s", text);
}
