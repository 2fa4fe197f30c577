/* SPDX-License-Identifier: Apache-2.0 */
/* dns' own: settings, and the parser of answers. Source: RFC 1035; RFC 2782 (SRV). */
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

/* Adds the records of this type in an answer as targets; aliases are skipped. E_INVALID: not DNS.
 */
NODISCARD enum status dns_answer_parse(struct str message, struct str name, int type, uint64_t port,
	struct discover_found *out, struct err *e);
