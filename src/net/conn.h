/* SPDX-License-Identifier: Apache-2.0 */
/* conn: one connection. The loop's thread calls it. */
#pragma once

#include "net/state.h"

void net_conn_open(struct net_server *s, int fd, const struct sockaddr_storage *peer);
void net_conn_events(struct net_conn *c, uint32_t events);
/* Read, answer and write as far as it goes; frees the connection when it is over. */
void net_conn_pump(struct net_conn *c);
void net_conn_close(struct net_conn *c);
/* Whether one more connection may be accepted. With too many handshakes the oldest is closed if it
 * is old enough; else *out_at_ns is when it will be. */
bool net_conn_make_room(struct net_server *s, int64_t now_ns, int64_t *out_at_ns);
/* Refuses requests whose body is late, gives up answers of HTTP/2 that are not read. */
void net_conn_give_up_late(struct net_conn *c, int64_t now_ns);
/* When to look at this connection again for being too slow; INT64_MAX: never. Closes nothing. */
int64_t net_conn_deadline(const struct net_conn *c);
