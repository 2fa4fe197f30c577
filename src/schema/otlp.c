/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles (v1development, 1.11), with the common messages that they hold. */
#include "schema/internal.h"

/* clang-format off */

static const struct pb_member otlp_common_array_value_members[] = {
	PB_MSGS("values", 1, schema_otlp_common_any_value),
};
static const struct pb_desc otlp_common_array_value =
	PB_DESC("opentelemetry.proto.common.v1.ArrayValue", otlp_common_array_value_members);

static const struct pb_member otlp_common_key_value_members[] = {
	PB_FIELD("key", 1, STRING), PB_MSG("value", 2, schema_otlp_common_any_value),
	PB_FIELD("key_strindex", 3, INT32),
};
const struct pb_desc schema_otlp_common_key_value =
	PB_DESC("opentelemetry.proto.common.v1.KeyValue", otlp_common_key_value_members);

static const struct pb_member otlp_common_key_value_list_members[] = {
	PB_MSGS("values", 1, schema_otlp_common_key_value),
};
static const struct pb_desc otlp_common_key_value_list =
	PB_DESC("opentelemetry.proto.common.v1.KeyValueList", otlp_common_key_value_list_members);

static const struct pb_member otlp_common_any_value_members[] = {
	PB_ONE("string_value", 1, STRING, 1), PB_ONE("bool_value", 2, BOOL, 1),
	PB_ONE("int_value", 3, INT64, 1), PB_ONE("double_value", 4, DOUBLE, 1),
	PB_MSG_ONE("array_value", 5, otlp_common_array_value, 1),
	PB_MSG_ONE("kvlist_value", 6, otlp_common_key_value_list, 1),
	PB_ONE("bytes_value", 7, BYTES, 1), PB_ONE("string_value_strindex", 8, INT32, 1),
};
const struct pb_desc schema_otlp_common_any_value = {
	.name = "opentelemetry.proto.common.v1.AnyValue", .members = otlp_common_any_value_members, .count = ARRAY_COUNT(otlp_common_any_value_members),
	.oneofs = { "value" } };

static const struct pb_member otlp_common_instrumentation_scope_members[] = {
	PB_FIELD("name", 1, STRING), PB_FIELD("version", 2, STRING),
	PB_MSGS("attributes", 3, schema_otlp_common_key_value),
	PB_FIELD("dropped_attributes_count", 4, UINT32),
};
const struct pb_desc schema_otlp_common_instrumentation_scope =
	PB_DESC("opentelemetry.proto.common.v1.InstrumentationScope", otlp_common_instrumentation_scope_members);

static const struct pb_member otlp_common_entity_ref_members[] = {
	PB_FIELD("schema_url", 1, STRING), PB_FIELD("type", 2, STRING),
	PB_LIST("id_keys", 3, STRING), PB_LIST("description_keys", 4, STRING),
};
const struct pb_desc schema_otlp_common_entity_ref =
	PB_DESC("opentelemetry.proto.common.v1.EntityRef", otlp_common_entity_ref_members);

static const struct pb_desc *const otlp_common_messages[] = {
	&schema_otlp_common_any_value, &otlp_common_array_value, &otlp_common_key_value_list,
	&schema_otlp_common_key_value, &schema_otlp_common_instrumentation_scope,
	&schema_otlp_common_entity_ref,
};
const struct pb_file schema_file_otlp_common = {
	.name = "opentelemetry/proto/common/v1/common.proto", .package = "opentelemetry.proto.common.v1",
	.messages = otlp_common_messages, .message_count = ARRAY_COUNT(otlp_common_messages),
};

static const struct pb_member otlp_resource_resource_members[] = {
	PB_MSGS("attributes", 1, schema_otlp_common_key_value),
	PB_FIELD("dropped_attributes_count", 2, UINT32),
	PB_MSGS("entity_refs", 3, schema_otlp_common_entity_ref),
};
const struct pb_desc schema_otlp_resource_resource =
	PB_DESC("opentelemetry.proto.resource.v1.Resource", otlp_resource_resource_members);

static const struct pb_desc *const otlp_resource_messages[] = {
	&schema_otlp_resource_resource,
};
static const struct pb_file *const otlp_resource_imports[] = {
	&schema_file_otlp_common,
};
const struct pb_file schema_file_otlp_resource = {
	.name = "opentelemetry/proto/resource/v1/resource.proto", .package = "opentelemetry.proto.resource.v1",
	.messages = otlp_resource_messages, .message_count = ARRAY_COUNT(otlp_resource_messages),
	.imports = otlp_resource_imports, .import_count = ARRAY_COUNT(otlp_resource_imports),
};

static const struct pb_member otlp_profiles_mapping_members[] = {
	PB_FIELD("memory_start", 1, UINT64), PB_FIELD("memory_limit", 2, UINT64),
	PB_FIELD("file_offset", 3, UINT64), PB_FIELD("filename_strindex", 4, INT32),
	PB_LIST("attribute_indices", 5, INT32),
};
static const struct pb_desc otlp_profiles_mapping =
	PB_DESC("opentelemetry.proto.profiles.v1development.Mapping", otlp_profiles_mapping_members);

