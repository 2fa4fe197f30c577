/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library sends the queries as /etc/resolv.conf says (search domains, several servers, TCP
 * for long answers). A query cannot be interrupted; it ends after two seconds for each server that
 * does not answer.
 *
 * A name that does not exist has no targets, which is no error; a failure of the server is one.
 */
#include "scrape/discover/dns.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <poll.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "scrape/discover/modules.h"

#define ANSWER_MAX 65535
#define PATIENCE_S 2
#define D "__meta_dns_"

static const struct {
	const char *name;
	int type;
	size_t before;     /* bytes of a record before the name in it */
	const char *label; /* the label for that name; NULL: the record is an address */
} types[] = {
	{ "SRV", ns_t_srv, 6, D "srv_record_target" },
	{ "A", ns_t_a, 0, NULL },
	{ "AAAA", ns_t_aaaa, 0, NULL },
	{ "MX", ns_t_mx, 2, D "mx_record_target" },
	{ "NS", ns_t_ns, 0, D "ns_record_target" },
};

/* ---- an answer ---- */

static enum status read_host(
	ns_msg *m, const ns_rr *rr, size_t before, char out[NS_MAXDNAME], struct err *e)
{
	if (ns_rr_rdlen(*rr) <= before || ns_name_uncompress(ns_msg_base(*m), ns_msg_end(*m),
						  ns_rr_rdata(*rr) + before, out, NS_MAXDNAME) < 0)
		return err_set(e, E_INVALID, "a record without a name");
	/* Names with characters that no host name has are refused. */
	for (const char *p = out; *p; p++)
		if (*p <= ' ' || *p > '~' || strchr("/@?#\\:", *p))
			return err_set(e, E_INVALID, "a record with a name that no host has");
	return OK;
}

static enum status add_record(ns_msg *m, const ns_rr *rr, size_t kind, struct str name,
	uint64_t port, struct discover_found *out, struct err *e)
{
	struct discover_draft d;
	char host[NS_MAXDNAME + 1] = "", number[24];
	discover_draft_begin(&d, out);
	discover_put(&d, D "name", name);
	if (types[kind].label) {
		enum status s = read_host(m, rr, types[kind].before, host, e);
		if (s != OK)
			return s;
		size_t len = strlen(host);
		char rooted[NS_MAXDNAME + 2];
		if (len && host[len - 1] == '.') /* the root's name is "." */
			host[--len] = 0;
		if (!len) /* the root's name: the record says that there is no such service */
			return OK;
		snprintf(rooted, sizeof(rooted), "%s.", host);
		discover_put(&d, types[kind].label, str_of(rooted));
	} else if (ns_rr_rdlen(*rr) != (types[kind].type == ns_t_a ? 4 : 16) ||
		   !inet_ntop(types[kind].type == ns_t_a ? AF_INET : AF_INET6, ns_rr_rdata(*rr),
			   host, sizeof(host))) {
		return err_set(e, E_INVALID, "a record that is no address");
	}
	if (types[kind].type == ns_t_srv) {
		port = ns_get16(ns_rr_rdata(*rr) + 4);
		discover_put_number(&d, D "srv_record_port", port);
	}
	snprintf(number, sizeof(number), "%llu", (unsigned long long)port);
	const char *address = discover_join(&out->arena, str_of(host), str_of(number));
	return address ? discover_add(out, str_of(address), NULL, &d, e)
		       : err_set(e, arena_status(&out->arena), "targets");
}

enum status dns_answer_parse(struct str message, struct str name, int type, uint64_t port,
	struct discover_found *out, struct err *e)
{
	ns_msg m;
	ns_rr rr;
	size_t kind = 0;
	enum status s = OK;
	while (types[kind].type != type)
		kind++;
	if (message.len > ANSWER_MAX ||
		ns_initparse((const unsigned char *)message.p, (int)message.len, &m) < 0)
		return err_set(e, E_INVALID, "the answer is not DNS");
	for (int i = 0; s == OK && i < ns_msg_count(m, ns_s_an); i++) {
		if (ns_parserr(&m, ns_s_an, i, &rr) < 0)
			return err_set(e, E_INVALID, "the answer is not DNS");
		if ((int)ns_rr_type(rr) == type)
			s = add_record(&m, &rr, kind, name, port, out, e);
	}
	return s;
}

/* ---- requests ---- */

static enum status ask(struct dns *d, struct __res_state *state, struct str name,
	struct discover_found *out, struct err *e)
{
	CLEANUP(free_cleanup) unsigned char *answer = malloc(ANSWER_MAX);
	if (!answer)
		return err_set(e, E_NOMEM, "an answer");
	int n = res_nsearch(state, name.p, ns_c_in, d->type, answer, ANSWER_MAX);
	if (n < 0) {
		bool absent = state->res_h_errno == HOST_NOT_FOUND || state->res_h_errno == NO_DATA;
		return absent ? OK
			      : err_set(e, E_UNAVAILABLE, "%.*s: no name server could tell",
					STR_ARG(name));
	}
	struct str message = str_make(answer, MIN((size_t)n, (size_t)ANSWER_MAX));
	enum status s = dns_answer_parse(message, name, d->type, d->port, out, e);
	return s == OK ? OK : err_prefix(e, s, "%.*s", STR_ARG(name));
}

static enum status dns_find(struct discover *base, const struct discover_run *run,
	struct discover_found *out, struct err *e)
{
	struct dns *d = (struct dns *)base;
	struct __res_state state = { 0 };
	enum status s = OK;
	if (res_ninit(&state) != 0)
		return err_set(e, E_IO, "/etc/resolv.conf cannot be used");
	state.retrans = PATIENCE_S;
	state.retry = 1;
	state.options |= RES_USE_EDNS0;
	if (d->server.sin_port) {
		state.nscount = 1;
		state.nsaddr_list[0] = d->server;
	}
	for (uint32_t i = 0; s == OK && i < d->names->count; i++) {
		struct pollfd p = { .fd = run->wake_fd, .events = POLLIN };
		s = run->wake_fd >= 0 && poll(&p, 1, 0) > 0
			    ? err_set(e, E_CANCELED, "woken")
			    : ask(d, &state, d->names->v[i].value->text, out, e);
	}
	res_nclose(&state);
	return s;
}

/* ---- the file ---- */

static enum status check(struct discover *base, const struct conf_node *n, struct err *e)
{
	struct dns *d = (struct dns *)base;
	if (!d->names || !d->names->count)
		return conf_wrong(e, n, "names are missing");
	for (size_t i = 0; i < ARRAY_COUNT(types); i++)
		if (strcasecmp(types[i].name, d->type_name ? d->type_name : "SRV") == 0)
			d->type = types[i].type;
	if (!d->type)
		return conf_wrong(e, n, "type must be SRV, A, AAAA, MX or NS");
	if (d->type != ns_t_srv && !d->port)
		return conf_wrong(e, n, "port is missing: only SRV records have one");
	return OK;
}

static const struct conf_field fields[] = {
	{ "names", conf_field_texts, offsetof(struct dns, names), NULL },
	{ "type", conf_field_text, offsetof(struct dns, type_name), NULL },
	{ "port", conf_field_port, offsetof(struct dns, port), NULL },
	{ "refresh_interval", conf_field_duration, offsetof(struct discover, refresh_ns), NULL },
	{ 0 },
};

const struct discover_kind discover_dns = {
	.key = "dns_sd_configs",
	.size = sizeof(struct dns),
	.refresh_ns = 30 * NS_PER_SEC,
	.fields = fields,
	.check = check,
	.find = dns_find,
};
