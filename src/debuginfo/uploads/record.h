/* SPDX-License-Identifier: Apache-2.0 */
/* record: names of files of uploads, and their records. Private to debuginfo/. */
#pragma once

#include "debuginfo/uploads/uploads.h"

#define DEBUGINFO_RECORD_BYTES_MAX 4096

const char *debuginfo_type_name(enum debuginfo_type type);
/* Writes a text so that it can be part of a file's name, and reads it back; false: the name was not
 * made by debuginfo_put_name(). */
void debuginfo_put_name(struct buf *out, struct str text);
bool debuginfo_take_name(struct str name, char *out, size_t max);
/* A UUID in lower case. */
bool debuginfo_is_upload_id(struct str id);
