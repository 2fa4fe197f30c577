/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker: the process that opens files and kernel objects that the agent itself has no right to
 * open (docs/formats/broker.md). Private to agent/.
 *
 * broker_start() splits it off and makes os_open_read() and its like ask it. There is at most one
 * in a process. Thread safety: all functions may be called from any thread but for broker_start()
 * and broker_stop(). A caller waits for an answer for BROKER_PATIENCE_NS at most (ETIMEDOUT).
 * Requests that a file system may hold up have channels of their own. A device
 * (docs/formats/broker.md) that still owes an answer, or that has used up its credit of waiting
 * time, is not asked: the request fails at once with ETIMEDOUT. Other devices are still asked.
 */
#pragma once

#include "agent/broker/cgroupid.h"
#include "agent/broker/context_memory.h"
#include "agent/broker/dotnet_memory.h"
#include "agent/broker/jit_memory.h"
#include "agent/broker/privilege.h"
#include "agent/broker/privileged_open.h"
#include "agent/broker/slab_grants.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/metrics.h"

#include <limits.h>
#include <sys/types.h>

#define BROKER_PATIENCE_NS (5 * NS_PER_SEC)
/* A broker that does not answer a request within this time, which no file system can hold up,
 * counts as ended. */
#define BROKER_SILENCE_NS (20 * NS_PER_SEC)
#define BROKER_PATH_MAX 4095
#define BROKER_OWN_FILES_MAX 16
/* Devices that are asked at the same time. The last place is kept for disks, since any user may
 * mount as many other file systems as they like. */
#define BROKER_SLOW_MAX 8
#define BROKER_MESSAGE_BYTES_MAX (12 + BROKER_PATH_MAX + 1)
/* Files that stay open in the broker. */
#define BROKER_PINNED_MAX 256
/* Bytes that one read of a file returns at most. */
#define BROKER_READ_BYTES_MAX 65536
#define BROKER_FREQUENCY_MAX_HZ 10000

struct broker_config {
	const char *own_files[BROKER_OWN_FILES_MAX]; /* that may be opened; NULL and "" are none */
	bool environment;                            /* of processes may be read */
	uint32_t slabs_max;                          /* that may be asked for */
	int64_t device_credit_ns;                    /* see device_credits.h; 0: as it is there */
};

#define BROKER_METRICS(X)                                                                   \
	X(requests, COUNTER, "firn_agent_broker_requests_total", "Requests to the broker.") \
	X(failed, COUNTER, "firn_agent_broker_failures_total",                              \
		"Requests that the broker could not do: most often the process is gone.")   \
	X(refused, COUNTER, "firn_agent_broker_refused_total",                              \
		"Requests that the broker never serves.")                                   \
	X(timeouts, COUNTER, "firn_agent_broker_timeouts_total",                            \
		"Requests that were not answered in time, or not asked of such a device.")  \
	X(overdue, GAUGE, "firn_agent_broker_overdue",                                      \
		"Answers that have not come in time and not yet: file systems that hang.")
struct broker_metrics {
	BROKER_METRICS(METRIC_FIELD)
};

/* Splits the broker off; to be called while there is one thread. It keeps of this process'
 * capabilities those in the format's table, and ends when this process does. */
NODISCARD enum status broker_start(const struct broker_config *c, struct err *e);
/* Closes the channels: a thread that waits for an answer gets none. */
void broker_hang_up(void);
void broker_stop(void);
/* True: it was started, and has ended since or has answered nothing for BROKER_SILENCE_NS. */
bool broker_is_gone(void);
pid_t broker_pid(void); /* 0: there is none */
/* CPU time that it has used; 0: there is none. */
int64_t broker_cpu_ns(void);
void broker_write_metrics(struct buf *out);

struct broker_stat { /* of stat(2) and statfs(2) */
	uint64_t device, inode, bytes;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
	uint64_t user, type;
};
struct broker_file {
	uint32_t handle;
	uint64_t whom; /* its device, or a process */
	struct broker_stat stat;
};

/* The answer of broker_open_executable() where the file stays open in the broker. */
#define BROKER_IS_PINNED (-2)
/* Opens a file that may be mapped for execution. `device`: where it is known to lie (the kernel's
 * number, as in struct file_key; 0: not known). A descriptor, or -1 with errno; ENOSYS: there is no
 * broker. If reading and closing may hang on its file system, it stays open in the broker, to be
 * read by broker_read(): then BROKER_IS_PINNED is returned and *out is set. */
int broker_open_executable(const char *path, uint32_t device, struct broker_file *out);
/* The same for a file that was named to broker_start(). It may have any content. */
int broker_open_own(const char *path, struct broker_file *out);
/* The perf map of process `pid`, which is `inner_pid` in its own pid namespace: perfmap_open(). As
 * broker_open_executable(). */
int broker_open_perfmap(int pid, int inner_pid, struct broker_file *out);
/* The memory map of a process (/proc/PID/maps), and the path of one of its mappings, as
 * readlink(2). Both wait for a lock of the process, which a thread of it may hold while it waits
 * for a file system. */
int broker_open_maps(int pid, struct broker_file *out);
ssize_t broker_read_mapping(int pid, const char *link, char *out, size_t size);
/* As jit_memory_list() and jit_memory_read(), at most BROKER_READ_BYTES_MAX. */
ssize_t broker_jit_list(
	int pid, uint64_t descriptor, struct jit_memory_object out[JIT_MEMORY_OBJECTS_MAX]);
ssize_t broker_jit_read(
	int pid, uint64_t descriptor, uint64_t entry, uint64_t offset, void *out, size_t len);
/* As dotnet_memory_find() and dotnet_memory_read(), at most BROKER_READ_BYTES_MAX. */
int broker_dotnet_find(int pid, unsigned version, uint64_t table, uint64_t address,
	struct dotnet_memory_code *out);
ssize_t broker_dotnet_read(int pid, uint64_t metadata, uint64_t offset, void *out, size_t len);
/* As context_memory_read(). */
ssize_t broker_context(int pid, uint64_t head, uint8_t out[CONTEXT_MEMORY_BYTES_MAX]);
/* As pread(2), at most BROKER_READ_BYTES_MAX. ETIMEDOUT: it hangs. */
ssize_t broker_read(const struct broker_file *f, void *out, size_t len, uint64_t offset);
/* Closes the file. If its device may not be asked now, broker_drop_late() closes it later. */
void broker_drop(const struct broker_file *f);
/* To be called from time to time. It tries again to close files that broker_drop() could not close.
 */
void broker_drop_late(void);
/* False: it does not know, or there is no broker. */
bool broker_cgroup_path(uint64_t id, char out[PATH_MAX]);
/* The event that samples a CPU, or with a frequency of 0 the event that reports its symbols
 * (ksymbols.h); -1 with errno (ENOSYS: there is no broker). */
int broker_perf_event(uint32_t cpu, uint32_t frequency_hz);
/* Kernel memory for unwind tables, as privileged_open_slab(); EDQUOT: as many as there may be were
 * given out in a short time. */
int broker_slab(void);
