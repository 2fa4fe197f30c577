/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects are listed every half minute, 500 in an answer; each page is turned into targets and
 * freed. Objects with which targets are joined (pods and services of endpoints, nodes, namespaces)
 * are listed before, and kept as trees, sorted by namespace and name.
 *
 * There is no watch: a list costs the API server no more than the begin of a watch, and cannot miss
 * a change.
 *
 * Labels and the choice of targets are those of Prometheus' discovery/kubernetes.
 */
#include "scrape/discover/kubernetes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "os/os.h"
#include "scrape/discover/modules.h"

static const struct {
	const char *name, *path, *resource;
	bool everywhere; /* the object has no namespace */
} roles[KUBERNETES_ROLES] = {
	[KUBERNETES_NODE] = { "node", "/api/v1", "nodes", true },
	[KUBERNETES_POD] = { "pod", "/api/v1", "pods", false },
	[KUBERNETES_SERVICE] = { "service", "/api/v1", "services", false },
	[KUBERNETES_ENDPOINTS] = { "endpoints", "/api/v1", "endpoints", false },
	[KUBERNETES_ENDPOINTSLICE] = { "endpointslice", "/apis/discovery.k8s.io/v1",
		"endpointslices", false },
	[KUBERNETES_INGRESS] = { "ingress", "/apis/networking.k8s.io/v1", "ingresses", false },
	[KUBERNETES_NAMESPACE] = { NULL, "/api/v1", "namespaces", true },
};
static const char *const without[] = { "managedFields", NULL };

struct objects {
	VEC(const struct conf_node *) v; /* sorted */
};

struct search {
	struct kubernetes *k;
	const struct discover_run *run;
	struct kubernetes_access access;
	struct fetch *fetch;
	struct arena settings, kept, page;
	struct objects pods, services, nodes, namespaces;
	struct discover_found *out;
	struct discover_draft draft;
};

/* ---- lists ---- */

typedef enum status object_fn(struct search *x, const struct conf_node *object, struct err *e);

static void put_selectors(const struct search *x, enum kubernetes_role role, struct buf *url)
{
	const struct conf_node *list = x->k->selectors;
	for (uint32_t i = 0; list && i < list->count; i++) {
		const struct conf_node *n = list->v[i].value;
		struct str label = conf_text_at(n, "label"), field = conf_text_at(n, "field");
		if (!roles[role].name || !str_eq(conf_text_at(n, "role"), str_of(roles[role].name)))
			continue;
		if (label.len) {
			buf_cstr(url, "&labelSelector=");
			discover_put_escaped(url, label);
		}
		if (field.len) {
			buf_cstr(url, "&fieldSelector=");
			discover_put_escaped(url, field);
		}
	}
}

static enum status get_page(struct search *x, enum kubernetes_role role, struct str namespace,
	struct str from, struct arena *a, const struct conf_node **out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, FETCH_URL_MAX - 1);
	buf_printf(&url, "%s%s", x->access.server, roles[role].path);
	if (namespace.len) {
		buf_cstr(&url, "/namespaces/");
		discover_put_escaped(&url, namespace);
	}
	buf_printf(&url, "/%s?limit=%d", roles[role].resource, KUBERNETES_PAGE);
	put_selectors(x, role, &url);
	if (from.len) {
		buf_cstr(&url, "&continue=");
		discover_put_escaped(&url, from);
	}
	buf_u8(&url, 0);
	if (buf_status(&url) != OK)
		return err_set(e, E_LIMIT, "%s: the URL is too long", roles[role].resource);
	enum status s = discover_get(
		&x->access.as, x->run, x->fetch, (const char *)url.data, without, a, out, e);
	if (s == OK && !conf_find(*out, "items"))
		s = err_set(e, E_INVALID, "the answer is no list");
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "%s", roles[role].resource);
}

