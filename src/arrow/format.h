/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format: numbers of Arrow's IPC format, for reader and writer.
 *
 * Private to arrow/. Source: arrow/format/{Message,Schema}.fbs, metadata version 5. FIELD(n) is the
 * n-th field of a flatbuffer's table, in the order of the schema file.
 */
#pragma once

#include <stdint.h>

#define ARROW_CONTINUATION 0xFFFFFFFFu

/* Message { version, header_type, header, bodyLength } */
enum { MESSAGE_VERSION = 0, MESSAGE_HEADER_TYPE = 1, MESSAGE_HEADER = 2, MESSAGE_BODY_LENGTH = 3 };
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY = 2, HEADER_RECORD = 3 };
enum { METADATA_V4 = 3, METADATA_V5 = 4 };

/* Schema { endianness, fields, custom_metadata } */
enum { SCHEMA_ENDIANNESS = 0, SCHEMA_FIELDS = 1, SCHEMA_METADATA = 2 };

/* Field { name, nullable, type_type, type, dictionary, children, custom_metadata } */
enum {
	FIELD_NAME = 0,
	FIELD_NULLABLE = 1,
	FIELD_TYPE_TYPE = 2,
	FIELD_TYPE = 3,
	FIELD_DICTIONARY = 4,
	FIELD_CHILDREN = 5,
	FIELD_METADATA = 6
};

/* DictionaryEncoding { id, indexType, isOrdered, dictionaryKind } */
enum { ENCODING_ID = 0, ENCODING_INDEX_TYPE = 1 };

/* KeyValue { key, value } */
enum { PAIR_KEY = 0, PAIR_VALUE = 1 };

/* Int { bitWidth, is_signed }; the other types' first field (and Time's, Decimal's further ones) */
enum { INT_BITS = 0, INT_SIGNED = 1 };
enum { TYPE_FIRST = 0, TIME_BITS = 1, DECIMAL_BITS = 2 };

/* RecordBatch { length, nodes, buffers, compression, variadicBufferCounts } */
enum {
	RECORD_LENGTH = 0,
	RECORD_NODES = 1,
	RECORD_BUFFERS = 2,
	RECORD_COMPRESSION = 3,
	RECORD_VARIADIC = 4
};
/* FieldNode { length, null_count } and Buffer { offset, length }: structs of two int64 */
#define ARROW_PAIR_BYTES 16

/* BodyCompression { codec, method } */
enum { COMPRESSION_CODEC = 0, COMPRESSION_METHOD = 1 };
enum { CODEC_LZ4_FRAME = 0, CODEC_ZSTD = 1, CODEC_NONE = -1 };

/* DictionaryBatch { id, data, isDelta } */
enum { DICTIONARY_ID = 0, DICTIONARY_DATA = 1, DICTIONARY_DELTA = 2 };

/* union Type */
enum arrow_logical {
	LOGICAL_NONE = 0,
	LOGICAL_NULL = 1,
	LOGICAL_INT = 2,
	LOGICAL_FLOAT = 3,
	LOGICAL_BINARY = 4,
	LOGICAL_UTF8 = 5,
	LOGICAL_BOOL = 6,
	LOGICAL_DECIMAL = 7,
	LOGICAL_DATE = 8,
	LOGICAL_TIME = 9,
	LOGICAL_TIMESTAMP = 10,
	LOGICAL_INTERVAL = 11,
	LOGICAL_LIST = 12,
	LOGICAL_STRUCT = 13,
	LOGICAL_UNION = 14,
	LOGICAL_FIXED_BINARY = 15,
	LOGICAL_FIXED_LIST = 16,
	LOGICAL_MAP = 17,
	LOGICAL_DURATION = 18,
	LOGICAL_LARGE_BINARY = 19,
	LOGICAL_LARGE_UTF8 = 20,
	LOGICAL_LARGE_LIST = 21,
	LOGICAL_RUNS = 22,
	LOGICAL_BINARY_VIEW = 23,
	LOGICAL_UTF8_VIEW = 24,
	LOGICAL_LIST_VIEW = 25,
	LOGICAL_LARGE_LIST_VIEW = 26
};

/* A binary view: length, then up to 12 bytes in place, or 4 bytes of prefix, buffer and offset. */
#define ARROW_VIEW_BYTES 16
#define ARROW_VIEW_INLINE_MAX 12
