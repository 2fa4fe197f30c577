/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the catalog's services, then the instances and health of each, without Consul's blocking
 * queries. If services are configured without tags, the catalog is not listed.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scrape/discover/modules.h"

#define C "__meta_consul_"

struct consul {
	struct discover base;
	const char *server, *scheme, *path_prefix, *token, *datacenter, *namespace, *partition;
	const char *separator, *filter, *health_filter, *username, *password;
	const struct conf_node *services, *tags, *node_meta;
	bool stale;
};

static void put_param(struct buf *url, const char *name, struct str value)
{
	if (!value.len)
		return;
	buf_u8(url, memchr(url->data, '?', url->len) ? '&' : '?');
	buf_printf(url, "%s=", name);
	discover_put_escaped(url, value);
}

static struct str text(const char *s)
{
	return str_of(s ? s : "");
}

static enum status get(struct discover_search *x, const char *path, struct str name, bool health,
	struct arena *a, const struct conf_node **out, struct err *e)
{
	const struct consul *c = (const struct consul *)x->d;
	CLEANUP(buf_deinit) struct buf url;
	buf_init(&url, FETCH_URL_MAX - 1);
	buf_printf(&url, "%s://%s%s%s", c->scheme, c->server, c->path_prefix ? c->path_prefix : "",
		path);
	discover_put_escaped(&url, name);
	put_param(&url, "dc", text(c->datacenter));
	put_param(&url, "ns", text(c->namespace));
	put_param(&url, "partition", text(c->partition));
	put_param(&url, "stale", c->stale ? STR("true") : STR(""));
	put_param(&url, "filter", text(health ? c->health_filter : c->filter));
	for (uint32_t i = 0; health && c->tags && i < c->tags->count; i++)
		put_param(&url, "tag", c->tags->v[i].value->text);
	for (uint32_t i = 0; c->node_meta && i < c->node_meta->count; i++) {
		char pair[512];
		snprintf(pair, sizeof(pair), "%s:%s", c->node_meta->v[i].key.p,
			c->node_meta->v[i].value->text.p);
		put_param(&url, "node-meta", str_of(pair));
	}
	buf_u8(&url, 0);
	if (buf_status(&url) != OK)
		return err_set(e, E_LIMIT, "the URL is too long");
	if (c->token) {
		enum status s = fetch_header(x->fetch, "X-Consul-Token", c->token, e);
		if (s != OK)
			return s;
	}
	return discover_get(x->d, x->run, x->fetch, (const char *)url.data, NULL, a, out, e);
}

/* ---- targets ---- */

static struct str health_of(const struct conf_node *checks)
{
	static const char *const worst[] = { "maintenance", "critical", "warning" };
	size_t is = ARRAY_COUNT(worst);
	for (uint32_t i = 0; checks && i < checks->count; i++) {
		const struct conf_node *n = checks->v[i].value;
		struct str id = conf_text_at(n, "CheckID"), status = conf_text_at(n, "Status");
		bool maintenance = str_eq(id, STR("_node_maintenance")) ||
				   str_starts(id, STR("_service_maintenance:"));
		for (size_t k = 0; k < is; k++)
			if (k ? str_eq(status, str_of(worst[k])) : maintenance)
				is = k;
	}
	return is < ARRAY_COUNT(worst) ? str_of(worst[is]) : STR("passing");
}

static const char *tags_of(const struct conf_node *list, const char *separator, struct arena *a)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, DISCOVER_FOUND_BYTES);
	buf_cstr(&b, separator);
	for (uint32_t i = 0; list && i < list->count; i++) {
		buf_str(&b, list->v[i].value->text);
		buf_cstr(&b, separator);
	}
	/* Go's strings.Join() of an empty list gives one separator less. */
	if (!list || !list->count)
		buf_cstr(&b, separator);
	return arena_copy(a, b.data ? (const char *)b.data : "", b.len);
}

static enum status add_instance(
	struct discover_search *x, struct str service, const struct conf_node *n, struct err *e)
{
	const struct consul *c = (const struct consul *)x->d;
	struct discover_draft *d = &x->draft;
	const struct conf_node *node = conf_find(n, "Node"), *s = conf_find(n, "Service");
	struct str node_address = conf_text_at(node, "Address");
	struct str address = conf_text_at(s, "Address"), port = conf_text_at(s, "Port");
	struct str dc = c->datacenter ? text(c->datacenter) : conf_text_at(node, "Datacenter");
	const char *tags = tags_of(conf_find(s, "Tags"), c->separator, &x->service);
	const char *where =
		discover_join(&x->out->arena, address.len ? address : node_address, port);
	if (!tags || !where)
		return err_set(e, E_LIMIT, "targets with more labels than fit");
	discover_draft_back(d, 0);
	discover_put(d, C "address", node_address);
	discover_put(d, C "node", conf_text_at(node, "Node"));
	discover_put(d, C "namespace", conf_text_at(s, "Namespace"));
	discover_put(d, C "partition", conf_text_at(s, "Partition"));
	discover_put(d, C "tags", str_of(tags));
	discover_put(d, C "service_address", address);
	discover_put(d, C "service_port", port);
	discover_put(d, C "service_id", conf_text_at(s, "ID"));
	discover_put(d, C "health", health_of(conf_find(n, "Checks")));
	discover_put(d, C "service", service);
	discover_put(d, C "dc", dc);
	discover_put_map(d, C "metadata_", conf_find(node, "Meta"));
	discover_put_map(d, C "service_metadata_", conf_find(s, "Meta"));
	discover_put_map(d, C "tagged_address_", conf_find(node, "TaggedAddresses"));
	return discover_add(x->out, str_of(where), NULL, d, e);
}

