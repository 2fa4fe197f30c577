/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the instances of an EC2 region page by page, and the ids of its zones with a separate
 * request; without the right to that request the ids are left out.
 * Source: docs.aws.amazon.com/AWSEC2/latest/APIReference: DescribeInstances,
 * DescribeAvailabilityZones; the labels are Prometheus' (ec2_sd_config).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scrape/discover/aws.h"
#include "scrape/discover/modules.h"

#define M "__meta_ec2_"
#define VERSION "2016-11-15"
#define PAGES_MAX 1000 /* each of at most 1,000 instances */
#define DEVICES_MAX 64 /* network cards of an instance */
#define ADDRESSES_BYTES_MAX ((size_t)64 << 10)

struct ec2 {
	struct discover base;
	struct aws_config aws;
	const char *endpoint;
	const struct conf_node *filters;
	uint64_t port;
};

struct look {
	const struct ec2 *d;
	struct aws_session aws;
	char url[FETCH_URL_MAX];
	struct arena page, zones_of;
	const struct conf_node *zones; /* NULL: unknown */
	struct discover_found *out;
	struct discover_draft draft;
};

/* ---- an instance ---- */

static bool is_item(const struct conf_entry *x)
{
	return str_eq(x->key, STR("item")) && x->value->kind == CONF_MAP;
}

/* The subnets of an instance's network cards, each once, and the IPv6 addresses; first[] has the
 * primary one of each card at the index of the card, so some may be empty. */
struct cards {
	struct buf subnets, ipv6, first_ipv6;
	struct str first[DEVICES_MAX];
	size_t first_count;
};

static bool has_subnet(const struct conf_node *list, uint32_t before, struct str subnet)
{
	for (uint32_t i = 0; i < before; i++)
		if (str_eq(conf_text_at(list->v[i].value, "subnetId"), subnet))
			return true;
	return false;
}

static void read_card(struct cards *c, const struct conf_node *card)
{
	const struct conf_node *list = conf_find(card, "ipv6AddressesSet");
	uint64_t device = DEVICES_MAX;
	if (!str_parse_u64(conf_text_at(card, "attachment.deviceIndex"), 10, &device))
		device = DEVICES_MAX;
	for (uint32_t i = 0; list && i < list->count; i++) {
		struct str address = conf_text_at(list->v[i].value, "ipv6Address");
		if (!address.len)
			continue;
		buf_str(&c->ipv6, address);
		buf_u8(&c->ipv6, ',');
		if (device >= DEVICES_MAX ||
			!str_eq(conf_text_at(list->v[i].value, "isPrimaryIpv6"), STR("true")))
			continue;
		c->first[device] = address;
		c->first_count = MAX(c->first_count, device + 1);
	}
}

static void read_cards(struct cards *c, const struct conf_node *list)
{
	for (uint32_t i = 0; list && i < list->count; i++) {
		struct str subnet = conf_text_at(list->v[i].value, "subnetId");
		if (!subnet.len)
			continue;
		if (!has_subnet(list, i, subnet)) {
			buf_str(&c->subnets, subnet);
			buf_u8(&c->subnets, ',');
		}
		read_card(c, list->v[i].value);
	}
	for (size_t i = 0; i < c->first_count; i++) {
		buf_str(&c->first_ipv6, c->first[i]);
		buf_u8(&c->first_ipv6, ',');
	}
}

static void put_network(struct discover_draft *d, const struct conf_node *n)
{
	struct cards c = { 0 };
	if (!conf_text_at(n, "vpcId").len)
		return;
	buf_init(&c.subnets, ADDRESSES_BYTES_MAX);
	buf_init(&c.ipv6, ADDRESSES_BYTES_MAX);
	buf_init(&c.first_ipv6, ADDRESSES_BYTES_MAX);
	buf_u8(&c.subnets, ',');
	buf_u8(&c.ipv6, ',');
	buf_u8(&c.first_ipv6, ',');
	read_cards(&c, conf_find(n, "networkInterfaceSet"));
	discover_put(d, M "vpc_id", conf_text_at(n, "vpcId"));
	discover_put(d, M "primary_subnet_id", conf_text_at(n, "subnetId"));
	discover_put(d, M "subnet_id", buf_view(&c.subnets));
	if (c.ipv6.len > 1)
		discover_put(d, M "ipv6_addresses", buf_view(&c.ipv6));
	if (c.first_count)
		discover_put(d, M "primary_ipv6_addresses", buf_view(&c.first_ipv6));
	buf_deinit(&c.subnets);
	buf_deinit(&c.ipv6);
	buf_deinit(&c.first_ipv6);
}

