/* SPDX-License-Identifier: Apache-2.0 */
/* parca.query.v1alpha1: profile types, labels, series over time, reports. */
#include "schema/internal.h"

/* clang-format off */
static const struct pb_enum_value profile_diff_selection_mode_values[] = {
	{ "MODE_SINGLE_UNSPECIFIED", 0 },
	{ "MODE_MERGE", 1 },
};
static const struct pb_enum profile_diff_selection_mode = PB_ENUM("parca.query.v1alpha1.ProfileDiffSelection.Mode", profile_diff_selection_mode_values);

static const struct pb_enum_value query_request_mode_values[] = {
	{ "MODE_SINGLE_UNSPECIFIED", 0 },
	{ "MODE_DIFF", 1 },
	{ "MODE_MERGE", 2 },
};
static const struct pb_enum query_request_mode = PB_ENUM("parca.query.v1alpha1.QueryRequest.Mode", query_request_mode_values);

static const struct pb_enum_value query_request_report_type_values[] = {
	{ "REPORT_TYPE_FLAMEGRAPH_UNSPECIFIED", 0 },
	{ "REPORT_TYPE_PPROF", 1 },
	{ "REPORT_TYPE_TOP", 2 },
	{ "REPORT_TYPE_CALLGRAPH", 3 },
	{ "REPORT_TYPE_FLAMEGRAPH_TABLE", 4 },
	{ "REPORT_TYPE_FLAMEGRAPH_ARROW", 5 },
	{ "REPORT_TYPE_SOURCE", 6 },
	{ "REPORT_TYPE_TABLE_ARROW", 7 },
	{ "REPORT_TYPE_PROFILE_METADATA", 8 },
	{ "REPORT_TYPE_FLAMECHART", 9 },
};
static const struct pb_enum query_request_report_type = PB_ENUM("parca.query.v1alpha1.QueryRequest.ReportType", query_request_report_type_values);

static const struct pb_desc flamegraph_node; /* holds itself */

static const struct pb_member profile_types_request_members[] = {
	PB_MSG_MAYBE("start", 1, pb_timestamp), PB_MSG_MAYBE("end", 2, pb_timestamp),
};
static const struct pb_desc profile_types_request =
	PB_DESC("parca.query.v1alpha1.ProfileTypesRequest", profile_types_request_members);

static const struct pb_member profile_type_members[] = {
	PB_FIELD("name", 1, STRING), PB_FIELD("sample_type", 2, STRING),
	PB_FIELD("sample_unit", 3, STRING), PB_FIELD("period_type", 4, STRING),
	PB_FIELD("period_unit", 5, STRING), PB_FIELD("delta", 6, BOOL),
};
static const struct pb_desc profile_type =
	PB_DESC("parca.query.v1alpha1.ProfileType", profile_type_members);

static const struct pb_member profile_types_response_members[] = {
	PB_MSGS("types", 1, profile_type),
};
static const struct pb_desc profile_types_response =
	PB_DESC("parca.query.v1alpha1.ProfileTypesResponse", profile_types_response_members);

static const struct pb_member query_range_request_members[] = {
	PB_FIELD("query", 1, STRING), PB_MSG("start", 2, pb_timestamp),
	PB_MSG("end", 3, pb_timestamp), PB_FIELD("limit", 4, UINT32),
	PB_MSG("step", 5, pb_duration), PB_LIST("sum_by", 6, STRING),
};
static const struct pb_desc query_range_request =
	PB_DESC("parca.query.v1alpha1.QueryRangeRequest", query_range_request_members);

static const struct pb_member metrics_sample_members[] = {
	PB_MSG("timestamp", 1, pb_timestamp), PB_FIELD("value", 2, INT64),
	PB_FIELD("value_per_second", 3, DOUBLE), PB_FIELD("duration", 4, INT64),
	PB_FIELD("count", 5, INT32),
};
static const struct pb_desc metrics_sample =
	PB_DESC("parca.query.v1alpha1.MetricsSample", metrics_sample_members);

