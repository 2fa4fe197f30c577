/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two filters of system calls, by what is allowed. Of the agent any other call fails with ENOSYS;
 * the broker is killed by one. Landlock limits the folders that the agent writes in.
 */
#include "agent/broker/sandbox.h"
#include "base/sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* clang-format off */
#define MEMORY_CALLS                                                                               \
	SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise), \
	SCMP_SYS(brk)
#define THREAD_CALLS                                                                               \
	SCMP_SYS(futex), SCMP_SYS(rseq), SCMP_SYS(set_robust_list), SCMP_SYS(gettid),              \
	SCMP_SYS(sched_yield), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(restart_syscall),    \
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(getpid)
#define CLOCK_CALLS                                                                                \
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep),                \
	SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(time)

static const int broker_calls[] = {
	MEMORY_CALLS, THREAD_CALLS, CLOCK_CALLS,
	SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(openat2), SCMP_SYS(close), SCMP_SYS(fstat),
	SCMP_SYS(fstatfs), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
	SCMP_SYS(pread64), SCMP_SYS(open_by_handle_at), SCMP_SYS(perf_event_open),
	/* the sentence of an assert that failed */
	SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(tgkill),
};

static const int agent_calls[] = {
	MEMORY_CALLS, THREAD_CALLS, CLOCK_CALLS,
	/* threads */
	SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity),
	SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler), SCMP_SYS(sched_setscheduler),
	SCMP_SYS(setpriority), SCMP_SYS(getpriority), SCMP_SYS(prctl), SCMP_SYS(membarrier),
	SCMP_SYS(sigaltstack), SCMP_SYS(rt_sigtimedwait), SCMP_SYS(getcpu),
	/* files */
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(preadv2),
	SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(pwritev2),
	SCMP_SYS(close), SCMP_SYS(close_range), SCMP_SYS(lseek),
	SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx),
	SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
	SCMP_SYS(getcwd), SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(rename), SCMP_SYS(renameat),
	SCMP_SYS(renameat2), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rmdir),
	SCMP_SYS(utimensat), SCMP_SYS(ftruncate), SCMP_SYS(fallocate), SCMP_SYS(fsync),
	SCMP_SYS(fdatasync), SCMP_SYS(sync_file_range), SCMP_SYS(flock),
	SCMP_SYS(fadvise64), SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3),
	SCMP_SYS(pipe), SCMP_SYS(pipe2), SCMP_SYS(memfd_create), SCMP_SYS(umask), SCMP_SYS(sendfile),
	SCMP_SYS(copy_file_range), SCMP_SYS(msync), SCMP_SYS(mincore),
	SCMP_SYS(inotify_init1), SCMP_SYS(inotify_add_watch), SCMP_SYS(inotify_rm_watch),
	/* waiting */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2), SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime), SCMP_SYS(signalfd4),
	/* the network; socket() by family */
	SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen), SCMP_SYS(accept), SCMP_SYS(accept4),
	SCMP_SYS(socketpair), SCMP_SYS(shutdown), SCMP_SYS(getsockname), SCMP_SYS(getpeername),
	SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(sendto), SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(recvmmsg),
	/* itself */
	SCMP_SYS(getrandom), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
	SCMP_SYS(getgroups), SCMP_SYS(getppid), SCMP_SYS(getpgrp), SCMP_SYS(getrusage),
	SCMP_SYS(getrlimit), SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(times),
	SCMP_SYS(capget), SCMP_SYS(getresuid), SCMP_SYS(getresgid), SCMP_SYS(wait4),
};

/* No program asks for these by mistake. */
static const int deadly_calls[] = {
	SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev), SCMP_SYS(init_module), SCMP_SYS(finit_module),
	SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(mount),
	SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(setns),
	SCMP_SYS(unshare), SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff), SCMP_SYS(add_key),
	SCMP_SYS(request_key), SCMP_SYS(keyctl), SCMP_SYS(userfaultfd), SCMP_SYS(pidfd_getfd),
	SCMP_SYS(io_uring_setup), SCMP_SYS(setuid), SCMP_SYS(setresuid), SCMP_SYS(capset),
};

/* F_SETOWN and F_SETSIG are left out: they send any signal to any process of the same user. */
static const int fcntl_commands[] = {
	F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW,
	F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_ADD_SEALS, F_GET_SEALS, F_GETPIPE_SZ, F_SETPIPE_SZ,
};

/* TIOCSTI and TIOCLINUX are left out: they type into the terminal that it was started from. */
static const unsigned long ioctl_requests[] = {
	PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_REFRESH, PERF_EVENT_IOC_RESET,
	PERF_EVENT_IOC_PERIOD, PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ID,
	FIONBIO, FIONREAD, FIOCLEX, TCGETS, TIOCGWINSZ, SIOCGIFINDEX,
};

/* Commands that use a map or program that is open; none that makes or loads one. */
static const int bpf_commands[] = {
	BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY,
	BPF_MAP_LOOKUP_BATCH, BPF_MAP_LOOKUP_AND_DELETE_ELEM, BPF_MAP_UPDATE_BATCH,
	BPF_MAP_DELETE_BATCH, BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE, BPF_LINK_DETACH,
};
/* clang-format on */

