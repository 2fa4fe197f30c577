/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the services of Nomad's own registry, then the instances of each. */
#include <string.h>

#include "base/clock.h"
#include "scrape/discover/modules.h"

#define N "__meta_nomad_"

struct nomad {
	struct discover base;
	const char *server, *namespace, *region, *separator;
	bool stale;
};

static enum status get(struct discover_search *x, const char *path, struct str name,
	struct arena *a, const struct conf_node **out, struct err *e)
{
	const struct nomad *n = (const struct nomad *)x->d;
	CLEANUP(buf_deinit) struct buf url;
	size_t len = strlen(n->server);
	buf_init(&url, FETCH_URL_MAX - 1);
	buf_put(&url, n->server, len - (len && n->server[len - 1] == '/'));
	buf_cstr(&url, path);
	discover_put_escaped(&url, name);
	buf_cstr(&url, "?namespace=");
	discover_put_escaped(&url, str_of(n->namespace));
	buf_cstr(&url, "&region=");
	discover_put_escaped(&url, str_of(n->region));
	if (n->stale)
		buf_cstr(&url, "&stale=true");
	buf_u8(&url, 0);
	if (buf_status(&url) != OK)
		return err_set(e, E_LIMIT, "the URL is too long");
	return discover_get(x->d, x->run, x->fetch, (const char *)url.data, NULL, a, out, e);
}

static enum status add_instance(
	struct discover_search *x, struct str service, const struct conf_node *n, struct err *e)
{
	const char *separator = ((const struct nomad *)x->d)->separator;
	CLEANUP(buf_deinit) struct buf tags;
	struct discover_draft *d = &x->draft;
	const struct conf_node *list = conf_find(n, "Tags");
	struct str address = conf_text_at(n, "Address"), port = conf_text_at(n, "Port");
	const char *where = discover_join(&x->out->arena, address, port);
	(void)service; /* each instance has the service's name */
	buf_init(&tags, DISCOVER_FOUND_BYTES);
	for (uint32_t i = 0; list && i < list->count; i++) {
		buf_cstr(&tags, separator);
		buf_str(&tags, list->v[i].value->text);
	}
	if (tags.len)
		buf_cstr(&tags, separator);
	discover_draft_back(d, 0);
	discover_put(d, N "address", address);
	discover_put(d, N "dc", conf_text_at(n, "Datacenter"));
	discover_put(d, N "node_id", conf_text_at(n, "NodeID"));
	discover_put(d, N "namespace", conf_text_at(n, "Namespace"));
	discover_put(d, N "service", conf_text_at(n, "ServiceName"));
	discover_put(d, N "service_address", address);
	discover_put(d, N "service_id", conf_text_at(n, "ID"));
	discover_put(d, N "service_port", port);
	discover_put(d, N "tags", buf_view(&tags));
	return where ? discover_add(x->out, str_of(where), NULL, d, e)
		     : err_set(e, arena_status(&x->out->arena), "targets");
}

static enum status ask_service(
	struct discover_search *x, struct str name, const struct conf_node **out, struct err *e)
{
	return get(x, "/v1/service/", name, &x->service, out, e);
}

static const struct discover_registry registry = { .ask = ask_service, .add = add_instance };

static enum status add_all(struct discover_search *x, struct err *e)
{
	const struct conf_node *list = NULL;
	enum status s = get(x, "/v1/services", STR(""), &x->list, &list, e);
	if (s == OK && list->kind != CONF_LIST)
		s = err_set(e, E_INVALID, "the answer is no list");
	for (uint32_t i = 0; s == OK && i < list->count; i++) {
		const struct conf_node *services = conf_find(list->v[i].value, "Services");
		for (uint32_t k = 0; s == OK && services && k < services->count; k++)
			s = discover_service(
				x, &registry, conf_text_at(services->v[k].value, "ServiceName"), e);
	}
	return s;
}

static enum status nomad_find(struct discover *base, const struct discover_run *run,
	struct discover_found *out, struct err *e)
{
	const struct nomad *n = (const struct nomad *)base;
	return discover_server(base, run, NULL, n->server, add_all, out, e);
}

/* ---- the file ---- */

static void begin(struct discover *base)
{
	struct nomad *n = (struct nomad *)base;
	n->server = "http://localhost:4646";
	n->namespace = "default";
	n->region = "global";
	n->separator = ",";
	n->stale = true;
}

static enum status check(struct discover *base, const struct conf_node *n, struct err *e)
{
	struct str server = str_of(((struct nomad *)base)->server);
	return str_starts(server, STR("http://")) || str_starts(server, STR("https://"))
		       ? OK
		       : conf_wrong(e, n, "server must begin with http:// or https://");
}

#define AT(member) offsetof(struct nomad, member)

static const struct conf_field fields[] = {
	{ "server", conf_field_text, AT(server), NULL },
	{ "namespace", conf_field_text, AT(namespace), NULL },
	{ "region", conf_field_text, AT(region), NULL },
	{ "tag_separator", conf_field_text, AT(separator), NULL },
	{ "allow_stale", conf_field_bool, AT(stale), NULL },
	DISCOVER_FIELDS,
	{ 0 },
};

const struct discover_kind discover_nomad = {
	.key = "nomad_sd_configs",
	.size = sizeof(struct nomad),
	.refresh_ns = 60 * NS_PER_SEC,
	.fields = fields,
	.begin = begin,
	.check = check,
	.find = nomad_find,
};
