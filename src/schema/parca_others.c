/* SPDX-License-Identifier: Apache-2.0 */
/* parca.metastore (messages of reports), parca.scrape and parca.telemetry, all v1alpha1. */
#include "schema/internal.h"

/* clang-format off */
static const struct pb_member metastore_line_members[] = {
	PB_FIELD("function_id", 1, STRING), PB_FIELD("line", 2, INT64),
	PB_FIELD("function_index", 3, UINT32),
};
const struct pb_desc schema_metastore_line =
	PB_DESC("parca.metastore.v1alpha1.Line", metastore_line_members);

static const struct pb_member metastore_location_members[] = {
	PB_FIELD("id", 1, STRING), PB_FIELD("address", 2, UINT64),
	PB_FIELD("mapping_id", 4, STRING), PB_FIELD("is_folded", 5, BOOL),
	PB_MSGS("lines", 6, schema_metastore_line), PB_FIELD("mapping_index", 7, UINT32),
};
const struct pb_desc schema_metastore_location =
	PB_DESC("parca.metastore.v1alpha1.Location", metastore_location_members);

static const struct pb_member metastore_function_members[] = {
	PB_FIELD("id", 1, STRING), PB_FIELD("start_line", 2, INT64), PB_FIELD("name", 3, STRING),
	PB_FIELD("system_name", 4, STRING), PB_FIELD("filename", 5, STRING),
	PB_FIELD("name_string_index", 6, UINT32), PB_FIELD("system_name_string_index", 7, UINT32),
	PB_FIELD("filename_string_index", 8, UINT32),
};
const struct pb_desc schema_metastore_function =
	PB_DESC("parca.metastore.v1alpha1.Function", metastore_function_members);

static const struct pb_member metastore_mapping_members[] = {
	PB_FIELD("id", 1, STRING), PB_FIELD("start", 2, UINT64), PB_FIELD("limit", 3, UINT64),
	PB_FIELD("offset", 4, UINT64), PB_FIELD("file", 5, STRING),
	PB_FIELD("build_id", 6, STRING), PB_FIELD("has_functions", 7, BOOL),
	PB_FIELD("has_filenames", 8, BOOL), PB_FIELD("has_line_numbers", 9, BOOL),
	PB_FIELD("has_inline_frames", 10, BOOL), PB_FIELD("file_string_index", 11, UINT32),
	PB_FIELD("build_id_string_index", 12, UINT32),
};
const struct pb_desc schema_metastore_mapping =
	PB_DESC("parca.metastore.v1alpha1.Mapping", metastore_mapping_members);

static const struct pb_desc *const metastore_messages[] = {
	&schema_metastore_location, &schema_metastore_line, &schema_metastore_function,
	&schema_metastore_mapping,
};
const struct pb_file schema_file_metastore = {
	.name = "parca/metastore/v1alpha1/metastore.proto", .package = "parca.metastore.v1alpha1",
	.messages = metastore_messages, .message_count = ARRAY_COUNT(metastore_messages),
};

static const struct pb_enum_value scrape_targets_request_state_values[] = {
	{ "STATE_ANY_UNSPECIFIED", 0 },
	{ "STATE_ACTIVE", 1 },
	{ "STATE_DROPPED", 2 },
};
static const struct pb_enum scrape_targets_request_state = PB_ENUM("parca.scrape.v1alpha1.TargetsRequest.State", scrape_targets_request_state_values);

static const struct pb_enum_value scrape_target_health_values[] = {
	{ "HEALTH_UNKNOWN_UNSPECIFIED", 0 },
	{ "HEALTH_GOOD", 1 },
	{ "HEALTH_BAD", 2 },
};
static const struct pb_enum scrape_target_health = PB_ENUM("parca.scrape.v1alpha1.Target.Health", scrape_target_health_values);

static const struct pb_member scrape_targets_request_members[] = {
	PB_CHOICE("state", 1, scrape_targets_request_state),
};
static const struct pb_desc scrape_targets_request =
	PB_DESC("parca.scrape.v1alpha1.TargetsRequest", scrape_targets_request_members);

static const struct pb_member scrape_target_members[] = {
	PB_MSG("discovered_labels", 1, schema_profilestore_label_set),
	PB_MSG("labels", 2, schema_profilestore_label_set), PB_FIELD("last_error", 3, STRING),
	PB_MSG("last_scrape", 4, pb_timestamp), PB_MSG("last_scrape_duration", 5, pb_duration),
	PB_FIELD("url", 6, STRING), PB_CHOICE("health", 7, scrape_target_health),
};
static const struct pb_desc scrape_target =
	PB_DESC("parca.scrape.v1alpha1.Target", scrape_target_members);

