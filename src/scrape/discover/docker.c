/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two requests to an engine with Docker's API: its networks, then its containers. A container is a
 * target on each of its TCP ports, with its address in the first network by name, or in all
 * networks if configured. A container that shares another's network has that one's addresses.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scrape/discover/modules.h"

#define SHARED_MAX 16 /* the most containers in a chain of shared networks */
#define D "__meta_docker_"

struct docker {
	struct discover base;
	const char *host, *host_networking_host;
	const struct conf_node *filters;
	uint64_t port;
	bool first_network;
};

struct engine {
	const struct docker *d;
	struct discover_search *search;
	const struct conf_node *containers, *networks;
};

static const struct conf_node *by_id(const struct conf_node *list, struct str id)
{
	for (uint32_t i = 0; id.len && i < list->count; i++)
		if (str_eq(conf_text_at(list->v[i].value, "Id"), id))
			return list->v[i].value;
	return NULL;
}

static struct str mode_of(const struct conf_node *container)
{
	return conf_text_at(container, "HostConfig.NetworkMode");
}

static const struct conf_node *networks_of(struct engine *x, const struct conf_node *container)
{
	for (int i = 0; container && i < SHARED_MAX; i++) {
		const struct conf_node *n = conf_node_at(container, "NetworkSettings.Networks");
		struct str mode = mode_of(container);
		if (n && n->kind == CONF_MAP && n->count)
			return n;
		if (!str_starts(mode, STR("container:")))
			return NULL;
		container = by_id(x->containers, str_sub(mode, strlen("container:"), mode.len));
	}
	return NULL;
}

static void put_network(struct engine *x, const struct conf_node *network)
{
	const struct conf_node *n = by_id(x->networks, conf_text_at(network, "NetworkID"));
	struct discover_draft *d = &x->search->draft;
	discover_put(d, D "network_ip", conf_text_at(network, "IPAddress"));
	if (!n)
		return;
	discover_put(d, D "network_id", conf_text_at(n, "Id"));
	discover_put(d, D "network_name", conf_text_at(n, "Name"));
	discover_put(d, D "network_scope", conf_text_at(n, "Scope"));
	discover_put(d, D "network_internal", conf_text_at(n, "Internal"));
	discover_put(d, D "network_ingress", conf_text_at(n, "Ingress"));
	discover_put_map(d, D "network_label_", conf_find(n, "Labels"));
}

static enum status add(struct engine *x, struct str host, struct str port,
	const struct discover_labels *shared, struct err *e)
{
	const char *address = discover_join(&x->search->out->arena, host, port);
	return address && shared
		       ? discover_add(x->search->out, str_of(address), shared, &x->search->draft, e)
		       : err_set(e, arena_status(&x->search->out->arena), "targets");
}

static enum status add_in_network(struct engine *x, const struct conf_node *container,
	const struct conf_node *network, const struct discover_labels *shared, struct err *e)
{
	const struct conf_node *ports = conf_find(container, "Ports");
	struct str ip = conf_text_at(network, "IPAddress");
	bool added = false;
	enum status s = OK;
	for (uint32_t i = 0; s == OK && ports && i < ports->count; i++) {
		const struct conf_node *p = ports->v[i].value;
		struct str public = conf_text_at(p, "PublicPort");
		if (!str_eq(conf_text_at(p, "Type"), STR("tcp")))
			continue;
		discover_draft_back(&x->search->draft, 0);
		put_network(x, network);
		discover_put(&x->search->draft, D "port_private", conf_text_at(p, "PrivatePort"));
		if (public.len && !str_eq(public, STR("0"))) {
			discover_put(&x->search->draft, D "port_public", public);
			discover_put(&x->search->draft, D "port_public_ip", conf_text_at(p, "IP"));
		}
		s = add(x, ip, conf_text_at(p, "PrivatePort"), shared, e);
		added = true;
	}
	if (s != OK || added)
		return s;
	discover_draft_back(&x->search->draft, 0);
	put_network(x, network);
	if (str_eq(mode_of(container), STR("host")))
		return discover_add(x->search->out, str_of(x->d->host_networking_host), shared,
			&x->search->draft, e);
	char port[24];
	snprintf(port, sizeof(port), "%llu", (unsigned long long)x->d->port);
	return add(x, ip, str_of(port), shared, e);
}

static enum status add_container(struct engine *x, const struct conf_node *container, struct err *e)
{
	const struct conf_node *names = conf_find(container, "Names");
	const struct conf_node *networks = networks_of(x, container);
	enum status s = OK;
	if (!names || !names->count || !networks)
		return OK;
	discover_draft_back(&x->search->draft, 0);
	discover_put(&x->search->draft, D "container_id", conf_text_at(container, "Id"));
	discover_put(&x->search->draft, D "container_name", names->v[0].value->text);
	discover_put(&x->search->draft, D "container_network_mode", mode_of(container));
	discover_put_map(&x->search->draft, D "container_label_", conf_find(container, "Labels"));
	const struct discover_labels *shared = discover_keep(&x->search->draft, x->search->out);
	if (!shared)
		return err_set(e, arena_status(&x->search->out->arena), "targets");
	if (!x->d->first_network) {
		for (uint32_t i = 0; s == OK && i < networks->count; i++)
			s = add_in_network(x, container, networks->v[i].value, shared, e);
		return s;
	}
	uint32_t first = 0;
	for (uint32_t i = 1; i < networks->count; i++)
		if (str_cmp(networks->v[i].key, networks->v[first].key) < 0)
			first = i;
	return add_in_network(x, container, networks->v[first].value, shared, e);
}

