/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map: the functions by which the readers of this folder fill a table of code, piece by piece.
 * Private to jit/.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jit/jit.h"

struct line {
	uint32_t offset; /* bytes behind the code's beginning */
	uint32_t line;
	uint32_t file; /* text */
};

/* Places are added first, then the code at `base` that they belong to; places before `base` are
 * left out. False: it is bad, or there is no room; counted. */
bool jit_map_add_place(struct jit_map *m, const struct jit_place *p, uint64_t base);
/* Lowers the addresses of `count` places by `ahead`; a place below that gets the beginning. */
void jit_map_shift_places(struct jit_map *m, uint32_t first, uint32_t count, uint32_t ahead);
uint32_t jit_map_place_count(const struct jit_map *m);
/* Forgets the last places, from `first` on, which belong to no code yet. */
void jit_map_drop_places(struct jit_map *m, uint32_t first);
bool jit_map_add_lines(
	struct jit_map *m, const struct jit_code *c, uint32_t line_first, uint32_t line_count);
/* The code that began at `from` is at to->start now and keeps its name. False: no code begins
 * there. */
bool jit_map_add_moved(struct jit_map *m, uint64_t from, const struct jit_code *to);
/* Something could not be read. */
void jit_map_add_bad(struct jit_map *m);

/* jit_object_read() for an object of Erlang, which is no ELF file. *next: offset in bytes. */
NODISCARD enum status beam_read(
	struct jit_map *m, struct str bytes, uint64_t since_ns, uint32_t *next, struct err *e);
