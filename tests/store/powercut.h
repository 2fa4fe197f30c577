/* SPDX-License-Identifier: Apache-2.0 */
/*
 * powercut: what a disk may hold after the power failed. A journal takes down every change that a
 * store makes of its directory (faults.h); powercut_make() builds a directory as it could be found
 * after any of them, when what was not synced may be lost:
 *
 *   bytes of a file    those before the last sync of the file are there; of those after it each
 *                      write is there or not, or only some of its sectors are
 *   names              those before the last sync of the folder are there; of the changes after it
 *                      the first few
 */
#pragma once

#include "tests/store/faults.h"
#include "tests/store/fixture.h"

enum power_kind {
	P_CREATE,
	P_WRITE,
	P_SIZE,
	P_SYNC,
	P_RENAME,
	P_UNLINK,
	P_MKDIR,
	P_SYNCDIR,
	P_ACK
};

struct power_event {
	enum power_kind kind;
	int file;
	uint64_t at; /* offset, size, or the batch that was acknowledged */
	size_t len;
	uint8_t *bytes;
	bool at_least;
	char *path; /* relative to the directory */
	char *to;
};

struct power_name {
	char *path;
	int file; /* -1: a folder */
};

static struct powercut {
	char dir[64];
	VEC(struct power_event) events;
	VEC(struct power_name) names; /* as they are now */
	struct {
		char *folder;
		int file;
	} fds[4096];
	int files;
} powercut;

static const char *power_relative(const char *path)
{
	size_t n = strlen(powercut.dir);
	if (strncmp(path, powercut.dir, n) != 0 || (path[n] != '/' && path[n] != 0))
		return NULL;
	return path[n] ? path + n + 1 : ".";
}

static char *power_copy(const char *text)
{
	char *copy = strdup(text);
	CHECK(copy != NULL);
	return copy;
}

static struct power_event *power_add(enum power_kind kind)
{
	CHECK(VEC_PUSH(&powercut.events, (struct power_event){ .kind = kind, .file = -1 }));
	return &powercut.events.v[powercut.events.len - 1];
}

static struct power_name *power_find(const char *path)
{
	for (size_t i = 0; i < powercut.names.len; i++)
		if (strcmp(powercut.names.v[i].path, path) == 0)
			return &powercut.names.v[i];
	return NULL;
}

static void power_forget(const char *path)
{
	struct power_name *x = power_find(path);
	if (!x)
		return;
	free(x->path);
	*x = powercut.names.v[--powercut.names.len];
}

static void power_opened(int fd, const char *path, int flags, bool existed)
{
	const char *name = power_relative(path);
	CHECK(fd < (int)ARRAY_COUNT(powercut.fds));
	free(powercut.fds[fd].folder);
	powercut.fds[fd].folder = NULL;
	powercut.fds[fd].file = -1;
	if (!name)
		return;
	if (flags & O_DIRECTORY) {
		powercut.fds[fd].folder = power_copy(name);
		return;
	}
	if (!existed && (flags & O_CREAT)) {
		struct power_event *e = power_add(P_CREATE);
		e->path = power_copy(name);
		e->file = powercut.files++;
		struct power_name n = { power_copy(name), e->file };
		CHECK(VEC_PUSH(&powercut.names, n));
	}
	struct power_name *x = power_find(name);
	powercut.fds[fd].file = x ? x->file : -1;
	if (existed && (flags & O_TRUNC) && x) {
		struct power_event *e = power_add(P_SIZE);
		e->file = x->file;
	}
}

static void power_wrote(int fd, const void *bytes, size_t len, uint64_t offset)
{
	if (powercut.fds[fd].file < 0)
		return;
	struct power_event *e = power_add(P_WRITE);
	e->file = powercut.fds[fd].file;
	e->at = offset;
	e->len = len;
	e->bytes = malloc(len);
	CHECK(e->bytes != NULL);
	memcpy(e->bytes, bytes, len);
}

