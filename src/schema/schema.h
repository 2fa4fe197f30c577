/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema: the messages and services that firn speaks, as tables: JSON and reflection come from
 * them.
 *
 * Layer 2 (may use base, pb). Constants only. The build makes them from the files in proto/
 * (tools/proto.py), each of which names the source of its numbers. A new service: its file there,
 * with the table's name in a comment, a line in meson.build, and one here.
 */
#pragma once

#include "pb/pb.h"

extern const struct pb_service schema_parca_query;
extern const struct pb_service schema_parca_profilestore;
extern const struct pb_service schema_parca_agents;
extern const struct pb_service schema_parca_debuginfo;
extern const struct pb_service schema_parca_scrape;
extern const struct pb_service schema_parca_telemetry;
extern const struct pb_service schema_pyroscope_push;
extern const struct pb_service schema_pyroscope_querier;
extern const struct pb_service schema_pyroscope_settings;
extern const struct pb_service schema_pyroscope_rules;
extern const struct pb_service schema_pyroscope_features;
extern const struct pb_service schema_pyroscope_version;
extern const struct pb_service schema_pyroscope_vcs;
extern const struct pb_service schema_pyroscope_adhoc;
extern const struct pb_service schema_pyroscope_debuginfo;
extern const struct pb_service schema_otlp_profiles_service;
/* These tables leave out the contents of the items. */
extern const struct pb_service schema_otlp_trace_service;
extern const struct pb_service schema_otlp_logs_service;
extern const struct pb_service schema_otlp_metrics_service;
extern const struct pb_service schema_health;
extern const struct pb_service schema_reflection;
extern const struct pb_service schema_reflection_alpha; /* v1alpha */

/* All of them; a file comes behind the files that it imports; NULL at the end. */
extern const struct pb_file *const schema_files[];
/* The file that declares a service, message, enum or method ("package.Service.Method"); NULL. */
const struct pb_file *schema_find_symbol(struct str symbol);
const struct pb_file *schema_find_file(struct str name);
