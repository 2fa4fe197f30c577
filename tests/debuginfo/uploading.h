/* SPDX-License-Identifier: Apache-2.0 */
/* A store of uploads in a directory of its own, and uploads into it. */
#pragma once

#include "test.h"

#include "base/clock.h"
#include "debuginfo/uploads/internal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef01234567"

static struct {
	char path[64];
	struct debuginfo_uploads_config config;
	struct debuginfo_uploads *u;
	struct err e;
	enum status may;
} t;

static inline enum status may_begin(void *ctx, const struct debuginfo_record *known, struct err *e)
{
	(void)ctx;
	(void)known;
	return t.may == OK ? OK : err_set(e, t.may, "not now");
}

static inline void reopen(void)
{
	debuginfo_uploads_close(t.u);
	t.u = NULL;
	CHECK_OK(debuginfo_uploads_open(&t.config, &t.u, &t.e), &t.e);
}

static inline int uploading_setup(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	strcpy(t.path, "/tmp/firn_uploads_XXXXXX");
	CHECK(mkdtemp(t.path));
	debuginfo_uploads_config_default(&t.config);
	t.config.dir = t.path;
	reopen();
	return 0;
}

static inline int uploading_teardown(void **state)
{
	(void)state;
	char command[128];
	debuginfo_uploads_close(t.u);
	snprintf(command, sizeof(command), "rm -rf %s", t.path);
	return system(command);
}

static inline struct debuginfo_key key_of(const char *id, enum debuginfo_type type)
{
	return (struct debuginfo_key){ str_of(id), STR(""), type };
}

static inline struct debuginfo_record begin(const struct debuginfo_key *key, uint64_t size)
{
	struct debuginfo_record r;
	CHECK_OK(debuginfo_uploads_begin(t.u, key, STR("hash"), size, may_begin, NULL, &r, &t.e),
		&t.e);
	return r;
}

static inline enum status send_bytes(
	const struct debuginfo_key *key, const char *upload_id, struct str bytes, bool end)
{
	struct debuginfo_upload *up;
	uint64_t got = 0;
	enum status s = debuginfo_upload_open(
		t.u, key, str_of(upload_id), clock_monotonic_ns() + 10 * NS_PER_SEC, &up, &t.e);
	if (s != OK)
		return s;
	s = debuginfo_upload_write(up, str_sub(bytes, 0, bytes.len / 2), &t.e);
	if (s == OK)
		s = debuginfo_upload_write(up, str_sub(bytes, bytes.len / 2, bytes.len), &t.e);
	if (s == OK && end)
		s = debuginfo_upload_end(up, &got, &t.e);
	CHECK(s != OK || !end || got == bytes.len);
	debuginfo_upload_close(up);
	return s;
}

/* From the first to the last step. */
static inline struct debuginfo_record upload(const struct debuginfo_key *key, struct str bytes)
{
	struct debuginfo_record r = begin(key, bytes.len), out;
	CHECK_OK(send_bytes(key, r.upload, bytes, true), &t.e);
	CHECK_OK(debuginfo_uploads_finish(t.u, key, str_of(r.upload), &out, &t.e), &t.e);
	return out;
}

static inline bool has(const struct debuginfo_key *key, struct str want)
{
	CLEANUP(fd_cleanup) int fd = -1;
	CLEANUP(buf_deinit) struct buf b;
	uint64_t bytes;
	buf_init(&b, 1 << 20);
	if (debuginfo_uploads_file(t.u, key, &fd, &bytes, &t.e) != OK)
		return false;
	CHECK_OK(os_read_fd(fd, "it", &b, &t.e), &t.e);
	CHECK(bytes == b.len);
	return str_eq(buf_view(&b), want);
}

static inline enum debuginfo_state state_of(const struct debuginfo_key *key)
{
	struct debuginfo_record r;
	CHECK_OK(debuginfo_uploads_find(t.u, key, &r, &t.e), &t.e);
	return r.state;
}

static inline uint64_t metric(const char *name)
{
	CLEANUP(buf_deinit) struct buf b;
	char want[96];
	buf_init(&b, 65536);
	debuginfo_uploads_write_metrics(t.u, &b);
	buf_u8(&b, 0);
	snprintf(want, sizeof(want), "\n%s ", name);
	const char *at = strstr((char *)b.data, want);
	CHECK(at);
	return strtoull(at + strlen(want), NULL, 10);
}

/* Files below the directory whose name has this in it. */
static inline int files_with(const char *text)
{
	char command[160];
	snprintf(command, sizeof(command), "find %s -type f -name '*%s*' | wc -l", t.path, text);
	FILE *f = popen(command, "r");
	int n = -1;
	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}
