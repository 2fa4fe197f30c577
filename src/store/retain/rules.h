/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/retain/rules: which samples are kept how long, and how exactly.
 *
 * Layer 3, private to store/. Pure functions.
 */
#pragma once

#include "store/memory/memory.h"

/* `pattern` with '*' for any characters. */
bool rules_match(struct str pattern, struct str text);
/* The first rule for the series; `count` when none is. */
size_t rules_find(const struct store_retention_rule *rules, size_t count, const struct tabs *t,
	uint32_t series);

/* What the rules that apply at an age do together. */
struct thinning {
	int64_t resolution_ns;                  /* 0: none */
	struct str names[STORE_THIN_NAMES_MAX]; /* sample labels to drop */
	size_t name_count;
	bool all_names;
	uint64_t rules; /* those in force, as bits */
};
void rules_thin(
	const struct store_thin_rule *rules, size_t count, int64_t age_ns, struct thinning *out);
