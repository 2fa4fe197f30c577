/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's own services: health and reflection. */
#include "schema/internal.h"

/* clang-format off */
static const struct pb_enum_value health_health_check_response_serving_status_values[] = {
	{ "UNKNOWN", 0 },
	{ "SERVING", 1 },
	{ "NOT_SERVING", 2 },
	{ "SERVICE_UNKNOWN", 3 },
};
static const struct pb_enum health_health_check_response_serving_status = PB_ENUM("grpc.health.v1.HealthCheckResponse.ServingStatus", health_health_check_response_serving_status_values);

static const struct pb_member health_health_check_request_members[] = {
	PB_FIELD("service", 1, STRING),
};
static const struct pb_desc health_health_check_request =
	PB_DESC("grpc.health.v1.HealthCheckRequest", health_health_check_request_members);

static const struct pb_member health_health_check_response_members[] = {
	PB_CHOICE("status", 1, health_health_check_response_serving_status),
};
static const struct pb_desc health_health_check_response =
	PB_DESC("grpc.health.v1.HealthCheckResponse", health_health_check_response_members);

static const struct pb_method health_methods[] = {
	{ .name = "Check", .input = &health_health_check_request, .output = &health_health_check_response },
	{ .name = "Watch", .input = &health_health_check_request, .output = &health_health_check_response,
	  .server_streams = true },
};
const struct pb_service schema_health = {
	.name = "grpc.health.v1.Health",
	.methods = health_methods, .count = ARRAY_COUNT(health_methods) };

static const struct pb_desc *const health_messages[] = {
	&health_health_check_request, &health_health_check_response,
};
static const struct pb_enum *const health_enums[] = {
	&health_health_check_response_serving_status,
};
static const struct pb_service *const health_services[] = {
	&schema_health,
};
const struct pb_file schema_file_health = {
	.name = "grpc/health/v1/health.proto", .package = "grpc.health.v1",
	.messages = health_messages, .message_count = ARRAY_COUNT(health_messages),
	.enums = health_enums, .enum_count = ARRAY_COUNT(health_enums),
	.services = health_services, .service_count = ARRAY_COUNT(health_services),
};

static const struct pb_member reflection_extension_request_members[] = {
	PB_FIELD("containing_type", 1, STRING), PB_FIELD("extension_number", 2, INT32),
};
static const struct pb_desc reflection_extension_request =
	PB_DESC("grpc.reflection.v1.ExtensionRequest", reflection_extension_request_members);

static const struct pb_member reflection_server_reflection_request_members[] = {
	PB_FIELD("host", 1, STRING), PB_ONE("file_by_filename", 3, STRING, 1),
	PB_ONE("file_containing_symbol", 4, STRING, 1),
	PB_MSG_ONE("file_containing_extension", 5, reflection_extension_request, 1),
	PB_ONE("all_extension_numbers_of_type", 6, STRING, 1),
	PB_ONE("list_services", 7, STRING, 1),
};
static const struct pb_desc reflection_server_reflection_request = {
	.name = "grpc.reflection.v1.ServerReflectionRequest", .members = reflection_server_reflection_request_members, .count = ARRAY_COUNT(reflection_server_reflection_request_members),
	.oneofs = { "message_request" } };

static const struct pb_member reflection_file_descriptor_response_members[] = {
	PB_LIST("file_descriptor_proto", 1, BYTES),
};
static const struct pb_desc reflection_file_descriptor_response =
	PB_DESC("grpc.reflection.v1.FileDescriptorResponse", reflection_file_descriptor_response_members);

static const struct pb_member reflection_extension_number_response_members[] = {
	PB_FIELD("base_type_name", 1, STRING), PB_LIST("extension_number", 2, INT32),
};
static const struct pb_desc reflection_extension_number_response =
	PB_DESC("grpc.reflection.v1.ExtensionNumberResponse", reflection_extension_number_response_members);