static const struct pb_member value_type_members[] = {
	PB_FIELD("type", 1, STRING), PB_FIELD("unit", 2, STRING),
};
static const struct pb_desc value_type =
	PB_DESC("parca.query.v1alpha1.ValueType", value_type_members);

static const struct pb_member metrics_series_members[] = {
	PB_MSG("labelset", 1, schema_profilestore_label_set),
	PB_MSGS("samples", 2, metrics_sample), PB_MSG("period_type", 3, value_type),
	PB_MSG("sample_type", 4, value_type),
};
static const struct pb_desc metrics_series =
	PB_DESC("parca.query.v1alpha1.MetricsSeries", metrics_series_members);

static const struct pb_member query_range_response_members[] = {
	PB_MSGS("series", 1, metrics_series),
};
static const struct pb_desc query_range_response =
	PB_DESC("parca.query.v1alpha1.QueryRangeResponse", query_range_response_members);

static const struct pb_member merge_profile_members[] = {
	PB_FIELD("query", 1, STRING), PB_MSG("start", 2, pb_timestamp),
	PB_MSG("end", 3, pb_timestamp),
};
static const struct pb_desc merge_profile =
	PB_DESC("parca.query.v1alpha1.MergeProfile", merge_profile_members);

static const struct pb_member single_profile_members[] = {
	PB_MSG("time", 1, pb_timestamp), PB_FIELD("query", 2, STRING),
};
static const struct pb_desc single_profile =
	PB_DESC("parca.query.v1alpha1.SingleProfile", single_profile_members);

static const struct pb_member profile_diff_selection_members[] = {
	PB_CHOICE("mode", 1, profile_diff_selection_mode),
	PB_MSG_ONE("merge", 2, merge_profile, 1), PB_MSG_ONE("single", 3, single_profile, 1),
};
static const struct pb_desc profile_diff_selection = {
	.name = "parca.query.v1alpha1.ProfileDiffSelection", .members = profile_diff_selection_members, .count = ARRAY_COUNT(profile_diff_selection_members),
	.oneofs = { "options" } };

static const struct pb_member diff_profile_members[] = {
	PB_MSG("a", 1, profile_diff_selection), PB_MSG("b", 2, profile_diff_selection),
	PB_MAYBE("absolute", 3, BOOL),
};
static const struct pb_desc diff_profile =
	PB_DESC("parca.query.v1alpha1.DiffProfile", diff_profile_members);

static const struct pb_member group_by_members[] = {
	PB_LIST("fields", 1, STRING),
};
static const struct pb_desc group_by = PB_DESC("parca.query.v1alpha1.GroupBy", group_by_members);

static const struct pb_member source_reference_members[] = {
	PB_FIELD("build_id", 1, STRING), PB_FIELD("filename", 2, STRING),
	PB_FIELD("source_only", 3, BOOL),
};
static const struct pb_desc source_reference =
	PB_DESC("parca.query.v1alpha1.SourceReference", source_reference_members);

static const struct pb_member runtime_filter_members[] = {
	PB_FIELD("show_python", 1, BOOL), PB_FIELD("show_ruby", 2, BOOL),
	PB_FIELD("show_interpreted_only", 3, BOOL),
};
static const struct pb_desc runtime_filter =
	PB_DESC("parca.query.v1alpha1.RuntimeFilter", runtime_filter_members);

static const struct pb_member function_name_stack_filter_members[] = {
	PB_FIELD("function_to_filter", 1, STRING), PB_FIELD("exclude", 2, BOOL),
};
static const struct pb_desc function_name_stack_filter =
	PB_DESC("parca.query.v1alpha1.FunctionNameStackFilter", function_name_stack_filter_members);

static const struct pb_member string_condition_members[] = {
	PB_ONE("equal", 1, STRING, 1), PB_ONE("not_equal", 2, STRING, 1),
	PB_ONE("contains", 3, STRING, 1), PB_ONE("not_contains", 4, STRING, 1),
	PB_ONE("starts_with", 5, STRING, 1), PB_ONE("not_starts_with", 6, STRING, 1),
};
static const struct pb_desc string_condition = {
	.name = "parca.query.v1alpha1.StringCondition", .members = string_condition_members, .count = ARRAY_COUNT(string_condition_members),
	.oneofs = { "condition" } };

