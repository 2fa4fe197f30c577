/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest.h"

#include "base/clock.h"
#include "parca/parca.h"
#include "server/internal.h"

#include <inttypes.h>
#include <stdio.h>

#define KNOWN_STACKS_BYTES ((size_t)64 << 20)
/* How far ahead of ours a sender's clock may be. */
#define FUTURE_NS ((int64_t)3600 * NS_PER_SEC)
/* Times before are not nanoseconds, or are of a clock that was never set. */
#define TIME_MIN_NS ((int64_t)365 * 24 * 3600 * NS_PER_SEC)

/* Bytes that sorting the labels of one message may compare and move: some 300,000 samples of 15
 * labels of their own take a tenth. */
#define LABEL_WORK_MAX ((uint64_t)8 << 30)
/* Demangled names of one message; those beyond stay as they are. */
#define DEMANGLED_BYTES_MAX ((size_t)16 << 20)

/* Tables of a message in memory, against its bytes: varints become integers. */
#define DECODED_FACTOR 8
#define DECODED_MIN ((size_t)64 << 20)
#define DECODED_MAX ((size_t)1 << 30)

size_t ingest_memory(size_t message_bytes)
{
	return MIN(DECODED_MIN + DECODED_FACTOR * message_bytes, DECODED_MAX);
}

static enum status read_rules(struct ingest *in, const char *path, struct err *e)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, TENANT_RULES_BYTES_MAX);
	enum status s = os_read_file(path, &text, e);
	if (s != OK)
		return s;
	s = tenant_rules_parse(buf_view(&text), &in->limits, &in->rules, e);
	return s == OK ? OK : err_prefix(e, s, "%s", path);
}

enum status ingest_init(
	struct ingest *in, const struct server_limits *l, const char *tenant_limits, struct err *e)
{
	in->limits = *l;
	agent_list_init(&in->agents);
	enum status s = series_guard_init(&in->series);
	if (s == OK)
		s = parca_stacks_new(KNOWN_STACKS_BYTES, &in->stacks);
	if (s != OK)
		return err_set(e, s, "ingest: %s", status_text(s));
	return tenant_limits ? read_rules(in, tenant_limits, e) : OK;
}

void ingest_deinit(struct ingest *in)
{
	series_guard_deinit(&in->series);
	agent_list_deinit(&in->agents);
	tenant_rules_deinit(&in->rules);
	parca_stacks_free(in->stacks);
	in->stacks = NULL;
}

static void count(struct server *s, enum ingest_protocol how, const struct profile *p,
	const struct profile_refused *r, uint64_t no_series)
{
	metric_value *const samples[] = { &s->metrics.samples_otlp, &s->metrics.samples_raw,
		&s->metrics.samples_arrow_v1, &s->metrics.samples_arrow_v2,
		&s->metrics.samples_push, &s->metrics.samples_ingest };
	metric_value *const refused[] = { &s->metrics.refused_labels,
		&s->metrics.refused_label_name, &s->metrics.refused_label_value,
		&s->metrics.refused_old, &s->metrics.refused_future, &s->metrics.refused_period };
	static_assert(ARRAY_COUNT(refused) == PROFILE_REFUSALS_COUNT, "a reason without a counter");
	metric_add(samples[how], p->samples.len);
	for (size_t i = 0; i < ARRAY_COUNT(refused); i++)
		metric_add(refused[i], r->by_reason[i]);
	metric_add(&s->metrics.refused_series, no_series);
	metric_add(&s->metrics.stacks_cut, p->cut_stacks);
	metric_add(&s->metrics.samples_zero, p->zero_samples);
}

void ingest_count_refused(struct server *s, enum status why)
{
	bool malformed = why == E_INVALID || why == E_CORRUPT || why == E_UNSUPPORTED;
	bool busy = why == E_UNAVAILABLE || why == E_NOMEM;
	metric_add(malformed           ? &s->metrics.messages_malformed
		   : why == E_LIMIT    ? &s->metrics.messages_limit
		   : busy              ? &s->metrics.messages_busy
		   : why == E_CANCELED ? &s->metrics.messages_canceled
		   : why == E_TIMEOUT  ? &s->metrics.messages_canceled
				       : &s->metrics.messages_failed,
		1);
}

/* The longest time for which anything is kept; 0: for ever. */
static int64_t longest_retention(const struct server_config *c)
{
	int64_t longest = c ? c->retention_ns : 0;
	for (size_t i = 0; c && longest && i < c->retention_rule_count; i++)
		longest = c->retention_rules[i].time_ns
				  ? MAX(longest, c->retention_rules[i].time_ns)
				  : 0;
	return longest;
}

/* Names as compilers write them become names for people; the first stays as the system's. */
static enum status demangle_names(struct profile *p)
{
	struct arena a;
	enum status s = OK;
	arena_init(&a, DEMANGLED_BYTES_MAX);
	for (size_t i = 1; s == OK && i < p->functions.len; i++) {
		struct profile_function *f = &p->functions.v[i];
		struct str name = profile_str(p, f->name);
		if (!str_starts(name, STR("_Z")) && !str_starts(name, STR("_R")) &&
			!str_starts(name, STR("_D")))
			continue;
		struct str plain = symbolize_demangle(name, &a);
		if (str_eq(plain, name))
			continue;
		if (!f->system_name)
			f->system_name = f->name;
		s = profile_add_string(p, plain, &f->name);
	}
	arena_deinit(&a);
	return s;
}

static const struct server_limits *limits_of(const struct ingest *in, struct str tenant)
{
	const struct tenant_rule *rule = tenant_rules_find(&in->rules, tenant);
	return rule ? &rule->limits : &in->limits;
}

