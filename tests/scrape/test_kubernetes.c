/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#define POD(name, ip, more)                                                                      \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"u-" name "\","      \
	"\"labels\":{\"app.kubernetes.io/name\":\"web\"},\"annotations\":{\"a/b\":\"c\"},"       \
	"\"managedFields\":[{\"x\":1}],\"ownerReferences\":[{\"kind\":\"Job\",\"name\":\"no\"}," \
	"{\"kind\":\"ReplicaSet\",\"name\":\"web-1\",\"controller\":true}]},"                    \
	"\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\",\"image\":\"img:1\","  \
	"\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"},"            \
	"{\"name\":\"pprof\",\"containerPort\":6060,\"protocol\":\"TCP\"}]},"                    \
	"{\"name\":\"side\",\"image\":\"img:2\"}],\"initContainers\":[{\"name\":\"init\","       \
	"\"image\":\"img:3\"}]},\"status\":{\"phase\":\"Running\",\"hostIP\":\"10.0.0.9\"," ip   \
	"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":"       \
	"[{\"name\":\"main\",\"containerID\":\"containerd://abc\"}]" more "}}"

static const struct answer api[] = {
	{ .path = "/api/v1/pods",
		.query = "continue=more%2F1",
		.body = "{\"metadata\":{},\"items\":[" POD(
			"p2", "\"podIP\":\"fd00::2\",", "") "]}" },
	{ .path = "/api/v1/pods",
		.body = "{\"metadata\":{\"continue\":\"more/1\"},\"items\":[" POD(
			"p1", "\"podIP\":\"10.1.0.1\",", "") "," POD("p0", "", "") "]}" },
	{ .path = "/api/v1/namespaces/ns/pods",
		.query = "labelSelector=app%3Dx&fieldSelector=s",
		.body = "{\"items\":[" POD("p1", "\"podIP\":\"10.1.0.1\",", "") "]}" },
	{ .path = "/api/v1/namespaces",
		.body = "{\"items\":[{\"metadata\":{\"name\":\"ns\","
			"\"labels\":{\"team\":\"t\"}}}]}" },
	{ .path = "/api/v1/nodes",
		.authorization = "Bearer tok",
		.body = "{\"items\":[{\"metadata\":{\"name\":\"n1\",\"labels\":{\"zone\":\"z\"}},"
			"\"spec\":{\"providerID\":\"aws:///i-1\"},\"status\":{\"addresses\":["
			"{\"type\":\"Hostname\",\"address\":\"n1.local\"},"
			"{\"type\":\"InternalIP\",\"address\":\"10.0.0.9\"}],"
			"\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":10250}}}}]}" },
	{ .path = "/api/v1/nodes", .code = 403, .body = "no nodes for you" },
	{ .path = "/api/v1/services",
		.body = "{\"items\":[{\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\","
			"\"labels\":{\"tier\":\"front\"}},\"spec\":{\"type\":\"ClusterIP\","
			"\"clusterIP\":\"10.97.0.1\",\"ports\":[{\"name\":\"http\",\"port\":80,"
			"\"protocol\":\"TCP\"}]}},{\"metadata\":{\"name\":\"ext\","
			"\"namespace\":\"ns\"},\"spec\":{\"type\":\"ExternalName\","
			"\"externalName\":\"a.example\",\"ports\":[{\"port\":443,"
			"\"protocol\":\"TCP\"}]}}]}" },
	{ .path = "/api/v1/endpoints",
		.body = "{\"items\":[{\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\"},"
			"\"subsets\":[{\"addresses\":[{\"ip\":\"10.1.0.1\",\"nodeName\":\"n1\","
			"\"targetRef\":{\"kind\":\"Pod\",\"name\":\"p1\",\"namespace\":\"ns\"}},"
			"{\"ip\":\"10.9.9.9\",\"hostname\":\"h\"}],\"notReadyAddresses\":["
			"{\"ip\":\"10.9.9.8\"}],\"ports\":[{\"name\":\"http\",\"port\":8080,"
			"\"protocol\":\"TCP\"}]}]}]}" },
	{ .path = "/apis/discovery.k8s.io/v1/endpointslices",
		.body = "{\"items\":[{\"metadata\":{\"name\":\"web-x\",\"namespace\":\"ns\","
			"\"labels\":{\"kubernetes.io/service-name\":\"web\"}},"
			"\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"10.1.0.1\"],"
			"\"conditions\":{\"ready\":true,\"serving\":true,\"terminating\":false},"
			"\"nodeName\":\"n1\",\"zone\":\"z1\",\"targetRef\":{\"kind\":\"Pod\","
			"\"name\":\"p1\",\"namespace\":\"ns\"}}],\"ports\":[{\"name\":\"http\","
			"\"port\":8080,\"protocol\":\"TCP\",\"appProtocol\":\"h2c\"}]}]}" },
	{ .path = "/apis/networking.k8s.io/v1/ingresses",
		.body = "{\"items\":[{\"metadata\":{\"name\":\"in\",\"namespace\":\"ns\"},"
			"\"spec\":{\"ingressClassName\":\"nginx\",\"tls\":[{\"hosts\":["
			"\"*.example.com\"]}],\"rules\":[{\"host\":\"a.example.com\",\"http\":"
			"{\"paths\":[{\"path\":\"/x\"},{}]}},{\"host\":\"b.c.example.com\"}]}}]}" },
};

