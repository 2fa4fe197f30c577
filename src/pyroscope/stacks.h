/* SPDX-License-Identifier: Apache-2.0 */
/* stacks: bodies of stacks as text: folded, lines, trie and tree. */
#pragma once

#include "pyroscope/pyroscope.h"

enum text_format { TEXT_GROUPS, TEXT_LINES, TEXT_TRIE, TEXT_TREE };
/* The type of a body that names no types: it has one head. The last part of the application's name
 * gives the type, and is cut off *io_app. */
struct text_type {
	const char *name, *sample_type, *unit, *period_type, *period_unit;
	bool gauge;
	bool by_period; /* values are samples, each of 1e9 / rate ns */
};
NODISCARD enum status text_type_of(struct str *io_app, struct text_type *out, struct err *e);
struct text_body {
	enum text_format format;
	struct str bytes;
	struct text_type type;
	uint32_t rate;
	int64_t time_ns, duration_ns;
	uint32_t resource;
};
NODISCARD enum status text_decode(const struct text_body *b, struct profile *out, struct err *e);
