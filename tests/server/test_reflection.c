/* SPDX-License-Identifier: Apache-2.0 */
/* What a client of reflection is told; schema_check.py loads the descriptors themselves. */
#include "test.h"

#include "serve.h"

static void answers(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; struct str ask; const char *has; } cases[] = {
		{ "services", { ":\1*", 3 }, "\n\x15grpc.health.v1.Health" },
		{ "file", { "\x1a\x1bgrpc/health/v1/health.proto", 29 }, "HealthCheckRequest" },
		{ "symbol", { "\"\x15grpc.health.v1.Health", 23 }, "grpc/health/v1/health.proto" },
		{ "method", { "\"\x1bgrpc.health.v1.Health.Check", 29 }, "grpc/health/v1/health.proto" },
		{ "imports too", { "\"\x21parca.query.v1alpha1.QueryService", 35 }, "google/protobuf/timestamp.proto" },
		{ "no such symbol", { "\"\1x", 3 }, "\x08\x05\x12\x0cnot found: x" },
		{ "no such file", { "\x1a\1x", 3 }, "\x08\x05\x12\x0cnot found: x" },
		{ "no extensions", { "2\x15grpc.health.v1.Health", 23 }, "*\x17\n\x15grpc.health.v1.Health" },
		{ "nothing", { "", 0 }, "the request asks nothing" },
	};
	/* clang-format on */
	struct serve v;
	serve_start(&v);
	for (int alpha = 0; alpha < 2; alpha++)
		FOR_EACH_CASE (c, cases) {
			enum status s = serve_call(&v,
				alpha ? "/grpc.reflection.v1alpha.ServerReflection/"
					"ServerReflectionInfo"
				      : "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
				c->ask);
			CHECK_CASE(c, s == OK);
			CHECK_CASE(c, memmem(v.out.data, v.out.len, c->has, strlen(c->has)));
			/* The question comes back with the answer. */
			CHECK_CASE(c,
				!c->ask.len || memmem(v.out.data, v.out.len, c->ask.p, c->ask.len));
		}
	assert_int_equal(serve_call(&v, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
				 STR("\n\5x")),
		E_INVALID);
	CHECK(atomic_load(&v.s.watchers) == 0);
	serve_stop(&v);
}

TEST_MAIN(cmocka_unit_test(answers))
