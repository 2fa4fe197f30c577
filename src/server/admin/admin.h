/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/admin/admin: for those who run the server: health, metrics, reflection, its own profiles,
 * the agent of the same `firn up`, deleting, export and import.
 *
 * Private to server/. Handlers run on net's threads; their ctx is the server unless a comment says
 * otherwise. routes.c has the table of them.
 */
#pragma once

#include "net/net.h"
#include "server/admin/handover.h"

/* admin.c: /api/admin/… */
net_handler_fn server_handle_delete;
net_handler_fn server_handle_export;
net_handler_fn server_handle_import;

/* health.c */
net_handler_fn server_handle_healthy;
net_handler_fn server_handle_ready;
net_handler_fn server_handle_metrics;

/* grpc_health.c, reflection.c */
net_handler_fn server_health_check;
net_stream_fn server_health_watch;
net_stream_fn server_reflect;

/* self.c */
net_stream_fn server_self_cpu;
net_handler_fn server_handle_self_heap;
net_handler_fn server_handle_self_list;
net_handler_fn server_handle_self_symbol;

/* handover.c: GET /agent, the agent's last status page */
net_handler_fn server_handle_agent;