static const struct pb_member otlp_profiles_line_members[] = {
	PB_FIELD("function_index", 1, INT32), PB_FIELD("line", 2, INT64),
	PB_FIELD("column", 3, INT64),
};
static const struct pb_desc otlp_profiles_line =
	PB_DESC("opentelemetry.proto.profiles.v1development.Line", otlp_profiles_line_members);

static const struct pb_member otlp_profiles_location_members[] = {
	PB_FIELD("mapping_index", 1, INT32), PB_FIELD("address", 2, UINT64),
	PB_MSGS("lines", 3, otlp_profiles_line), PB_LIST("attribute_indices", 4, INT32),
};
static const struct pb_desc otlp_profiles_location =
	PB_DESC("opentelemetry.proto.profiles.v1development.Location", otlp_profiles_location_members);

static const struct pb_member otlp_profiles_function_members[] = {
	PB_FIELD("name_strindex", 1, INT32), PB_FIELD("system_name_strindex", 2, INT32),
	PB_FIELD("filename_strindex", 3, INT32), PB_FIELD("start_line", 4, INT64),
};
static const struct pb_desc otlp_profiles_function =
	PB_DESC("opentelemetry.proto.profiles.v1development.Function", otlp_profiles_function_members);

static const struct pb_member otlp_profiles_link_members[] = {
	{ .name = "trace_id", .number = 1, .kind = PB_KIND_BYTES, .flags = PB_HEX },
	{ .name = "span_id", .number = 2, .kind = PB_KIND_BYTES, .flags = PB_HEX },
};
static const struct pb_desc otlp_profiles_link =
	PB_DESC("opentelemetry.proto.profiles.v1development.Link", otlp_profiles_link_members);

static const struct pb_member otlp_profiles_key_value_and_unit_members[] = {
	PB_FIELD("key_strindex", 1, INT32), PB_MSG("value", 2, schema_otlp_common_any_value),
	PB_FIELD("unit_strindex", 3, INT32),
};
static const struct pb_desc otlp_profiles_key_value_and_unit =
	PB_DESC("opentelemetry.proto.profiles.v1development.KeyValueAndUnit", otlp_profiles_key_value_and_unit_members);

static const struct pb_member otlp_profiles_stack_members[] = {
	PB_LIST("location_indices", 1, INT32),
};
static const struct pb_desc otlp_profiles_stack =
	PB_DESC("opentelemetry.proto.profiles.v1development.Stack", otlp_profiles_stack_members);

static const struct pb_member otlp_profiles_profiles_dictionary_members[] = {
	PB_MSGS("mapping_table", 1, otlp_profiles_mapping),
	PB_MSGS("location_table", 2, otlp_profiles_location),
	PB_MSGS("function_table", 3, otlp_profiles_function),
	PB_MSGS("link_table", 4, otlp_profiles_link), PB_LIST("string_table", 5, STRING),
	PB_MSGS("attribute_table", 6, otlp_profiles_key_value_and_unit),
	PB_MSGS("stack_table", 7, otlp_profiles_stack),
};
const struct pb_desc schema_otlp_profiles_profiles_dictionary =
	PB_DESC("opentelemetry.proto.profiles.v1development.ProfilesDictionary", otlp_profiles_profiles_dictionary_members);

static const struct pb_member otlp_profiles_value_type_members[] = {
	PB_FIELD("type_strindex", 1, INT32), PB_FIELD("unit_strindex", 2, INT32),
};
static const struct pb_desc otlp_profiles_value_type =
	PB_DESC("opentelemetry.proto.profiles.v1development.ValueType", otlp_profiles_value_type_members);

static const struct pb_member otlp_profiles_sample_members[] = {
	PB_FIELD("stack_index", 1, INT32), PB_LIST("attribute_indices", 2, INT32),
	PB_FIELD("link_index", 3, INT32), PB_LIST("values", 4, INT64),
	PB_LIST("timestamps_unix_nano", 5, FIXED64),
};
static const struct pb_desc otlp_profiles_sample =
	PB_DESC("opentelemetry.proto.profiles.v1development.Sample", otlp_profiles_sample_members);

static const struct pb_member otlp_profiles_profile_members[] = {
	PB_MSG("sample_type", 1, otlp_profiles_value_type),
	PB_MSGS("samples", 2, otlp_profiles_sample), PB_FIELD("time_unix_nano", 3, FIXED64),
	PB_FIELD("duration_nano", 4, UINT64), PB_MSG("period_type", 5, otlp_profiles_value_type),
	PB_FIELD("period", 6, INT64),
	PB_FIELD("profile_id", 7, BYTES),
	PB_FIELD("dropped_attributes_count", 8, UINT32),
	PB_FIELD("original_payload_format", 9, STRING), PB_FIELD("original_payload", 10, BYTES),
	PB_LIST("attribute_indices", 11, INT32),
};
static const struct pb_desc otlp_profiles_profile =
	PB_DESC("opentelemetry.proto.profiles.v1development.Profile", otlp_profiles_profile_members);