static enum status ask_service(
	struct discover_search *x, struct str name, const struct conf_node **out, struct err *e)
{
	return get(x, "/v1/health/service/", name, true, &x->service, out, e);
}

static const struct discover_registry registry = { .ask = ask_service, .add = add_instance };

static bool has_text(const struct conf_node *list, struct str s)
{
	for (uint32_t i = 0; list && i < list->count; i++)
		if (str_eq(list->v[i].value->text, s))
			return true;
	return false;
}

static bool is_wanted(const struct consul *c, const struct conf_entry *service)
{
	if (c->services && c->services->count && !has_text(c->services, service->key))
		return false;
	for (uint32_t i = 0; c->tags && i < c->tags->count; i++)
		if (!has_text(service->value, c->tags->v[i].value->text))
			return false;
	return true;
}

static enum status add_all(struct discover_search *x, struct err *e)
{
	const struct consul *c = (const struct consul *)x->d;
	const struct conf_node *named = c->services, *map = NULL;
	bool tags = c->tags && c->tags->count;
	enum status s = OK;
	if (named && named->count && !tags) {
		for (uint32_t i = 0; s == OK && i < named->count; i++)
			s = discover_service(x, &registry, named->v[i].value->text, e);
		return s;
	}
	s = get(x, "/v1/catalog/services", STR(""), false, &x->list, &map, e);
	if (s == OK && map->kind != CONF_MAP)
		s = err_set(e, E_INVALID, "the answer is no map of services");
	for (uint32_t i = 0; s == OK && i < map->count; i++)
		if (is_wanted(c, &map->v[i]))
			s = discover_service(x, &registry, map->v[i].key, e);
	return s;
}

static enum status consul_find(struct discover *base, const struct discover_run *run,
	struct discover_found *out, struct err *e)
{
	const struct consul *c = (const struct consul *)base;
	return discover_server(base, run, NULL, c->server, add_all, out, e);
}

/* ---- the file ---- */

static void begin(struct discover *base)
{
	struct consul *c = (struct consul *)base;
	c->server = "localhost:8500";
	c->scheme = "http";
	c->separator = ",";
	c->stale = true;
}

static enum status check(struct discover *base, const struct conf_node *n, struct err *e)
{
	struct consul *c = (struct consul *)base;
	if (strcmp(c->scheme, "http") != 0 && strcmp(c->scheme, "https") != 0)
		return conf_wrong(e, n, "scheme must be http or https");
	if (strstr(c->server, "://") || strchr(c->server, '@'))
		return conf_wrong(e, n, "server must be HOST:PORT");
	if (!c->username)
		return OK;
	if (base->client.username)
		return conf_wrong(e, n, "username and basic_auth: one of them is enough");
	base->client.username = c->username;
	base->client.password = c->password;
	return client_check(&base->client, n, e);
}

static enum status node_meta(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	if (x->value->kind != CONF_MAP)
		return conf_wrong(e, x->value, "node_meta must be a mapping");
	for (uint32_t i = 0; i < x->value->count; i++)
		if (x->value->v[i].value->kind != CONF_TEXT)
			return conf_wrong(e, x->value->v[i].value, "a text is expected");
	*CONF_AT(base, f, const struct conf_node *) = x->value;
	return OK;
}

#define AT(member) offsetof(struct consul, member)

static const struct conf_field fields[] = {
	{ "server", conf_field_text, AT(server), NULL },
	{ "path_prefix", conf_field_text, AT(path_prefix), NULL },
	{ "token", conf_field_text, AT(token), NULL },
	{ "datacenter", conf_field_text, AT(datacenter), NULL },
	{ "namespace", conf_field_text, AT(namespace), NULL },
	{ "partition", conf_field_text, AT(partition), NULL },
	{ "tag_separator", conf_field_text, AT(separator), NULL },
	{ "scheme", conf_field_text, AT(scheme), NULL },
	{ "username", conf_field_text, AT(username), NULL },
	{ "password", conf_field_text, AT(password), NULL },
	{ "allow_stale", conf_field_bool, AT(stale), NULL },
	{ "services", conf_field_texts, AT(services), NULL },
	{ "tags", conf_field_texts, AT(tags), NULL },
	{ "node_meta", node_meta, AT(node_meta), NULL },
	{ "filter", conf_field_text, AT(filter), NULL },
	{ "health_filter", conf_field_text, AT(health_filter), NULL },
	DISCOVER_FIELDS,
	{ 0 },
};

const struct discover_kind discover_consul = {
	.key = "consul_sd_configs",
	.size = sizeof(struct consul),
	.refresh_ns = 30 * NS_PER_SEC,
	.fields = fields,
	.begin = begin,
	.check = check,
	.find = consul_find,
};
