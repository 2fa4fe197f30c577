/* SPDX-License-Identifier: Apache-2.0 */
/* The head contains the time when it was published, or 0 while it is being changed. It is read
 * again after the bytes that it points to, and must be unchanged. */
#include "agent/broker/context_memory.h"

#include "agent/broker/process_memory.h"
#include "base/status.h"

#include <errno.h>

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

ssize_t context_memory_read(int pid, uint64_t head, uint8_t out[CONTEXT_MEMORY_BYTES_MAX])
{
	struct head h, again;
	CLEANUP(fd_cleanup) int memory = process_memory_open(pid);
	if (memory < 0)
		return -1;
	if (head % PAGE_BYTES || !process_memory_read(memory, head, &h, sizeof(h)) ||
		memcmp(h.signature, SIGNATURE, sizeof(h.signature)) != 0 || h.version != VERSION)
		return fail(EPROTO);
	if (h.published_ns == 0)
		return fail(EAGAIN);
	if (h.bytes > CONTEXT_MEMORY_BYTES_MAX)
		return fail(EFBIG);
	if (!process_memory_read(memory, h.address, out, h.bytes) ||
		!process_memory_read(memory, head, &again, sizeof(again)) ||
		memcmp(&h, &again, sizeof(h)) != 0)
		return fail(EAGAIN);
	return (ssize_t)h.bytes;
}