static const struct pb_member otlp_profiles_scope_profiles_members[] = {
	PB_MSG("scope", 1, schema_otlp_common_instrumentation_scope),
	PB_MSGS("profiles", 2, otlp_profiles_profile), PB_FIELD("schema_url", 3, STRING),
};
static const struct pb_desc otlp_profiles_scope_profiles =
	PB_DESC("opentelemetry.proto.profiles.v1development.ScopeProfiles", otlp_profiles_scope_profiles_members);

static const struct pb_member otlp_profiles_resource_profiles_members[] = {
	PB_MSG("resource", 1, schema_otlp_resource_resource),
	PB_MSGS("scope_profiles", 2, otlp_profiles_scope_profiles),
	PB_FIELD("schema_url", 3, STRING),
};
const struct pb_desc schema_otlp_profiles_resource_profiles =
	PB_DESC("opentelemetry.proto.profiles.v1development.ResourceProfiles", otlp_profiles_resource_profiles_members);

static const struct pb_member otlp_profiles_profiles_data_members[] = {
	PB_MSGS("resource_profiles", 1, schema_otlp_profiles_resource_profiles),
	PB_MSG("dictionary", 2, schema_otlp_profiles_profiles_dictionary),
};
static const struct pb_desc otlp_profiles_profiles_data =
	PB_DESC("opentelemetry.proto.profiles.v1development.ProfilesData", otlp_profiles_profiles_data_members);

static const struct pb_desc *const otlp_profiles_messages[] = {
	&schema_otlp_profiles_profiles_dictionary, &otlp_profiles_profiles_data,
	&schema_otlp_profiles_resource_profiles, &otlp_profiles_scope_profiles,
	&otlp_profiles_profile, &otlp_profiles_link, &otlp_profiles_value_type,
	&otlp_profiles_sample, &otlp_profiles_mapping, &otlp_profiles_stack,
	&otlp_profiles_location, &otlp_profiles_line, &otlp_profiles_function,
	&otlp_profiles_key_value_and_unit,
};
static const struct pb_file *const otlp_profiles_imports[] = {
	&schema_file_otlp_common, &schema_file_otlp_resource,
};
const struct pb_file schema_file_otlp_profiles = {
	.name = "opentelemetry/proto/profiles/v1development/profiles.proto", .package = "opentelemetry.proto.profiles.v1development",
	.messages = otlp_profiles_messages, .message_count = ARRAY_COUNT(otlp_profiles_messages),
	.imports = otlp_profiles_imports, .import_count = ARRAY_COUNT(otlp_profiles_imports),
};

static const struct pb_member otlp_export_export_profiles_service_request_members[] = {
	PB_MSGS("resource_profiles", 1, schema_otlp_profiles_resource_profiles),
	PB_MSG("dictionary", 2, schema_otlp_profiles_profiles_dictionary),
};
static const struct pb_desc otlp_export_export_profiles_service_request =
	PB_DESC("opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest", otlp_export_export_profiles_service_request_members);

static const struct pb_member otlp_export_export_profiles_partial_success_members[] = {
	PB_FIELD("rejected_profiles", 1, INT64), PB_FIELD("error_message", 2, STRING),
};
static const struct pb_desc otlp_export_export_profiles_partial_success =
	PB_DESC("opentelemetry.proto.collector.profiles.v1development.ExportProfilesPartialSuccess", otlp_export_export_profiles_partial_success_members);

static const struct pb_member otlp_export_export_profiles_service_response_members[] = {
	PB_MSG("partial_success", 1, otlp_export_export_profiles_partial_success),
};
static const struct pb_desc otlp_export_export_profiles_service_response =
	PB_DESC("opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceResponse", otlp_export_export_profiles_service_response_members);

static const struct pb_method otlp_profiles_service_methods[] = {
	{ .name = "Export", .input = &otlp_export_export_profiles_service_request, .output = &otlp_export_export_profiles_service_response },
};
const struct pb_service schema_otlp_profiles_service = {
	.name = "opentelemetry.proto.collector.profiles.v1development.ProfilesService",
	.methods = otlp_profiles_service_methods, .count = ARRAY_COUNT(otlp_profiles_service_methods) };

static const struct pb_desc *const otlp_export_messages[] = {
	&otlp_export_export_profiles_service_request,
	&otlp_export_export_profiles_service_response,
	&otlp_export_export_profiles_partial_success,
};
static const struct pb_service *const otlp_export_services[] = {
	&schema_otlp_profiles_service,
};
static const struct pb_file *const otlp_export_imports[] = {
	&schema_file_otlp_profiles,
};
const struct pb_file schema_file_otlp_export = {
	.name = "opentelemetry/proto/collector/profiles/v1development/profiles_service.proto", .package = "opentelemetry.proto.collector.profiles.v1development",
	.messages = otlp_export_messages, .message_count = ARRAY_COUNT(otlp_export_messages),
	.services = otlp_export_services, .service_count = ARRAY_COUNT(otlp_export_services),
	.imports = otlp_export_imports, .import_count = ARRAY_COUNT(otlp_export_imports),
};

/* clang-format on */
