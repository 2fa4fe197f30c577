/* SPDX-License-Identifier: Apache-2.0 */
/* record: names of files of uploads, and their records. Private to debuginfo/. */
#pragma once

#include "debuginfo/uploads/uploads.h"

#define DEBUGINFO_RECORD_BYTES_MAX 4096

const char *debuginfo_type_name(enum debuginfo_type type);
/* Text as a file's name has it, and back; false: it was not made by the first. */
void debuginfo_put_name(struct buf *out, struct str text);
bool debuginfo_take_name(struct str name, char *out, size_t max);
/* A UUID in lower case. */
bool debuginfo_is_upload_id(struct str id);
