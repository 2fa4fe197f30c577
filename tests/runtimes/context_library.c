/* SPDX-License-Identifier: Apache-2.0 */
/* A library that has the variable of OpenTelemetry's thread context, and uses it. */
__attribute__((visibility("default"))) __thread void *otel_thread_ctx_v1;

void *context_of_thread(void);
void *context_of_thread(void)
{
	return otel_thread_ctx_v1;
}