enum status ingest_check_size(
	const struct ingest *in, struct str tenant, size_t message_bytes, struct err *e)
{
	/* Without a rule net has looked at it. */
	const struct tenant_rule *rule = tenant_rules_find(&in->rules, tenant);
	if (!rule || message_bytes <= rule->limits.message_bytes)
		return OK;
	return err_set(e, E_LIMIT,
		"a message of %zu bytes; tenant \"%.*s\" may send %llu (--tenant-limits)",
		message_bytes, STR_ARG(tenant), (unsigned long long)rule->limits.message_bytes);
}

enum status ingest_profile_init(const struct ingest *in, struct str tenant, struct profile *p,
	size_t message_bytes, struct err *e)
{
	uint32_t stack_max = limits_of(in, tenant)->stack_frames;
	enum status s = profile_init(p, ingest_memory(message_bytes));
	if (s != OK)
		return err_set(e, s, "a message of %zu bytes", message_bytes);
	p->stack_max = MAX(MIN(stack_max, (uint32_t)PROFILE_STACK_MAX), 2u);
	p->label_work_max = LABEL_WORK_MAX;
	return OK;
}

/* Which flag moves the limit. */
static void name_flag(struct profile_refused *r, bool by_rule)
{
	static const char *const flags[PROFILE_REFUSALS_COUNT] = {
		[PROFILE_REFUSED_LABELS] = "max-label-names-per-series",
		[PROFILE_REFUSED_LABEL_NAME] = "max-label-name-length",
		[PROFILE_REFUSED_LABEL_VALUE] = "max-label-value-length",
		[PROFILE_REFUSED_OLD] = "storage-retention-time",
	};
	const char *flag = r->samples ? flags[r->first] : NULL;
	if (flag && by_rule && r->first != PROFILE_REFUSED_OLD)
		flag = "tenant-limits";
	size_t len = strlen(r->reason);
	if (flag)
		snprintf(r->reason + len, sizeof(r->reason) - len, " (--%s)", flag);
}

/* The same message of two tenants is two. */
static struct hash128 batch_of(struct str tenant, struct hash128 id)
{
	if (tenant.len) {
		struct hash128 t = hash128(tenant.p, tenant.len);
		id.lo = hash_u64(id.lo ^ t.lo);
		id.hi = hash_u64(id.hi ^ t.hi);
	}
	return id;
}

/* Tables are made of what has samples. */
static void want_names(struct server *s, const struct profile *p)
{
	if (!s->config || !s->config->symbols_on_demand)
		return;
	for (size_t i = 1; i < p->mappings.len; i++) {
		const struct profile_mapping *m = &p->mappings.v[i];
		symbolizer_want(s->engine.symbolizer, profile_str(p, m->build_id),
			profile_str(p, m->filename));
	}
}

enum status ingest_store(struct server *s, enum ingest_protocol how, struct str tenant,
	struct profile *p, struct hash128 batch_id, struct profile_refused *out, struct err *e)
{
	const struct server_limits *of = limits_of(&s->ingest, tenant);
	bool by_rule = of != &s->ingest.limits;
	struct profile_limits limits = {
		.labels_max = of->labels,
		.label_name_bytes_max = of->label_name_bytes,
		.label_value_bytes_max = of->label_value_bytes,
	};
	int64_t now = clock_realtime_ns(), retention = longest_retention(s->config);
	uint64_t no_series = 0;
	limits.time_max_ns = now + FUTURE_NS;
	limits.time_min_ns = MAX(retention ? now - retention : 0, TIME_MIN_NS);
	enum status st = profile_limit(p, &limits, out);
	name_flag(out, by_rule);
	if (st == OK)
		st = series_guard_limit(&s->ingest.series, tenant, of->series, p, now, &no_series);
	if (st == OK)
		st = demangle_names(p);
	if (st != OK)
		return err_set(e, st, "limits: %s", status_text(st));
	if (no_series && !out->samples)
		snprintf(out->reason, sizeof(out->reason),
			"more than %" PRIu32 " series in an hour: no new ones are taken (--%s)",
			of->series, by_rule ? "tenant-limits" : "max-series-per-tenant");
	out->samples += no_series;
	if (p->samples.len)
		st = store_append(s->store, tenant, p, batch_of(tenant, batch_id), e);
	if (st == OK) {
		count(s, how, p, out, no_series);
		want_names(s, p);
	}
	return st;
}

enum status ingest_verdict(const struct profile_refused *refused, struct err *e)
{
	uint64_t by_limits = 0;
	for (size_t i = 0; i < PROFILE_REFUSALS_COUNT; i++)
		by_limits += refused->by_reason[i];
	if (refused->samples == 0)
		return OK;
	return err_set(e, by_limits ? E_INVALID : E_LIMIT,
		"%" PRIu64 " samples were refused, the others are stored: %s", refused->samples,
		refused->reason);
}

void ingest_write_metrics(struct ingest *in, struct buf *out)
{
	buf_printf(out,
		"# HELP firn_ingest_series Series that got samples in the last hours.\n"
		"# TYPE firn_ingest_series gauge\n"
		"firn_ingest_series %" PRIu64 "\n"
		"# HELP firn_ingest_stacks Stacks that senders of schema v1 need not send again.\n"
		"# TYPE firn_ingest_stacks gauge\n"
		"firn_ingest_stacks %" PRIu64 "\n"
		"# HELP firn_agents Agents that pushed in the last five minutes.\n"
		"# TYPE firn_agents gauge\n"
		"firn_agents %" PRIu64 "\n",
		series_guard_count(&in->series), parca_stacks_count(in->stacks),
		agent_list_count(&in->agents, clock_realtime_ns()));
}
