/* SPDX-License-Identifier: Apache-2.0 */
/* parca.debuginfo.v1alpha1: upload of debug files. */
#include "schema/internal.h"

/* clang-format off */
static const struct pb_enum_value debuginfo_type_values[] = {
	{ "DEBUGINFO_TYPE_DEBUGINFO_UNSPECIFIED", 0 },
	{ "DEBUGINFO_TYPE_EXECUTABLE", 1 },
	{ "DEBUGINFO_TYPE_SOURCES", 2 },
	{ "DEBUGINFO_TYPE_SOURCE_MAP", 3 },
};
static const struct pb_enum debuginfo_type = PB_ENUM("parca.debuginfo.v1alpha1.DebuginfoType", debuginfo_type_values);

static const struct pb_enum_value build_id_type_values[] = {
	{ "BUILD_ID_TYPE_UNKNOWN_UNSPECIFIED", 0 },
	{ "BUILD_ID_TYPE_GNU", 1 },
	{ "BUILD_ID_TYPE_HASH", 2 },
	{ "BUILD_ID_TYPE_GO", 3 },
	{ "BUILD_ID_TYPE_SOURCE_MAP_DEBUG_ID", 4 },
};
static const struct pb_enum build_id_type = PB_ENUM("parca.debuginfo.v1alpha1.BuildIDType", build_id_type_values);

static const struct pb_enum_value upload_instructions_upload_strategy_values[] = {
	{ "UPLOAD_STRATEGY_UNSPECIFIED", 0 },
	{ "UPLOAD_STRATEGY_GRPC", 1 },
	{ "UPLOAD_STRATEGY_SIGNED_URL", 2 },
};
static const struct pb_enum upload_instructions_upload_strategy = PB_ENUM("parca.debuginfo.v1alpha1.UploadInstructions.UploadStrategy", upload_instructions_upload_strategy_values);

static const struct pb_enum_value debuginfo_source_values[] = {
	{ "SOURCE_UNKNOWN_UNSPECIFIED", 0 },
	{ "SOURCE_UPLOAD", 1 },
	{ "SOURCE_DEBUGINFOD", 2 },
};
static const struct pb_enum debuginfo_source = PB_ENUM("parca.debuginfo.v1alpha1.Debuginfo.Source", debuginfo_source_values);

static const struct pb_enum_value debuginfo_upload_state_values[] = {
	{ "STATE_UNKNOWN_UNSPECIFIED", 0 },
	{ "STATE_UPLOADING", 1 },
	{ "STATE_UPLOADED", 2 },
	{ "STATE_PURGED", 3 },
};
static const struct pb_enum debuginfo_upload_state = PB_ENUM("parca.debuginfo.v1alpha1.DebuginfoUpload.State", debuginfo_upload_state_values);

static const struct pb_member should_initiate_upload_request_members[] = {
	PB_FIELD("build_id", 1, STRING), PB_FIELD("hash", 2, STRING), PB_FIELD("force", 3, BOOL),
	PB_CHOICE("type", 4, debuginfo_type), PB_CHOICE("build_id_type", 5, build_id_type),
};
static const struct pb_desc should_initiate_upload_request =
	PB_DESC("parca.debuginfo.v1alpha1.ShouldInitiateUploadRequest", should_initiate_upload_request_members);

static const struct pb_member should_initiate_upload_response_members[] = {
	PB_FIELD("should_initiate_upload", 1, BOOL), PB_FIELD("reason", 2, STRING),
};
static const struct pb_desc should_initiate_upload_response =
	PB_DESC("parca.debuginfo.v1alpha1.ShouldInitiateUploadResponse", should_initiate_upload_response_members);

static const struct pb_member initiate_upload_request_members[] = {
	PB_FIELD("build_id", 1, STRING), PB_FIELD("size", 2, INT64), PB_FIELD("hash", 3, STRING),
	PB_FIELD("force", 4, BOOL), PB_CHOICE("type", 5, debuginfo_type),
	PB_CHOICE("build_id_type", 6, build_id_type),
};
static const struct pb_desc initiate_upload_request =
	PB_DESC("parca.debuginfo.v1alpha1.InitiateUploadRequest", initiate_upload_request_members);

static const struct pb_member upload_instructions_members[] = {
	PB_FIELD("build_id", 1, STRING), PB_FIELD("upload_id", 2, STRING),
	PB_CHOICE("upload_strategy", 3, upload_instructions_upload_strategy),
	PB_FIELD("signed_url", 4, STRING), PB_CHOICE("type", 5, debuginfo_type),
};
static const struct pb_desc upload_instructions =
	PB_DESC("parca.debuginfo.v1alpha1.UploadInstructions", upload_instructions_members);

static const struct pb_member initiate_upload_response_members[] = {
	PB_MSG("upload_instructions", 1, upload_instructions),
};
static const struct pb_desc initiate_upload_response =
	PB_DESC("parca.debuginfo.v1alpha1.InitiateUploadResponse", initiate_upload_response_members);

