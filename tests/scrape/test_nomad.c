/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

static const struct answer api[] = {
	{ .path = "/v1/services",
		.query = "namespace=default&region=global&stale=true",
		.body = "[{\"Namespace\":\"default\",\"Services\":[{\"ServiceName\":\"web x\","
			"\"Tags\":[\"a\"]}]},{\"Services\":7},3]" },
	{ .path = "/v1/service/web x",
		.body = "[{\"ID\":\"_nomad-task-1\",\"ServiceName\":\"web x\",\"Namespace\":"
			"\"default\",\"NodeID\":\"n-1\",\"Datacenter\":\"dc1\",\"Tags\":[\"a\","
			"\"b\"],\"Address\":\"10.0.0.3\",\"Port\":23456}]" },
	{ .path = "/bad/v1/services", .body = "{}" },
};

#define N "__meta_nomad_"

static void finds_services(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct answers x;
	struct err e = { 0 };
	char yaml[300];
	buf_init(&out, 1 << 20);
	answers_start(&x, api, ARRAY_COUNT(api));
	snprintf(yaml, sizeof(yaml), "server: %s/\ntag_separator: ;", x.url);
	CHECK_OK(answers_find("nomad_sd_configs", N, yaml, &out, &e), &e);
	CHECK_STR(str_of((const char *)out.data),
		"10.0.0.3:23456 address=10.0.0.3 dc=dc1 namespace=default node_id=n-1 "
		"service=web x service_address=10.0.0.3 service_id=_nomad-task-1 "
		"service_port=23456 tags=;a;b;\n");
	snprintf(yaml, sizeof(yaml), "server: %s/bad", x.url);
	CHECK(answers_find("nomad_sd_configs", N, yaml, &out, &e) == E_INVALID);
	CHECK(strstr(e.text, "the answer is no list"));
	answers_stop(&x);
	CHECK(answers_find("nomad_sd_configs", N, "server: http://u:secret@127.0.0.1:1", &out,
		      &e) != OK);
	CHECK(strstr(e.text, "127.0.0.1:1: ") && !strstr(e.text, "secret"));
}

TEST_MAIN(cmocka_unit_test(finds_services))
