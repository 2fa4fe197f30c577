/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Root without capabilities may do what any user may, and owns root's files. So a folder
 * that another user owns is made ours first, and one below a closed folder is used through its
 * descriptor.
 */
#include "agent/broker/privilege.h"
#include "agent/broker/capabilities.h"

#include "agent/broker/broker.h"
#include "agent/broker/broker_serve.h"
#include "agent/broker/flag_file.h"
#include "agent/broker/sandbox.h"
#include "base/arena.h"
#include "base/log.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTING_BYTES_MAX ((size_t)16 << 20)
#define BIT(capability) ((uint64_t)1 << (capability))

/* ---- the broker ---- */

const struct privilege_want privilege_wants[PRIVILEGE_WANTS] = {
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "executables of other users' processes" },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "files that only their owner may read" },
	{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "executables deleted since" },
	{ CAP_SYSLOG, "CAP_SYSLOG", "kernel functions where kptr_restrict is set" },
	{ CAP_PERFMON, "CAP_PERFMON", "CPUs that come online later" },
	{ CAP_BPF, "CAP_BPF",
		"files whose unwind tables no longer fit into the memory of the start" },
};

/* CAP_SYS_ADMIN is enough for some of them where it stays; the broker keeps it before Linux 5.9
 * only, when there was nothing smaller. */
uint32_t privilege_missing(bool keeps_all)
{
	uint64_t have = keeps_all ? os_capabilities() : broker_capabilities();
	uint32_t missing = 0;
	if (have & BIT(CAP_SYS_ADMIN))
		have |= BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_PERFMON) | BIT(CAP_BPF);
	for (size_t i = 0; i < PRIVILEGE_WANTS; i++)
		if (!(have & BIT(privilege_wants[i].capability)))
			missing |= 1u << i;
	return missing;
}

void privilege_log_missing(uint32_t missing)
{
	char names[160] = "", effects[320] = "";
	size_t n = 0, k = 0;
	bool is_admin = (os_capabilities() & BIT(CAP_SYS_ADMIN)) != 0;
	for (size_t i = 0; i < PRIVILEGE_WANTS; i++) {
		const struct privilege_want *w = &privilege_wants[i];
		if (!(missing >> i & 1))
			continue;
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", w->name);
		k += (size_t)snprintf(
			effects + k, sizeof(effects) - k, "%s%s", k ? "; " : "", w->without);
		assert(n < sizeof(names) && k < sizeof(effects));
	}
	if (missing)
		log_warn("capabilities are missing: some frames will have no names",
			"capabilities=%s not_seen=%s%s", LOG_QUOTED(names), LOG_QUOTED(effects),
			is_admin ? " note=\"CAP_SYS_ADMIN does not stand for them\"" : "");
}

enum status privilege_start_broker(const struct broker_config *c, struct err *e)
{
	enum status s = broker_start(c, e);
	if (s == OK)
		os_set_own_reader(flag_file_read);
	return s;
}

enum status privilege_split(const struct broker_config *c, struct err *e)
{
	return broker_capabilities() ? privilege_start_broker(c, e) : OK;
}

/* ---- folders ---- */

/* Of a spool or a cache. */
static bool is_agents(struct str name)
{
	return str_eq(name, STR("lock")) || str_ends(name, STR(".batch")) ||
	       str_ends(name, STR(".unwind")) || str_ends(name, STR(".tmp"));
}

/* A directory that contains other files of its owner is not taken over: it may be a home that was
 * named by mistake. */