/* ---- requests ---- */

/* {"name": ["value", …], …} */
static void put_filters(const struct conf_node *filters, struct buf *url)
{
	CLEANUP(buf_deinit) struct buf json;
	buf_init(&json, FETCH_URL_MAX);
	buf_u8(&json, '{');
	for (uint32_t i = 0; i < filters->count; i++) {
		const struct conf_node *values = conf_find(filters->v[i].value, "values");
		if (i)
			buf_u8(&json, ',');
		buf_json_str(&json, conf_text_at(filters->v[i].value, "name"));
		buf_cstr(&json, ":[");
		for (uint32_t k = 0; k < values->count; k++) {
			if (k)
				buf_u8(&json, ',');
			buf_json_str(&json, values->v[k].value->text);
		}
		buf_u8(&json, ']');
	}
	buf_u8(&json, '}');
	buf_cstr(url, "?filters=");
	discover_put_escaped(url, buf_view(&json));
}

static enum status ask(struct engine *x, struct err *e)
{
	struct discover_search *q = x->search;
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, FETCH_URL_MAX - 1);
	buf_cstr(&url, "/containers/json");
	if (x->d->filters)
		put_filters(x->d->filters, &url);
	buf_u8(&url, 0);
	if (buf_status(&url) != OK)
		return err_set(e, E_LIMIT, "filters are too long");
	enum status s = discover_get(
		q->d, q->run, q->fetch, (const char *)url.data, NULL, &q->list, &x->containers, e);
	if (s == OK)
		s = discover_get(
			q->d, q->run, q->fetch, "/networks", NULL, &q->list, &x->networks, e);
	if (s == OK && (x->containers->kind != CONF_LIST || x->networks->kind != CONF_LIST))
		s = err_set(e, E_INVALID, "the answer is no list");
	return s;
}

static enum status add_all(struct discover_search *search, struct err *e)
{
	struct engine x = { .d = (const struct docker *)search->d, .search = search };
	enum status s = ask(&x, e);
	for (uint32_t i = 0; s == OK && i < x.containers->count; i++)
		s = add_container(&x, x.containers->v[i].value, e);
	return s;
}

static enum status docker_find(struct discover *base, const struct discover_run *run,
	struct discover_found *out, struct err *e)
{
	const struct docker *d = (const struct docker *)base;
	char address[FETCH_URL_MAX];
	bool tcp = str_starts(str_of(d->host), STR("tcp://"));
	bool local = str_starts(str_of(d->host), STR("unix://"));
	snprintf(address, sizeof(address), "%s%s",
		tcp     ? "http://"
		: local ? "unix:"
			: "",
		d->host + (tcp            ? strlen("tcp://")
				  : local ? strlen("unix://")
					  : 0));
	return discover_server(base, run, address, d->host, add_all, out, e);
}

/* ---- the file ---- */

static enum status check(struct discover *base, const struct conf_node *n, struct err *e)
{
	struct docker *d = (struct docker *)base;
	if (!d->host)
		return conf_wrong(e, n, "host is missing, such as unix:///var/run/docker.sock");
	for (uint32_t i = 0; d->filters && i < d->filters->count; i++) {
		const struct conf_node *x = d->filters->v[i].value;
		const struct conf_node *values = conf_find(x, "values");
		if (!conf_text_at(x, "name").len || !values || values->kind != CONF_LIST)
			return conf_wrong(e, x, "a filter needs a name and a list of values");
	}
	return OK;
}

static void begin(struct discover *base)
{
	struct docker *d = (struct docker *)base;
	d->port = 80;
	d->host_networking_host = "localhost";
	d->first_network = true;
}

static enum status filters(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	if (x->value->kind != CONF_LIST)
		return conf_wrong(e, x->value, "filters must be a list");
	*CONF_AT(base, f, const struct conf_node *) = x->value;
	return OK;
}

static const struct conf_field fields[] = {
	{ "host", conf_field_text, offsetof(struct docker, host), NULL },
	{ "port", conf_field_port, offsetof(struct docker, port), NULL },
	{ "filters", filters, offsetof(struct docker, filters), NULL },
	{ "host_networking_host", conf_field_text, offsetof(struct docker, host_networking_host),
		NULL },
	{ "match_first_network", conf_field_bool, offsetof(struct docker, first_network), NULL },
	DISCOVER_FIELDS,
	{ 0 },
};

const struct discover_kind discover_docker = {
	.key = "docker_sd_configs",
	.size = sizeof(struct docker),
	.refresh_ns = 60 * NS_PER_SEC,
	.fields = fields,
	.begin = begin,
	.check = check,
	.find = docker_find,
};
