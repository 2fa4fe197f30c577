/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each thing that sampling needs is tried in turn, and the first that fails is explained by what
 * the system says about itself: capabilities, sysctls, lockdown.
 */
#include "agent/sample/probe.h"

#include "os/os.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

#define BTF_PATH "/sys/kernel/btf/vmlinux"
#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"
#define SMALL_FILE_MAX (64u << 10)
#define HOST_PID_NAMESPACE 0xEFFFFFFCu /* inode: PROC_PID_INIT_INO of the kernel's proc_ns.h */

/* The text of a small file; empty when it cannot be read. The caller deinits `b`. */
static struct str small_file(struct buf *b, const char *path)
{
	buf_init(b, SMALL_FILE_MAX);
	return os_read_file(path, b, NULL) == OK ? buf_view(b) : STR("");
}

bool probe_has_capability(int capability)
{
	CLEANUP(buf_deinit) struct buf b;
	struct str text = small_file(&b, "/proc/self/status");
	struct str line;
	uint64_t set;
	while (str_split(&text, '\n', &line)) {
		struct str name = STR("CapEff:");
		if (str_starts(line, name) &&
			str_parse_u64(str_trim(str_sub(line, name.len, line.len)), 16, &set))
			return (set >> capability & 1) != 0;
	}
	return false;
}

static bool lockdown_is_confidentiality(void)
{
	CLEANUP(buf_deinit) struct buf b;
	struct str text = small_file(&b, LOCKDOWN_PATH);
	struct str word;
	while (str_split(&text, ' ', &word)) {
		if (str_starts(word, STR("[confidentiality]")))
			return true;
	}
	return false;
}

/* Debian's kernels have a level of 3, their default, at which CAP_SYS_ADMIN is required. */
static int64_t perf_event_paranoid(void)
{
	CLEANUP(buf_deinit) struct buf b;
	uint64_t level;
	struct str text = str_trim(small_file(&b, "/proc/sys/kernel/perf_event_paranoid"));
	return str_parse_u64(text, 10, &level) ? (int64_t)MIN(level, (uint64_t)9) : -1;
}

static enum status explain_denied(const char *what, struct err *e)
{
	bool admin = probe_has_capability(CAP_SYS_ADMIN);
	bool bpf = admin || probe_has_capability(CAP_BPF);
	bool perfmon = admin || probe_has_capability(CAP_PERFMON);
	if (!bpf || !perfmon)
		return err_set(e, E_DENIED,
			"%s is not allowed: %s%s%s missing; run as root, or give the program "
			"the capabilities cap_bpf and cap_perfmon (cap_sys_admin before Linux 5.8)",
			what, bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ",
			perfmon ? (bpf ? "" : " is")
				: (bpf ? "CAP_PERFMON is" : "CAP_PERFMON are"));
	if (!admin && strstr(what, "perf_event_open") && perf_event_paranoid() > 2)
		return err_set(e, E_DENIED,
			"%s is not allowed: kernel.perf_event_paranoid is %d, which asks for "
			"CAP_SYS_ADMIN: give it, or run sysctl kernel.perf_event_paranoid=2",
			what, (int)perf_event_paranoid());
	if (lockdown_is_confidentiality())
		return err_set(e, E_DENIED,
			"%s is not allowed: the kernel is locked down (" LOCKDOWN_PATH
			" says confidentiality); boot with lockdown=integrity",
			what);
	return err_set(e, E_DENIED,
		"%s is not allowed although CAP_BPF and CAP_PERFMON are there: seccomp, AppArmor "
		"or SELinux forbids it; containers may take deploy/seccomp/firn-agent.json and "
		"deploy/apparmor/firn-agent or deploy/selinux/firn-agent.cil",
		what);
}

enum status probe_explain(const char *what, int error, struct err *e)
{
	struct utsname u = { 0 };
	(void)uname(&u);
	switch (error) {
	case EPERM:
	case EACCES:
		return explain_denied(what, e);
	case ENOSYS:
		return err_set(e, E_UNSUPPORTED,
			"%s is not possible: this kernel (%s) was built without it "
			"(CONFIG_BPF_SYSCALL, CONFIG_PERF_EVENTS)",
			what, u.release);
	case EINVAL:
		return err_set(e, E_UNSUPPORTED,
			"%s is not possible: this kernel (%s) does not know it; Linux 5.10 or "
			"later is needed",
			what, u.release);
	default:
		errno = error;
		return err_os(e, "%s failed", what);
	}
}

static enum status probe_map(enum bpf_map_type type, uint32_t key_bytes, uint32_t value_bytes,
	uint32_t entries, const char *what, struct err *e)
{
	int fd = bpf_map_create(type, "firn_probe", key_bytes, value_bytes, entries, NULL);
	if (fd < 0)
		return probe_explain(what, errno, e);
	(void)close(fd);
	return OK;
}

/* Loads `return 0;`. A perf_event program needs CAP_PERFMON, a map does not. */
static enum status probe_program(struct err *e)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(
		BPF_PROG_TYPE_PERF_EVENT, "firn_probe", "GPL", insns, ARRAY_COUNT(insns), NULL);
	if (fd < 0)
		return probe_explain("loading an eBPF program", errno, e);
	(void)close(fd);
	return OK;
}

static enum status probe_perf_event(struct err *e)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = 1,
		.disabled = 1,
	};
	int fd = -1;
	/* Uses the first CPU that is online, since CPU 0 may be offline. */
	for (int cpu = 0; fd < 0 && cpu < 64; cpu++) {
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0 && errno != ENODEV)
			return probe_explain("sampling all processes (perf_event_open)", errno, e);
	}
	if (fd < 0)
		return probe_explain("sampling all processes (perf_event_open)", ENODEV, e);
	(void)close(fd);
	return OK;
}

enum status probe_sampling(struct err *e)
{
#ifndef __x86_64__
	return err_set(e, E_UNSUPPORTED, "sampling is implemented for x86-64 only");
#endif
	enum status s = probe_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1, "using eBPF maps", e);
	if (s == OK)
		s = probe_map(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, "using an eBPF ring buffer", e);
	if (s == OK)
		s = probe_program(e);
	if (s == OK)
		s = probe_perf_event(e);
	if (s != OK)
		return s;
	if (access(BTF_PATH, R_OK) != 0)
		return err_set(e, E_UNSUPPORTED,
			"the kernel's type information (" BTF_PATH ") is missing: a kernel built "
			"with CONFIG_DEBUG_INFO_BTF is needed, and /sys must be mounted");
	return OK;
}

enum status probe_pid_namespace(struct err *e)
{
	struct stat st;
	if (stat("/proc/self/ns/pid", &st) != 0 || st.st_ino == HOST_PID_NAMESPACE)
		return OK;
	return err_set(e, E_UNSUPPORTED,
		"this PID namespace is not the host's, and samples have the host's pids: give the "
		"container the host's (podman run --pid=host, docker run --pid=host, hostPID: true "
		"in Kubernetes)");
}
