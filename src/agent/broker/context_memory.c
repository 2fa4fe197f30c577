/* SPDX-License-Identifier: Apache-2.0 */
/* The head has the time when it was published, 0 while it is changed: it is read again after what
 * it leads to, and must be the same. */
#include "agent/broker/context_memory.h"

#include "base/status.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define SIGNATURE "OTEL_CTX"
#define VERSION 2
#define PAGE_BYTES 4096

struct head { /* of the process' memory */
	char signature[8];
	uint32_t version, bytes;
	uint64_t published_ns, address;
};

static ssize_t fail(int error)
{
	errno = error;
	return -1;
}

static bool read_all(int memory, uint64_t at, void *out, size_t len)
{
	return at <= INT64_MAX && pread(memory, out, len, (off_t)at) == (ssize_t)len;
}

ssize_t context_memory_read(int pid, uint64_t head, uint8_t out[CONTEXT_MEMORY_BYTES_MAX])
{
	char path[32];
	struct head h, again;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	CLEANUP(fd_cleanup) int memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return -1;
	if (head % PAGE_BYTES || !read_all(memory, head, &h, sizeof(h)) ||
		memcmp(h.signature, SIGNATURE, sizeof(h.signature)) != 0 || h.version != VERSION)
		return fail(EPROTO);
	if (h.published_ns == 0)
		return fail(EAGAIN);
	if (h.bytes > CONTEXT_MEMORY_BYTES_MAX)
		return fail(EFBIG);
	if (!read_all(memory, h.address, out, h.bytes) ||
		!read_all(memory, head, &again, sizeof(again)) ||
		memcmp(&h, &again, sizeof(h)) != 0)
		return fail(EAGAIN);
	return (ssize_t)h.bytes;
}
