/* SPDX-License-Identifier: Apache-2.0 */
/* route: which handler a request is for. */
#pragma once

#include "net/state.h"

/* x->framing and x->route; NULL: none takes it. */
void net_route_choose(struct net_exchange *x, const struct http_request *h);
/* The methods that a path takes, in x->response.headers; false when there is no such path. */
bool net_route_put_allow(struct net_exchange *x);
