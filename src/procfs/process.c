/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/{stat,comm,exe} and the list of processes. Source: proc(5), fs/proc/array.c. */
#include "procfs/procfs.h"
#include <fcntl.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define STAT_BYTES_MAX 4096
#define STATUS_BYTES_MAX 16384
#define COMM_BYTES_MAX 64
/* Numbers of fields in /proc/PID/stat. */
#define STAT_FIELD_STATE 3
#define STAT_FIELD_PPID 4
#define STAT_FIELD_START 22

/* "pid (comm) state ppid …": comm is whatever the program chose, so the last ')' ends it. */
enum status procfs_stat_parse(struct str text, struct procfs_stat *out, struct err *e)
{
	size_t open = str_index(text, '('), close = str_rindex(text, ')');
	if (open == text.len || close == text.len || close <= open || close + 2 > text.len)
		return err_set(e, E_INVALID, "stat: no name in parentheses");
	struct procfs_stat s = { 0 };
	struct str comm = str_sub(text, open + 1, close - open - 1);
	comm = str_sub(comm, 0, sizeof(s.comm) - 1);
	memcpy(s.comm, comm.p, comm.len);
	struct str rest = str_sub(text, close + 2, text.len), field;
	int number = STAT_FIELD_STATE;
	for (; number <= STAT_FIELD_START && str_split(&rest, ' ', &field); number++) {
		uint64_t v = 0;
		bool wanted = number == STAT_FIELD_PPID || number == STAT_FIELD_START;
		if (wanted && !str_parse_u64(field, 10, &v))
			return err_set(e, E_INVALID, "stat: field %d is no number", number);
		if (number == STAT_FIELD_STATE)
			s.state = field.len ? field.p[0] : 0;
		else if (number == STAT_FIELD_PPID)
			s.ppid = (int)MIN(v, (uint64_t)INT_MAX);
		else if (number == STAT_FIELD_START)
			s.start_ticks = v;
	}
	if (number <= STAT_FIELD_START)
		return err_set(e, E_INVALID, "stat: ends before field %d", number);
	*out = s;
	return OK;
}

enum status procfs_stat(int pid, struct procfs_stat *out, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, STAT_BYTES_MAX);
	enum status s = os_read_file(path, &text, e);
	if (s != OK)
		return s;
	s = procfs_stat_parse(buf_view(&text), out, e);
	return s == OK ? OK : err_prefix(e, s, "%s", path);
}

bool procfs_exists(int pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) == 0 || errno != ENOENT;
}

enum status procfs_inner_pid_parse(struct str text, int *out, struct err *e)
{
	struct str line;
	while (str_split(&text, '\n', &line)) {
		if (!str_starts(line, STR("NSpid:")))
			continue;
		size_t tab = str_rindex(line, '\t');
		uint64_t pid;
		if (!str_parse_u64(str_sub(line, tab + 1, line.len), 10, &pid) || pid == 0 ||
			pid > INT_MAX)
			break;
		*out = (int)pid;
		return OK;
	}
	return err_set(e, E_INVALID, "status: no pid in NSpid");
}

enum status procfs_inner_pid(int pid, int *out, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, STATUS_BYTES_MAX);
	enum status s = os_read_file(path, &text, e);
	if (s != OK)
		return s;
	s = procfs_inner_pid_parse(buf_view(&text), out, e);
	return s == OK ? OK : err_prefix(e, s, "process %d", pid);
}

enum status procfs_user_parse(struct str text, uint32_t *out, struct err *e)
{
	struct str line, real;
	uint64_t user;
	while (str_split(&text, '\n', &line)) {
		if (!str_starts(line, STR("Uid:\t")))
			continue;
		line = str_sub(line, strlen("Uid:\t"), line.len);
		if (!str_split(&line, '\t', &real) || !str_parse_u64(real, 10, &user) ||
			user > UINT32_MAX)
			break;
		*out = (uint32_t)user;
		return OK;
	}
	return err_set(e, E_INVALID, "status: no user in Uid");
}

enum status procfs_user(int pid, uint32_t *out, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "open %s", path);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, STATUS_BYTES_MAX);
	enum status s = os_read_fd(fd, path, &text, e);
	if (s != OK)
		return s;
	s = procfs_user_parse(buf_view(&text), out, e);
	return s == OK ? OK : err_prefix(e, s, "process %d", pid);
}

enum status procfs_comm(int pid, int tid, char out[64], struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, COMM_BYTES_MAX);
	enum status s = os_read_file(path, &text, e);
	if (s != OK)
		return s;
	struct str comm = buf_view(&text);
	if (comm.len && comm.p[comm.len - 1] == '\n')
		comm.len--;
	comm = str_sub(comm, 0, COMM_BYTES_MAX - 1);
	memcpy(out, comm.p, comm.len);
	out[comm.len] = 0;
	return OK;
}

