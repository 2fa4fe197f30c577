/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs: parses the files of /proc about a process, whose bytes the process may have forged.
 *
 * Layer 2 (may use base, os). The *_parse functions take text, so that tests and fuzzers need no
 * process. All reads are bounded.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "os/os.h"

/* Mappings of one process that are read. */
#define PROCFS_MAPS_MAX 65536

struct procfs_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* bytes */
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	bool read, write, exec, shared;
	struct str path; /* as the kernel writes it: "", "[vdso]", "/usr/lib/x (deleted)" */
};

/* 65536 lines with paths of 100 bytes; a longer file is refused. */
#define PROCFS_MAPS_BYTES_MAX ((size_t)16 << 20)

/* Lines of /proc/PID/maps; calls fn for each; a malformed line is E_INVALID with its number. */
typedef bool procfs_map_fn(void *ctx, const struct procfs_map *m); /* false: stop */
NODISCARD enum status procfs_maps_parse(
	struct str text, procfs_map_fn *fn, void *ctx, struct err *e);
NODISCARD enum status procfs_maps(int pid, procfs_map_fn *fn, void *ctx, struct err *e);

struct procfs_mount {
	uint32_t id;
	uint32_t dev_major, dev_minor; /* of the file system, as the kernel has it */
	struct str point;              /* where; the kernel writes a blank as "\\040" */
	struct str type;               /* "ext4", "fuse.sshfs" */
};
#define PROCFS_MOUNTS_BYTES_MAX ((size_t)16 << 20)
/* Lines of /proc/self/mountinfo; a mount over another one comes after it. */
typedef bool procfs_mount_fn(void *ctx, const struct procfs_mount *m); /* false: stop */
NODISCARD enum status procfs_mounts_parse(
	struct str text, procfs_mount_fn *fn, void *ctx, struct err *e);
NODISCARD enum status procfs_mounts(procfs_mount_fn *fn, void *ctx, struct err *e);
/* Whether the kernel answers for this file system by itself, from memory or a disk. A file system
 * that needs others (FUSE, NFS, any overlay) may hang. */
bool procfs_mount_answers(const struct procfs_mount *m);
/* The mount to which a descriptor belongs. This cannot hang either. */
bool procfs_fd_mount(int fd, uint32_t *out_id);
bool procfs_mount_id_answers(uint32_t id);

struct procfs_stat {
	int ppid;
	char comm[64]; /* may hold blanks and parentheses; the last ')' ends it */
	char state;
	uint64_t start_ticks; /* field 22: clock ticks after boot */
};
NODISCARD enum status procfs_stat_parse(struct str text, struct procfs_stat *out, struct err *e);
NODISCARD enum status procfs_stat(int pid, struct procfs_stat *out, struct err *e);

/* False: it is gone. This waits for no lock. */
bool procfs_exists(int pid);

/* The process' pid in its own namespace: the last number of NSpid in /proc/PID/status. */
NODISCARD enum status procfs_inner_pid_parse(struct str text, int *out, struct err *e);
NODISCARD enum status procfs_inner_pid(int pid, int *out, struct err *e);

/* Its real user: Uid in /proc/PID/status. This waits for no lock, and does not ask the broker. */
NODISCARD enum status procfs_user_parse(struct str text, uint32_t *out, struct err *e);
NODISCARD enum status procfs_user(int pid, uint32_t *out, struct err *e);

/* The process' cgroup path from /proc/PID/cgroup: the v2 line ("0::/…"), else the line whose
 * controllers contain cpu, else the first. A line with "/" alone is used only if there is no other.
 * Text in `a`. */
NODISCARD enum status procfs_cgroup_parse(
	struct str text, struct arena *a, struct str *out, struct err *e);
NODISCARD enum status procfs_cgroup(int pid, struct arena *a, struct str *out, struct err *e);

enum procfs_container_kind {
	PROCFS_CONTAINER, /* of docker, containerd, CRI-O, podman, ECS: 64 hex digits, mostly */
	PROCFS_LXC,       /* a name */
	PROCFS_BUILDKIT,  /* a name */
	PROCFS_CONTAINER_MAYBE /* "/NAMESPACE/ID": containerd's way, but not its alone */
};
struct procfs_container {
	enum procfs_container_kind kind;
	struct str id;
	struct str engine; /* the text before the id: "docker", "cri-containerd", "libpod"; "" */
	struct str space;  /* of PROCFS_CONTAINER_MAYBE: containerd's namespace */
};
/* Levels of containers in containers; if there are more, the outermost are returned. */
#define PROCFS_CONTAINERS_MAX 4
/* The containers that a control group's path names, outermost first, ids in place; how many. A
 * process in a container may make groups with any name inside of it: only the first container is
 * certain. */
size_t procfs_containers(
	struct str cgroup_path, struct procfs_container out[PROCFS_CONTAINERS_MAX]);
/* The id of the outermost container, if it is certainly one; "" when none. */
struct str procfs_container_id(struct str cgroup_path);
/* The uid of the Kubernetes pod in a path, outside of all containers, as the API writes it, in
 * `out`; "" when none. */
#define PROCFS_POD_UID_MAX 64
struct str procfs_pod_uid(struct str cgroup_path, char out[PROCFS_POD_UID_MAX]);
/* The innermost service ("nginx.service"), or scope where there is none ("session-3.scope"), and
 * the innermost slice ("system.slice"); "" when none. */
struct str procfs_systemd_unit(struct str cgroup_path);
struct str procfs_systemd_slice(struct str cgroup_path);

/* Base name of what /proc/PID/exe points to, " (deleted)" cut off. */
NODISCARD enum status procfs_exe(int pid, struct arena *a, struct str *out, struct err *e);
NODISCARD enum status procfs_comm(int pid, int tid, char out[64], struct err *e);
/* The first `max` bytes of /proc/PID/cmdline: texts with a NUL after each. The process may have
 * written anything there, as in its environment. */
NODISCARD enum status procfs_arguments(
	int pid, size_t max, struct arena *a, struct str *out, struct err *e);
/* The wanted variables in the first PROCFS_ENVIRONMENT_BYTES_MAX bytes of /proc/PID/environ, with a
 * NUL after each. A variable longer than PROCFS_VARIABLE_BYTES_MAX (the kernel gives a program none
 * of such a length) is left out, and so are variables beyond PROCFS_VARIABLES_BYTES_MAX in all. */
#define PROCFS_ENVIRONMENT_BYTES_MAX ((size_t)8 << 20) /* the kernel's limit is 6 MiB */
#define PROCFS_VARIABLE_BYTES_MAX ((size_t)128 << 10)
#define PROCFS_VARIABLES_BYTES_MAX ((size_t)512 << 10)
typedef bool procfs_wanted_fn(const void *ctx, struct str name);
NODISCARD enum status procfs_environment(int pid, procfs_wanted_fn *wanted, const void *ctx,
	struct arena *a, struct str *out, struct err *e);
/* Calls fn with every number in /proc. */
typedef bool procfs_pid_fn(void *ctx, int pid);
NODISCARD enum status procfs_pids(procfs_pid_fn *fn, void *ctx, struct err *e);

/* One symbol of /proc/kallsyms, in file order; `module` is "" for the kernel itself. */
struct procfs_kallsym {
	uint64_t address;
	char type;
	struct str name;
	struct str module;
};
typedef bool procfs_kallsym_fn(void *ctx, const struct procfs_kallsym *s);
NODISCARD enum status procfs_kallsyms_parse(
	struct str text, procfs_kallsym_fn *fn, void *ctx, struct err *e);
