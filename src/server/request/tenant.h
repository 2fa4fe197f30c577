/* SPDX-License-Identifier: Apache-2.0 */
/* tenant: whose samples a request is about. */
#pragma once

#include "net/net.h"
#include "server/request/state.h"

/* tenant.c: the tenant whose samples the request is about; its text lies in the request. E_INVALID
 * names the header. */
NODISCARD enum status server_tenant_by(
	const char *header, const struct net_request *r, struct str *out, struct err *e);
NODISCARD enum status server_tenant(
	const struct server *s, const struct net_request *r, struct str *out, struct err *e);
