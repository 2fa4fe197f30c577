/* SPDX-License-Identifier: Apache-2.0 */
/* formats: a flame graph as JSON, for the page and for other viewers. */
#pragma once

#include "query/query.h"

/* E_INVALID: the format is for flame graphs only. */
NODISCARD enum status query_format_check(enum query_format format, struct err *e);

void query_flame_json(const struct query_flame *f, bool depth, struct buf *b);
NODISCARD enum status query_export_speedscope(const struct query_flame *f, struct str name,
	struct arena *a, struct buf *b, struct err *e);
NODISCARD enum status query_export_firefox(const struct query_flame *f, struct str name,
	struct arena *a, struct buf *b, struct err *e);
NODISCARD enum status query_export_html(const struct query_flame *f, struct buf *b, struct err *e);
