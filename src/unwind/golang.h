/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golang: how functions of Go programs are unwound, from .gopclntab, which is there also when the
 * program is stripped. Private to unwind/. x86-64; Go 1.18 on.
 *
 * Go writes no .eh_frame. Source: Go's src/runtime/symtab.go (pcHeader, _func), runtime2.go (g, m,
 * gobuf), asm_amd64.s, src/internal/abi/symtab.go.
 */
#pragma once

#include "unwind/pages.h"
#include "unwind/work.h"

/* Bytes that are read of a function that switches stacks. */
#define GOLANG_CODE_BYTES_MAX 512

struct golang;

struct golang_function {
	uint64_t start; /* virtual addresses */
	uint64_t end;
};

/* E_NOTFOUND: not a Go program, or not of a known version. `work` stays the caller's; the functions
 * below count in it, and once its limit is reached they say that everything is broken. */
NODISCARD enum status golang_open(
	const struct objfile *obj, struct work *work, struct golang **out, struct err *e);
void golang_close(struct golang *g); /* NULL is fine */
uint32_t golang_count(const struct golang *g);
/* False: it is broken, or has no code. */
bool golang_function(struct golang *g, uint32_t index, struct golang_function *out);
/* A signal frame: its rows begin one byte early. */
bool golang_is_signal(struct golang *g, uint32_t index);
/* Adds rows of function number `index`, from file offset `begin` up to `end`. False: its table is
 * broken; rows before the broken place stay. */
bool golang_put(struct golang *g, uint32_t index, uint64_t begin, uint64_t end, struct pages *out);
