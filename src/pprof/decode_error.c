/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts that say in which element of which table the error is. */
#include "pprof/decode.h"

#include <inttypes.h>

const char *const pprof_table_names[PPROF_TABLES] = { "", "sample_type", "sample", "mapping",
	"location", "function", "string_table" };

enum status pprof_torn(struct decoder *d, const struct reader *r, int table, size_t index)
{
	return err_set(d->e, E_INVALID, "%s[%zu]: malformed at byte %zu", pprof_table_names[table],
		index, (size_t)((const char *)r->at - d->message.p));
}

enum status pprof_dangling(
	struct decoder *d, int table, size_t index, const char *field, uint64_t value)
{
	return err_set(d->e, E_INVALID, "%s[%zu]: %s %" PRIu64 " does not exist",
		pprof_table_names[table], index, field, value);
}

/* Reports that an element was not added: the table is full, or there is no memory. */
enum status pprof_not_added(struct decoder *d, enum status s, int table, size_t index)
{
	return err_set(d->e, s, "%s[%zu]: %s", pprof_table_names[table], index, status_text(s));
}
