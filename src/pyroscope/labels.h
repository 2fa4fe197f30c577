/* SPDX-License-Identifier: Apache-2.0 */
/* labels: the labels of a series that is sent. */
#pragma once

#include "pyroscope/pyroscope.h"

struct series_labels {
	struct profile_label v[PROFILE_LABELS_MAX];
	uint32_t count;
	struct str name; /* __name__; "" for none */
	bool has_service;
};
/* Adds a label as pyroscope.h says; if a name is given twice the first one counts. */
NODISCARD enum status labels_add(struct series_labels *l, struct profile *p, struct str name,
	struct str value, struct err *e);
/* The set's number in the profile. `service` becomes service_name if none was given. */
NODISCARD enum status labels_intern(struct series_labels *l, struct profile *p, struct str service,
	uint32_t *out, struct err *e);
/* "app{key=value,…}": *out_app, and the text between the braces. False: no app. */
bool name_split(struct str name, struct str *out_app, struct str *out_labels);
NODISCARD enum status labels_add_text(
	struct series_labels *l, struct profile *p, struct str text, struct err *e);