enum status procfs_exe(int pid, struct arena *a, struct str *out, struct err *e)
{
	char path[64], target[PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	ssize_t n = os_read_link(path, target, sizeof(target));
	if (n < 0 && errno == ETIMEDOUT)
		return err_set(e, E_TIMEOUT, "read link %s: the process does not answer", path);
	if (n < 0)
		return err_os(e, "read link %s", path);
	struct str name = str_make(target, (size_t)n);
	if (str_ends(name, STR(" (deleted)")))
		name.len -= STR(" (deleted)").len;
	size_t slash = str_rindex(name, '/');
	if (slash < name.len)
		name = str_sub(name, slash + 1, name.len);
	char *copy = arena_copy(a, name.p, name.len);
	if (!copy)
		return err_set(e, arena_status(a), "%s", path);
	*out = str_make(copy, name.len);
	return OK;
}

enum status procfs_pids(procfs_pid_fn *fn, void *ctx, struct err *e)
{
	DIR *d = opendir("/proc");
	if (!d)
		return err_os(e, "open /proc");
	enum status s = OK;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(d);
		if (!entry) {
			if (errno)
				s = err_os(e, "read /proc");
			break;
		}
		uint64_t pid;
		if (!str_parse_u64(str_of(entry->d_name), 10, &pid) || pid > INT_MAX)
			continue;
		if (!fn(ctx, (int)pid))
			break;
	}
	closedir(d);
	return s;
}

static enum status read_beginning(
	int pid, const char *name, size_t max, struct arena *a, struct str *out, struct err *e)
{
	char path[64];
	size_t len = 0;
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	CLEANUP(fd_cleanup) int fd = os_open_read(path);
	if (fd < 0)
		return err_os(e, "open %s", path);
	char *text = ARENA_ARRAY(a, char, max);
	if (!text)
		return err_set(e, arena_status(a), "%s", path);
	while (len < max) {
		ssize_t n = read(fd, text + len, max - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(e, "read %s", path);
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*out = str_make(text, len);
	return OK;
}

enum status procfs_arguments(int pid, size_t max, struct arena *a, struct str *out, struct err *e)
{
	return read_beginning(pid, "cmdline", max, a, out, e);
}

/* ---- the environment, in pieces ---- */

#define PIECE_BYTES ((size_t)16 << 10)

struct sieve {
	procfs_wanted_fn *wanted;
	const void *ctx;
	struct buf kept;
	struct buf part; /* the begin of a variable that continues in the next piece */
	bool skipping;   /* skip the rest of the variable */
};

static void take_variable(struct sieve *s, struct str variable)
{
	struct str name = str_sub(variable, 0, str_index(variable, '='));
	if (name.len == variable.len || !s->wanted(s->ctx, name) ||
		s->kept.len + variable.len + 1 > s->kept.max)
		return;
	buf_str(&s->kept, variable);
	buf_u8(&s->kept, 0);
}

static void end_variable(struct sieve *s, struct str rest)
{
	if (!s->skipping && s->part.len == 0)
		take_variable(s, rest);
	else if (!s->skipping && s->part.len + rest.len <= s->part.max) {
		buf_str(&s->part, rest);
		take_variable(s, buf_view(&s->part));
	}
	s->skipping = false;
	buf_clear(&s->part);
}

static void take_piece(struct sieve *s, struct str piece)
{
	size_t end;
	while ((end = str_index(piece, 0)) < piece.len) {
		end_variable(s, str_sub(piece, 0, end));
		piece = str_sub(piece, end + 1, piece.len);
	}
	if (s->part.len + piece.len > s->part.max)
		s->skipping = true;
	else if (!s->skipping)
		buf_str(&s->part, piece);
}

static enum status read_variables(int fd, const char *path, struct sieve *s, struct err *e)
{
	char piece[PIECE_BYTES];
	for (size_t done = 0; done < PROCFS_ENVIRONMENT_BYTES_MAX;) {
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_os(e, "read %s", path);
		if (n == 0)
			break;
		take_piece(s, str_make(piece, (size_t)n));
		done += (size_t)n;
	}
	end_variable(s, STR(""));
	return buf_status(&s->kept) == OK ? buf_status(&s->part) : E_NOMEM;
}

enum status procfs_environment(int pid, procfs_wanted_fn *wanted, const void *ctx, struct arena *a,
	struct str *out, struct err *e)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	CLEANUP(fd_cleanup) int fd = os_open_read(path);
	if (fd < 0)
		return err_os(e, "open %s", path);
	struct sieve s = { .wanted = wanted, .ctx = ctx };
	buf_init(&s.kept, PROCFS_VARIABLES_BYTES_MAX);
	buf_init(&s.part, PROCFS_VARIABLE_BYTES_MAX);
	enum status st = read_variables(fd, path, &s, e);
	char *text = st == OK ? arena_copy(a, s.kept.data, s.kept.len) : NULL;
	if (st == OK && !text)
		st = err_set(e, arena_status(a), "%s", path);
	if (st == OK)
		*out = str_make(text, s.kept.len);
	buf_deinit(&s.kept);
	buf_deinit(&s.part);
	return st;
}