/* Calls fn for each object of one namespace, or of all; frees the objects unless `keep`. */
static enum status list_in(struct search *x, enum kubernetes_role role, struct str namespace,
	bool keep, object_fn *fn, struct err *e)
{
	char from[2048] = "";
	for (int page = 0; page < KUBERNETES_PAGES_MAX; page++) {
		const struct conf_node *root = NULL;
		struct arena *a = keep ? &x->kept : &x->page;
		arena_clear(&x->page);
		enum status s = get_page(x, role, namespace, str_of(from), a, &root, e);
		const struct conf_node *items = conf_find(root, "items");
		for (uint32_t i = 0; s == OK && i < items->count; i++)
			s = fn(x, items->v[i].value, e);
		struct str next = conf_text_at(root, "metadata.continue");
		if (s != OK || !next.len)
			return s;
		if (next.len >= sizeof(from))
			return err_set(e, E_LIMIT, "%s: a token of more than %zu bytes",
				roles[role].resource, sizeof(from));
		snprintf(from, sizeof(from), "%.*s", STR_ARG(next));
	}
	return err_set(
		e, E_LIMIT, "%s: more than %d pages", roles[role].resource, KUBERNETES_PAGES_MAX);
}

static enum status own_namespace(struct search *x, struct buf *out, struct err *e)
{
	const char *path = arena_printf(&x->settings, "%s/namespace", x->k->account);
	enum status s = path ? client_secret(NULL, path, out, e) : err_set(e, E_NOMEM, "namespace");
	return s == OK ? OK : err_prefix(e, s, "own_namespace");
}

static enum status list(
	struct search *x, enum kubernetes_role role, bool keep, object_fn *fn, struct err *e)
{
	const struct conf_node *names = x->k->namespaces;
	bool some = !roles[role].everywhere && (x->k->own_namespace || (names && names->count));
	enum status s = OK;
	if (!some)
		return list_in(x, role, STR(""), keep, fn, e);
	for (uint32_t i = 0; s == OK && names && i < names->count; i++)
		s = list_in(x, role, names->v[i].value->text, keep, fn, e);
	if (s == OK && x->k->own_namespace) {
		CLEANUP(buf_deinit) struct buf own;
		buf_init(&own, 300);
		s = own_namespace(x, &own, e);
		if (s == OK)
			s = list_in(x, role, buf_view(&own), keep, fn, e);
	}
	return s;
}

/* ---- objects by name ---- */

static int compare(const struct conf_node *n, struct str namespace, struct str name)
{
	int order = str_cmp(conf_text_at(n, "metadata.namespace"), namespace);
	return order ? order : str_cmp(conf_text_at(n, "metadata.name"), name);
}

static int by_name(const void *a, const void *b)
{
	const struct conf_node *x = *(const struct conf_node *const *)a;
	const struct conf_node *y = *(const struct conf_node *const *)b;
	return compare(x, conf_text_at(y, "metadata.namespace"), conf_text_at(y, "metadata.name"));
}

