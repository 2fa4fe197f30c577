/* SPDX-License-Identifier: Apache-2.0 */
/* schema's own: messages that a file takes from another. */
#pragma once

#include "schema/schema.h"

extern const struct pb_desc schema_otlp_common_any_value;
extern const struct pb_desc schema_otlp_common_entity_ref;
extern const struct pb_desc schema_otlp_common_instrumentation_scope;
extern const struct pb_desc schema_otlp_common_key_value;
extern const struct pb_desc schema_otlp_profiles_profiles_dictionary;
extern const struct pb_desc schema_otlp_profiles_resource_profiles;
extern const struct pb_desc schema_otlp_resource_resource;
extern const struct pb_desc schema_metastore_function;
extern const struct pb_desc schema_metastore_line;
extern const struct pb_desc schema_metastore_location;
extern const struct pb_desc schema_metastore_mapping;
extern const struct pb_desc schema_profilestore_label_set;
