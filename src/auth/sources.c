/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of sources. When it is full, the least recently used source is replaced. Only refused
 * requests search it, so the linear search costs other requests nothing.
 */
#include <stdio.h>
#include <string.h>

#include "auth/internal.h"

#include <arpa/inet.h>

#define MINUTE_NS (60 * NS_PER_SEC)

/* A host with IPv6 mostly has 2^64 addresses, so its network of 64 bits is the source. */
static void network_of(char *text, size_t size)
{
	struct in6_addr a;
	if (inet_pton(AF_INET6, text, &a) != 1)
		return;
	if (IN6_IS_ADDR_V4MAPPED(&a)) {
		(void)inet_ntop(AF_INET, &a.s6_addr[12], text, (socklen_t)size);
		return;
	}
	memset(&a.s6_addr[8], 0, 8);
	(void)inet_ntop(AF_INET6, &a, text, (socklen_t)size);
}

void auth_source_name(const char *peer, char *out, size_t out_size)
{
	struct str s = str_of(peer);
	if (str_starts(s, STR("[")))
		s = str_sub(s, 1, str_index(s, ']') - 1);
	else
		s = str_sub(s, 0, str_index(s, ':'));
	size_t len = MIN(s.len, out_size - 1);
	memcpy(out, s.p ? s.p : "", len);
	out[len] = 0;
	network_of(out, out_size);
}

static struct auth_source *find(struct auth_sources *s, const char *name)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (strcmp(s->v[i].name, name) == 0)
			return &s->v[i];
	return NULL;
}

static struct auth_source *add(struct auth_sources *s, const char *name, int64_t now_ns)
{
	struct auth_source *at = &s->v[0];
	if (s->count < AUTH_SOURCES_MAX) {
		at = &s->v[s->count++];
	} else {
		for (uint32_t i = 1; i < s->count; i++)
			if (s->v[i].minute_ns < at->minute_ns)
				at = &s->v[i];
	}
	*at = (struct auth_source){ .minute_ns = now_ns, .told_ns = now_ns - MINUTE_NS };
	snprintf(at->name, sizeof(at->name), "%s", name);
	return at;
}

bool auth_sources_over(struct auth_sources *s, const char *peer, int64_t now_ns)
{
	char name[48];
	auth_source_name(peer, name, sizeof(name));
	lock_take(&s->lock);
	const struct auth_source *at = find(s, name);
	bool over = at && at->guesses >= AUTH_GUESSES_MAX && now_ns - at->minute_ns < MINUTE_NS;
	lock_release(&s->lock);
	return over;
}

uint64_t auth_sources_add(struct auth_sources *s, const char *peer, bool guess, int64_t now_ns)
{
	char name[48];
	uint64_t tell = 0;
	auth_source_name(peer, name, sizeof(name));
	lock_take(&s->lock);
	struct auth_source *at = find(s, name);
	if (!at)
		at = add(s, name, now_ns);
	if (now_ns - at->minute_ns >= MINUTE_NS) {
		at->minute_ns = now_ns;
		at->guesses = 0;
	}
	at->guesses += guess;
	at->refused++;
	if (now_ns - at->told_ns >= MINUTE_NS) {
		tell = at->refused;
		at->refused = 0;
		at->told_ns = now_ns;
	}
	lock_release(&s->lock);
	return tell;
}
