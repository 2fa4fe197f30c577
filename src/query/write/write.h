/* SPDX-License-Identifier: Apache-2.0 */
/* query/write/write: answers as JSON and as text. This is what the other folders of query/ see of
 * it. Private to query/. */
#pragma once

#include "query/query.h"

/* Says which condition of a query matches nothing: E_NOTFOUND, with a sentence for people. label:
 * whose values were asked for; else "". */
NODISCARD enum status query_nothing(const struct query_engine *q, const struct query_request *r,
	struct str label, struct err *e);
/* OK, or why the answer in `out` could not be written. */
NODISCARD enum status query_written(const struct buf *out, struct err *e);