static const struct conf_node *find(const struct objects *o, struct str namespace, struct str name)
{
	size_t low = 0, high = o->v.len;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = compare(o->v.v[mid], namespace, name);
		if (!order)
			return o->v.v[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

#define KEEPS(what)                                                                                \
	static enum status keep_##what(struct search *x, const struct conf_node *n, struct err *e) \
	{                                                                                          \
		return VEC_PUSH(&x->what.v, n) ? OK : err_set(e, E_NOMEM, #what);                  \
	}
KEEPS(pods)
KEEPS(services)
KEEPS(nodes)
KEEPS(namespaces)

static enum status keep_all(struct search *x, enum kubernetes_role role, struct objects *o,
	object_fn *fn, struct err *e)
{
	enum status s = list(x, role, true, fn, e);
	if (s == OK && o->v.len)
		qsort(o->v.v, o->v.len, sizeof(*o->v.v), by_name);
	return s;
}

static enum status keep_what_is_joined(struct search *x, struct err *e)
{
	enum kubernetes_role role = x->k->role;
	bool endpoints = role == KUBERNETES_ENDPOINTS || role == KUBERNETES_ENDPOINTSLICE;
	enum status s = OK;
	if (endpoints)
		s = keep_all(x, KUBERNETES_POD, &x->pods, keep_pods, e);
	if (s == OK && endpoints)
		s = keep_all(x, KUBERNETES_SERVICE, &x->services, keep_services, e);
	if (s == OK && x->k->attach_node && (endpoints || role == KUBERNETES_POD))
		s = keep_all(x, KUBERNETES_NODE, &x->nodes, keep_nodes, e);
	if (s == OK && x->k->attach_namespace && role != KUBERNETES_NODE)
		s = keep_all(x, KUBERNETES_NAMESPACE, &x->namespaces, keep_namespaces, e);
	return s;
}

/* ---- targets ---- */

static void put_namespace(struct search *x, const struct conf_node *object)
{
	struct str name = conf_text_at(object, "metadata.namespace");
	const struct conf_node *n = find(&x->namespaces, STR(""), name);
	discover_put(&x->draft, KUBERNETES "namespace", name);
	if (n)
		kubernetes_put_meta(&x->draft, KUBERNETES_NAMESPACE, n);
}

static void put_node(struct search *x, struct str name)
{
	const struct conf_node *n = name.len ? find(&x->nodes, STR(""), name) : NULL;
	if (n)
		kubernetes_put_meta(&x->draft, KUBERNETES_NODE, n);
}

static const struct discover_labels *share(struct search *x)
{
	const struct discover_labels *l = discover_keep(&x->draft, x->out);
	discover_draft_back(&x->draft, 0);
	return l;
}

static enum status add(struct search *x, struct str host, struct str port,
	const struct discover_labels *shared, struct err *e)
{
	const char *address = port.len ? discover_join(&x->out->arena, host, port)
				       : arena_copy(&x->out->arena, host.p ? host.p : "", host.len);
	if (!address || !shared)
		return err_set(
			e, arena_status(&x->out->arena), "targets with more labels than fit");
	return discover_add(x->out, str_of(address), shared, &x->draft, e);
}

static enum status node_targets(struct search *x, const struct conf_node *node, struct err *e)
{
	static const char *const best[] = { "InternalIP", "InternalDNS", "ExternalIP",
		"ExternalDNS", "LegacyHostIP", "Hostname" };
	const struct conf_node *list = conf_node_at(node, "status.addresses");
	struct str address = STR("");
	discover_draft_back(&x->draft, 0);
	kubernetes_put_meta(&x->draft, KUBERNETES_NODE, node);
	kubernetes_put_member(&x->draft, KUBERNETES "node_provider_id", node, "spec.providerID");
	const struct discover_labels *shared = share(x);
	for (uint32_t i = list ? list->count : 0; i > 0;
		i--) /* backwards, since the first of a type wins */
		discover_put_key(&x->draft, KUBERNETES "node_address_",
			conf_text_at(list->v[i - 1].value, "type"),
			conf_text_at(list->v[i - 1].value, "address"));
	for (size_t t = 0; t < ARRAY_COUNT(best) && !address.len; t++)
		for (uint32_t i = 0; list && i < list->count && !address.len; i++)
			if (str_eq(conf_text_at(list->v[i].value, "type"), str_of(best[t])))
				address = conf_text_at(list->v[i].value, "address");
	discover_put(&x->draft, "instance", conf_text_at(node, "metadata.name"));
	struct str port = conf_text_at(node, "status.daemonEndpoints.kubeletEndpoint.Port");
	return address.len ? add(x, address, port.len ? port : STR("0"), shared, e) : OK;
}

/* ---- pods ---- */

struct of_pod {
	struct search *x;
	const struct conf_node *pod;
	const struct discover_labels *shared;
	const struct seen_port *seen; /* for endpoints: ports that have a target already */
	size_t seen_count;
	struct str wanted; /* for endpoints: the port whose container is wanted */
	bool found;
};

static enum status container_targets(
	void *ctx, const struct conf_node *container, bool init, struct err *e)
{
	struct of_pod *p = ctx;
	struct str ip = conf_text_at(p->pod, "status.podIP");
	const struct conf_node *ports = conf_find(container, "ports");
	bool some = ports && ports->count;
	enum status s = OK;
	for (uint32_t i = 0; s == OK && i < (some ? ports->count : 1); i++) {
		const struct conf_node *port = some ? ports->v[i].value : NULL;
		discover_draft_back(&p->x->draft, 0);
		kubernetes_put_container(&p->x->draft, p->pod, container, init, port);
		s = add(p->x, ip, conf_text_at(port, "containerPort"), p->shared, e);
	}
	return s;
}

static enum status pod_targets(struct search *x, const struct conf_node *pod, struct err *e)
{
	if (!conf_text_at(pod, "status.podIP").len)
		return OK;
	discover_draft_back(&x->draft, 0);
	kubernetes_put_pod(&x->draft, pod);
	put_namespace(x, pod);
	put_node(x, conf_text_at(pod, "spec.nodeName"));
	struct of_pod p = { .x = x, .pod = pod, .shared = share(x) };
	return kubernetes_each_container(pod, container_targets, &p, e);
}

/* ---- services and ingresses ---- */

static enum status service_targets(struct search *x, const struct conf_node *service, struct err *e)
{
	const struct conf_node *ports = conf_node_at(service, "spec.ports");
	struct str type = conf_text_at(service, "spec.type");
	enum status s = OK;
	discover_draft_back(&x->draft, 0);
	kubernetes_put_meta(&x->draft, KUBERNETES_SERVICE, service);
	put_namespace(x, service);
	const struct discover_labels *shared = share(x);
	const char *host = arena_printf(&x->out->arena, "%.*s.%.*s.svc",
		STR_ARG(conf_text_at(service, "metadata.name")),
		STR_ARG(conf_text_at(service, "metadata.namespace")));
	for (uint32_t i = 0; s == OK && ports && i < ports->count; i++) {
		const struct conf_node *port = ports->v[i].value;
		struct discover_draft *d = &x->draft;
		discover_draft_back(d, 0);
		kubernetes_put_member(d, KUBERNETES "service_port_name", port, "name");
		kubernetes_put_member(d, KUBERNETES "service_port_number", port, "port");
		kubernetes_put_member(d, KUBERNETES "service_port_protocol", port, "protocol");
		discover_put(d, KUBERNETES "service_type", type);
		if (str_eq(type, STR("ExternalName")))
			kubernetes_put_member(d, KUBERNETES "service_external_name", service,
				"spec.externalName");
		else
			kubernetes_put_member(
				d, KUBERNETES "service_cluster_ip", service, "spec.clusterIP");
		if (str_eq(type, STR("LoadBalancer")))
			kubernetes_put_member(d, KUBERNETES "service_loadbalancer_ip", service,
				"spec.loadBalancerIP");
		s = add(x, str_of(host ? host : ""), conf_text_at(port, "port"), shared, e);
	}
	return s;
}

/* "*.a.b" stands for any one name before ".a.b". */
static bool host_matches(struct str pattern, struct str host)
{
	if (str_eq(pattern, host))
		return true;
	if (!str_starts(pattern, STR("*.")))
		return false;
	size_t dot = str_index(host, '.');
	return dot && dot < host.len &&
	       str_eq(str_sub(pattern, 1, pattern.len), str_sub(host, dot, host.len));
}

static bool has_tls(const struct conf_node *ingress, struct str host)
{
	const struct conf_node *list = conf_node_at(ingress, "spec.tls");
	for (uint32_t i = 0; list && i < list->count; i++) {
		const struct conf_node *hosts = conf_find(list->v[i].value, "hosts");
		for (uint32_t k = 0; hosts && k < hosts->count; k++)
			if (host_matches(hosts->v[k].value->text, host))
				return true;
	}
	return false;
}

static enum status ingress_targets(struct search *x, const struct conf_node *ingress, struct err *e)
{
	const struct conf_node *rules = conf_node_at(ingress, "spec.rules");
	enum status s = OK;
	discover_draft_back(&x->draft, 0);
	kubernetes_put_meta(&x->draft, KUBERNETES_INGRESS, ingress);
	put_namespace(x, ingress);
	kubernetes_put_member(
		&x->draft, KUBERNETES "ingress_class_name", ingress, "spec.ingressClassName");
	const struct discover_labels *shared = share(x);
	for (uint32_t i = 0; s == OK && rules && i < rules->count; i++) {
		struct str host = conf_text_at(rules->v[i].value, "host");
		const struct conf_node *paths = conf_node_at(rules->v[i].value, "http.paths");
		bool some = paths && paths->count;
		for (uint32_t k = 0; s == OK && k < (some ? paths->count : 1); k++) {
			struct str path = conf_text_at(some ? paths->v[k].value : NULL, "path");
			discover_draft_back(&x->draft, 0);
			discover_put(&x->draft, KUBERNETES "ingress_scheme",
				has_tls(ingress, host) ? STR("https") : STR("http"));
			discover_put(&x->draft, KUBERNETES "ingress_host", host);
			discover_put(
				&x->draft, KUBERNETES "ingress_path", path.len ? path : STR("/"));
			s = add(x, host, STR(""), shared, e);
		}
	}
	return s;
}

/* ---- endpoints, of both kinds ---- */

struct seen_port {
	const struct conf_node *pod;
	struct str port;
};

struct of_endpoints {
	struct search *x;
	struct str namespace;
	const struct discover_labels *shared;
	VEC(struct seen_port) seen;
};

static enum status put_container_of_port(
	void *ctx, const struct conf_node *container, bool init, struct err *e)
{
	struct of_pod *p = ctx;
	const struct conf_node *ports = conf_find(container, "ports");
	(void)e;
	for (uint32_t i = 0; ports && i < ports->count; i++)
		if (str_eq(conf_text_at(ports->v[i].value, "containerPort"), p->wanted)) {
			kubernetes_put_container(
				&p->x->draft, p->pod, container, init, ports->v[i].value);
			break;
		}
	return OK;
}

/* Adds a target for the endpoint's address and port: the draft has the endpoint's labels, the pod's
 * are added here. */
static enum status add_endpoint(struct of_endpoints *o, struct str address,
	const struct conf_node *port_of, const struct conf_node *ref, struct err *e)
{
	struct search *x = o->x;
	struct str port = conf_text_at(port_of, "port"), namespace = conf_text_at(ref, "namespace");
	const struct conf_node *pod = NULL;
	if (str_eq(conf_text_at(ref, "kind"), STR("Pod")))
		pod = find(&x->pods, namespace.len ? namespace : o->namespace,
			conf_text_at(ref, "name"));
	if (pod) {
		struct of_pod p = { .x = x, .pod = pod, .wanted = port };
		struct seen_port seen = { pod, port };
		kubernetes_put_pod(&x->draft, pod);
		enum status s = kubernetes_each_container(pod, put_container_of_port, &p, e);
		if (s != OK)
			return s;
		if (!VEC_PUSH(&o->seen, seen))
			return err_set(e, E_NOMEM, "endpoints");
	}
	return add(x, address, port, o->shared, e);
}

static int by_pod(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct seen_port *)a)->pod;
	uintptr_t y = (uintptr_t)((const struct seen_port *)b)->pod;
	return (x > y) - (x < y);
}

static enum status other_ports(
	void *ctx, const struct conf_node *container, bool init, struct err *e)
{
	struct of_pod *p = ctx;
	const struct conf_node *ports = conf_find(container, "ports");
	enum status s = OK;
	for (uint32_t i = 0; s == OK && ports && i < ports->count; i++) {
		struct str port = conf_text_at(ports->v[i].value, "containerPort");
		bool seen = false;
		for (size_t k = 0; k < p->seen_count && !seen; k++)
			seen = str_eq(p->seen[k].port, port);
		if (seen)
			continue;
		discover_draft_back(&p->x->draft, 0);
		kubernetes_put_container(&p->x->draft, p->pod, container, init, ports->v[i].value);
		kubernetes_put_pod(&p->x->draft, p->pod);
		s = add(p->x, conf_text_at(p->pod, "status.podIP"), port, p->shared, e);
	}
	return s;
}

/* Adds targets for the pods' ports that belong to no endpoint. */
static enum status add_other_ports(struct of_endpoints *o, struct err *e)
{
	enum status s = OK;
	if (o->seen.len)
		qsort(o->seen.v, o->seen.len, sizeof(*o->seen.v), by_pod);
	for (size_t i = 0, n; s == OK && i < o->seen.len; i += n) {
		struct of_pod p = { .x = o->x, .pod = o->seen.v[i].pod, .shared = o->shared };
		for (n = 1; i + n < o->seen.len && o->seen.v[i + n].pod == p.pod;)
			n++;
		p.seen = &o->seen.v[i];
		p.seen_count = n;
		if (conf_text_at(p.pod, "status.podIP").len)
			s = kubernetes_each_container(p.pod, other_ports, &p, e);
	}
	VEC_FREE(&o->seen);
	return s;
}

static struct of_endpoints begin_endpoints(struct search *x, const struct conf_node *object,
	enum kubernetes_role role, struct str service_name)
{
	struct of_endpoints o = { .x = x, .namespace = conf_text_at(object, "metadata.namespace") };
	const struct conf_node *service = find(&x->services, o.namespace, service_name);
	discover_draft_back(&x->draft, 0);
	kubernetes_put_meta(&x->draft, role, object);
	put_namespace(x, object);
	if (service)
		kubernetes_put_meta(&x->draft, KUBERNETES_SERVICE, service);
	if (role == KUBERNETES_ENDPOINTSLICE)
		kubernetes_put_member(
			&x->draft, KUBERNETES "endpointslice_address_type", object, "addressType");
	o.shared = share(x);
	return o;
}

static enum status subset_targets(struct of_endpoints *o, const struct conf_node *subset,
	const struct conf_node *port, bool ready, struct err *e)
{
	const struct conf_node *list = conf_find(subset, ready ? "addresses" : "notReadyAddresses");
	struct discover_draft *d = &o->x->draft;
	enum status s = OK;
	for (uint32_t i = 0; s == OK && list && i < list->count; i++) {
		const struct conf_node *n = list->v[i].value, *ref = conf_find(n, "targetRef");
		struct str node = conf_text_at(n, "nodeName");
		discover_draft_back(d, 0);
		kubernetes_put_member(d, KUBERNETES "endpoint_port_name", port, "name");
		kubernetes_put_member(d, KUBERNETES "endpoint_port_protocol", port, "protocol");
		discover_put(d, KUBERNETES "endpoint_ready", ready ? STR("true") : STR("false"));
		kubernetes_put_member(d, KUBERNETES "endpoint_address_target_kind", ref, "kind");
		kubernetes_put_member(d, KUBERNETES "endpoint_address_target_name", ref, "name");
		discover_put(d, KUBERNETES "endpoint_node_name", node);
		kubernetes_put_member(d, KUBERNETES "endpoint_hostname", n, "hostname");
		if (!node.len && str_eq(conf_text_at(ref, "kind"), STR("Node")))
			node = conf_text_at(ref, "name");
		put_node(o->x, node);
		s = add_endpoint(o, conf_text_at(n, "ip"), port, ref, e);
	}
	return s;
}

static enum status endpoints_targets(
	struct search *x, const struct conf_node *object, struct err *e)
{
	struct of_endpoints o = begin_endpoints(
		x, object, KUBERNETES_ENDPOINTS, conf_text_at(object, "metadata.name"));
	const struct conf_node *subsets = conf_find(object, "subsets");
	enum status s = OK;
	for (uint32_t i = 0; s == OK && subsets && i < subsets->count; i++) {
		const struct conf_node *subset = subsets->v[i].value;
		const struct conf_node *ports = conf_find(subset, "ports");
		for (uint32_t k = 0; s == OK && ports && k < ports->count; k++) {
			s = subset_targets(&o, subset, ports->v[k].value, true, e);
			if (s == OK)
				s = subset_targets(&o, subset, ports->v[k].value, false, e);
		}
	}
	enum status more = add_other_ports(&o, e);
	return s == OK ? more : s;
}

static void put_slice_endpoint(
	struct search *x, const struct conf_node *ep, const struct conf_node *port)
{
	static const struct {
		const char *label, *path;
	} of_endpoint[] = {
		{ KUBERNETES "endpointslice_endpoint_conditions_ready", "conditions.ready" },
		{ KUBERNETES "endpointslice_endpoint_conditions_serving", "conditions.serving" },
		{ KUBERNETES "endpointslice_endpoint_conditions_terminating",
			"conditions.terminating" },
		{ KUBERNETES "endpointslice_address_target_kind", "targetRef.kind" },
		{ KUBERNETES "endpointslice_address_target_name", "targetRef.name" },
		{ KUBERNETES "endpointslice_endpoint_hostname", "hostname" },
		{ KUBERNETES "endpointslice_endpoint_node_name", "nodeName" },
		{ KUBERNETES "endpointslice_endpoint_zone", "zone" },
	}, of_port[] = {
		{ KUBERNETES "endpointslice_port_name", "name" },
		{ KUBERNETES "endpointslice_port_protocol", "protocol" },
		{ KUBERNETES "endpointslice_port", "port" },
		{ KUBERNETES "endpointslice_port_app_protocol", "appProtocol" },
	};
	const struct conf_node *topology = conf_find(ep, "deprecatedTopology");
	for (size_t i = 0; i < ARRAY_COUNT(of_port); i++)
		kubernetes_put_member(&x->draft, of_port[i].label, port, of_port[i].path);
	for (size_t i = 0; i < ARRAY_COUNT(of_endpoint); i++)
		kubernetes_put_member(&x->draft, of_endpoint[i].label, ep, of_endpoint[i].path);
	for (uint32_t i = 0; topology && i < topology->count; i++) {
		discover_put_key(&x->draft, KUBERNETES "endpointslice_endpoint_topology_",
			topology->v[i].key, topology->v[i].value->text);
		discover_put_key(&x->draft, KUBERNETES "endpointslice_endpoint_topology_present_",
			topology->v[i].key, STR("true"));
	}
	bool of_node = str_eq(conf_text_at(ep, "targetRef.kind"), STR("Node"));
	put_node(x, conf_text_at(ep, of_node ? "targetRef.name" : "nodeName"));
}

static struct str service_of_slice(const struct conf_node *slice)
{
	const struct conf_node *labels = conf_node_at(slice, "metadata.labels");
	const struct conf_node *name = conf_find(labels, "kubernetes.io/service-name");
	return name ? name->text : STR("");
}

static enum status slice_targets(struct search *x, const struct conf_node *slice, struct err *e)
{
	struct of_endpoints o =
		begin_endpoints(x, slice, KUBERNETES_ENDPOINTSLICE, service_of_slice(slice));
	const struct conf_node *endpoints = conf_find(slice, "endpoints");
	const struct conf_node *ports = conf_find(slice, "ports");
	enum status s = OK;
	for (uint32_t i = 0; s == OK && endpoints && i < endpoints->count; i++)
		for (uint32_t p = 0; s == OK && ports && p < ports->count; p++) {
			const struct conf_node *ep = endpoints->v[i].value;
			const struct conf_node *list = conf_find(ep, "addresses");
			for (uint32_t k = 0; s == OK && list && k < list->count; k++) {
				discover_draft_back(&x->draft, 0);
				put_slice_endpoint(x, ep, ports->v[p].value);
				s = add_endpoint(&o, list->v[k].value->text, ports->v[p].value,
					conf_find(ep, "targetRef"), e);
			}
		}
	enum status more = add_other_ports(&o, e);
	return s == OK ? more : s;
}

/* ---- the whole ---- */

static enum status search(struct search *x, struct err *e)
{
	static object_fn *const fns[KUBERNETES_ROLES] = {
		[KUBERNETES_NODE] = node_targets,
		[KUBERNETES_POD] = pod_targets,
		[KUBERNETES_SERVICE] = service_targets,
		[KUBERNETES_ENDPOINTS] = endpoints_targets,
		[KUBERNETES_ENDPOINTSLICE] = slice_targets,
		[KUBERNETES_INGRESS] = ingress_targets,
	};
	enum status s = kubernetes_access_find(x->k, &x->settings, &x->access, e);
	if (s == OK)
		s = client_open(&x->access.as.client, NULL, &x->fetch, e);
	if (s == OK)
		s = keep_what_is_joined(x, e);
	return s == OK ? list(x, x->k->role, false, fns[x->k->role], e) : s;
}

static enum status kubernetes_find(struct discover *d, const struct discover_run *run,
	struct discover_found *out, struct err *e)
{
	struct search x = { .k = (struct kubernetes *)d, .run = run, .out = out };
	arena_init(&x.settings, CONF_ARENA_BYTES);
	arena_init(&x.kept, DISCOVER_TREE_BYTES);
	arena_init(&x.page, DISCOVER_TREE_BYTES);
	discover_draft_begin(&x.draft, out);
	enum status s = search(&x, e);
	fetch_free(x.fetch);
	VEC_FREE(&x.pods.v);
	VEC_FREE(&x.services.v);
	VEC_FREE(&x.nodes.v);
	VEC_FREE(&x.namespaces.v);
	arena_deinit(&x.settings);
	arena_deinit(&x.kept);
	arena_deinit(&x.page);
	return s;
}

/* ---- the file ---- */

#define K(member) offsetof(struct kubernetes, member)

static enum status namespaces(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "own_namespace", conf_field_bool, K(own_namespace), NULL },
		{ "names", conf_field_texts, K(namespaces), NULL },
		{ 0 },
	};
	(void)f;
	return conf_read_map(x->value, fields, base, e);
}