static const struct pb_member scrape_targets_members[] = {
	PB_MSGS("targets", 1, scrape_target),
};
static const struct pb_desc scrape_targets =
	PB_DESC("parca.scrape.v1alpha1.Targets", scrape_targets_members);

static const struct pb_member scrape_targets_response_targets_entry_members[] = { PB_FIELD("key", 1, STRING), PB_MSG("value", 2, scrape_targets) };
static const struct pb_desc scrape_targets_response_targets_entry = PB_DESC("parca.scrape.v1alpha1.TargetsResponse.TargetsEntry", scrape_targets_response_targets_entry_members);
static const struct pb_member scrape_targets_response_members[] = {
	PB_MAP_OF("targets", 1, scrape_targets_response_targets_entry),
};
static const struct pb_desc scrape_targets_response =
	PB_DESC("parca.scrape.v1alpha1.TargetsResponse", scrape_targets_response_members);

static const struct pb_method parca_scrape_methods[] = {
	{ .name = "Targets", .input = &scrape_targets_request, .output = &scrape_targets_response },
};
const struct pb_service schema_parca_scrape = {
	.name = "parca.scrape.v1alpha1.ScrapeService",
	.methods = parca_scrape_methods, .count = ARRAY_COUNT(parca_scrape_methods) };

static const struct pb_desc *const scrape_messages[] = {
	&scrape_targets_request, &scrape_targets_response, &scrape_targets, &scrape_target,
};
static const struct pb_enum *const scrape_enums[] = {
	&scrape_targets_request_state, &scrape_target_health,
};
static const struct pb_service *const scrape_services[] = {
	&schema_parca_scrape,
};
static const struct pb_file *const scrape_imports[] = {
	&pb_file_duration, &pb_file_timestamp, &schema_file_profilestore,
};
const struct pb_file schema_file_scrape = {
	.name = "parca/scrape/v1alpha1/scrape.proto", .package = "parca.scrape.v1alpha1",
	.messages = scrape_messages, .message_count = ARRAY_COUNT(scrape_messages),
	.enums = scrape_enums, .enum_count = ARRAY_COUNT(scrape_enums),
	.services = scrape_services, .service_count = ARRAY_COUNT(scrape_services),
	.imports = scrape_imports, .import_count = ARRAY_COUNT(scrape_imports),
};

static const struct pb_member telemetry_report_panic_request_metadata_entry_members[] = { PB_FIELD("key", 1, STRING), PB_FIELD("value", 2, STRING) };
static const struct pb_desc telemetry_report_panic_request_metadata_entry = PB_DESC("parca.telemetry.v1alpha1.ReportPanicRequest.MetadataEntry", telemetry_report_panic_request_metadata_entry_members);
static const struct pb_member telemetry_report_panic_request_members[] = {
	PB_FIELD("stderr", 1, STRING),
	PB_MAP_OF("metadata", 2, telemetry_report_panic_request_metadata_entry),
};
static const struct pb_desc telemetry_report_panic_request =
	PB_DESC("parca.telemetry.v1alpha1.ReportPanicRequest", telemetry_report_panic_request_members);

static const struct pb_desc telemetry_report_panic_response = { .name = "parca.telemetry.v1alpha1.ReportPanicResponse" };

static const struct pb_method parca_telemetry_methods[] = {
	{ .name = "ReportPanic", .input = &telemetry_report_panic_request, .output = &telemetry_report_panic_response },
};
const struct pb_service schema_parca_telemetry = {
	.name = "parca.telemetry.v1alpha1.TelemetryService",
	.methods = parca_telemetry_methods, .count = ARRAY_COUNT(parca_telemetry_methods) };

static const struct pb_desc *const telemetry_messages[] = {
	&telemetry_report_panic_request, &telemetry_report_panic_response,
};
static const struct pb_service *const telemetry_services[] = {
	&schema_parca_telemetry,
};
const struct pb_file schema_file_telemetry = {
	.name = "parca/telemetry/v1alpha1/telemetry.proto", .package = "parca.telemetry.v1alpha1",
	.messages = telemetry_messages, .message_count = ARRAY_COUNT(telemetry_messages),
	.services = telemetry_services, .service_count = ARRAY_COUNT(telemetry_services),
};

/* clang-format on */
