/* SPDX-License-Identifier: Apache-2.0 */
/* multipart: the parts of a body. */
#pragma once

#include "pyroscope/pyroscope.h"

struct part {
	struct str name;
	struct str body;
};
struct parts {
	struct part v[PYROSCOPE_PARTS_MAX];
	size_t count;
};
/* multipart/form-data (RFC 7578), in place. */
NODISCARD enum status parts_read(
	struct str content_type, struct str body, struct parts *out, struct err *e);
/* NULL: absent. */
const struct part *parts_find(const struct parts *p, const char *name);
