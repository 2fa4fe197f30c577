/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/api/api: the page and its API (docs/api.md).
 *
 * Private to server/. Handlers run on net's threads; their ctx is the server unless a comment says
 * otherwise. routes.c has the table of them.
 */
#pragma once

#include "net/net.h"
#include "server/api/assets.h"

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

/* notes.c: saved views and annotations; settings.v1.SettingsService */
net_handler_fn server_handle_views;
net_handler_fn server_handle_annotations;
net_handler_fn server_settings_get;
net_handler_fn server_settings_set;
net_handler_fn server_settings_delete;

/* assets.c */
net_handler_fn server_handle_asset; /* ctx: the asset */
net_handler_fn server_handle_docs;  /* "/docs" leads to "/docs/" */
net_handler_fn server_handle_no_page;
net_handler_fn server_handle_no_docs;
