/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: if a port is taken, /proc/net gives the inode of the socket that listens there, and /proc
 * the process that has it. If /proc does not show that (a user, and a firn of root), the page is
 * requested from the port.
 */
#include "cli/process/startup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/options/options.h"
#include "fetch/fetch.h"

#define PAGE_BYTES_MAX (64 << 10)
#define PAGE_TIMEOUT_NS (2 * NS_PER_SEC)
#define TCP_LISTEN 0x0A
#define FDS_MAX 65536 /* of one process */
#define COMM_MAX 64

/* The inode of the socket that listens on `port`; 0: not found. */
static uint64_t listener_of(unsigned port)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
		char line[512];
		FILE *f = fopen(tables[i], "re");
		while (f && fgets(line, sizeof(line), f)) {
			unsigned at, state;
			unsigned long long inode;
			if (sscanf(line,
				    " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*d %*d "
				    "%llu",
				    &at, &state, &inode) == 3 &&
				at == port && state == TCP_LISTEN) {
				fclose(f);
				return inode;
			}
		}
		if (f)
			fclose(f);
	}
	return 0;
}

static bool has_socket(const char *pid, const char *wanted)
{
	char path[64], target[64];
	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	DIR *d = opendir(path);
	bool found = false;
	int seen = 0;
	for (struct dirent *entry; d && !found && seen++ < FDS_MAX && (entry = readdir(d));) {
		ssize_t n = readlinkat(dirfd(d), entry->d_name, target, sizeof(target) - 1);
		target[MAX(n, (ssize_t)0)] = 0;
		found = n > 0 && strcmp(target, wanted) == 0;
	}
	if (d)
		closedir(d);
	return found;
}

/* "firn-server, process 4979", or "another process". */
static bool holder_of(unsigned port, char *out, size_t size)
{
	char wanted[64], path[64], comm[COMM_MAX] = "";
	uint64_t inode = listener_of(port);
	DIR *proc = inode ? opendir("/proc") : NULL;
	bool firn = false;
	snprintf(wanted, sizeof(wanted), "socket:[%llu]", (unsigned long long)inode);
	snprintf(out, size, "another process");
	for (struct dirent *d; proc && (d = readdir(proc));) {
		if (!isdigit((unsigned char)d->d_name[0]) || !has_socket(d->d_name, wanted))
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/comm", d->d_name);
		FILE *f = fopen(path, "re");
		if (f && fgets(comm, sizeof(comm), f))
			comm[strcspn(comm, "\n")] = 0;
		if (f)
			fclose(f);
		firn = strncmp(comm, "firn", 4) == 0;
		snprintf(out, size, "%s, process %.16s", firn ? "firn" : comm, d->d_name);
		break;
	}
	if (proc)
		closedir(proc);
	return firn;
}

void cli_dial_address(const char *address, char *out, size_t out_size)
{
	const char *port = strrchr(address, ':');
	size_t host_len = port ? (size_t)(port - address) : 0;
	struct str host = str_make(address, host_len);
	if (port && (host_len == 0 || str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("*"))))
		snprintf(out, out_size, "127.0.0.1%s", port);
	else if (port && str_eq(host, STR("[::]")))
		snprintf(out, out_size, "[::1]%s", port);
	else
		snprintf(out, out_size, "%s", address);
}

/* Whether the port answers with a page of firn: the titles of server's and agent's pages begin with
 * it. */
static bool shows_firn(const char *dial)
{
	struct fetch *f = NULL;
	CLEANUP(buf_deinit) struct buf page;
	buf_init(&page, PAGE_BYTES_MAX);
	char url[300];
	int http_status = 0;
	snprintf(url, sizeof(url), "http://%s", dial);
	enum status s = fetch_new(&(struct fetch_config){ .address = url }, &f, NULL);
	if (s == OK)
		fetch_limit(f, PAGE_BYTES_MAX);
	if (s == OK)
		s = fetch_get(f, "/", PAGE_TIMEOUT_NS, &http_status, &page, NULL);
	fetch_free(f);
	buf_u8(&page, 0);
	return s == OK && !page.failed && strstr((const char *)page.data, "<title>firn");
}

static void complain_of_port(const char *address, unsigned port)
{
	char holder[128], dial[256];
	bool firn = holder_of(port, holder, sizeof(holder));
	const char *colon = strrchr(address, ':');
	cli_dial_address(address, dial, sizeof(dial));
	if (!firn && strcmp(holder, "another process") == 0 && shows_firn(dial)) {
		firn = true;
		snprintf(holder, sizeof(holder), "firn, of another user");
	}
	cli_complain("%s is taken by %s%s%s; another port: --http-address %.*s:%u", address, holder,
		firn ? ", which is to be seen at http://" : "", firn ? dial : "",
		(int)(colon - address), address, port < 65535 ? port + 1 : port - 1);
}

bool cli_complain_of_address(const char *address, enum status s, const char *text)
{
	const char *colon = address ? strrchr(address, ':') : NULL;
	const char *rest = strstr(text, ": ");
	uint64_t port = 0;
	if (colon && strstr(text, strerror(EADDRINUSE)) &&
		str_parse_u64(str_of(colon + 1), 10, &port) && port > 0 && port <= 65535)
		complain_of_port(address, (unsigned)port);
	else if (address && str_starts(str_of(text), STR("listen on ")))
		cli_complain("--http-address: %s", s == E_INVALID && rest ? rest + 2 : text);
	else
		return false;
	return true;
}

int cli_complain_of_start(
	const struct server_config *c, const char *used_path, enum status s, const struct err *e)
{
	const char *text = err_text(e, s);
	const char *path = c->storage_path ? c->storage_path : "";
	const char *used = used_path && used_path[0] ? strstr(text, used_path) : NULL;
	bool of_path = used || (path[0] && strstr(text, path));
	if (cli_complain_of_address(c->http_address, s, text))
		return s == E_INVALID ? CLI_USAGE : CLI_FAILED;
	if (of_path && (s == E_DENIED || s == E_IO))
		cli_complain("%.*s%s%s; --storage-path names another directory",
			used ? (int)(used - text) : 0, text, used ? path : "",
			used ? used + strlen(used_path) : text);
	else
		cli_complain("%s", text);
	return CLI_FAILED;
}