static enum status attach(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const struct conf_field fields[] = {
		{ "node", conf_field_bool, K(attach_node), NULL },
		{ "namespace", conf_field_bool, K(attach_namespace), NULL },
		{ 0 },
	};
	(void)f;
	return conf_read_map(x->value, fields, base, e);
}

static enum status selectors(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	static const char *const names[] = { "role", "label", "field", NULL };
	if (x->value->kind != CONF_LIST)
		return conf_wrong(e, x->value, "selectors must be a list");
	for (uint32_t i = 0; i < x->value->count; i++) {
		const struct conf_node *n = x->value->v[i].value;
		if (n->kind != CONF_MAP || !conf_text_at(n, "role").len)
			return conf_wrong(e, n, "a selector needs a role");
		for (uint32_t k = 0; k < n->count; k++) {
			bool known = false;
			for (const char *const *name = names; *name; name++)
				known |= str_eq(n->v[k].key, str_of(*name));
			if (!known)
				return conf_unknown(e, &n->v[k], names);
			if (n->v[k].value->kind != CONF_TEXT)
				return conf_wrong(e, n->v[k].value, "a text is expected");
		}
	}
	*CONF_AT(base, f, const struct conf_node *) = x->value;
	return OK;
}

static bool selector_fits(enum kubernetes_role role, struct str of)
{
	if (str_eq(of, str_of(roles[role].name)))
		return true;
	return (role == KUBERNETES_ENDPOINTS || role == KUBERNETES_ENDPOINTSLICE) &&
	       (str_eq(of, STR("pod")) || str_eq(of, STR("service")));
}

