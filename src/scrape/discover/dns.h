/* SPDX-License-Identifier: Apache-2.0 */
/* dns' own: settings, and what is read of an answer. Source: RFC 1035; RFC 2782 (SRV). */
#pragma once

#include <netinet/in.h>

#include "scrape/discover/discover.h"

struct dns {
	struct discover base;
	const struct conf_node *names;
	const char *type_name;
	uint64_t port; /* 0: none */
	int type;
	struct sockaddr_in server; /* tests': asked in place of the host's; port 0: none */
};

/* Targets of the records of this type in an answer; aliases are passed over. E_INVALID: not DNS. */
NODISCARD enum status dns_answer_parse(struct str message, struct str name, int type, uint64_t port,
	struct discover_found *out, struct err *e);
