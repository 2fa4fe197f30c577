/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the tenant: the one that the web-config file binds the sender to, or else the value of
 * --tenant-header, as Pyroscope and Grafana's other stores have it in X-Scope-OrgID. Names follow
 * their rule; several tenants at a time (a|b) are not supported.
 */
#include "server/request/tenant.h"
#include "server/request/state.h"

static enum status named_by(
	const char *header, const struct net_request *r, struct str *out, struct err *e)
{
	struct str found = STR("");
	*out = STR("");
	for (size_t i = 0; header && i < r->header_count; i++) {
		const struct http_header *h = &r->headers[i];
		if (!str_eq(h->name, str_of(header)))
			continue;
		struct str value = str_trim(h->value);
		if (found.len && !str_eq(found, value))
			return err_set(e, E_INVALID, "%s: given twice", header);
		found = value;
		if (!ingest_is_tenant(found))
			return err_set(e, E_INVALID,
				"%s: a tenant's name has 1 to %d letters, digits and !-_.*'()",
				header, SAMPLES_TENANT_MAX);
	}
	*out = found;
	return OK;
}

/* A caller that is bound to a tenant may name this tenant only. */
enum status server_tenant_by(
	const char *header, const struct net_request *r, struct str *out, struct err *e)
{
	struct str named = STR("");
	enum status s = named_by(header, r, &named, e);
	if (s != OK)
		return s;
	struct str own = str_of(r->caller.tenant);
	if (r->caller.has_tenant && named.len && !str_eq(named, own))
		return err_set(e, E_DENIED, "%s: %s is of another tenant", header, r->caller.name);
	*out = r->caller.has_tenant ? own : named;
	return OK;
}

enum status server_tenant(
	const struct server *s, const struct net_request *r, struct str *out, struct err *e)
{
	return server_tenant_by(s->config ? s->config->tenant_header : NULL, r, out, e);
}
