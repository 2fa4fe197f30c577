/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/pyroscope/pyroscope: what Grafana, profilecli and Pyroscope's page ask: queries, and
 * single files.
 *
 * Private to server/. Handlers run on net's threads; their ctx is the server unless a comment says
 * otherwise. routes.c has the table of them.
 */
#pragma once

#include "net/net.h"

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

/* adhoc.c: adhocprofiles.v1, single files */
net_handler_fn server_adhoc_upload;
net_handler_fn server_adhoc_get;
net_handler_fn server_adhoc_list;
net_handler_fn server_adhoc_diff;
