/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the loop: to wake up, to check a deadline, to go on with a connection. */
#include "net/wake.h"
#include "net/state.h"

#include <unistd.h>

#include <errno.h>

void net_loop_look_at(struct net_server *s, int64_t at_ns)
{
	s->look_ns = MIN(s->look_ns, at_ns);
}

void net_loop_again(struct net_server *s, struct net_conn *c)
{
	if (c->again)
		return;
	c->again = true;
	c->again_next = s->again;
	s->again = c;
}

void net_loop_wake(struct net_server *s)
{
	uint64_t one = 1;
	ssize_t n = write(s->event_fd, &one, sizeof(one));
	/* EAGAIN: the counter is full, so the loop will wake up anyway. */
	assert(n == sizeof(one) || errno == EAGAIN);
}

void net_loop_done(struct net_server *s, struct net_exchange *x)
{
	lock_take(&s->done_lock);
	bool first = s->done == NULL;
	x->done_next = s->done;
	s->done = x;
	lock_release(&s->done_lock);
	if (first)
		net_loop_wake(s);
}
