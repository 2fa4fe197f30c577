/* SPDX-License-Identifier: Apache-2.0 */
/* An objfile reads from a file, from bytes in memory, or by the caller's function. */
#include "objfile/internal.h"

#include "os/os.h"

#include <string.h>

enum status objfile_read(
	const struct objfile *obj, uint64_t offset, void *out, size_t len, struct err *e)
{
	if (offset > obj->size || len > obj->size - offset)
		return err_set(e, E_INVALID, "%s: %zu bytes at +%llu: the file has %llu", obj->name,
			len, (unsigned long long)offset, (unsigned long long)obj->size);
	if (len == 0)
		return OK;
	if (obj->bytes) {
		memcpy(out, obj->bytes + offset, len);
		return OK;
	}
	if (obj->source.read)
		return obj->source.read(obj->source.ctx, offset, out, len, e);
	enum status s = os_pread_full(obj->fd, out, len, offset, obj->name, e);
	if (s == E_CORRUPT) /* the file was truncated after it was opened */
		return e ? (e->status = E_INVALID) : E_INVALID;
	return s;
}
