/* SPDX-License-Identifier: Apache-2.0 */
/* json: members of a JSON text. */
#pragma once

#include "base/buf.h"

void query_json_i64(struct buf *b, int64_t v);
/* A member that is an array of `count` numbers of `size` bytes: uint8_t, uint32_t or int64_t. */
void query_json_column(struct buf *b, const char *key, const void *v, size_t size, size_t count);
/* ,"key": with the comma left out after an opening bracket */
void query_json_key(struct buf *b, const char *key);
void query_json_pair_i64(struct buf *b, const char *key, int64_t v);
void query_json_pair_str(struct buf *b, const char *key, struct str v);
