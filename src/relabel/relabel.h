/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relabel: Prometheus' relabel_configs: rules that change a set of labels, or drop the object that
 * has it.
 *
 * Layer 2 (may use base, regex, conf). Rules are immutable once parsed: any number of threads may
 * apply them. Source: https://prometheus.io/docs/prometheus/latest/configuration/configuration/
 * #relabel_config and the order and the defaults of its implementation.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "conf/conf.h"

#define RELABEL_CONFIG_BYTES_MAX ((size_t)1 << 20)
#define RELABEL_RULES_MAX 256
#define RELABEL_SOURCES_MAX 32 /* source_labels of one rule */
#define RELABEL_LABELS_MAX 512 /* of one set */
#define RELABEL_VALUE_BYTES_MAX ((size_t)64 << 10)

/* Labels that begin with this are for the rules only; they are not stored. */
#define RELABEL_META_PREFIX "__"

/* ---- a set of labels ---- */

struct relabel_label {
	struct str name, value;
};

/* Labels are in the order in which their names came first; one with an empty value is removed.
 * Texts are the caller's, or in `arena`. */
struct relabel_set {
	struct relabel_label v[RELABEL_LABELS_MAX];
	uint32_t count;
	bool failed; /* one label too many, or the arena was full */
	struct arena *arena;
};

void relabel_set_init(struct relabel_set *s, struct arena *a);
/* "" when absent. */
struct str relabel_set_get(const struct relabel_set *s, struct str name);
/* An empty value removes the label. */
void relabel_set_put(struct relabel_set *s, struct str name, struct str value);

/* ---- rules ---- */

struct relabel;

/* A YAML document with the key relabel_configs; other keys are ignored. E_INVALID: what is wrong,
 * and where. No rules are no error. */
NODISCARD enum status relabel_parse(struct str yaml, struct relabel **out, struct err *e);
/* The list behind such a key; NULL: no rules. */
NODISCARD enum status relabel_read(
	const struct conf_node *list, struct relabel **out, struct err *e);
void relabel_free(struct relabel *r);
uint32_t relabel_count(const struct relabel *r);
/* Do the rules look at this label? Then it is worth finding its value. */
bool relabel_reads(const struct relabel *r, struct str name);
/* *out_keep: false when a rule drops the object with these labels. E_LIMIT, E_NOMEM: the set's
 * limits or its arena's; then the set is not to be used. */
NODISCARD enum status relabel_apply(
	const struct relabel *r, struct relabel_set *s, bool *out_keep, struct err *e);

/* [a-zA-Z_][a-zA-Z0-9_]* */
bool relabel_name_ok(struct str name);