#define K "__meta_kubernetes_"
#define POD_LABELS(name, ip)                                                               \
	" pod_host_ip=10.0.0.9 pod_ip=" ip " pod_label_app_kubernetes_io_name=web"         \
	" pod_labelpresent_app_kubernetes_io_name=true pod_name=" name " pod_node_name=n1" \
	" pod_phase=Running pod_ready=true pod_uid=u-" name
#define POD_BEGIN                                                           \
	" namespace=ns pod_annotation_a_b=c pod_annotationpresent_a_b=true" \
	" pod_container_id=containerd://abc pod_container_image=img:1"      \
	" pod_container_init=false pod_container_name=main"
#define PORT(name, number)                                                    \
	" pod_container_port_name=" name " pod_container_port_number=" number \
	" pod_container_port_protocol=TCP pod_controller_kind=ReplicaSet "    \
	"pod_controller_name=web-1"

static const struct {
	const char *name, *yaml;
	const char *lines[6]; /* each is there, and so many lines there are */
	size_t count;
} cases[] = {
	{ "pods", "role: pod",
		{ "10.1.0.1:8080" POD_BEGIN PORT("http", "8080") POD_LABELS("p1", "10.1.0.1") "\n",
			"[fd00::2]:6060" POD_BEGIN PORT("pprof", "6060")
				POD_LABELS("p2", "fd00::2") "\n",
			"\n10.1.0.1 namespace=ns pod_annotation_a_b=c "
			"pod_annotationpresent_a_b=true pod_container_image=img:3 "
			"pod_container_init=true pod_container_name=init pod_controller_kind=",
			"pod_container_image=img:2 pod_container_init=false "
			"pod_container_name=side" },
		8 },
	{ "selected pods",
		"role: pod\nnamespaces: {names: [ns]}\n"
		"selectors: [{role: pod, label: app=x, field: s}]",
		{ "10.1.0.1:8080" }, 4 },
	{ "pods with more",
		"role: pod\nattach_metadata: {node: true, namespace: true}\n"
		"authorization: {credentials: tok}",
		{ " namespace_label_team=t namespace_labelpresent_team=true",
			" node_label_zone=z node_labelpresent_zone=true node_name=n1" },
		8 },
	{ "nodes", "role: node\nbearer_token: tok",
		{ "10.0.0.9:10250 node_address_Hostname=n1.local node_address_InternalIP=10.0.0.9 "
		  "node_label_zone=z node_labelpresent_zone=true node_name=n1 "
		  "node_provider_id=aws:///i-1 instance=n1\n" },
		1 },
	{ "services", "role: service",
		{ "web.ns.svc:80 namespace=ns service_cluster_ip=10.97.0.1 "
		  "service_label_tier=front "
		  "service_labelpresent_tier=true service_name=web service_port_name=http "
		  "service_port_number=80 service_port_protocol=TCP service_type=ClusterIP\n",
			"ext.ns.svc:443 namespace=ns service_external_name=a.example "
			"service_name=ext service_port_number=443 service_port_protocol=TCP "
			"service_type=ExternalName\n" },
		2 },
	{ "endpoints", "role: endpoints",
		{ "10.1.0.1:8080 endpoint_address_target_kind=Pod endpoint_address_target_name=p1 "
		  "endpoint_node_name=n1 endpoint_port_name=http endpoint_port_protocol=TCP "
		  "endpoint_ready=true endpoints_name=web" POD_BEGIN PORT(
			  "http", "8080") POD_LABELS("p1",
			  "10.1.0.1") " service_label_tier=front service_labelpresent_tier=true "
				      "service_name=web\n",
			"10.9.9.9:8080 endpoint_hostname=h endpoint_port_name=http "
			"endpoint_port_protocol=TCP endpoint_ready=true endpoints_name=web "
			"namespace=ns service_label_tier=front service_labelpresent_tier=true "
			"service_name=web\n",
			"10.9.9.8:8080 endpoint_port_name=http endpoint_port_protocol=TCP "
			"endpoint_ready=false ",
			"10.1.0.1:6060 endpoints_name=web" POD_BEGIN PORT("pprof", "6060") },
		4 },
	{ "slices", "role: endpointslice",
		{ "10.1.0.1:8080 endpointslice_address_target_kind=Pod "
		  "endpointslice_address_target_name=p1 endpointslice_address_type=IPv4 "
		  "endpointslice_endpoint_conditions_ready=true "
		  "endpointslice_endpoint_conditions_serving=true "
		  "endpointslice_endpoint_conditions_terminating=false "
		  "endpointslice_endpoint_node_name=n1 endpointslice_endpoint_zone=z1 "
		  "endpointslice_label_kubernetes_io_service_name=web "
		  "endpointslice_labelpresent_kubernetes_io_service_name=true "
		  "endpointslice_name=web-x endpointslice_port=8080 "
		  "endpointslice_port_app_protocol=h2c endpointslice_port_name=http "
		  "endpointslice_port_protocol=TCP" POD_BEGIN PORT("http", "8080")
				POD_LABELS("p1", "10.1.0.1") " service_label_tier=front",
			"10.1.0.1:6060 endpointslice_address_type=IPv4" },
		2 },
	{ "ingresses", "role: ingress",
		{ "a.example.com ingress_class_name=nginx ingress_host=a.example.com "
		  "ingress_name=in ingress_path=/x ingress_scheme=https namespace=ns\n",
			"ingress_path=/ ingress_scheme=https",
			"b.c.example.com ingress_class_name=nginx ingress_host=b.c.example.com "
			"ingress_name=in ingress_path=/ ingress_scheme=http namespace=ns\n" },
		3 },
};