static const struct pb_member mark_upload_finished_request_members[] = {
	PB_FIELD("build_id", 1, STRING), PB_FIELD("upload_id", 2, STRING),
	PB_CHOICE("type", 3, debuginfo_type),
};
static const struct pb_desc mark_upload_finished_request =
	PB_DESC("parca.debuginfo.v1alpha1.MarkUploadFinishedRequest", mark_upload_finished_request_members);

static const struct pb_desc mark_upload_finished_response = { .name = "parca.debuginfo.v1alpha1.MarkUploadFinishedResponse" };

static const struct pb_member upload_info_members[] = {
	PB_FIELD("build_id", 1, STRING), PB_FIELD("upload_id", 2, STRING),
	PB_CHOICE("type", 3, debuginfo_type),
};
static const struct pb_desc upload_info =
	PB_DESC("parca.debuginfo.v1alpha1.UploadInfo", upload_info_members);

static const struct pb_member upload_request_members[] = {
	PB_MSG_ONE("info", 1, upload_info, 1), PB_ONE("chunk_data", 2, BYTES, 1),
};
static const struct pb_desc upload_request = {
	.name = "parca.debuginfo.v1alpha1.UploadRequest", .members = upload_request_members, .count = ARRAY_COUNT(upload_request_members),
	.oneofs = { "data" } };

static const struct pb_member upload_response_members[] = {
	PB_FIELD("build_id", 1, STRING), PB_FIELD("size", 2, UINT64),
};
static const struct pb_desc upload_response =
	PB_DESC("parca.debuginfo.v1alpha1.UploadResponse", upload_response_members);

static const struct pb_member debuginfo_upload_members[] = {
	PB_FIELD("id", 1, STRING), PB_FIELD("hash", 2, STRING),
	PB_CHOICE("state", 3, debuginfo_upload_state), PB_MSG("started_at", 4, pb_timestamp),
	PB_MSG("finished_at", 5, pb_timestamp),
};
static const struct pb_desc debuginfo_upload =
	PB_DESC("parca.debuginfo.v1alpha1.DebuginfoUpload", debuginfo_upload_members);

static const struct pb_member debuginfo_quality_members[] = {
	PB_FIELD("not_valid_elf", 1, BOOL), PB_FIELD("has_dwarf", 2, BOOL),
	PB_FIELD("has_go_pclntab", 3, BOOL), PB_FIELD("has_symtab", 4, BOOL),
	PB_FIELD("has_dynsym", 5, BOOL),
};
static const struct pb_desc debuginfo_quality =
	PB_DESC("parca.debuginfo.v1alpha1.DebuginfoQuality", debuginfo_quality_members);

static const struct pb_member debuginfo_members[] = {
	PB_FIELD("build_id", 1, STRING), PB_CHOICE("source", 2, debuginfo_source),
	PB_MSG("upload", 3, debuginfo_upload), PB_MSG("quality", 4, debuginfo_quality),
	PB_LIST("debuginfod_servers", 5, STRING), PB_CHOICE("type", 6, debuginfo_type),
};
static const struct pb_desc debuginfo =
	PB_DESC("parca.debuginfo.v1alpha1.Debuginfo", debuginfo_members);

static const struct pb_method parca_debuginfo_methods[] = {
	{ .name = "Upload", .input = &upload_request, .output = &upload_response,
	  .client_streams = true },
	{ .name = "ShouldInitiateUpload", .input = &should_initiate_upload_request, .output = &should_initiate_upload_response },
	{ .name = "InitiateUpload", .input = &initiate_upload_request, .output = &initiate_upload_response },
	{ .name = "MarkUploadFinished", .input = &mark_upload_finished_request, .output = &mark_upload_finished_response },
};
const struct pb_service schema_parca_debuginfo = {
	.name = "parca.debuginfo.v1alpha1.DebuginfoService",
	.methods = parca_debuginfo_methods, .count = ARRAY_COUNT(parca_debuginfo_methods) };

static const struct pb_desc *const messages[] = {
	&should_initiate_upload_request, &should_initiate_upload_response,
	&initiate_upload_request, &initiate_upload_response, &upload_instructions,
	&mark_upload_finished_request, &mark_upload_finished_response, &upload_request,
	&upload_info, &upload_response, &debuginfo, &debuginfo_upload, &debuginfo_quality,
};
static const struct pb_enum *const enums[] = {
	&debuginfo_type, &build_id_type, &upload_instructions_upload_strategy,
	&debuginfo_source, &debuginfo_upload_state,
};
static const struct pb_service *const services[] = {
	&schema_parca_debuginfo,
};
static const struct pb_file *const imports[] = {
	&pb_file_timestamp,
};
const struct pb_file schema_file_debuginfo = {
	.name = "parca/debuginfo/v1alpha1/debuginfo.proto", .package = "parca.debuginfo.v1alpha1",
	.messages = messages, .message_count = ARRAY_COUNT(messages),
	.enums = enums, .enum_count = ARRAY_COUNT(enums),
	.services = services, .service_count = ARRAY_COUNT(services),
	.imports = imports, .import_count = ARRAY_COUNT(imports),
};

/* clang-format on */