static const struct pb_member number_condition_members[] = {
	PB_ONE("equal", 1, UINT64, 1), PB_ONE("not_equal", 2, UINT64, 1),
};
static const struct pb_desc number_condition = {
	.name = "parca.query.v1alpha1.NumberCondition", .members = number_condition_members, .count = ARRAY_COUNT(number_condition_members),
	.oneofs = { "condition" } };

static const struct pb_member filter_criteria_members[] = {
	PB_MSG("function_name", 1, string_condition), PB_MSG("system_name", 2, string_condition),
	PB_MSG("binary", 3, string_condition), PB_MSG("filename", 4, string_condition),
	PB_MSG("address", 5, number_condition), PB_MSG("line_number", 6, number_condition),
};
static const struct pb_desc filter_criteria =
	PB_DESC("parca.query.v1alpha1.FilterCriteria", filter_criteria_members);

static const struct pb_member stack_filter_members[] = {
	PB_MSG_ONE("function_name_stack_filter", 1, function_name_stack_filter, 1),
	PB_MSG_ONE("criteria", 2, filter_criteria, 1),
};
static const struct pb_desc stack_filter = {
	.name = "parca.query.v1alpha1.StackFilter", .members = stack_filter_members, .count = ARRAY_COUNT(stack_filter_members),
	.oneofs = { "filter" } };

static const struct pb_member binary_frame_filter_members[] = {
	PB_LIST("include_binaries", 1, STRING),
};
static const struct pb_desc binary_frame_filter =
	PB_DESC("parca.query.v1alpha1.BinaryFrameFilter", binary_frame_filter_members);

static const struct pb_member frame_filter_members[] = {
	PB_MSG_ONE("binary_frame_filter", 1, binary_frame_filter, 1),
	PB_MSG_ONE("criteria", 2, filter_criteria, 1),
};
static const struct pb_desc frame_filter = {
	.name = "parca.query.v1alpha1.FrameFilter", .members = frame_filter_members, .count = ARRAY_COUNT(frame_filter_members),
	.oneofs = { "filter" } };

static const struct pb_member filter_members[] = {
	PB_MSG_ONE("stack_filter", 1, stack_filter, 1),
	PB_MSG_ONE("frame_filter", 2, frame_filter, 1),
};
static const struct pb_desc filter = {
	.name = "parca.query.v1alpha1.Filter", .members = filter_members, .count = ARRAY_COUNT(filter_members),
	.oneofs = { "filter" } };

static const struct pb_member query_request_members[] = {
	PB_CHOICE("mode", 1, query_request_mode), PB_MSG_ONE("diff", 2, diff_profile, 1),
	PB_MSG_ONE("merge", 3, merge_profile, 1), PB_MSG_ONE("single", 4, single_profile, 1),
	PB_CHOICE("report_type", 5, query_request_report_type),
	PB_MAYBE("filter_query", 6, STRING), PB_MAYBE("node_trim_threshold", 7, FLOAT),
	PB_MSG_MAYBE("group_by", 8, group_by),
	PB_MSG_MAYBE("source_reference", 9, source_reference),
	PB_MSG_MAYBE("runtime_filter", 10, runtime_filter),
	PB_MAYBE("invert_call_stack", 11, BOOL), PB_MSGS("filter", 12, filter),
	PB_MAYBE("sandwich_by_function", 13, STRING),
};
static const struct pb_desc query_request = {
	.name = "parca.query.v1alpha1.QueryRequest", .members = query_request_members, .count = ARRAY_COUNT(query_request_members),
	.oneofs = { "options" } };

static const struct pb_member top_node_meta_members[] = {
	PB_MSG("location", 1, schema_metastore_location),
	PB_MSG("mapping", 2, schema_metastore_mapping),
	PB_MSG("function", 3, schema_metastore_function),
	PB_MSG("line", 4, schema_metastore_line),
};
static const struct pb_desc top_node_meta =
	PB_DESC("parca.query.v1alpha1.TopNodeMeta", top_node_meta_members);