static enum status check(struct discover *d, const struct conf_node *n, struct err *e)
{
	struct kubernetes *k = (struct kubernetes *)d;
	k->account = KUBERNETES_ACCOUNT;
	k->role = KUBERNETES_ROLES;
	for (int i = 0; k->role_name && i < KUBERNETES_ROLES; i++)
		if (roles[i].name && strcmp(roles[i].name, k->role_name) == 0)
			k->role = (enum kubernetes_role)i;
	if (k->role == KUBERNETES_ROLES)
		return conf_wrong(e, n,
			"role must be node, pod, service, endpoints, endpointslice or ingress");
	for (uint32_t i = 0; k->selectors && i < k->selectors->count; i++)
		if (!selector_fits(k->role, conf_text_at(k->selectors->v[i].value, "role")))
			return conf_wrong(e, k->selectors->v[i].value,
				"role %s has no use for a selector of this role", k->role_name);
	if (k->api_server && k->kubeconfig_file)
		return conf_wrong(e, n, "api_server and kubeconfig_file: one of them is enough");
	if (k->api_server && !str_starts(str_of(k->api_server), STR("http://")) &&
		!str_starts(str_of(k->api_server), STR("https://")))
		return conf_wrong(e, n, "api_server must begin with http:// or https://");
	return OK;
}

static const struct conf_field fields[] = {
	{ "role", conf_field_text, K(role_name), NULL },
	{ "api_server", conf_field_text, K(api_server), NULL },
	{ "kubeconfig_file", conf_field_text, K(kubeconfig_file), NULL },
	{ "namespaces", namespaces, 0, NULL },
	{ "selectors", selectors, K(selectors), NULL },
	{ "attach_metadata", attach, 0, NULL },
	CLIENT_FIELDS(offsetof(struct discover, client)),
	{ 0 },
};

const struct discover_kind discover_kubernetes = {
	.key = "kubernetes_sd_configs",
	.size = sizeof(struct kubernetes),
	.refresh_ns = 30 * NS_PER_SEC,
	.fields = fields,
	.check = check,
	.find = kubernetes_find,
};
