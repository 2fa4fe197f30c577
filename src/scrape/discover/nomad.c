/* SPDX-License-Identifier: Apache-2.0 */
/* The services of Nomad's own registry, then each one's instances. */
#include <string.h>

#include "base/clock.h"
#include "scrape/discover/modules.h"

#define SERVICES_MAX 2000 /* a question each */
#define N "__meta_nomad_"

struct nomad {
	struct discover base;
	const char *server, *namespace, *region, *separator;
	bool stale;
};

struct registry {
	struct nomad *n;
	const struct discover_run *run;
	struct fetch *fetch;
	struct arena list, service;
	struct discover_found *out;
	struct discover_draft draft;
};

static enum status get(struct registry *x, const char *path, struct str name, struct arena *a,
	const struct conf_node **out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf url;
	size_t len = strlen(x->n->server);
	buf_init(&url, FETCH_URL_MAX - 1);
	buf_put(&url, x->n->server, len - (len && x->n->server[len - 1] == '/'));
	buf_cstr(&url, path);
	discover_put_escaped(&url, name);
	buf_cstr(&url, "?namespace=");
	discover_put_escaped(&url, str_of(x->n->namespace));
	buf_cstr(&url, "&region=");
	discover_put_escaped(&url, str_of(x->n->region));
	if (x->n->stale)
		buf_cstr(&url, "&stale=true");
	buf_u8(&url, 0);
	if (buf_status(&url) != OK)
		return err_set(e, E_LIMIT, "the URL is too long");
	enum status s = discover_get(
		&x->n->base, x->run, x->fetch, (const char *)url.data, NULL, a, out, e);
	if (s == OK && (*out)->kind != CONF_LIST)
		s = err_set(e, E_INVALID, "the answer is no list");
	return s;
}

static enum status add_instance(struct registry *x, const struct conf_node *n, struct err *e)
{
	CLEANUP(buf_deinit) struct buf tags;
	struct discover_draft *d = &x->draft;
	const struct conf_node *list = conf_find(n, "Tags");
	struct str address = conf_text_at(n, "Address"), port = conf_text_at(n, "Port");
	const char *where = discover_join(&x->out->arena, address, port);
	buf_init(&tags, DISCOVER_FOUND_BYTES);
	for (uint32_t i = 0; list && i < list->count; i++) {
		buf_cstr(&tags, x->n->separator);
		buf_str(&tags, list->v[i].value->text);
	}
	if (tags.len)
		buf_cstr(&tags, x->n->separator);
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

static enum status add_service(struct registry *x, struct str name, struct err *e)
{
	const struct conf_node *list = NULL;
	arena_clear(&x->service);
	enum status s = get(x, "/v1/service/", name, &x->service, &list, e);
	for (uint32_t i = 0; s == OK && i < list->count; i++)
		s = add_instance(x, list->v[i].value, e);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "%.*s", STR_ARG(name));
}

static enum status add_all(struct registry *x, struct err *e)
{
	const struct conf_node *list = NULL;
	uint32_t count = 0;
	enum status s = get(x, "/v1/services", STR(""), &x->list, &list, e);
	for (uint32_t i = 0; s == OK && i < list->count; i++) {
		const struct conf_node *services = conf_find(list->v[i].value, "Services");
		for (uint32_t k = 0; s == OK && services && k < services->count; k++)
			s = ++count > SERVICES_MAX
				    ? err_set(e, E_LIMIT, "more than %d services", SERVICES_MAX)
				    : add_service(x,
					      conf_text_at(services->v[k].value, "ServiceName"), e);
	}
	return s;
}

static enum status nomad_find(struct discover *base, const struct discover_run *run,
	struct discover_found *out, struct err *e)
{
	struct registry x = { .n = (struct nomad *)base, .run = run, .out = out };
	arena_init(&x.list, DISCOVER_TREE_BYTES);
	arena_init(&x.service, DISCOVER_TREE_BYTES);
	discover_draft_begin(&x.draft, out);
	enum status s = client_open(&base->client, NULL, &x.fetch, e);
	if (s == OK)
		s = add_all(&x, e);
	fetch_free(x.fetch);
	arena_deinit(&x.list);
	arena_deinit(&x.service);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "%s", discover_shown(x.n->server));
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
