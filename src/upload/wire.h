/* SPDX-License-Identifier: Apache-2.0 */
/* wire: decodes the answers of a server of debug files. Bytes in, no I/O. Private to upload/. */
#pragma once

#include "upload/upload.h"

/* ShouldInitiateUploadResponse. E_IO: malformed. */
NODISCARD enum status upload_answer_decode(
	struct str message, struct upload_answer *out, struct err *e);
/* InitiateUploadResponse. E_IO: malformed; E_UNSUPPORTED: a strategy that is not known; E_LIMIT: an
 * address of more than UPLOAD_URL_MAX bytes. */
NODISCARD enum status upload_ticket_decode(
	struct str message, struct upload_ticket *out, struct err *e);

struct upload_url {
	char server[512]; /* as fetch_new() */
	char target[UPLOAD_URL_MAX + 1];
};
/* "https://HOST[:PORT]/PATH?QUERY". E_UNSUPPORTED: another scheme, or clear text that is not
 * allowed; E_INVALID: none of that form. */
NODISCARD enum status upload_url_parse(
	const char *url, bool clear_text, struct upload_url *out, struct err *e);