static const struct pb_member reflection_service_response_members[] = {
	PB_FIELD("name", 1, STRING),
};
static const struct pb_desc reflection_service_response =
	PB_DESC("grpc.reflection.v1.ServiceResponse", reflection_service_response_members);

static const struct pb_member reflection_list_service_response_members[] = {
	PB_MSGS("service", 1, reflection_service_response),
};
static const struct pb_desc reflection_list_service_response =
	PB_DESC("grpc.reflection.v1.ListServiceResponse", reflection_list_service_response_members);

static const struct pb_member reflection_error_response_members[] = {
	PB_FIELD("error_code", 1, INT32), PB_FIELD("error_message", 2, STRING),
};
static const struct pb_desc reflection_error_response =
	PB_DESC("grpc.reflection.v1.ErrorResponse", reflection_error_response_members);

static const struct pb_member reflection_server_reflection_response_members[] = {
	PB_FIELD("valid_host", 1, STRING),
	PB_MSG("original_request", 2, reflection_server_reflection_request),
	PB_MSG_ONE("file_descriptor_response", 4, reflection_file_descriptor_response, 1),
	PB_MSG_ONE("all_extension_numbers_response", 5, reflection_extension_number_response, 1),
	PB_MSG_ONE("list_services_response", 6, reflection_list_service_response, 1),
	PB_MSG_ONE("error_response", 7, reflection_error_response, 1),
};
static const struct pb_desc reflection_server_reflection_response = {
	.name = "grpc.reflection.v1.ServerReflectionResponse", .members = reflection_server_reflection_response_members, .count = ARRAY_COUNT(reflection_server_reflection_response_members),
	.oneofs = { "message_response" } };

static const struct pb_method reflection_methods[] = {
	{ .name = "ServerReflectionInfo", .input = &reflection_server_reflection_request, .output = &reflection_server_reflection_response,
	  .client_streams = true, .server_streams = true },
};
const struct pb_service schema_reflection = {
	.name = "grpc.reflection.v1.ServerReflection",
	.methods = reflection_methods, .count = ARRAY_COUNT(reflection_methods) };

static const struct pb_desc *const reflection_messages[] = {
	&reflection_server_reflection_request, &reflection_extension_request,
	&reflection_server_reflection_response, &reflection_file_descriptor_response,
	&reflection_extension_number_response, &reflection_list_service_response,
	&reflection_service_response, &reflection_error_response,
};
static const struct pb_service *const reflection_services[] = {
	&schema_reflection,
};
const struct pb_file schema_file_reflection = {
	.name = "grpc/reflection/v1/reflection.proto", .package = "grpc.reflection.v1",
	.messages = reflection_messages, .message_count = ARRAY_COUNT(reflection_messages),
	.services = reflection_services, .service_count = ARRAY_COUNT(reflection_services),
};

static const struct pb_member reflection_alpha_extension_request_members[] = {
	PB_FIELD("containing_type", 1, STRING), PB_FIELD("extension_number", 2, INT32),
};
static const struct pb_desc reflection_alpha_extension_request =
	PB_DESC("grpc.reflection.v1alpha.ExtensionRequest", reflection_alpha_extension_request_members);

static const struct pb_member reflection_alpha_server_reflection_request_members[] = {
	PB_FIELD("host", 1, STRING), PB_ONE("file_by_filename", 3, STRING, 1),
	PB_ONE("file_containing_symbol", 4, STRING, 1),
	PB_MSG_ONE("file_containing_extension", 5, reflection_alpha_extension_request, 1),
	PB_ONE("all_extension_numbers_of_type", 6, STRING, 1),
	PB_ONE("list_services", 7, STRING, 1),
};
static const struct pb_desc reflection_alpha_server_reflection_request = {
	.name = "grpc.reflection.v1alpha.ServerReflectionRequest", .members = reflection_alpha_server_reflection_request_members, .count = ARRAY_COUNT(reflection_alpha_server_reflection_request_members),
	.oneofs = { "message_request" } };

