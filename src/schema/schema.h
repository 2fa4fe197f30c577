/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema: the messages and services that firn speaks, as tables: JSON and reflection come from
 * them.
 *
 * Layer 2 (may use base, pb). Constants only. Source: parca/proto, opentelemetry-proto 1.11,
 * grpc-proto; names and numbers are theirs.
 */
#pragma once

#include "pb/pb.h"

extern const struct pb_service schema_parca_query;
extern const struct pb_service schema_parca_profilestore;
extern const struct pb_service schema_parca_agents;
extern const struct pb_service schema_parca_debuginfo;
extern const struct pb_service schema_parca_scrape;
extern const struct pb_service schema_parca_telemetry;
extern const struct pb_service schema_otlp_profiles_service;
/* Without what the items hold. */
extern const struct pb_service schema_otlp_trace_service;
extern const struct pb_service schema_otlp_logs_service;
extern const struct pb_service schema_otlp_metrics_service;
extern const struct pb_service schema_health;
extern const struct pb_service schema_reflection;
extern const struct pb_service schema_reflection_alpha; /* v1alpha */

extern const struct pb_file schema_file_query;
extern const struct pb_file schema_file_profilestore;
extern const struct pb_file schema_file_debuginfo;
extern const struct pb_file schema_file_metastore;
extern const struct pb_file schema_file_scrape;
extern const struct pb_file schema_file_telemetry;
extern const struct pb_file schema_file_otlp_common;
extern const struct pb_file schema_file_otlp_resource;
extern const struct pb_file schema_file_otlp_profiles;
extern const struct pb_file schema_file_otlp_export;
extern const struct pb_file schema_file_otlp_trace;
extern const struct pb_file schema_file_otlp_trace_export;
extern const struct pb_file schema_file_otlp_logs;
extern const struct pb_file schema_file_otlp_logs_export;
extern const struct pb_file schema_file_otlp_metrics;
extern const struct pb_file schema_file_otlp_metrics_export;
extern const struct pb_file schema_file_health;
extern const struct pb_file schema_file_reflection;
extern const struct pb_file schema_file_reflection_alpha;

/* All of them, imported ones before those that import them; NULL at the end. */
extern const struct pb_file *const schema_files[];
/* The file that declares a service, message, enum or method ("package.Service.Method"); NULL. */
const struct pb_file *schema_find_symbol(struct str symbol);
const struct pb_file *schema_find_file(struct str name);