static struct str zone_id(const struct conf_node *zones, struct str name)
{
	for (uint32_t i = 0; zones && i < zones->count; i++)
		if (str_eq(conf_text_at(zones->v[i].value, "zoneName"), name))
			return conf_text_at(zones->v[i].value, "zoneId");
	return STR("");
}

static void put_tags(struct discover_draft *d, const struct conf_node *tags)
{
	for (uint32_t i = 0; tags && i < tags->count; i++) {
		struct str key = conf_text_at(tags->v[i].value, "key");
		if (key.len)
			discover_put_key(d, M "tag_", key, conf_text_at(tags->v[i].value, "value"));
	}
}

static const struct {
	const char *label, *path;
} texts[] = {
	{ M "instance_id", "instanceId" },
	{ M "private_ip", "privateIpAddress" },
	{ M "private_dns_name", "privateDnsName" },
	{ M "platform", "platform" },
	{ M "ami", "imageId" },
	{ M "availability_zone", "placement.availabilityZone" },
	{ M "instance_state", "instanceState.name" },
	{ M "instance_type", "instanceType" },
	{ M "instance_lifecycle", "instanceLifecycle" },
	{ M "architecture", "architecture" },
};

static enum status add_instance(
	struct look *x, struct str owner, const struct conf_node *n, struct err *e)
{
	struct discover_draft *d = &x->draft;
	char port[24];
	struct str ip = conf_text_at(n, "privateIpAddress"), public = conf_text_at(n, "ipAddress");
	if (!ip.len)
		return OK; /* it has ended, or does not run yet */
	discover_draft_back(d, 0);
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		discover_put(d, texts[i].label, conf_text_at(n, texts[i].path));
	discover_put(d, M "region", str_of(x->aws.region));
	discover_put(d, M "owner_id", owner);
	if (public.len) {
		discover_put(d, M "public_ip", public);
		discover_put(d, M "public_dns_name", conf_text_at(n, "dnsName"));
	}
	discover_put(d, M "availability_zone_id",
		zone_id(x->zones, conf_text_at(n, "placement.availabilityZone")));
	put_network(d, n);
	put_tags(d, conf_find(n, "tagSet"));
	snprintf(port, sizeof(port), "%llu", (unsigned long long)x->d->port);
	const char *address = discover_join(&x->out->arena, ip, str_of(port));
	return address ? discover_add(x->out, str_of(address), NULL, d, e)
		       : err_set(e, arena_status(&x->out->arena), "targets");
}

static enum status add_page(struct look *x, const struct conf_node *root, struct err *e)
{
	const struct conf_node *list = conf_find(root, "reservationSet");
	enum status s = list ? OK : err_set(e, E_INVALID, "the answer has no reservationSet");
	for (uint32_t i = 0; s == OK && i < list->count; i++) {
		const struct conf_node *set = conf_find(list->v[i].value, "instancesSet");
		for (uint32_t k = 0; s == OK && set && k < set->count; k++)
			if (is_item(&set->v[k]))
				s = add_instance(x, conf_text_at(list->v[i].value, "ownerId"),
					set->v[k].value, e);
	}
	return s;
}

/* ---- requests ---- */

static void put_filters(struct buf *form, const struct conf_node *filters)
{
	for (uint32_t i = 0; filters && i < filters->count; i++) {
		const struct conf_node *values = conf_find(filters->v[i].value, "values");
		buf_printf(form, "&Filter.%u.Name=", i + 1);
		discover_put_escaped(form, conf_text_at(filters->v[i].value, "name"));
		for (uint32_t k = 0; values && k < values->count; k++) {
			buf_printf(form, "&Filter.%u.Value.%u=", i + 1, k + 1);
			discover_put_escaped(form, values->v[k].value->text);
		}
	}
}

/* Zones do not change, so they are listed once; if that fails, only a label is missing. */
static void learn_zones(struct look *x)
{
	const struct conf_node *root = NULL;
	struct err ignored = { 0 };
	if (aws_ask(&x->aws, "ec2", x->url,
		    STR("Action=DescribeAvailabilityZones&Version=" VERSION), &x->zones_of, &root,
		    &ignored) == OK)
		x->zones = conf_find(root, "availabilityZoneInfo");
}

