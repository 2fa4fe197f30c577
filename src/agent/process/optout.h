/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optout: decides without a rule which processes are profiled, by variables in their environment
 * and by their labels. Private to agent/. No I/O, no state.
 *
 * A process that opts out by either is not profiled, even if it opts in by the other. If the
 * configuration has ways to opt in, only processes that do so are profiled.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "relabel/relabel.h"

#define OPTOUT_NAMES_MAX 64 /* of each list */

/* Each list: NULL at the end, or NULL. */
struct optout_config {
	/* Names of variables: set to off, false, 0, no, disable or disabled, in any letters. */
	const char *const *out_env;
	/* Set to on, true, 1, yes, enable or enabled. */
	const char *const *in_env;
	/* "name=value" of a label or a meta label; "name=" if the label is absent. */
	const char *const *out_labels;
	const char *const *in_labels;
};

/* E_INVALID: the sentence names what is no name, or no name=value. */
NODISCARD enum status optout_check(const struct optout_config *c, struct err *e);
bool optout_wants_environment(const struct optout_config *c);
/* Names of the variables, a NUL after each. */
void optout_write_variables(const struct optout_config *c, struct buf *out);
/* Is there anything to be asked at all? */
bool optout_is_empty(const struct optout_config *c);
/* `environment` as in /proc: a NUL after each entry. */
bool optout_allows(
	const struct optout_config *c, struct str environment, const struct relabel_set *labels);
/* The value of a variable; "" when it is not there. */
struct str optout_find_variable(struct str environment, struct str name);
