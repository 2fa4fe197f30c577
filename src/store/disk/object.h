/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/disk/object: reads bytes at an offset of a named object. Parts are read only through this
 * interface. Files of a local directory are implemented here; objects of a bucket, or a cache in
 * front of one, would be other implementations.
 *
 * Layer 3, private to store/. Thread safety: an object is read by any thread at any time.
 *
 * What an implementation must guarantee:
 *
 * - An object does not change while it is open, whatever happens to its name.
 * - read() fills all `len` bytes or fails: E_IO and E_UNAVAILABLE when it may work another time,
 *   E_CORRUPT when the object is shorter than it was. Callers ask only for bytes below `bytes`. It
 *   may block; callers ask for whole columns and sections (kilobytes to megabytes), not for single
 *   numbers. Checksums are the reader's business (part.h).
 * - close() frees everything, the structure too.
 */
#pragma once

#include "base/err.h"

struct object;

struct object_ops {
	enum status (*read)(
		struct object *o, uint64_t offset, void *out, size_t len, struct err *e);
	void (*close)(struct object *o);
};

/* An implementation's own structure begins with this. */
struct object {
	const struct object_ops *ops;
	const char *name; /* for people: a path, a URL; lives as long as the object */
	uint64_t bytes;   /* its length */
};

NODISCARD enum status object_open_file(const char *path, struct object **out, struct err *e);

/* E_CORRUPT: the object ends before offset + len. */
NODISCARD enum status object_read(
	struct object *o, uint64_t offset, void *out, size_t len, struct err *e);
/* NULL is fine. */
void object_close(struct object *o);
