/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every URL. An RPC is one row: from it come its path in all framings, its JSON, its REST address
 * (as Parca's gateway has it), and its place in reflection and health.
 */
#include "schema/schema.h"
#include "server/admin/admin.h"
#include "server/api/api.h"
#include "server/debuginfo/debuginfo.h"
#include "server/guard.h"
#include "server/parca/parca.h"
#include "server/pyroscope/pyroscope.h"
#include "server/receive/receive.h"
#include "server/request/request.h"
#include "server/start.h"

#include <stdio.h>
#include <stdlib.h>

struct rpc {
	const struct pb_service *service;
	const char *method;
	net_handler_fn *fn;
	net_stream_fn *stream_fn;
	const char *rest; /* "GET /api/profiles/types"; NULL: none */
	int64_t patience_s;
	enum server_lane lane;
	const struct server_protocol *protocol; /* NULL: the handler's ctx is the server */
	uint32_t scope;                         /* 0: as scope_of() says */
};

#define OPEN SERVER_SCOPE_OPEN

static const struct rpc rpcs[] = {
	{ &schema_health, "Check", .fn = server_health_check, .scope = OPEN },
	{ &schema_health, "Watch", .stream_fn = server_health_watch, .scope = OPEN },
	{ &schema_reflection, "ServerReflectionInfo", .stream_fn = server_reflect,
		.patience_s = 600 },
	{ &schema_reflection_alpha, "ServerReflectionInfo", .stream_fn = server_reflect,
		.patience_s = 600 },
	{ &schema_parca_query, "ProfileTypes", .fn = server_parca_profile_types,
		.rest = "GET /api/profiles/types", .lane = SERVER_LANE_LOOKUPS },
	{ &schema_parca_query, "Labels", .fn = server_parca_labels,
		.rest = "GET /api/profiles/labels", .lane = SERVER_LANE_LOOKUPS },
	{ &schema_parca_query, "Values", .fn = server_parca_values,
		.rest = "GET /api/profiles/labels/{label_name}/values",
		.lane = SERVER_LANE_LOOKUPS },
	{ &schema_parca_query, "Series", .fn = server_parca_series,
		.rest = "GET /api/profiles/series", .lane = SERVER_LANE_LOOKUPS },
	{ &schema_parca_query, "QueryRange", .fn = server_parca_query_range,
		.rest = "GET /api/profiles/query_range", .lane = SERVER_LANE_REPORTS },
	{ &schema_parca_query, "Query", .fn = server_parca_query, .rest = "GET /api/profiles/query",
		.lane = SERVER_LANE_REPORTS },
	{ &schema_parca_query, "ShareProfile", .fn = server_parca_share,
		.rest = "POST /api/profiles/share", .lane = SERVER_LANE_REPORTS },
	{ &schema_parca_query, "HasProfileData", .fn = server_parca_has_profile_data,
		.rest = "GET /api/profiles/has_profile_data", .lane = SERVER_LANE_LOOKUPS },
	{ &schema_otlp_profiles_service, "Export", .fn = server_handle_otlp,
		.lane = SERVER_LANE_WRITES, .protocol = &server_protocol_otlp },
	{ &schema_otlp_trace_service, "Export", .fn = server_otlp_traces, .scope = AUTH_WRITE },
	{ &schema_otlp_logs_service, "Export", .fn = server_otlp_logs, .scope = AUTH_WRITE },
	{ &schema_otlp_metrics_service, "Export", .fn = server_otlp_metrics, .scope = AUTH_WRITE },
	{ &schema_parca_profilestore, "WriteRaw", .fn = server_write_raw,
		.rest = "POST /api/profiles/writeraw", .lane = SERVER_LANE_WRITES,
		.protocol = &server_protocol_raw },
	{ &schema_parca_profilestore, "WriteArrow", .fn = server_write_arrow,
		.rest = "POST /api/profiles/writearrow", .lane = SERVER_LANE_WRITES,
		.protocol = &server_protocol_arrow_v2 },
	{ &schema_parca_profilestore, "Write", .stream_fn = server_write,
		.rest = "POST /api/profiles/write", .patience_s = 30,
		.protocol = &server_protocol_arrow_v1 },
	{ &schema_pyroscope_push, "Push", .fn = server_pyroscope_push, .lane = SERVER_LANE_WRITES,
		.protocol = &server_protocol_pyroscope_push },
	{ &schema_pyroscope_querier, "ProfileTypes", .fn = server_querier_profile_types,
		.lane = SERVER_LANE_LOOKUPS },
	{ &schema_pyroscope_querier, "LabelNames", .fn = server_querier_label_names,
		.lane = SERVER_LANE_LOOKUPS },
	{ &schema_pyroscope_querier, "LabelValues", .fn = server_querier_label_values,
		.lane = SERVER_LANE_LOOKUPS },
	{ &schema_pyroscope_querier, "Series", .fn = server_querier_series,
		.lane = SERVER_LANE_LOOKUPS },
	{ &schema_pyroscope_querier, "GetProfileStats", .fn = server_querier_profile_stats,
		.lane = SERVER_LANE_LOOKUPS },
	{ &schema_pyroscope_querier, "SelectSeries", .fn = server_querier_select_series,
		.lane = SERVER_LANE_REPORTS },
	{ &schema_pyroscope_querier, "SelectHeatmap", .fn = server_querier_select_heatmap,
		.lane = SERVER_LANE_REPORTS },
	{ &schema_pyroscope_querier, "SelectMergeStacktraces",
		.fn = server_querier_merge_stacktraces, .lane = SERVER_LANE_REPORTS },
	{ &schema_pyroscope_querier, "SelectMergeSpanProfile",
		.fn = server_querier_merge_span_profile, .lane = SERVER_LANE_REPORTS },
	{ &schema_pyroscope_querier, "SelectMergeProfile", .fn = server_querier_merge_profile,
		.lane = SERVER_LANE_REPORTS },
	{ &schema_pyroscope_querier, "Diff", .fn = server_querier_diff,
		.lane = SERVER_LANE_REPORTS },
	{ &schema_pyroscope_querier, "AnalyzeQuery", .fn = server_pyroscope_nothing },
	{ &schema_pyroscope_settings, "Get", .fn = server_settings_get },
	{ &schema_pyroscope_settings, "Set", .fn = server_settings_set },
	{ &schema_pyroscope_settings, "Delete", .fn = server_settings_delete },
	{ &schema_pyroscope_rules, "ListRecordingRules", .fn = server_pyroscope_nothing },
	{ &schema_pyroscope_rules, "GetRecordingRule", .fn = server_pyroscope_no_rules },
	{ &schema_pyroscope_rules, "UpsertRecordingRule", .fn = server_pyroscope_no_rules },
	{ &schema_pyroscope_rules, "DeleteRecordingRule", .fn = server_pyroscope_no_rules },
	{ &schema_pyroscope_features, "GetFeatureFlags", .fn = server_pyroscope_nothing },
	{ &schema_pyroscope_version, "Version", .fn = server_pyroscope_version },
	{ &schema_pyroscope_vcs, "GithubApp", .fn = server_pyroscope_no_github },
	{ &schema_pyroscope_vcs, "GithubLogin", .fn = server_pyroscope_no_github },
	{ &schema_pyroscope_vcs, "GithubRefresh", .fn = server_pyroscope_no_github },
	{ &schema_pyroscope_vcs, "GetFile", .fn = server_pyroscope_no_github },
	{ &schema_pyroscope_vcs, "GetCommit", .fn = server_pyroscope_no_github },
	{ &schema_pyroscope_vcs, "GetCommits", .fn = server_pyroscope_no_github },
	{ &schema_pyroscope_adhoc, "List", .fn = server_adhoc_list },
	{ &schema_pyroscope_adhoc, "Upload", .fn = server_adhoc_upload, .lane = SERVER_LANE_REPORTS,
		.scope = AUTH_WRITE },
	{ &schema_pyroscope_adhoc, "Get", .fn = server_adhoc_get, .lane = SERVER_LANE_REPORTS },
	{ &schema_pyroscope_adhoc, "Diff", .fn = server_adhoc_diff, .lane = SERVER_LANE_REPORTS },
	{ &schema_pyroscope_debuginfo, "ShouldInitiateUpload", .fn = server_pyroscope_decline,
		.scope = AUTH_WRITE },
	{ &schema_pyroscope_debuginfo, "UploadFinished", .fn = server_pyroscope_nothing,
		.scope = AUTH_WRITE },
	{ &schema_pyroscope_debuginfo, "ListDebuginfo", .fn = server_pyroscope_nothing },
	{ &schema_pyroscope_debuginfo, "DeleteDebuginfo", .fn = server_pyroscope_no_debuginfo,
		.scope = AUTH_WRITE },
	{ &schema_parca_agents, "Agents", .fn = server_agents, .rest = "GET /api/agents" },
	{ &schema_parca_debuginfo, "Upload", .stream_fn = server_debuginfo_upload,
		.rest = "POST /api/upload", .scope = AUTH_WRITE },
	{ &schema_parca_debuginfo, "ShouldInitiateUpload", .fn = server_debuginfo_should_initiate,
		.rest = "POST /api/shouldinitiateupload", .scope = AUTH_WRITE },
	{ &schema_parca_debuginfo, "InitiateUpload", .fn = server_debuginfo_initiate,
		.rest = "POST /api/initiateupload", .scope = AUTH_WRITE },
	{ &schema_parca_debuginfo, "MarkUploadFinished", .fn = server_debuginfo_mark_finished,
		.rest = "POST /api/markuploadfinished", .scope = AUTH_WRITE },
	{ &schema_parca_scrape, "Targets", .fn = server_targets, .rest = "GET /api/targets" },
	{ &schema_parca_telemetry, "ReportPanic", .fn = server_report_panic,
		.rest = "POST /api/telemetry/panic", .scope = AUTH_WRITE },
};

/* clang-format off */
#define ROW(m, p, f, l) { .method = m, .path = p, .fn = f, .lane = SERVER_LANE_##l, .scope = AUTH_READ }
#define WRITING(m, p, f, l) { .method = m, .path = p, .fn = f, .lane = SERVER_LANE_##l, .scope = AUTH_WRITE }
#define ADMIN(m, p, f, l) { .method = m, .path = p, .fn = f, .lane = SERVER_LANE_##l, .scope = AUTH_ADMIN }
/* Samples, by a protocol. */
static const struct taking {
	struct net_route route;
	const struct server_protocol *protocol;
} taking[] = {
	{ WRITING("POST", SERVER_OTLP_HTTP, server_handle_otlp, WRITES), &server_protocol_otlp },
	{ WRITING("POST", "/api/push", server_push, WRITES), &server_protocol_push },
	{ WRITING("POST", "/ingest", server_pyroscope_ingest, WRITES), &server_protocol_pyroscope_ingest },
	{ WRITING("POST", "/pyroscope/ingest", server_pyroscope_ingest, WRITES), &server_protocol_pyroscope_ingest },
};
static const struct net_route plain[] = {
	{ .method = "GET", .path = "/healthy", .fn = server_handle_healthy, .on_loop = true, .scope = OPEN },
	{ .method = "GET", .path = "/ready", .fn = server_handle_ready, .on_loop = true, .scope = OPEN },
	{ .method = "GET", .path = "/-/ready", .fn = server_handle_ready, .on_loop = true, .scope = OPEN },
	{ .method = "GET", .path = "/-/healthy", .fn = server_handle_healthy, .on_loop = true, .scope = OPEN },
	ROW("GET", "/metrics", server_handle_metrics, OTHERS),
	ROW("POST", "/api/login", server_handle_login, OTHERS),
	{ .method = "POST", .path = "/api/logout", .fn = server_handle_logout, .scope = OPEN },
	ADMIN("POST", "/-/reload", server_handle_reload, OTHERS),
	ROW("GET", "/agent", server_handle_agent, OTHERS),
	{ .method = "GET", .path = "/buildid/*", .stream_fn = server_debuginfod, .scope = AUTH_READ },
	ROW("GET", "/metadata", server_debuginfod_metadata, LOOKUPS),
	{ .method = "GET", .path = "/debug/pprof/profile", .stream_fn = server_self_cpu, .scope = AUTH_ADMIN },
	ADMIN("GET", "/debug/pprof/heap", server_handle_self_heap, OTHERS),
	ADMIN("GET", "/debug/pprof/", server_handle_self_list, OTHERS),
	ADMIN("GET", "/debug/pprof/symbol", server_handle_self_symbol, OTHERS),
	ADMIN("POST", "/debug/pprof/symbol", server_handle_self_symbol, OTHERS),
	ROW("POST", "/api/snapshots", server_handle_snapshots, REPORTS),
	ROW("GET", "/shared/*", server_handle_shared, OTHERS),
	WRITING("POST", "/v1/traces", server_otlp_traces, OTHERS),
	WRITING("POST", "/v1/logs", server_otlp_logs, OTHERS),
	WRITING("POST", "/v1/metrics", server_otlp_metrics, OTHERS),
	ROW("GET", "/api/apps", server_pyroscope_apps, LOOKUPS),
	ROW("GET", "/pyroscope/label-values", server_pyroscope_label_values, LOOKUPS),
	ROW("GET", "/pyroscope/render", server_pyroscope_render, REPORTS),
	ROW("GET", "/pyroscope/render-diff", server_pyroscope_render_diff, REPORTS),
	ROW("GET", "/api/types", server_handle_types, LOOKUPS),
	ROW("GET", "/api/labels", server_handle_labels, LOOKUPS),
	ROW("GET", "/api/labels/*", server_handle_label_values, LOOKUPS),
	ROW("GET", "/api/series", server_handle_series, REPORTS),
	ROW("GET", "/api/flamegraph", server_handle_flamegraph, REPORTS),
	ROW("GET", "/api/flamechart", server_handle_flamechart, REPORTS),
	ROW("GET", "/api/top", server_handle_top, REPORTS),
	ROW("GET", "/api/functions", server_handle_functions, REPORTS),
	ROW("GET", "/api/diff", server_handle_diff, REPORTS),
	ROW("GET", "/api/source", server_handle_source, REPORTS),
	ROW("GET", "/api/instructions", server_handle_instructions, REPORTS),
	ROW("GET", "/api/pprof", server_handle_pprof, REPORTS),
	ROW("GET", "/api/views", server_handle_views, OTHERS),
	ROW("POST", "/api/views", server_handle_views, OTHERS),
	ROW("GET", "/api/annotations", server_handle_annotations, OTHERS),
	WRITING("POST", "/api/annotations", server_handle_annotations, OTHERS),
	ADMIN("POST", "/api/admin/delete", server_handle_delete, OTHERS),
	ADMIN("GET", "/api/admin/export", server_handle_export, OTHERS),
	ADMIN("POST", "/api/admin/import", server_handle_import, OTHERS),
};
/* clang-format on */

/* Each service once, in the order of the rows. */
static void note_service(struct server *s, const struct pb_service *service)
{
	for (size_t i = 0; i < s->service_count; i++)
		if (s->services[i] == service->name)
			return;
	assert(s->service_count < SERVER_SERVICES_MAX);
	s->services[s->service_count++] = service->name;
}

/* The context of a handler: the server, or its protocol's inlet. */
static enum status ctx_of(
	struct server *s, const struct server_protocol *p, void **out, struct err *e)
{
	struct server_inlet *in;
	*out = s;
	if (!p)
		return OK;
	enum status st = server_inlet_of(s, p, &in, e);
	if (st == OK)
		*out = in;
	return st;
}

/* The scope that an RPC names. By default RPCs that bring samples need writing, others reading. */
static uint32_t scope_of(const struct rpc *rpc)
{
	if (rpc->scope)
		return rpc->scope;
	return rpc->protocol ? AUTH_WRITE : AUTH_READ;
}

/* The RPC's routes: its own, and that of REST with its path behind the method in `rest`. */
static size_t add_rpc(void *ctx, const struct rpc *rpc, char path[SERVER_PATH_BYTES],
	char rest[SERVER_PATH_BYTES], struct net_route *out)
{
	snprintf(path, SERVER_PATH_BYTES, "/%s/%s", rpc->service->name, rpc->method);
	out[0] = (struct net_route){ .method = "POST",
		.path = path,
		.fn = rpc->fn,
		.stream_fn = rpc->stream_fn,
		.ctx = ctx,
		.is_rpc = true,
		.lane = (uint8_t)rpc->lane,
		.rpc = pb_service_find(rpc->service, rpc->method),
		.patience_ns = rpc->patience_s * 1000000000,
		.scope = scope_of(rpc) };
	assert(out[0].rpc);
	if (!rpc->rest)
		return 1;
	snprintf(rest, SERVER_PATH_BYTES, "%s", rpc->rest);
	char *space = strchr(rest, ' ');
	assert(space);
	*space = 0;
	out[1] = out[0];
	out[1].method = rest;
	out[1].path = space + 1;
	out[1].is_rpc = false;
	out[1].rest = true;
	return 2;
}

static size_t count_assets(const struct server_asset *assets)
{
	size_t n = 0;
	while (assets[n].path)
		n++;
	return n;
}

/* A route for each asset of a table; if it is empty, a route that says so. */
static size_t add_assets(const struct server_asset *assets, const char *first,
	net_handler_fn *without, struct net_route *out)
{
	size_t n = count_assets(assets);
	for (size_t i = 0; i < n; i++)
		out[i] = (struct net_route){ .method = "GET",
			.path = assets[i].path,
			.fn = server_handle_asset,
			.ctx = (void *)(uintptr_t)&assets[i],
			.on_loop = true,
			.scope = OPEN };
	if (n > 0)
		return n;
	out[0] = (struct net_route){
		.method = "GET", .path = first, .fn = without, .on_loop = true, .scope = OPEN
	};
	return 1;
}

enum status server_make_routes(struct server *s, size_t *out_count, struct err *e)
{
	size_t n = 0;
	size_t most = 2 * ARRAY_COUNT(rpcs) + ARRAY_COUNT(plain) + ARRAY_COUNT(taking) +
		      count_assets(server_assets) + count_assets(server_docs) + 3;
	s->routes = calloc(most, sizeof(*s->routes));
	s->paths = calloc(2 * ARRAY_COUNT(rpcs), sizeof(*s->paths));
	if (!s->routes || !s->paths)
		return err_set(e, E_NOMEM, "routes");
	enum status st = OK;
	void *ctx;
	for (size_t i = 0; st == OK && i < ARRAY_COUNT(rpcs); i++) {
		st = ctx_of(s, rpcs[i].protocol, &ctx, e);
		note_service(s, rpcs[i].service);
		n += add_rpc(ctx, &rpcs[i], s->paths[2 * i], s->paths[2 * i + 1], s->routes + n);
	}
	for (size_t i = 0; st == OK && i < ARRAY_COUNT(taking); i++) {
		st = ctx_of(s, taking[i].protocol, &ctx, e);
		s->routes[n] = taking[i].route;
		s->routes[n++].ctx = ctx;
	}
	if (st != OK)
		return st;
	for (size_t i = 0; i < ARRAY_COUNT(plain); i++) {
		s->routes[n] = plain[i];
		s->routes[n++].ctx = s;
	}
	n += add_assets(server_assets, "/", server_handle_no_page, s->routes + n);
	n += add_assets(server_docs, "/docs/", server_handle_no_docs, s->routes + n);
	s->routes[n++] = (struct net_route){ .method = "GET",
		.path = "/docs",
		.fn = server_handle_docs,
		.on_loop = true,
		.scope = OPEN };
	assert(n <= most);
	*out_count = n;
	return OK;
}
