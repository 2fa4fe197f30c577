/* SPDX-License-Identifier: Apache-2.0 */
/* pb's own: names, scalars and times, shared by JSON and URL parameters. */
#pragma once

#include "pb/pb.h"

/* "report_type" as "reportType". */
void pb_put_camel(struct buf *out, const char *name);
bool pb_name_fits(const char *name, struct str given);
bool pb_is_numeric(enum pb_kind kind);
enum pb_wire pb_kind_wire(enum pb_kind kind);

/* Reads a value from text (a JSON string or number, or a parameter) into its bits. Not for
 * messages, strings and bytes. */
NODISCARD enum status pb_scalar_read(
	const struct pb_member *m, struct str text, uint64_t *out_bits, struct err *e);
/* Value alone, without a tag. */
void pb_scalar_write(struct buf *out, enum pb_kind kind, uint64_t bits);
/* Writes tag and value; a zero is left out if the field has no presence. */
void pb_scalar_put(struct buf *out, const struct pb_member *m, uint64_t bits);
void pb_put_tag(struct buf *out, uint32_t number, enum pb_wire wire);
/* Reads base64 of either alphabet, padded or not, or hexadecimal if the member has PB_HEX. */
NODISCARD bool pb_bytes_read(struct buf *out, const struct pb_member *m, struct str text);
void pb_bytes_write(struct buf *out, const struct pb_member *m, struct str bytes);

/* The message's bytes of "2026-11-21T17:00:00.5Z", "+01:00" too. */
NODISCARD enum status pb_timestamp_read(struct str text, struct buf *out, struct err *e);
void pb_timestamp_write(struct buf *out, int64_t seconds, int32_t nanos);
/* "-1.5s". */
NODISCARD enum status pb_duration_read(struct str text, struct buf *out, struct err *e);
void pb_duration_write(struct buf *out, int64_t seconds, int32_t nanos);