static const struct pb_member top_node_members[] = {
	PB_MSG("meta", 1, top_node_meta), PB_FIELD("cumulative", 2, INT64),
	PB_FIELD("flat", 3, INT64), PB_FIELD("diff", 4, INT64),
};
static const struct pb_desc top_node = PB_DESC("parca.query.v1alpha1.TopNode", top_node_members);

static const struct pb_member top_members[] = {
	PB_MSGS("list", 1, top_node), PB_FIELD("reported", 2, INT32), PB_FIELD("total", 3, INT32),
	PB_FIELD("unit", 4, STRING),
};
static const struct pb_desc top = PB_DESC("parca.query.v1alpha1.Top", top_members);

static const struct pb_member flamegraph_node_meta_members[] = {
	PB_MSG("location", 1, schema_metastore_location),
	PB_MSG("mapping", 2, schema_metastore_mapping),
	PB_MSG("function", 3, schema_metastore_function),
	PB_MSG("line", 4, schema_metastore_line), PB_FIELD("location_index", 5, UINT32),
	PB_FIELD("line_index", 6, UINT32),
};
static const struct pb_desc flamegraph_node_meta =
	PB_DESC("parca.query.v1alpha1.FlamegraphNodeMeta", flamegraph_node_meta_members);

static const struct pb_member flamegraph_node_members[] = {
	PB_MSG("meta", 1, flamegraph_node_meta), PB_FIELD("cumulative", 2, INT64),
	PB_FIELD("diff", 3, INT64), PB_MSGS("children", 4, flamegraph_node),
};
static const struct pb_desc flamegraph_node =
	PB_DESC("parca.query.v1alpha1.FlamegraphNode", flamegraph_node_members);

static const struct pb_member flamegraph_root_node_members[] = {
	PB_FIELD("cumulative", 1, INT64), PB_FIELD("diff", 2, INT64),
	PB_MSGS("children", 3, flamegraph_node),
};
static const struct pb_desc flamegraph_root_node =
	PB_DESC("parca.query.v1alpha1.FlamegraphRootNode", flamegraph_root_node_members);

static const struct pb_member flamegraph_members[] = {
	PB_MSG("root", 1, flamegraph_root_node), PB_FIELD("total", 2, INT64),
	PB_FIELD("unit", 3, STRING), PB_FIELD("height", 4, INT32),
	PB_LIST("string_table", 5, STRING), PB_MSGS("locations", 6, schema_metastore_location),
	PB_MSGS("mapping", 7, schema_metastore_mapping),
	PB_MSGS("function", 8, schema_metastore_function), PB_FIELD("untrimmed_total", 9, INT64),
	PB_FIELD("trimmed", 10, INT64),
};
static const struct pb_desc flamegraph =
	PB_DESC("parca.query.v1alpha1.Flamegraph", flamegraph_members);

static const struct pb_member flamegraph_arrow_members[] = {
	PB_FIELD("record", 1, BYTES), PB_FIELD("unit", 2, STRING), PB_FIELD("height", 3, INT32),
	PB_FIELD("trimmed", 4, INT64),
};
static const struct pb_desc flamegraph_arrow =
	PB_DESC("parca.query.v1alpha1.FlamegraphArrow", flamegraph_arrow_members);

static const struct pb_member source_members[] = {
	PB_FIELD("record", 1, BYTES), PB_FIELD("source", 2, STRING), PB_FIELD("unit", 3, STRING),
};
static const struct pb_desc source = PB_DESC("parca.query.v1alpha1.Source", source_members);

static const struct pb_member callgraph_node_meta_members[] = {
	PB_MSG("location", 1, schema_metastore_location),
	PB_MSG("mapping", 2, schema_metastore_mapping),
	PB_MSG("function", 3, schema_metastore_function),
	PB_MSG("line", 4, schema_metastore_line),
};
static const struct pb_desc callgraph_node_meta =
	PB_DESC("parca.query.v1alpha1.CallgraphNodeMeta", callgraph_node_meta_members);

