/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose samples: the value of --tenant-header, as Pyroscope and Grafana's other stores have it in
 * X-Scope-OrgID. What names may hold is their rule; several tenants at a time (a|b) are not known.
 */
#include "server/internal.h"

bool server_is_tenant(struct str s)
{
	if (s.len == 0 || s.len > STORE_TENANT_MAX || str_eq(s, STR(".")) || str_eq(s, STR("..")))
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];
		bool letter = (c | 32) >= 'a' && (c | 32) <= 'z', digit = c >= '0' && c <= '9';
		if (!letter && !digit && (c == 0 || !strchr("!-_.*'()", c)))
			return false;
	}
	return true;
}

enum status server_tenant(
	const struct server *s, const struct net_request *r, struct str *out, struct err *e)
{
	const char *header = s->config ? s->config->tenant_header : NULL;
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
		if (!server_is_tenant(found))
			return err_set(e, E_INVALID,
				"%s: a tenant's name has 1 to %d letters, digits and !-_.*'()",
				header, STORE_TENANT_MAX);
	}
	*out = found;
	return OK;
}
