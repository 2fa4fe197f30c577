/* SPDX-License-Identifier: Apache-2.0 */
/* handlers: the handlers of each URL and RPC, and the protocols that bring samples; routes.c has
 * the table of them. Handlers run on net's threads; their ctx is the server unless a comment says
 * otherwise.
 */
#pragma once

#include "net/net.h"

struct server_protocol;

/* guard.c: POST /api/login answers with a cookie made from the request's credentials; POST
 * /api/logout deletes it. */
net_handler_fn server_handle_login;
net_handler_fn server_handle_logout;

/* grpc_health.c, reflection.c */
net_handler_fn server_health_check;
net_stream_fn server_health_watch;
net_stream_fn server_reflect;

/* api.c: GET /api/… */
net_handler_fn server_handle_types;
net_handler_fn server_handle_labels;
net_handler_fn server_handle_label_values;
net_handler_fn server_handle_series;
net_handler_fn server_handle_flamegraph;
net_handler_fn server_handle_flamechart;
net_handler_fn server_handle_snapshots;
net_handler_fn server_handle_top;
net_handler_fn server_handle_functions;
net_handler_fn server_handle_pprof;
net_handler_fn server_handle_diff;
net_handler_fn server_handle_source;
net_handler_fn server_handle_instructions;

/* pyroscope.c: push.v1 and POST /ingest; ctx: the server_inlet */
extern const struct server_protocol server_protocol_pyroscope_push,
	server_protocol_pyroscope_ingest;
net_handler_fn server_pyroscope_push;
net_handler_fn server_pyroscope_ingest;

/* querier_labels.c, querier.c, querier_profiles.c, querier_render.c: querier.v1 and
 * /pyroscope/render */
net_handler_fn server_querier_profile_types;
net_handler_fn server_querier_label_names;
net_handler_fn server_querier_label_values;
net_handler_fn server_querier_series;
net_handler_fn server_querier_select_series;
net_handler_fn server_querier_select_heatmap;
net_handler_fn server_querier_merge_stacktraces;
net_handler_fn server_querier_merge_span_profile;
net_handler_fn server_querier_merge_profile;
net_handler_fn server_querier_diff;
net_handler_fn server_querier_profile_stats;
/* For calls that firn has no data for: an empty message. */
net_handler_fn server_pyroscope_nothing;
/* Calls that firn does not implement: 501, with a sentence that names what to use instead. */
net_handler_fn server_pyroscope_no_github;
net_handler_fn server_pyroscope_no_rules;
net_handler_fn server_pyroscope_no_debuginfo;
net_handler_fn server_pyroscope_decline; /* an upload of debug information */
net_handler_fn server_pyroscope_version;
net_handler_fn server_pyroscope_apps;
net_handler_fn server_pyroscope_label_values;
net_handler_fn server_pyroscope_render;
net_handler_fn server_pyroscope_render_diff;

/* admin.c: /api/admin/… */
net_handler_fn server_handle_delete;
net_handler_fn server_handle_export;
net_handler_fn server_handle_import;

/* parca_query.c: parca.query.v1alpha1.QueryService */
net_handler_fn server_parca_profile_types;
net_handler_fn server_parca_labels;
net_handler_fn server_parca_values;
net_handler_fn server_parca_series;
net_handler_fn server_parca_query_range;
net_handler_fn server_parca_query;
net_handler_fn server_parca_has_profile_data;

/* adhoc.c: adhocprofiles.v1, single files */
net_handler_fn server_adhoc_upload;
net_handler_fn server_adhoc_get;
net_handler_fn server_adhoc_list;
net_handler_fn server_adhoc_diff;

/* share.c */
net_handler_fn server_parca_share;
net_handler_fn server_handle_shared;

/* write.c: parca.profilestore.v1alpha1, and POST /api/push; ctx: the server_inlet */
extern const struct server_protocol server_protocol_raw, server_protocol_push,
	server_protocol_arrow_v1, server_protocol_arrow_v2;
net_handler_fn server_write_raw;
net_handler_fn server_push;
net_handler_fn server_write_arrow;
net_stream_fn server_write;

/* agents.c */
net_handler_fn server_agents;

/* telemetry.c */
net_handler_fn server_report_panic;
net_handler_fn server_otlp_traces;
net_handler_fn server_otlp_logs;
net_handler_fn server_otlp_metrics;

/* notes.c: saved views and annotations; settings.v1.SettingsService */
net_handler_fn server_handle_views;
net_handler_fn server_handle_annotations;
net_handler_fn server_settings_get;
net_handler_fn server_settings_set;
net_handler_fn server_settings_delete;

/* targets.c: parca.scrape.v1alpha1.ScrapeService, and POST /-/reload */
net_handler_fn server_targets;
net_handler_fn server_handle_reload;

/* debuginfod.c: GET /buildid/… */
net_stream_fn server_debuginfod;
net_handler_fn server_debuginfod_metadata;

/* self.c */
net_stream_fn server_self_cpu;
net_handler_fn server_handle_self_heap;
net_handler_fn server_handle_self_list;
net_handler_fn server_handle_self_symbol;

/* debuginfo.c: parca.debuginfo.v1alpha1.DebuginfoService */
net_handler_fn server_debuginfo_should_initiate;
net_handler_fn server_debuginfo_initiate;
net_handler_fn server_debuginfo_mark_finished;
net_stream_fn server_debuginfo_upload;

/* otlp.c; ctx: the server_inlet */
extern const struct server_protocol server_protocol_otlp;
net_handler_fn server_handle_otlp;

/* health.c */
net_handler_fn server_handle_healthy;
net_handler_fn server_handle_ready;
net_handler_fn server_handle_metrics;

/* assets.c */
net_handler_fn server_handle_asset; /* ctx: the asset */
net_handler_fn server_handle_docs;  /* "/docs" leads to "/docs/" */
net_handler_fn server_handle_no_page;
net_handler_fn server_handle_no_docs;

/* handover.c: GET /agent, the agent's last status page */
net_handler_fn server_handle_agent;
