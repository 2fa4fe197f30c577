/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/log/batch: a profile as the payload of a record of the log (docs/formats/log.md section 4).
 *
 * Layer 3, private to store/. Pure functions.
 */
#pragma once

#include "profile/profile.h"

#define BATCH_BYTES_MAX ((size_t)256 << 20)

/* `p` is valid (profile_validate). Failure is in the buffer. Returns how many bytes of it are texts
 * and symbols: those that can be packed well. */
size_t batch_encode(struct buf *out, struct str tenant, const struct profile *p);
/* Into a profile that profile_init() made. `tenant` points into the bytes. E_CORRUPT. */
NODISCARD enum status batch_decode(
	struct str bytes, struct profile *p, struct str *tenant, struct err *e);