static const struct pb_member callgraph_node_members[] = {
	PB_FIELD("id", 1, STRING), PB_MSG("meta", 2, callgraph_node_meta),
	PB_FIELD("cumulative", 3, INT64), PB_FIELD("flat", 4, INT64),
};
static const struct pb_desc callgraph_node =
	PB_DESC("parca.query.v1alpha1.CallgraphNode", callgraph_node_members);

static const struct pb_member callgraph_edge_members[] = {
	PB_FIELD("id", 1, STRING), PB_FIELD("source", 2, STRING), PB_FIELD("target", 3, STRING),
	PB_FIELD("cumulative", 4, INT64), PB_FIELD("is_collapsed", 5, BOOL),
};
static const struct pb_desc callgraph_edge =
	PB_DESC("parca.query.v1alpha1.CallgraphEdge", callgraph_edge_members);

static const struct pb_member callgraph_members[] = {
	PB_MSGS("nodes", 1, callgraph_node), PB_MSGS("edges", 2, callgraph_edge),
	PB_FIELD("cumulative", 3, INT64),
};
static const struct pb_desc callgraph =
	PB_DESC("parca.query.v1alpha1.Callgraph", callgraph_members);

static const struct pb_member table_arrow_members[] = {
	PB_FIELD("record", 1, BYTES), PB_FIELD("unit", 2, STRING),
};
static const struct pb_desc table_arrow =
	PB_DESC("parca.query.v1alpha1.TableArrow", table_arrow_members);

static const struct pb_member profile_metadata_members[] = {
	PB_LIST("mapping_files", 1, STRING), PB_LIST("labels", 2, STRING),
};
static const struct pb_desc profile_metadata =
	PB_DESC("parca.query.v1alpha1.ProfileMetadata", profile_metadata_members);

static const struct pb_member query_response_members[] = {
	PB_MSG_ONE("flamegraph", 5, flamegraph, 1), PB_ONE("pprof", 6, BYTES, 1),
	PB_MSG_ONE("top", 7, top, 1), PB_MSG_ONE("callgraph", 8, callgraph, 1),
	PB_MSG_ONE("flamegraph_arrow", 11, flamegraph_arrow, 1),
	PB_MSG_ONE("source", 12, source, 1), PB_MSG_ONE("table_arrow", 13, table_arrow, 1),
	PB_MSG_ONE("profile_metadata", 14, profile_metadata, 1), PB_FIELD("total", 9, INT64),
	PB_FIELD("filtered", 10, INT64),
};
static const struct pb_desc query_response = {
	.name = "parca.query.v1alpha1.QueryResponse", .members = query_response_members, .count = ARRAY_COUNT(query_response_members),
	.oneofs = { "report" } };

static const struct pb_member series_request_members[] = {
	PB_LIST("match", 1, STRING), PB_MSG("start", 2, pb_timestamp),
	PB_MSG("end", 3, pb_timestamp),
};
static const struct pb_desc series_request =
	PB_DESC("parca.query.v1alpha1.SeriesRequest", series_request_members);

static const struct pb_desc series_response = { .name = "parca.query.v1alpha1.SeriesResponse" };

static const struct pb_member labels_request_members[] = {
	PB_LIST("match", 1, STRING), PB_MSG("start", 2, pb_timestamp),
	PB_MSG("end", 3, pb_timestamp), PB_MAYBE("profile_type", 4, STRING),
};
static const struct pb_desc labels_request =
	PB_DESC("parca.query.v1alpha1.LabelsRequest", labels_request_members);

static const struct pb_member labels_response_members[] = {
	PB_LIST("label_names", 1, STRING), PB_LIST("warnings", 2, STRING),
};
static const struct pb_desc labels_response =
	PB_DESC("parca.query.v1alpha1.LabelsResponse", labels_response_members);

static const struct pb_member values_request_members[] = {
	PB_FIELD("label_name", 1, STRING), PB_LIST("match", 2, STRING),
	PB_MSG("start", 3, pb_timestamp), PB_MSG("end", 4, pb_timestamp),
	PB_MAYBE("profile_type", 5, STRING),
};
static const struct pb_desc values_request =
	PB_DESC("parca.query.v1alpha1.ValuesRequest", values_request_members);