static int add_all(scmp_filter_ctx ctx, uint32_t action, const int *calls, size_t count)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = seccomp_rule_add(ctx, action, calls[i], 0);
	return rc;
}

static int add_fcntl_rules(scmp_filter_ctx ctx)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < ARRAY_COUNT(fcntl_commands); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
			SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)fcntl_commands[i]));
	return rc;
}

/* O_TRUNC writes even where a file is opened for reading. Landlock sees that from Linux 6.2 on. */
static int add_open_rules(scmp_filter_ctx ctx)
{
	static const struct {
		int mask, value;
	} allowed[] = { { O_TRUNC, 0 }, { O_ACCMODE, O_WRONLY }, { O_ACCMODE, O_RDWR } };
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < ARRAY_COUNT(allowed); i++) {
		scmp_datum_t mask = (scmp_datum_t)allowed[i].mask;
		scmp_datum_t value = (scmp_datum_t)allowed[i].value;
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
			SCMP_A1(SCMP_CMP_MASKED_EQ, mask, value));
		if (rc == 0)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
				SCMP_A2(SCMP_CMP_MASKED_EQ, mask, value));
	}
	return rc;
}

static int add_agent_rules(scmp_filter_ctx ctx)
{
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	int rc = add_all(ctx, SCMP_ACT_ALLOW, agent_calls, ARRAY_COUNT(agent_calls));
	if (rc == 0)
		rc = add_fcntl_rules(ctx);
	if (rc == 0)
		rc = add_open_rules(ctx);
	for (size_t i = 0; rc == 0 && i < ARRAY_COUNT(ioctl_requests); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
			SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)ioctl_requests[i]));
	if (rc == 0)
		rc = add_all(ctx, SCMP_ACT_KILL_PROCESS, deadly_calls, ARRAY_COUNT(deadly_calls));
	for (size_t i = 0; rc == 0 && i < ARRAY_COUNT(families); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
			SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
	for (size_t i = 0; rc == 0 && i < ARRAY_COUNT(bpf_commands); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1,
			SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)bpf_commands[i]));
	/* Threads, not processes; of clone3() the flags cannot be seen, and glibc does without. */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	/* Its own: other processes of root have the same user. */
	if (rc == 0)
		rc = seccomp_rule_add(
			ctx, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_EQ, 0));
	/* To itself: abort(). */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
			SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
	return rc;
}

static enum status load(scmp_filter_ctx ctx, int rc, struct err *e)
{
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc == 0)
		return OK;
	errno = -rc;
	return err_os(e, "seccomp");
}

enum status sandbox_enter_agent(struct err *e)
{
	if (SANITIZED)
		return OK;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	if (!ctx)
		return err_set(e, E_NOMEM, "seccomp filter");
	return load(ctx, add_agent_rules(ctx), e);
}

/* ---- files ---- */

#define WRITE_RIGHTS                                                           \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |       \
		LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | \
		LANDLOCK_ACCESS_FS_MAKE_REG)
#define SOCKET_RIGHTS (LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define ALL_RIGHTS                                                             \
	(WRITE_RIGHTS | SOCKET_RIGHTS | LANDLOCK_ACCESS_FS_EXECUTE |           \
		LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
		LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* Rights that came later, by the version of the interface. */
static uint64_t later_rights(long version)
{
	return (version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
	       (version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0);
}

static enum status limit_by(
	int rules, uint64_t later, const struct sandbox_dir *dirs, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		const struct landlock_path_beneath_attr rule = {
			.allowed_access = dirs[i].sockets ? SOCKET_RIGHTS : WRITE_RIGHTS | later,
			.parent_fd = dirs[i].fd,
		};
		if (dirs[i].fd >= 0 && syscall(SYS_landlock_add_rule, rules,
					       LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
			return err_os(e, "Landlock: folder");
	}
	if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		return err_os(e, "Landlock");
	return OK;
}

enum status sandbox_limit_writing(const struct sandbox_dir *dirs, size_t count, struct err *e)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 1)
		return err_set(e, E_UNSUPPORTED, "Landlock: %m");
	uint64_t later = later_rights(version);
	const struct landlock_ruleset_attr attr = { .handled_access_fs = ALL_RIGHTS | later };
	CLEANUP(fd_cleanup)
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules < 0)
		return err_os(e, "Landlock: rules");
	return limit_by(rules, later, dirs, count, e);
}

enum status sandbox_enter_broker(struct err *e)
{
	if (SANITIZED)
		return OK;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!ctx)
		return err_set(e, E_NOMEM, "seccomp filter");
	int rc = add_all(ctx, SCMP_ACT_ALLOW, broker_calls, ARRAY_COUNT(broker_calls));
	if (rc == 0)
		rc = add_fcntl_rules(ctx);
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1,
			SCMP_A0(SCMP_CMP_EQ, BPF_MAP_CREATE));
	if (rc == 0) /* its other thread may still be about to name itself */
		rc = seccomp_rule_add(
			ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
	return load(ctx, rc, e);
}
