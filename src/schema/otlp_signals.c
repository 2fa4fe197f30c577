/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP's traces, logs and metrics, as far as firn looks at them: down to the items, which have no
 * fields here, since they are acknowledged, counted and not kept.
 */
#include "schema/internal.h"

/* clang-format off */

/* One signal: request, resource, scope, item; each list under its name. */
#define SIGNAL(signal, pkg, File, Export, Signal, Resource, Scope, Item, resources, scopes, items) \
	static const struct pb_desc signal##_item = { .name = "opentelemetry.proto." pkg "." Item }; \
	static const struct pb_member signal##_scope_members[] = {                                \
		PB_MSGS(items, 2, signal##_item),                                                 \
	};                                                                                        \
	static const struct pb_desc signal##_scope =                                              \
		PB_DESC("opentelemetry.proto." pkg "." Scope, signal##_scope_members);        \
	static const struct pb_member signal##_resource_members[] = {                             \
		PB_MSGS(scopes, 2, signal##_scope),                                               \
	};                                                                                        \
	static const struct pb_desc signal##_resource =                                           \
		PB_DESC("opentelemetry.proto." pkg "." Resource, signal##_resource_members);  \
	static const struct pb_member signal##_request_members[] = {                              \
		PB_MSGS(resources, 1, signal##_resource),                                         \
	};                                                                                        \
	static const struct pb_desc signal##_request = PB_DESC(                                   \
		"opentelemetry.proto.collector." pkg ".Export" Signal "ServiceRequest",       \
		signal##_request_members);                                                        \
	static const struct pb_desc signal##_response = {                                         \
		.name = "opentelemetry.proto.collector." pkg ".Export" Signal "ServiceResponse" }; \
	static const struct pb_method signal##_methods[] = {                                      \
		{ .name = "Export", .input = &signal##_request, .output = &signal##_response },   \
	};                                                                                        \
	const struct pb_service schema_otlp_##signal##_service = {                                \
		.name = "opentelemetry.proto.collector." pkg "." Signal "Service",            \
		.methods = signal##_methods, .count = 1 };                                        \
	static const struct pb_desc *const signal##_messages[] = {                                \
		&signal##_item, &signal##_scope, &signal##_resource,                              \
	};                                                                                        \
	const struct pb_file schema_file_otlp_##signal = {                                        \
		.name = "opentelemetry/proto/" File, .package = "opentelemetry.proto." pkg,   \
		.messages = signal##_messages, .message_count = ARRAY_COUNT(signal##_messages) }; \
	static const struct pb_desc *const signal##_export_messages[] = {                         \
		&signal##_request, &signal##_response,                                            \
	};                                                                                        \
	static const struct pb_service *const signal##_services[] = {                             \
		&schema_otlp_##signal##_service,                                                  \
	};                                                                                        \
	static const struct pb_file *const signal##_imports[] = { &schema_file_otlp_##signal };   \
	const struct pb_file schema_file_otlp_##signal##_export = {                               \
		.name = "opentelemetry/proto/collector/" Export,                                  \
		.package = "opentelemetry.proto.collector." pkg,                              \
		.messages = signal##_export_messages,                                             \
		.message_count = ARRAY_COUNT(signal##_export_messages),                           \
		.services = signal##_services, .service_count = 1,                                \
		.imports = signal##_imports, .import_count = 1 };

SIGNAL(trace, "trace.v1", "trace/v1/trace.proto", "trace/v1/trace_service.proto", "Trace", "ResourceSpans", "ScopeSpans", "Span",
	"resource_spans", "scope_spans", "spans")
SIGNAL(logs, "logs.v1", "logs/v1/logs.proto", "logs/v1/logs_service.proto", "Logs", "ResourceLogs", "ScopeLogs", "LogRecord",
	"resource_logs", "scope_logs", "log_records")
SIGNAL(metrics, "metrics.v1", "metrics/v1/metrics.proto", "metrics/v1/metrics_service.proto", "Metrics", "ResourceMetrics", "ScopeMetrics", "Metric",
	"resource_metrics", "scope_metrics", "metrics")

/* clang-format on */