static const struct pb_member values_response_members[] = {
	PB_LIST("label_values", 1, STRING), PB_LIST("warnings", 2, STRING),
};
static const struct pb_desc values_response =
	PB_DESC("parca.query.v1alpha1.ValuesResponse", values_response_members);

static const struct pb_member share_profile_request_members[] = {
	PB_MSG("query_request", 1, query_request), PB_MAYBE("description", 2, STRING),
};
static const struct pb_desc share_profile_request =
	PB_DESC("parca.query.v1alpha1.ShareProfileRequest", share_profile_request_members);

static const struct pb_member share_profile_response_members[] = {
	PB_FIELD("link", 1, STRING),
};
static const struct pb_desc share_profile_response =
	PB_DESC("parca.query.v1alpha1.ShareProfileResponse", share_profile_response_members);

static const struct pb_desc has_profile_data_request = { .name = "parca.query.v1alpha1.HasProfileDataRequest" };

static const struct pb_member has_profile_data_response_members[] = {
	PB_FIELD("has_data", 1, BOOL),
};
static const struct pb_desc has_profile_data_response =
	PB_DESC("parca.query.v1alpha1.HasProfileDataResponse", has_profile_data_response_members);

static const struct pb_method parca_query_methods[] = {
	{ .name = "QueryRange", .input = &query_range_request, .output = &query_range_response },
	{ .name = "Query", .input = &query_request, .output = &query_response },
	{ .name = "Series", .input = &series_request, .output = &series_response },
	{ .name = "ProfileTypes", .input = &profile_types_request, .output = &profile_types_response },
	{ .name = "Labels", .input = &labels_request, .output = &labels_response },
	{ .name = "Values", .input = &values_request, .output = &values_response },
	{ .name = "ShareProfile", .input = &share_profile_request, .output = &share_profile_response },
	{ .name = "HasProfileData", .input = &has_profile_data_request, .output = &has_profile_data_response },
};
const struct pb_service schema_parca_query = {
	.name = "parca.query.v1alpha1.QueryService",
	.methods = parca_query_methods, .count = ARRAY_COUNT(parca_query_methods) };

static const struct pb_desc *const messages[] = {
	&profile_types_request, &profile_types_response, &profile_type, &query_range_request,
	&query_range_response, &metrics_series, &metrics_sample, &merge_profile,
	&single_profile, &diff_profile, &profile_diff_selection, &query_request,
	&filter_criteria, &string_condition, &number_condition, &filter, &stack_filter,
	&function_name_stack_filter, &frame_filter, &binary_frame_filter, &runtime_filter,
	&source_reference, &group_by, &top, &top_node, &top_node_meta, &flamegraph,
	&flamegraph_arrow, &source, &flamegraph_root_node, &flamegraph_node,
	&flamegraph_node_meta, &callgraph_node, &callgraph_node_meta, &callgraph_edge,
	&callgraph, &query_response, &series_request, &series_response, &labels_request,
	&labels_response, &values_request, &values_response, &value_type,
	&share_profile_request, &share_profile_response, &table_arrow, &profile_metadata,
	&has_profile_data_request, &has_profile_data_response,
};
static const struct pb_enum *const enums[] = {
	&profile_diff_selection_mode, &query_request_mode, &query_request_report_type,
};
static const struct pb_service *const services[] = {
	&schema_parca_query,
};
static const struct pb_file *const imports[] = {
	&pb_file_duration, &pb_file_timestamp, &schema_file_metastore,
	&schema_file_profilestore,
};
const struct pb_file schema_file_query = {
	.name = "parca/query/v1alpha1/query.proto", .package = "parca.query.v1alpha1",
	.messages = messages, .message_count = ARRAY_COUNT(messages),
	.enums = enums, .enum_count = ARRAY_COUNT(enums),
	.services = services, .service_count = ARRAY_COUNT(services),
	.imports = imports, .import_count = ARRAY_COUNT(imports),
};

/* clang-format on */
