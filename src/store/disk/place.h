/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/disk/place: where parts are stored: objects by number, each put once and never changed. A
 * local directory is implemented here; a bucket would be another implementation.
 *
 * Layer 3, private to store/. Thread safety: a place is used by any thread at any time, a place_put
 * by one.
 *
 * What an implementation must guarantee:
 *
 * - An object is there whole or not at all, also after a crash: place_put_finish() makes it durable
 *   under its number. When that fails, the object may be there or not, until remove() and sync()
 *   have succeeded.
 * - A number is put once: E_EXISTS while it is being put already. Callers take a new number each
 *   time.
 * - remove() takes the name away at once; an object that is open can be read on. A crash may undo a
 *   removal that no sync() has followed.
 * - Errors are those of object.h, E_NOTFOUND for an object that does not exist, and E_UNAVAILABLE
 *   or E_NOSPACE when there is no room.
 */
#pragma once

#include "store/disk/object.h"

struct place;
struct place_put;

/* `whole` false: a put that was never finished. It is removed, but its number must not be used
 * again. A status other than OK ends the list. */
typedef enum status place_fn(void *ctx, uint64_t id, bool whole, struct err *e);

struct place_ops {
	/* Calls `fn` for each object, in any order. */
	enum status (*list)(struct place *p, place_fn *fn, void *ctx, struct err *e);
	enum status (*open)(struct place *p, uint64_t id, struct object **out, struct err *e);
	enum status (*put)(struct place *p, uint64_t id, struct place_put **out, struct err *e);
	/* It is no error if there is no such object. */
	enum status (*remove)(struct place *p, uint64_t id, struct err *e);
	/* After OK, no crash undoes the removals so far. */
	enum status (*sync)(struct place *p, struct err *e);
	/* As remove(), but keeps the bytes as a local file at `to`, for people to look at. */
	enum status (*take_out)(struct place *p, uint64_t id, const char *to, struct err *e);
	void (*close)(struct place *p);

	/* Appends. */
	enum status (*write)(struct place_put *u, const void *bytes, size_t len, struct err *e);
	enum status (*finish)(struct place_put *u, struct err *e);
	/* To be called after finish() too. It removes an object that was not finished. */
	void (*put_close)(struct place_put *u);
};

/* An implementation's own structures begin with these. */
struct place {
	const struct place_ops *ops;
};
struct place_put {
	struct place *place;
	uint64_t bytes; /* written so far */
};

/* A directory that exists: <id>.part are the objects, <id>.tmp is being put (id: 16 hexadecimal
 * digits). */
NODISCARD enum status place_open_directory(const char *dir, struct place **out, struct err *e);
void place_close(struct place *p); /* NULL is fine */

NODISCARD enum status place_list(struct place *p, place_fn *fn, void *ctx, struct err *e);
NODISCARD enum status place_open(struct place *p, uint64_t id, struct object **out, struct err *e);
NODISCARD enum status place_remove(struct place *p, uint64_t id, struct err *e);
NODISCARD enum status place_sync(struct place *p, struct err *e);
NODISCARD enum status place_take_out(struct place *p, uint64_t id, const char *to, struct err *e);

NODISCARD enum status place_put_open(
	struct place *p, uint64_t id, struct place_put **out, struct err *e);
NODISCARD enum status place_put_write(
	struct place_put *u, const void *bytes, size_t len, struct err *e);
NODISCARD enum status place_put_finish(struct place_put *u, struct err *e);
void place_put_close(struct place_put *u); /* NULL is fine */
