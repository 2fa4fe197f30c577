/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selector: `name:sample_type:sample_unit:period_type:period_unit[:delta]{label="value",…}`, parsed
 * and matched.
 *
 * Layer 1 (may use base, regex). Grammar: PromQL's vector selector; the profile type before the
 * braces may be left out, and so may the braces. Operators = != =~ !~. Regular expressions are RE2
 * (linear time), unanchored as in Parca; the whole value is matched with ^…$. Parca's rules for
 * absent labels: x="" holds when absent, x!="" when present, x!="v" holds when absent; an absent
 * label is the empty text for =~ and !~.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define SELECTOR_BYTES_MAX 65536
#define SELECTOR_MATCHERS_MAX 64

enum selector_op { SELECTOR_EQ, SELECTOR_NE, SELECTOR_RE, SELECTOR_NRE };

struct regex;

struct selector_matcher {
	struct str name;
	enum selector_op op;
	struct str value;
	struct regex *regex; /* for RE and NRE; shared between threads */
};

struct selector {
	bool has_type;
	struct str type[5]; /* name, sample type, sample unit, period type, period unit */
	bool delta;
	struct selector_matcher *matchers;
	uint32_t matcher_count;
};

/* Texts are copied into `a`, which must outlive *out; regexes are freed by selector_deinit().
 * E_INVALID says what was expected at which column. */
NODISCARD enum status selector_parse(
	struct str text, struct arena *a, struct selector *out, struct err *e);
void selector_deinit(struct selector *s);

/* `value` of the matcher's label; "" when absent. */
bool selector_matches(const struct selector_matcher *m, struct str value);
/* A label name as PromQL takes it: [a-zA-Z_][a-zA-Z0-9_]* */
bool selector_label_name_ok(struct str name);
/* The selector as text again, normal form. */
struct buf;
void selector_write(struct buf *out, const struct selector *s);

/* ---- filters: which stacks, and which frames of them ----
 *
 * A condition is about one frame. Texts are compared without regard to the case of ASCII letters,
 * except by FILTER_IS and FILTER_MATCHES.
 */

/* Conditions of all filters of one query. */
#define FILTER_CONDITIONS_MAX 64

enum filter_field {
	FILTER_FUNCTION,    /* its name for people */
	FILTER_SYSTEM_NAME, /* as in the symbol table */
	FILTER_BINARY,      /* the file name of the mapping, without folders */
	FILTER_FILE,        /* the source file */
	FILTER_ADDRESS,
	FILTER_LINE,
	FILTER_SHOWN /* the name that people see: the function, else file and address */
};
enum filter_op {
	FILTER_EQ,
	FILTER_NE,
	FILTER_CONTAINS,
	FILTER_NOT_CONTAINS,
	FILTER_STARTS,
	FILTER_NOT_STARTS,
	FILTER_IS,
	FILTER_IS_NOT,
	FILTER_MATCHES, /* a regular expression, anywhere in the text */
	FILTER_NOT_MATCHES
};
struct filter_condition {
	enum filter_field field;
	enum filter_op op;
	struct str text;
	uint64_t number;     /* FILTER_ADDRESS, FILTER_LINE: with EQ and NE only */
	struct regex *regex; /* of FILTER_MATCHES: by filter_condition_compile() */
};
/* Does nothing for a condition without a regular expression. E_INVALID: its text is no regular
 * expression. */
NODISCARD enum status filter_condition_compile(struct filter_condition *c, struct err *e);
void filter_condition_deinit(struct filter_condition *c);

/* of_stack: keeps whole stacks: each condition holds for some frame; a negative one (NE, …) for
 * every frame that has the field. Else keeps single frames: all conditions hold; `any`: one is
 * enough. A stack of no frames passes, unless `some_frame`. */
struct frame_filter {
	bool of_stack;
	bool any;
	struct filter_condition *conditions;
	uint32_t condition_count;
	bool some_frame;
};

bool filter_op_is_negative(enum filter_op op);
bool filter_text_holds(const struct filter_condition *c, struct str text);
bool filter_number_holds(const struct filter_condition *c, uint64_t number);