static void power_sized(int fd, uint64_t len, bool at_least)
{
	if (powercut.fds[fd].file < 0)
		return;
	struct power_event *e = power_add(P_SIZE);
	e->file = powercut.fds[fd].file;
	e->at = len;
	e->at_least = at_least;
}

static void power_synced(int fd)
{
	if (powercut.fds[fd].folder) {
		power_add(P_SYNCDIR)->path = power_copy(powercut.fds[fd].folder);
		return;
	}
	if (powercut.fds[fd].file >= 0)
		power_add(P_SYNC)->file = powercut.fds[fd].file;
}

static void power_renamed(const char *from, const char *to)
{
	from = power_relative(from);
	to = power_relative(to);
	CHECK(from && to);
	struct power_name *x = power_find(from);
	CHECK(x != NULL);
	int file = x->file;
	power_forget(from);
	power_forget(to);
	struct power_name n = { power_copy(to), file };
	CHECK(VEC_PUSH(&powercut.names, n));
	struct power_event *e = power_add(P_RENAME);
	e->path = power_copy(from);
	e->to = power_copy(to);
	e->file = file;
}

static void power_unlinked(const char *path)
{
	const char *name = power_relative(path);
	if (!name)
		return;
	power_forget(name);
	power_add(P_UNLINK)->path = power_copy(name);
}

static void power_made_dir(const char *path)
{
	const char *name = power_relative(path);
	if (name)
		power_add(P_MKDIR)->path = power_copy(name);
}

static const struct fault_listener power_listener = { power_opened, power_wrote, power_sized,
	power_synced, power_renamed, power_unlinked, power_made_dir };

/* From now on changes of `dir`, which exists and is empty, are taken down. */
static void powercut_begin(const char *dir)
{
	snprintf(powercut.dir, sizeof(powercut.dir), "%s", dir);
	fault_listener = &power_listener;
}

static void powercut_ack(uint32_t batch)
{
	pthread_mutex_lock(&fault_listening);
	power_add(P_ACK)->at = batch;
	pthread_mutex_unlock(&fault_listening);
}

/* How many changes were taken down so far; the store may be making more of them. */
static inline size_t powercut_changes(void)
{
	pthread_mutex_lock(&fault_listening);
	size_t n = powercut.events.len;
	pthread_mutex_unlock(&fault_listening);
	return n;
}

/* Ends taking down; the journal stays until powercut_free(). */
static void powercut_end(void)
{
	fault_listener = NULL;
}

static void powercut_free(void)
{
	for (size_t i = 0; i < powercut.events.len; i++) {
		free(powercut.events.v[i].bytes);
		free(powercut.events.v[i].path);
		free(powercut.events.v[i].to);
	}
	for (size_t i = 0; i < powercut.names.len; i++)
		free(powercut.names.v[i].path);
	for (size_t i = 0; i < ARRAY_COUNT(powercut.fds); i++)
		free(powercut.fds[i].folder);
	VEC_FREE(&powercut.events);
	VEC_FREE(&powercut.names);
	memset(&powercut, 0, sizeof(powercut));
}

/* ---- what is left ---- */

enum power_luck {
	POWER_WORST,  /* nothing that was not synced */
	POWER_NAMES,  /* all names, no bytes: the empty files behind renames */
	POWER_BYTES,  /* all bytes, no names */
	POWER_RANDOM, /* any of it */
	POWER_LUCKS,
};

static bool in_folder(const char *path, const char *folder)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	if (!slash)
		return strcmp(folder, ".") == 0;
	return strlen(folder) == n && strncmp(path, folder, n) == 0;
}

/* Is the change of names `i` on the disk, when the journal ends at `end`? */
static bool name_synced(size_t i, size_t end)
{
	const struct power_event *e = &powercut.events.v[i];
	for (size_t k = i + 1; k < end; k++) {
		const struct power_event *s = &powercut.events.v[k];
		if (s->kind == P_SYNCDIR &&
			(in_folder(e->path, s->path) || (e->to && in_folder(e->to, s->path))))
			return true;
	}
	return false;
}

