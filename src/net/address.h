/* SPDX-License-Identifier: Apache-2.0 */
/* address: the addresses that a text may mean, to listen at or to connect to. */
#pragma once

#include "net/net.h"

#include <sys/socket.h>
#include <sys/un.h>

struct net_address {
	struct sockaddr_storage storage;
	socklen_t len;
	char unix_path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "" for TCP */
};

/* Only whether it has the form of an address: no name is looked up. */
NODISCARD enum status net_address_check(const char *text, struct err *e);
/* All addresses that `text` may mean, at most `max`; listening: "" and ":PORT" are any address. */
NODISCARD enum status net_address_parse(const char *text, bool listening, struct net_address *out,
	size_t max, size_t *out_count, struct err *e);
void net_address_format(const struct sockaddr_storage *a, char *out, size_t out_size);