static enum status add_all(struct look *x, struct err *e)
{
	CLEANUP(buf_deinit) struct buf form;
	struct str next = STR("");
	enum status s = OK;
	buf_init(&form, FETCH_URL_MAX + CONF_BYTES_MAX);
	learn_zones(x);
	for (int pages = 0; s == OK && (!pages || next.len); pages++) {
		const struct conf_node *root = NULL;
		if (pages == PAGES_MAX)
			return err_set(e, E_LIMIT, "more than %d pages", PAGES_MAX);
		buf_clear(&form);
		buf_cstr(&form, "Action=DescribeInstances&MaxResults=1000&Version=" VERSION);
		put_filters(&form, x->d->filters);
		if (next.len) {
			buf_cstr(&form, "&NextToken=");
			discover_put_escaped(&form, next);
		}
		arena_clear(&x->page);
		s = buf_status(&form);
		if (s == OK)
			s = aws_ask(&x->aws, "ec2", x->url, buf_view(&form), &x->page, &root, e);
		if (s == OK)
			s = add_page(x, root, e);
		next = s == OK ? conf_text_at(root, "nextToken") : STR("");
	}
	return s;
}

static void find_url(struct look *x)
{
	const char *at = x->d->endpoint ? x->d->endpoint : getenv("AWS_ENDPOINT_URL_EC2");
	if (at && at[0])
		snprintf(x->url, sizeof(x->url), "%s%s", strstr(at, "://") ? "" : "https://", at);
	else
		aws_url(&x->aws, "ec2", x->url);
}

static enum status ec2_find(struct discover *base, const struct discover_run *run,
	struct discover_found *out, struct err *e)
{
	struct look *x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(e, E_NOMEM, "ec2");
	x->d = (const struct ec2 *)base;
	x->out = out;
	arena_init(&x->page, DISCOVER_TREE_BYTES);
	arena_init(&x->zones_of, DISCOVER_TREE_BYTES);
	discover_draft_begin(&x->draft, out);
	enum status s = aws_session_open(&x->d->aws, &base->client, run, &x->aws, e);
	find_url(x);
	if (s == OK)
		s = add_all(x, e);
	aws_session_close(&x->aws);
	arena_deinit(&x->page);
	arena_deinit(&x->zones_of);
	free(x);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "EC2");
}

/* ---- the file ---- */

/* [{name: tag:env, values: [prod]}] */
static enum status filters(
	const struct conf_entry *x, void *base, const struct conf_field *f, struct err *e)
{
	bool ok = x->value->kind == CONF_LIST;
	for (uint32_t i = 0; ok && i < x->value->count; i++) {
		const struct conf_node *values = conf_find(x->value->v[i].value, "values");
		ok = conf_text_at(x->value->v[i].value, "name").len && values &&
		     values->kind == CONF_LIST;
		for (uint32_t k = 0; ok && k < values->count; k++)
			ok = values->v[k].value->kind == CONF_TEXT;
	}
	if (!ok)
		return conf_wrong(e, x->value,
			"filters must be a list of mappings with a name and a list of values");
	*CONF_AT(base, f, const struct conf_node *) = x->value;
	return OK;
}

static void begin(struct discover *base)
{
	((struct ec2 *)base)->port = 80;
}

static enum status check(struct discover *base, const struct conf_node *n, struct err *e)
{
	const struct ec2 *d = (const struct ec2 *)base;
	const struct client_config *c = &base->client;
	if (!d->aws.access_key != !d->aws.secret_key)
		return conf_wrong(e, n, "access_key and secret_key belong together");
	if (c->username || c->username_file || c->credentials || c->credentials_file || c->oauth2)
		return conf_wrong(e, n,
			"EC2 knows who asks by access_key and secret_key (or what stands for "
			"them), "
			"and by no other way");
	return OK;
}

#define AT(member) offsetof(struct ec2, member)

static const struct conf_field fields[] = {
	{ "region", conf_field_text, AT(aws.region), NULL },
	{ "endpoint", conf_field_text, AT(endpoint), NULL },
	{ "access_key", conf_field_text, AT(aws.access_key), NULL },
	{ "secret_key", conf_field_text, AT(aws.secret_key), NULL },
	{ "profile", conf_field_text, AT(aws.profile), NULL },
	{ "role_arn", conf_field_text, AT(aws.role_arn), NULL },
	{ "external_id", conf_field_text, AT(aws.external_id), NULL },
	{ "port", conf_field_port, AT(port), NULL },
	{ "filters", filters, AT(filters), NULL },
	DISCOVER_FIELDS,
	{ 0 },
};

const struct discover_kind discover_ec2 = {
	.key = "ec2_sd_configs",
	.size = sizeof(struct ec2),
	.refresh_ns = 60 * NS_PER_SEC,
	.fields = fields,
	.begin = begin,
	.check = check,
	.find = ec2_find,
};