static const struct pb_member reflection_alpha_file_descriptor_response_members[] = {
	PB_LIST("file_descriptor_proto", 1, BYTES),
};
static const struct pb_desc reflection_alpha_file_descriptor_response =
	PB_DESC("grpc.reflection.v1alpha.FileDescriptorResponse", reflection_alpha_file_descriptor_response_members);

static const struct pb_member reflection_alpha_extension_number_response_members[] = {
	PB_FIELD("base_type_name", 1, STRING), PB_LIST("extension_number", 2, INT32),
};
static const struct pb_desc reflection_alpha_extension_number_response =
	PB_DESC("grpc.reflection.v1alpha.ExtensionNumberResponse", reflection_alpha_extension_number_response_members);

static const struct pb_member reflection_alpha_service_response_members[] = {
	PB_FIELD("name", 1, STRING),
};
static const struct pb_desc reflection_alpha_service_response =
	PB_DESC("grpc.reflection.v1alpha.ServiceResponse", reflection_alpha_service_response_members);

static const struct pb_member reflection_alpha_list_service_response_members[] = {
	PB_MSGS("service", 1, reflection_alpha_service_response),
};
static const struct pb_desc reflection_alpha_list_service_response =
	PB_DESC("grpc.reflection.v1alpha.ListServiceResponse", reflection_alpha_list_service_response_members);

static const struct pb_member reflection_alpha_error_response_members[] = {
	PB_FIELD("error_code", 1, INT32), PB_FIELD("error_message", 2, STRING),
};
static const struct pb_desc reflection_alpha_error_response =
	PB_DESC("grpc.reflection.v1alpha.ErrorResponse", reflection_alpha_error_response_members);

static const struct pb_member reflection_alpha_server_reflection_response_members[] = {
	PB_FIELD("valid_host", 1, STRING),
	PB_MSG("original_request", 2, reflection_alpha_server_reflection_request),
	PB_MSG_ONE("file_descriptor_response", 4, reflection_alpha_file_descriptor_response, 1),
	PB_MSG_ONE("all_extension_numbers_response", 5, reflection_alpha_extension_number_response, 1),
	PB_MSG_ONE("list_services_response", 6, reflection_alpha_list_service_response, 1),
	PB_MSG_ONE("error_response", 7, reflection_alpha_error_response, 1),
};
static const struct pb_desc reflection_alpha_server_reflection_response = {
	.name = "grpc.reflection.v1alpha.ServerReflectionResponse", .members = reflection_alpha_server_reflection_response_members, .count = ARRAY_COUNT(reflection_alpha_server_reflection_response_members),
	.oneofs = { "message_response" } };

static const struct pb_method reflection_alpha_methods[] = {
	{ .name = "ServerReflectionInfo", .input = &reflection_alpha_server_reflection_request, .output = &reflection_alpha_server_reflection_response,
	  .client_streams = true, .server_streams = true },
};
const struct pb_service schema_reflection_alpha = {
	.name = "grpc.reflection.v1alpha.ServerReflection",
	.methods = reflection_alpha_methods, .count = ARRAY_COUNT(reflection_alpha_methods) };

static const struct pb_desc *const reflection_alpha_messages[] = {
	&reflection_alpha_server_reflection_request, &reflection_alpha_extension_request,
	&reflection_alpha_server_reflection_response,
	&reflection_alpha_file_descriptor_response, &reflection_alpha_extension_number_response,
	&reflection_alpha_list_service_response, &reflection_alpha_service_response,
	&reflection_alpha_error_response,
};
static const struct pb_service *const reflection_alpha_services[] = {
	&schema_reflection_alpha,
};
const struct pb_file schema_file_reflection_alpha = {
	.name = "grpc/reflection/v1alpha/reflection.proto", .package = "grpc.reflection.v1alpha",
	.messages = reflection_alpha_messages, .message_count = ARRAY_COUNT(reflection_alpha_messages),
	.services = reflection_alpha_services, .service_count = ARRAY_COUNT(reflection_alpha_services),
};

/* clang-format on */
