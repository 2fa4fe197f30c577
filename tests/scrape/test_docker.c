/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#define NETWORK(ip, id) "{\"IPAddress\":\"" ip "\",\"NetworkID\":\"" id "\"}"

static const struct answer api[] = {
	{ .path = "/containers/json",
		.query = "filters=%7B%22label%22%3A%5B%22a%3Db%22%5D%7D",
		.body = "[]" },
	{ .path = "/containers/json",
		.body = "[{\"Id\":\"c1\",\"Names\":[\"/web\"],\"Labels\":{\"com.x/y\":\"z\"},"
			"\"HostConfig\":{\"NetworkMode\":\"front\"},\"NetworkSettings\":{"
			"\"Networks\":{\"front\":" NETWORK("172.18.0.2", "n1") ",\"back\":" NETWORK(
				"172.19.0.2",
				"n2") "}},"
				      "\"Ports\":[{\"PrivatePort\":6060,\"Type\":\"tcp\","
				      "\"PublicPort\":80,"
				      "\"IP\":\"0.0.0.0\"},{\"PrivatePort\":53,\"Type\":\"udp\"}]},"
				      "{\"Id\":\"c2\",\"Names\":[\"/"
				      "side\"],\"HostConfig\":{\"NetworkMode\":"
				      "\"container:c1\"},\"NetworkSettings\":{\"Networks\":{}},"
				      "\"Ports\":[]},"
				      "{\"Id\":\"c3\",\"Names\":[\"/"
				      "host\"],\"HostConfig\":{\"NetworkMode\":"
				      "\"host\"},\"NetworkSettings\":{\"Networks\":{"
				      "\"host\":" NETWORK(
					      "", "n3") "}},\"Ports\":[]},"
							"{\"Id\":\"c4\",\"Names\":[\"/"
							"round\"],\"HostConfig\":{\"NetworkMode\":"
							"\"container:c4\"},\"NetworkSettings\":{}},"
							"{\"Id\":\"c5\",\"Names\":[]},{\"Names\":3}"
							",7]" },
	{ .path = "/networks",
		.body = "[{\"Id\":\"n1\",\"Name\":\"front\",\"Scope\":\"local\",\"Internal\":false,"
			"\"Ingress\":false,\"Labels\":{\"l\":\"v\"}},{\"Id\":\"n2\",\"Name\":"
			"\"back\"}]" },
};

static void finds_containers(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct answers x;
	struct err e = { 0 };
	char yaml[300];
	buf_init(&out, 1 << 20);
	answers_start(&x, api, ARRAY_COUNT(api));
	snprintf(yaml, sizeof(yaml), "host: tcp://%s\nport: 99\nhost_networking_host: h",
		net_server_address(x.server));
	CHECK_OK(answers_find("docker_sd_configs", "__meta_docker_", yaml, &out, &e), &e);
	CHECK_STR(str_of((const char *)out.data),
		"172.19.0.2:6060 container_id=c1 container_label_com_x_y=z container_name=/web "
		"container_network_mode=front network_id=n2 network_ip=172.19.0.2 "
		"network_name=back port_private=6060 port_public=80 port_public_ip=0.0.0.0\n"
		"172.19.0.2:99 container_id=c2 container_name=/side "
		"container_network_mode=container:c1 network_id=n2 network_ip=172.19.0.2 "
		"network_name=back\n"
		"h container_id=c3 container_name=/host container_network_mode=host\n");
	snprintf(yaml, sizeof(yaml), "host: %s\nmatch_first_network: false", x.url);
	CHECK_OK(answers_find("docker_sd_configs", "__meta_docker_", yaml, &out, &e), &e);
	CHECK(strstr((const char *)out.data,
		"172.18.0.2:6060 container_id=c1 container_label_com_x_y=z container_name=/web "
		"container_network_mode=front network_id=n1 network_ingress=false "
		"network_internal=false network_ip=172.18.0.2 network_label_l=v "
		"network_name=front network_scope=local port_private=6060"));
	CHECK(strstr((const char *)out.data, "localhost container_id=c3"));
	snprintf(yaml, sizeof(yaml), "host: %s\nfilters: [{name: label, values: [a=b]}]", x.url);
	CHECK_OK(answers_find("docker_sd_configs", "__meta_docker_", yaml, &out, &e), &e);
	CHECK(!out.data[0]);
	answers_stop(&x);
	CHECK(answers_find("docker_sd_configs", "", "host: unix:///nowhere", &out, &e) ==
		E_UNAVAILABLE);
	CHECK(strstr(e.text, "unix:///nowhere: "));
}

TEST_MAIN(cmocka_unit_test(finds_containers))