static enum status make_ours(const struct privilege_dir *d, uid_t from, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, LISTING_BYTES_MAX);
	struct str *names = NULL;
	size_t count = 0;
	uid_t own = geteuid();
	struct stat st;
	enum status s = os_list_dir(d->path, &a, &names, &count, e);
	for (size_t i = 0; i < count && s == OK; i++)
		if (!is_agents(names[i]) &&
			fstatat(d->fd, names[i].p, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			st.st_uid == from)
			s = err_set(e, E_INVALID,
				"%.150s belongs to user %u and holds more than the agent's files "
				"(%.60s): name another directory",
				d->path, from, names[i].p);
	if (s != OK)
		return s;
	for (size_t i = 0; i < count; i++)
		if (is_agents(names[i]) &&
			fstatat(d->fd, names[i].p, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			st.st_uid != own && S_ISREG(st.st_mode))
			(void)!fchownat(d->fd, names[i].p, own, (gid_t)-1, AT_SYMLINK_NOFOLLOW);
	(void)!fchownat(d->fd, "", own, (gid_t)-1, AT_EMPTY_PATH);
	return OK;
}

enum status privilege_dir_open(const char *dir, struct privilege_dir *out, struct err *e)
{
	struct stat st;
	*out = (struct privilege_dir){ .fd = -1 };
	if (!dir || !dir[0])
		return OK;
	enum status s = os_make_dirs(dir, e);
	if (s != OK)
		return s;
	int n = snprintf(out->path, sizeof(out->path), "%s", dir);
	if (n >= (int)sizeof(out->path))
		return err_set(e, E_INVALID, "path too long: %.100s…", dir);
	out->fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (out->fd < 0 || fstat(out->fd, &st) < 0)
		return err_os(e, "open %s", dir);
	if (st.st_uid != geteuid() && (os_capabilities() & BIT(CAP_CHOWN)))
		return make_ours(out, st.st_uid, e);
	return OK;
}

void privilege_socket_dir(const char *address, struct privilege_dir *out)
{
	static const char scheme[] = "unix:";
	*out = (struct privilege_dir){ .fd = -1, .sockets = true };
	if (!address || strncmp(address, scheme, sizeof(scheme) - 1) != 0)
		return;
	int n = snprintf(out->path, sizeof(out->path), "%s", address + sizeof(scheme) - 1);
	char *slash = strrchr(out->path, '/');
	if (n >= (int)sizeof(out->path) || !slash)
		return; /* listening will report the error */
	slash[slash == out->path] = 0;
	out->fd = open(out->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ---- giving up ---- */

#define DIRS_MAX 8

static enum status limit_writing(struct privilege_dir *const dirs[], struct err *e)
{
	struct sandbox_dir allowed[DIRS_MAX];
	struct err why = { 0 };
	size_t count = 0;
	for (; dirs[count]; count++) {
		assert(count < DIRS_MAX);
		allowed[count] = (struct sandbox_dir){ dirs[count]->fd, dirs[count]->sockets };
	}
	enum status s = sandbox_limit_writing(allowed, count, &why);
	if (s == E_UNSUPPORTED) {
		log_info("files of this user can be written: the kernel cannot limit that",
			"err=%s", LOG_QUOTED(why.text));
		return OK;
	}
	return s == OK ? OK : err_set(e, s, "%s", why.text);
}

/* Before Linux 5.19, where kernel.unprivileged_bpf_disabled is set, an unprivileged process cannot
 * call bpf(2) at all, whatever descriptors it has. */
static enum status drop_capabilities(bool (*works)(void *ctx), void *ctx, struct err *e)
{
	uint64_t bpf = os_capabilities() & (BIT(CAP_BPF));
	enum status s = os_set_capabilities(0, bpf, e);
	if (s == OK && bpf && !works(ctx)) {
		log_info("this kernel wants CAP_BPF for looking into maps: it is kept", "%s", "");
		return os_set_capabilities(bpf, bpf, e);
	}
	if (s == OK)
		s = os_set_capabilities(0, 0, e);
	if (s == OK && !bpf && !works(ctx))
		return err_set(e, E_DENIED,
			"this kernel wants CAP_BPF for looking into maps: grant it "
			"(CAP_SYS_ADMIN stands for it when they are made, and is not kept)");
	return s;
}

enum status privilege_drop(
	bool (*works)(void *ctx), void *ctx, struct privilege_dir *dirs[], struct err *e)
{
	enum status s = drop_capabilities(works, ctx, e);
	if (s == OK)
		s = os_harden(e);
	if (s == OK)
		s = limit_writing(dirs, e);
	if (s == OK)
		s = sandbox_enter_agent(e);
	for (; s == OK && *dirs; dirs++) {
		struct privilege_dir *d = *dirs;
		if (d->fd >= 0 && access(d->path, W_OK | X_OK) < 0)
			snprintf(d->path, sizeof(d->path), "/proc/self/fd/%d", d->fd);
	}
	return s;
}
