/* SPDX-License-Identifier: Apache-2.0 */
/* parca.profilestore.v1alpha1: what agents write, and the list of agents. */
#include "schema/internal.h"

/* clang-format off */
static const struct pb_member write_request_members[] = {
	PB_FIELD("record", 1, BYTES),
};
static const struct pb_desc write_request =
	PB_DESC("parca.profilestore.v1alpha1.WriteRequest", write_request_members);

static const struct pb_member write_response_members[] = {
	PB_FIELD("record", 1, BYTES),
};
static const struct pb_desc write_response =
	PB_DESC("parca.profilestore.v1alpha1.WriteResponse", write_response_members);

static const struct pb_member write_arrow_request_members[] = {
	PB_FIELD("ipc_buffer", 1, BYTES),
};
static const struct pb_desc write_arrow_request =
	PB_DESC("parca.profilestore.v1alpha1.WriteArrowRequest", write_arrow_request_members);

static const struct pb_desc write_arrow_response = { .name = "parca.profilestore.v1alpha1.WriteArrowResponse" };

static const struct pb_member label_members[] = {
	PB_FIELD("name", 1, STRING), PB_FIELD("value", 2, STRING),
};
static const struct pb_desc label = PB_DESC("parca.profilestore.v1alpha1.Label", label_members);

static const struct pb_member profilestore_label_set_members[] = {
	PB_MSGS("labels", 1, label),
};
const struct pb_desc schema_profilestore_label_set =
	PB_DESC("parca.profilestore.v1alpha1.LabelSet", profilestore_label_set_members);

static const struct pb_member load_segment_members[] = {
	PB_FIELD("offset", 1, UINT64), PB_FIELD("vaddr", 2, UINT64),
};
static const struct pb_desc load_segment =
	PB_DESC("parca.profilestore.v1alpha1.LoadSegment", load_segment_members);

static const struct pb_member executable_info_members[] = {
	PB_FIELD("elf_type", 1, UINT32), PB_MSG("load_segment", 2, load_segment),
};
static const struct pb_desc executable_info =
	PB_DESC("parca.profilestore.v1alpha1.ExecutableInfo", executable_info_members);

static const struct pb_member raw_sample_members[] = {
	PB_FIELD("raw_profile", 1, BYTES), PB_MSGS("executable_info", 2, executable_info),
};
static const struct pb_desc raw_sample =
	PB_DESC("parca.profilestore.v1alpha1.RawSample", raw_sample_members);

static const struct pb_member raw_profile_series_members[] = {
	PB_MSG("labels", 1, schema_profilestore_label_set), PB_MSGS("samples", 2, raw_sample),
};
static const struct pb_desc raw_profile_series =
	PB_DESC("parca.profilestore.v1alpha1.RawProfileSeries", raw_profile_series_members);

static const struct pb_member write_raw_request_members[] = {
	PB_FIELD("tenant", 1, STRING), PB_MSGS("series", 2, raw_profile_series),
	PB_FIELD("normalized", 3, BOOL),
};
static const struct pb_desc write_raw_request =
	PB_DESC("parca.profilestore.v1alpha1.WriteRawRequest", write_raw_request_members);

static const struct pb_desc write_raw_response = { .name = "parca.profilestore.v1alpha1.WriteRawResponse" };

static const struct pb_desc agents_request = { .name = "parca.profilestore.v1alpha1.AgentsRequest" };

static const struct pb_member agent_members[] = {
	PB_FIELD("id", 1, STRING), PB_FIELD("last_error", 2, STRING),
	PB_MSG("last_push", 3, pb_timestamp), PB_MSG("last_push_duration", 4, pb_duration),
};
static const struct pb_desc agent = PB_DESC("parca.profilestore.v1alpha1.Agent", agent_members);

static const struct pb_member agents_response_members[] = {
	PB_MSGS("agents", 1, agent),
};
static const struct pb_desc agents_response =
	PB_DESC("parca.profilestore.v1alpha1.AgentsResponse", agents_response_members);

static const struct pb_method parca_profilestore_methods[] = {
	{ .name = "WriteRaw", .input = &write_raw_request, .output = &write_raw_response },
	{ .name = "Write", .input = &write_request, .output = &write_response,
	  .client_streams = true, .server_streams = true },
	{ .name = "WriteArrow", .input = &write_arrow_request, .output = &write_arrow_response },
};
const struct pb_service schema_parca_profilestore = {
	.name = "parca.profilestore.v1alpha1.ProfileStoreService",
	.methods = parca_profilestore_methods, .count = ARRAY_COUNT(parca_profilestore_methods) };

static const struct pb_method parca_agents_methods[] = {
	{ .name = "Agents", .input = &agents_request, .output = &agents_response },
};
const struct pb_service schema_parca_agents = {
	.name = "parca.profilestore.v1alpha1.AgentsService",
	.methods = parca_agents_methods, .count = ARRAY_COUNT(parca_agents_methods) };

static const struct pb_desc *const messages[] = {
	&write_request, &write_response, &write_arrow_request, &write_arrow_response,
	&write_raw_request, &write_raw_response, &raw_profile_series, &label,
	&schema_profilestore_label_set, &raw_sample, &executable_info, &load_segment,
	&agents_request, &agents_response, &agent,
};
static const struct pb_service *const services[] = {
	&schema_parca_profilestore, &schema_parca_agents,
};
static const struct pb_file *const imports[] = {
	&pb_file_duration, &pb_file_timestamp,
};
const struct pb_file schema_file_profilestore = {
	.name = "parca/profilestore/v1alpha1/profilestore.proto", .package = "parca.profilestore.v1alpha1",
	.messages = messages, .message_count = ARRAY_COUNT(messages),
	.services = services, .service_count = ARRAY_COUNT(services),
	.imports = imports, .import_count = ARRAY_COUNT(imports),
};

/* clang-format on */
