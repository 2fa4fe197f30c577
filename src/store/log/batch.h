/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/log/batch: a profile as the payload of a record of the log (docs/formats/log.md section 4).
 *
 * Layer 3, private to store/. Pure functions.
 */
#pragma once

#include "profile/profile.h"

#define BATCH_BYTES_MAX ((size_t)256 << 20)

/* `p` is valid (profile_validate). A failure is kept in the buffer (buf_status()). Returns how many
 * of the bytes are texts and symbols, which compress well. */
size_t batch_encode(struct buf *out, struct str tenant, const struct profile *p);
/* Decodes into a profile that profile_init() made. `tenant` points into `bytes`. E_CORRUPT. */
NODISCARD enum status batch_decode(
	struct str bytes, struct profile *p, struct str *tenant, struct err *e);
