/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

static const struct answer api[] = {
	{ .path = "/pre/v1/catalog/services",
		.query = "dc=dc1&stale=true&node-meta=rack%3A1",
		.body = "{\"consul\":[],\"web\":[\"v1\",\"front\"],\"api\":[\"v1\"]}" },
	{ .path = "/pre/v1/health/service/web",
		.query = "tag=v1&tag=front",
		.body = "[{\"Node\":{\"Node\":\"n1\",\"Address\":\"10.0.0.1\",\"Datacenter\":"
			"\"dc1\",\"TaggedAddresses\":{\"lan\":\"10.0.0.1\"},\"Meta\":{\"r.k\":"
			"\"1\"}},"
			"\"Service\":{\"ID\":\"web-1\",\"Service\":\"web\",\"Tags\":[\"v1\","
			"\"front\"],\"Address\":\"\",\"Port\":8080,\"Meta\":{\"m\":\"x\"}},"
			"\"Checks\":[{\"CheckID\":\"a\",\"Status\":\"passing\"},{\"CheckID\":\"b\","
			"\"Status\":\"warning\"}]}]" },
	{ .path = "/v1/health/service/db",
		.body = "[{\"Node\":{\"Node\":\"n2\",\"Address\":\"10.0.0.2\",\"Datacenter\":"
			"\"dc2\"},\"Service\":{\"ID\":\"db\",\"Tags\":[],\"Address\":\"fd00::2\","
			"\"Port\":5432},\"Checks\":[{\"CheckID\":\"_service_maintenance:db\","
			"\"Status\":\"critical\"}]},{},7]" },
	{ .path = "/v1/catalog/services", .code = 403, .body = "ACL not found" },
};

#define C "__meta_consul_"

static void finds_services(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct answers x;
	struct err e = { 0 };
	char yaml[400];
	buf_init(&out, 1 << 20);
	answers_start(&x, api, ARRAY_COUNT(api));
	snprintf(yaml, sizeof(yaml),
		"server: %s\npath_prefix: /pre\ndatacenter: dc1\ntags: [v1, front]\n"
		"node_meta: {rack: '1'}\ntoken: t",
		net_server_address(x.server));
	CHECK_OK(answers_find("consul_sd_configs", C, yaml, &out, &e), &e);
	CHECK_STR(str_of((const char *)out.data),
		"10.0.0.1:8080 address=10.0.0.1 dc=dc1 health=warning metadata_r_k=1 node=n1 "
		"service=web service_id=web-1 service_metadata_m=x service_port=8080 "
		"tagged_address_lan=10.0.0.1 tags=,v1,front,\n");
	snprintf(yaml, sizeof(yaml), "server: %s\nservices: [db]", net_server_address(x.server));
	CHECK_OK(answers_find("consul_sd_configs", C, yaml, &out, &e), &e);
	CHECK(strstr((const char *)out.data,
		"[fd00::2]:5432 address=10.0.0.2 dc=dc2 health=maintenance node=n2 service=db "
		"service_address=fd00::2 service_id=db service_port=5432 tags=,,\n"));
	snprintf(yaml, sizeof(yaml), "server: %s", net_server_address(x.server));
	CHECK(answers_find("consul_sd_configs", C, yaml, &out, &e) == E_DENIED);
	CHECK(strstr(e.text, "HTTP status 403: ACL not found"));
	answers_stop(&x);
}

TEST_MAIN(cmocka_unit_test(finds_services))
