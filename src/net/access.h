/* SPDX-License-Identifier: Apache-2.0 */
/* access: checks by which name, from which page and by whom a server is asked. */
#pragma once

#include "http/http.h"
#include "net/net.h"
#include "net/state.h"

/* E_DENIED: the server may not be asked by this name, or not from this page. */
NODISCARD enum status net_access_check(
	const struct net_exchange *x, const struct http_request *h, struct err *e);
/* Runs on a worker or the thread of a stream. Asks the guard again, which could not answer on the
 * loop. False: the request is refused, with x->response. */
bool net_access_guard(struct net_exchange *x);
/* The headers that let a page of another origin read the answer. */
void net_access_put(struct net_exchange *x);
bool net_access_is_preflight(const struct net_exchange *x);
void net_access_preflight(struct net_exchange *x);
enum net_prefix { NET_PREFIX_FITS, NET_PREFIX_REDIRECT, NET_PREFIX_OTHER };
/* The path without the server's prefix. */
enum net_prefix net_access_prefix(const struct net_exchange *x, struct str path, struct str *out);