static bool bytes_synced(size_t i, size_t end)
{
	for (size_t k = i + 1; k < end; k++)
		if (powercut.events.v[k].kind == P_SYNC &&
			powercut.events.v[k].file == powercut.events.v[i].file)
			return true;
	return false;
}

static void write_at(const char *path, const uint8_t *bytes, size_t len, uint64_t at)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && pwrite(fd, bytes, len, (off_t)at) == (ssize_t)len);
	close(fd);
}

static void set_size(const char *path, const struct power_event *e)
{
	struct stat st = { 0 };
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	if (!e->at_least || (uint64_t)st.st_size < e->at)
		CHECK(ftruncate(fd, (off_t)e->at) == 0);
	close(fd);
}

/* Sectors of a write that was under way. */
static void write_torn(const char *path, const struct power_event *e, uint64_t *random)
{
	for (size_t from = 0; from < e->len;) {
		size_t to = MIN(e->len, from + 512 - (e->at + from) % 512);
		if (rnd_below(random, 2))
			write_at(path, e->bytes + from, to - from, e->at + from);
		from = to;
	}
}

static void make_file(
	const char *path, int file, size_t end, enum power_luck luck, uint64_t *random)
{
	const struct power_event none = { .at_least = true };
	set_size(path, &none);
	for (size_t i = 0; i < end; i++) {
		const struct power_event *e = &powercut.events.v[i];
		if (e->file != file || (e->kind != P_WRITE && e->kind != P_SIZE))
			continue;
		bool synced = bytes_synced(i, end);
		uint64_t dice = luck == POWER_RANDOM ? rnd_below(random, 3) : 0;
		if (!synced && luck != POWER_BYTES && dice == 0)
			continue;
		if (e->kind == P_SIZE)
			set_size(path, e);
		else if (!synced && dice == 2)
			write_torn(path, e, random);
		else
			write_at(path, e->bytes, e->len, e->at);
	}
}

/* The names after the first `end` events; those of one folder change in their order. */
static void left_names(
	size_t end, enum power_luck luck, uint64_t *random, struct power_name *out, size_t *count)
{
	bool over = false;
	*count = 0;
	for (size_t i = 0; i < end; i++) {
		const struct power_event *e = &powercut.events.v[i];
		if (e->kind != P_CREATE && e->kind != P_RENAME && e->kind != P_UNLINK)
			continue;
		bool synced = name_synced(i, end);
		if (!synced && luck != POWER_NAMES)
			over |= luck != POWER_RANDOM || rnd_below(random, 4) == 0;
		if (!synced && over)
			continue;
		for (size_t k = 0; k < *count; k++) /* what had this name, or the one before */
			if (strcmp(out[k].path, e->path) == 0 ||
				(e->to && strcmp(out[k].path, e->to) == 0))
				out[k--] = out[--*count];
		if (e->kind != P_UNLINK)
			out[(*count)++] = (struct power_name){ e->to ? e->to : e->path, e->file };
	}
}

/* The directory `dir`, which exists and is empty, as it may be after `end` events. */
static void powercut_make(const char *dir, size_t end, enum power_luck luck, uint64_t *random)
{
	static const char *const subs[] = { "parts", "log", "quarantine" };
	struct power_name names[512];
	size_t count;
	char path[256];
	CHECK(end < ARRAY_COUNT(names) * 64);
	for (size_t i = 0; i < ARRAY_COUNT(subs); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, subs[i]);
		CHECK(mkdir(path, 0700) == 0);
	}
	left_names(end, luck, random, names, &count);
	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i].path);
		make_file(path, names[i].file, end, luck, random);
	}
}

static void powercut_acknowledged(size_t end, uint8_t *out, size_t max)
{
	memset(out, 0, max);
	for (size_t i = 0; i < end; i++)
		if (powercut.events.v[i].kind == P_ACK)
			out[powercut.events.v[i].at] = 1;
}
