/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: field numbers of OTLP profiles, and attribute keys with the labels they are.
 *
 * Private to otlp/. Source: opentelemetry-proto 1.11, profiles/v1development; OpenTelemetry
 * semantic conventions 1.38.
 */
#pragma once

#include "base/str.h"

/* pb's tag: a known number with another wire type is an unknown field, as in every protobuf
 * library. */
#define FIELD(number, wire) ((uint64_t)(number) << 3 | (wire))

enum dictionary_field {
	DICT_MAPPING = 1,
	DICT_LOCATION = 2,
	DICT_FUNCTION = 3,
	DICT_LINK = 4,
	DICT_STRING = 5,
	DICT_ATTRIBUTE = 6,
	DICT_STACK = 7,
	DICT_FIELDS = 8
};

#define ATTRIBUTE_BUILD_ID "process.executable.build_id.gnu"
/* For files without a GNU build id: the content id of objfile.h. Ours; no other reader knows it. */
#define ATTRIBUTE_CONTENT_ID "process.executable.build_id.firn"
#define ATTRIBUTE_FRAME_TYPE "profile.frame.type"

/* The label's name for an attribute's key if the table has one, else `key` itself (with bytes that
 * a label may not have); and the other way round. */
struct str otlp_label_of_attribute(struct str key);
struct str otlp_attribute_of_label(struct str label);
/* The same for a sample's own label. `cpu` stays `cpu`: readers that make labels of keys (Parca)
 * know no other name for it, and a second key would cost bytes in each sample. */
struct str otlp_attribute_of_own_label(struct str label);
/* Do readers that make labels of keys, '_' for '.', find the label's own name in the key? */
bool otlp_attribute_gives_label(struct str attribute, struct str label);
