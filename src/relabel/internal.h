/* SPDX-License-Identifier: Apache-2.0 */
/* relabel's own: a rule as relabel.c applies it and config.c reads it. */
#pragma once

#include "base/vec.h"
#include "regex/regex.h"
#include "relabel/relabel.h"

#define RELABEL_ACTIONS(X)        \
	X(REPLACE, "replace")     \
	X(KEEP, "keep")           \
	X(DROP, "drop")           \
	X(KEEPEQUAL, "keepequal") \
	X(DROPEQUAL, "dropequal") \
	X(HASHMOD, "hashmod")     \
	X(LABELMAP, "labelmap")   \
	X(LABELDROP, "labeldrop") \
	X(LABELKEEP, "labelkeep") \
	X(LOWERCASE, "lowercase") \
	X(UPPERCASE, "uppercase")
enum relabel_action {
#define RELABEL_ACTION_ENUM(name, text) RELABEL_##name,
	RELABEL_ACTIONS(RELABEL_ACTION_ENUM)
#undef RELABEL_ACTION_ENUM
		RELABEL_ACTION_COUNT
};

struct relabel_rule {
	enum relabel_action action;
	struct str sources[RELABEL_SOURCES_MAX];
	uint32_t source_count;
	struct str separator;
	struct regex *regex;
	struct str target;
	struct str replacement;
	uint64_t modulus;
};

struct relabel {
	struct arena arena; /* texts of the rules */
	VEC(struct relabel_rule) rules;
};