static void finds_targets(void **state)
{
	(void)state;
	struct answers x;
	answers_start(&x, api, ARRAY_COUNT(api));
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		char yaml[1000];
		size_t lines = 0;
		buf_init(&out, 1 << 20);
		snprintf(yaml, sizeof(yaml), "%s\napi_server: %s/\n", c->yaml, x.url);
		CHECK_OK(answers_find("kubernetes_sd_configs", K, yaml, &out, &e), &e);
		for (const char *p = (const char *)out.data; *p; p++)
			lines += *p == '\n';
		for (size_t i = 0; i < ARRAY_COUNT(c->lines) && c->lines[i]; i++)
			if (!strstr((const char *)out.data, c->lines[i])) {
				print_error("[%s] not there:\n%s\nbut:\n%s", c->name, c->lines[i],
					(const char *)out.data);
				CHECK_CASE(c, false);
			}
		if (lines != c->count)
			print_error("%s\n", (const char *)out.data);
		CHECK_CASE(c, lines == c->count);
	}
	answers_stop(&x);
}

static void says_what_went_wrong(void **state)
{
	(void)state;
	static const struct answer wrong[] = {
		{ .path = "/api/v1/nodes", .code = 403, .body = "no nodes for you\nmore" },
		{ .path = "/api/v1/services", .body = "{\"kind\":\"Status\"}" },
		{ .path = "/api/v1/pods", .body = "<html>" },
		{ .path = "/apis/networking.k8s.io/v1/ingresses",
			.body = "{\"metadata\":{\"continue\":\"again\"},\"items\":[]}" },
	};
	static const struct {
		const char *name, *role, *says;
	} roles[] = {
		{ "denied", "node", "nodes: HTTP status 403: no nodes for you" },
		{ "no list", "service", "services: the answer is no list" },
		{ "HTML", "pod", "pods: not JSON" },
		{ "not there", "endpointslice", "pods: not JSON" },
		{ "for ever", "ingress", "ingresses: more than 2000 pages" },
	};
	struct answers x;
	answers_start(&x, wrong, ARRAY_COUNT(wrong));
	FOR_EACH_CASE (c, roles) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		char yaml[300];
		buf_init(&out, 1 << 20);
		snprintf(yaml, sizeof(yaml), "role: %s\napi_server: %s\n", c->role, x.url);
		enum status s = answers_find("kubernetes_sd_configs", K, yaml, &out, &e);
		if (s == OK || !strstr(e.text, c->says))
			print_error("%s\n", e.text);
		CHECK_CASE(c, s != OK && strstr(e.text, c->says));
	}
	answers_stop(&x);
}

TEST_MAIN(cmocka_unit_test(finds_targets), cmocka_unit_test(says_what_went_wrong))
