/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/receive/receive: the protocols that bring samples, and OTLP's other signals.
 *
 * Private to server/. Handlers run on net's threads; their ctx is the server unless a comment says
 * otherwise. routes.c has the table of them.
 */
#pragma once

#include "net/net.h"
#include "server/receive/otlp.h"

struct server_protocol;

/* otlp.c; ctx: the server_inlet */
extern const struct server_protocol server_protocol_otlp;
net_handler_fn server_handle_otlp;

/* write.c: parca.profilestore.v1alpha1, and POST /api/push; ctx: the server_inlet */
extern const struct server_protocol server_protocol_raw, server_protocol_push,
	server_protocol_arrow_v1, server_protocol_arrow_v2;
net_handler_fn server_write_raw;
net_handler_fn server_push;
net_handler_fn server_write_arrow;
net_stream_fn server_write;

/* pyroscope.c: push.v1 and POST /ingest; ctx: the server_inlet */
extern const struct server_protocol server_protocol_pyroscope_push,
	server_protocol_pyroscope_ingest;
net_handler_fn server_pyroscope_push;
net_handler_fn server_pyroscope_ingest;

/* telemetry.c */
net_handler_fn server_report_panic;
net_handler_fn server_otlp_traces;
net_handler_fn server_otlp_logs;
net_handler_fn server_otlp_metrics;
