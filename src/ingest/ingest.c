/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message is counted in the inlet of its protocol, limited as its tenant is, and gets memory from
 * the sink before anything is decoded. Samples that the limits refuse are removed from the profile;
 * the others go to the sink as one batch, whose id is made of the tenant and the message's id.
 *
 * The sink comes last: handlers run while the store is still being opened, and until then each
 * message is answered with "try again".
 */
#include "ingest/ingest.h"

#include "base/clock.h"
#include "base/hash.h"
#include "os/os.h"
#include "symbolize/symbolize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* How far a sender's clock may be ahead of this host's. */
#define FUTURE_NS ((int64_t)3600 * NS_PER_SEC)
/* Earlier times are not in nanoseconds, or from a clock that was never set. */
#define TIME_MIN_NS ((int64_t)365 * 24 * 3600 * NS_PER_SEC)

/* Bytes that sorting the labels of one message may compare and move; about 300,000 samples with 15
 * distinct labels each take a tenth of it. */
#define LABEL_WORK_MAX ((uint64_t)8 << 30)
/* Bytes of demangled names of one message; further names are kept mangled. */
#define DEMANGLED_BYTES_MAX ((size_t)16 << 20)

/* Memory of a decoded message's tables, as a multiple of its bytes: varints become integers. */
#define DECODED_FACTOR 8
#define DECODED_MIN ((size_t)64 << 20)
#define DECODED_MAX ((size_t)1 << 30)

size_t ingest_memory(size_t message_bytes)
{
	return MIN(DECODED_MIN + DECODED_FACTOR * message_bytes, DECODED_MAX);
}

/* ---- up and down ---- */

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

enum status ingest_init(struct ingest *in, const struct ingest_config *c, struct err *e)
{
	in->limits = c->limits;
	in->retention_ns = c->retention_ns;
	agent_list_init(&in->agents);
	enum status s = series_guard_init(&in->series);
	if (s != OK)
		return err_set(e, s, "ingest: %s", status_text(s));
	return c->tenant_limits_file ? read_rules(in, c->tenant_limits_file, e) : OK;
}

void ingest_deinit(struct ingest *in)
{
	series_guard_deinit(&in->series);
	agent_list_deinit(&in->agents);
	tenant_rules_deinit(&in->rules);
	for (size_t i = 0; i < in->inlet_count; i++)
		free(ingest_own(&in->inlets[i]));
	in->inlet_count = 0;
}

enum status ingest_inlet(struct ingest *in, const struct ingest_protocol *p,
	struct ingest_inlet **out, struct err *e)
{
	struct ingest_inlet *inlet = in->inlets;
	for (; inlet < in->inlets + in->inlet_count; inlet++)
		if (inlet->protocol == p) {
			*out = inlet;
			return OK;
		}
	if (in->inlet_count == INGEST_PROTOCOLS_MAX)
		return err_set(e, E_LIMIT, "more than %d protocols", INGEST_PROTOCOLS_MAX);
	*inlet = (struct ingest_inlet){ .ingest = in, .protocol = p };
	if (p->own_count) {
		inlet->own = calloc(p->own_count, sizeof(*inlet->own));
		if (!inlet->own)
			return err_set(e, E_NOMEM, "counters of %s", p->name);
	}
	in->inlet_count++;
	*out = inlet;
	return OK;
}

void ingest_open(struct ingest *in, struct samples_sink *sink, struct symbolizer *wants)
{
	in->wants = wants;
	atomic_store_explicit(&in->sink, sink, memory_order_release);
}

static struct samples_sink *sink_of(struct ingest *in)
{
	return atomic_load_explicit(&in->sink, memory_order_acquire);
}

enum status ingest_health(struct ingest *in, struct err *e)
{
	struct samples_sink *sink = sink_of(in);
	return sink ? sink->ops->health(sink, e)
		    : err_set(e, E_UNAVAILABLE, "the store is being opened");
}

/* ---- limits ---- */

static const struct ingest_limits *limits_of(const struct ingest *in, struct str tenant)
{
	const struct tenant_rule *rule = tenant_rules_find(&in->rules, tenant);
	return rule ? &rule->limits : &in->limits;
}

/* Checks the tenant's limit; the protocol that read the message has checked the server's. */
static enum status check_size(
	const struct ingest *in, struct str tenant, size_t message_bytes, struct err *e)
{
	const struct tenant_rule *rule = tenant_rules_find(&in->rules, tenant);
	if (!rule || message_bytes <= rule->limits.message_bytes)
		return OK;
	return err_set(e, E_LIMIT,
		"a message of %zu bytes; tenant \"%.*s\" may send %llu (--tenant-limits)",
		message_bytes, STR_ARG(tenant), (unsigned long long)rule->limits.message_bytes);
}

/* Names the flag that sets the limit. */
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

/* Removes from the profile the samples that the tenant may not send. */
static enum status limit(struct ingest_batch *b, uint64_t *out_no_series, struct err *e)
{
	struct ingest *in = b->inlet->ingest;
	const struct ingest_limits *of = limits_of(in, b->tenant);
	bool by_rule = of != &in->limits;
	int64_t now = clock_realtime_ns();
	struct profile_limits limits = {
		.labels_max = of->labels,
		.label_name_bytes_max = of->label_name_bytes,
		.label_value_bytes_max = of->label_value_bytes,
		.time_max_ns = now + FUTURE_NS,
		.time_min_ns = MAX(in->retention_ns ? now - in->retention_ns : 0, TIME_MIN_NS),
	};
	enum status s = profile_limit(&b->profile, &limits, &b->refused);
	name_flag(&b->refused, by_rule);
	if (s == OK)
		s = series_guard_limit(
			&in->series, b->tenant, of->series, &b->profile, now, out_no_series);
	if (s != OK)
		return err_set(e, s, "limits: %s", status_text(s));
	if (*out_no_series && !b->refused.samples)
		snprintf(b->refused.reason, sizeof(b->refused.reason),
			"more than %" PRIu32 " series in an hour: no new ones are taken (--%s)",
			of->series, by_rule ? "tenant-limits" : "max-series-per-tenant");
	b->refused.samples += *out_no_series;
	return OK;
}

/* ---- names ---- */

/* Demangles function names; the mangled name stays as the system name. */
static enum status demangle_names(struct profile *p)
{
	struct arena a;
	enum status s = OK;
	arena_init(&a, DEMANGLED_BYTES_MAX);
	for (size_t i = 1; s == OK && i < p->functions.len; i++) {
		struct profile_function *f = &p->functions.v[i];
		struct str name = profile_str(p, f->name);
		if (name.len == 0 || name.p[0] != '_')
			continue;
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

/* Tells the symbolizer which files have samples, so that it makes their tables. */
static void want_names(struct symbolizer *wants, const struct profile *p)
{
	for (size_t i = 1; wants && i < p->mappings.len; i++) {
		const struct profile_mapping *m = &p->mappings.v[i];
		symbolizer_want(wants, profile_str(p, m->build_id), profile_str(p, m->filename));
	}
}

/* ---- counters ---- */

static void count_stored(struct ingest_batch *b, uint64_t no_series)
{
	struct ingest_metrics *m = &b->inlet->ingest->metrics;
	metric_value *const refused[] = { &m->refused_labels, &m->refused_label_name,
		&m->refused_label_value, &m->refused_old, &m->refused_future, &m->refused_period };
	static_assert(ARRAY_COUNT(refused) == PROFILE_REFUSALS_COUNT, "a reason without a counter");
	metric_add(&b->inlet->samples, b->profile.samples.len);
	for (size_t i = 0; i < ARRAY_COUNT(refused); i++)
		metric_add(refused[i], b->refused.by_reason[i]);
	metric_add(&m->refused_series, no_series);
	metric_add(&m->stacks_cut, b->profile.cut_stacks);
	metric_add(&m->samples_zero, b->profile.zero_samples);
	metric_add(&m->bad_lines, b->profile.bad_lines);
}

/* Counts a message of which nothing was stored, by the reason. */
static void count_refused(struct ingest_metrics *m, enum status why)
{
	bool malformed = why == E_INVALID || why == E_CORRUPT || why == E_UNSUPPORTED;
	bool limit = why == E_LIMIT || why == E_QUOTA;
	bool busy = why == E_UNAVAILABLE || why == E_NOMEM || why == E_NOSPACE;
	bool canceled = why == E_CANCELED || why == E_TIMEOUT;
	metric_add(malformed  ? &m->messages_malformed
		   : limit    ? &m->messages_limit
		   : busy     ? &m->messages_busy
		   : canceled ? &m->messages_canceled
			      : &m->messages_failed,
		1);
}

/* Writes one counter of each inlet; `at` is its offset in the structure. */
static void write_inlets(
	const struct ingest *in, struct buf *out, const char *name, const char *help, size_t at)
{
	if (in->inlet_count)
		buf_printf(out, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
	for (size_t i = 0; i < in->inlet_count; i++) {
		const struct ingest_inlet *inlet = &in->inlets[i];
		const metric_value *v = (const metric_value *)((const char *)inlet + at);
		buf_printf(out, "%s{protocol=\"%s\"} %" PRIu64 "\n", name, inlet->protocol->name,
			metric_get(v));
	}
}

void ingest_write_metrics(struct ingest *in, struct buf *out)
{
	static const struct metric_def defs[] = { INGEST_METRICS(METRIC_DEF) };
	static const struct metric_def now_defs[] = {
		{ "firn_ingest_series", "Series that got samples in the last hours.",
			METRIC_GAUGE },
		{ "firn_agents", "Agents that pushed in the last five minutes.", METRIC_GAUGE },
	};
	static const struct {
		const char *name, *help;
		size_t at;
	} inlets[] = {
		{ "firn_ingest_requests_total", "Requests of senders.",
			offsetof(struct ingest_inlet, requests) },
		{ "firn_ingest_bytes_total", "Bytes of messages, decompressed.",
			offsetof(struct ingest_inlet, bytes) },
		{ "firn_ingest_failed_total", "Requests answered with an error.",
			offsetof(struct ingest_inlet, failed) },
		{ "firn_ingest_samples_total", "Samples accepted.",
			offsetof(struct ingest_inlet, samples) },
	};
	const metric_value now[] = { series_guard_count(&in->series),
		agent_list_count(&in->agents, clock_realtime_ns()) };
	metrics_write(out, defs, (const metric_value *)&in->metrics, ARRAY_COUNT(defs));
	for (size_t i = 0; i < ARRAY_COUNT(inlets); i++)
		write_inlets(in, out, inlets[i].name, inlets[i].help, inlets[i].at);
	for (size_t i = 0; i < in->inlet_count; i++)
		metrics_write(out, in->inlets[i].protocol->own, in->inlets[i].own,
			in->inlets[i].protocol->own_count);
	metrics_write(out, now_defs, now, ARRAY_COUNT(now_defs));
}

/* ---- one message ---- */

void ingest_batch_init(
	struct ingest_batch *b, struct ingest_inlet *in, const char *peer, size_t message_bytes)
{
	*b = (struct ingest_batch){ .inlet = in, .peer = peer };
	b->begun_ns = clock_realtime_ns();
	metric_add(&in->requests, 1);
	metric_add(&in->bytes, message_bytes);
}

static enum status profile_begin(struct ingest_batch *b, size_t message_bytes, struct err *e)
{
	uint32_t stack_max = limits_of(b->inlet->ingest, b->tenant)->stack_frames;
	size_t bytes = message_bytes ? message_bytes : INGEST_UNKNOWN_BYTES;
	enum status s = profile_init(&b->profile, ingest_memory(bytes));
	if (s != OK)
		return err_set(e, s, "a message of %zu bytes", message_bytes);
	b->profile.stack_max = MAX(MIN(stack_max, (uint32_t)PROFILE_STACK_MAX), 2u);
	b->profile.label_work_max = LABEL_WORK_MAX;
	return OK;
}

static enum status admit(struct ingest_batch *b, uint64_t bytes, struct err *e)
{
	struct samples_sink *sink = sink_of(b->inlet->ingest);
	return sink->ops->admit(sink, bytes, &b->entry, e);
}

enum status ingest_batch_begin(
	struct ingest_batch *b, struct str tenant, size_t message_bytes, struct err *e)
{
	struct ingest *in = b->inlet->ingest;
	b->tenant = tenant;
	enum status s = ingest_health(in, e);
	if (s == OK)
		s = check_size(in, tenant, message_bytes, e);
	if (s == OK)
		s = profile_begin(b, message_bytes, e);
	if (s != OK)
		return s;
	return admit(b, (uint64_t)message_bytes * MAX(b->inlet->protocol->expansion, 1u), e);
}

enum status ingest_batch_more(struct ingest_batch *b, size_t message_bytes, struct err *e)
{
	metric_add(&b->inlet->bytes, message_bytes);
	enum status s = check_size(b->inlet->ingest, b->tenant, message_bytes, e);
	return s == OK ? admit(b, message_bytes, e) : s;
}

void ingest_batch_wait(struct ingest_batch *b, uint64_t bytes)
{
	struct samples_sink *sink = sink_of(b->inlet->ingest);
	sink->ops->keep(sink, b->entry, bytes + profile_bytes(&b->profile));
}

/* The batch's id; the same message of two tenants is two batches. */
static struct hash128 batch_of(struct str tenant, struct hash128 id)
{
	if (tenant.len) {
		struct hash128 t = hash128(tenant.p, tenant.len);
		id.lo = hash_u64(id.lo ^ t.lo);
		id.hi = hash_u64(id.hi ^ t.hi);
	}
	return id;
}

enum status ingest_batch_put(struct ingest_batch *b, struct hash128 batch_id, struct err *e)
{
	struct ingest *in = b->inlet->ingest;
	struct samples_sink *sink = sink_of(in);
	struct profile *p = &b->profile;
	uint64_t no_series = 0;
	enum status s = limit(b, &no_series, e);
	if (s != OK)
		return s;
	s = demangle_names(p);
	if (s != OK)
		return err_set(e, s, "names: %s", status_text(s));
	if (p->samples.len)
		s = sink->ops->put(sink, b->tenant, p, batch_of(b->tenant, batch_id), e);
	if (s != OK)
		return s;
	b->stored = true;
	count_stored(b, no_series);
	want_names(in->wants, p);
	return OK;
}

enum status ingest_batch_verdict(const struct ingest_batch *b, struct err *e)
{
	const struct profile_refused *r = &b->refused;
	uint64_t by_limits = 0;
	for (size_t i = 0; i < PROFILE_REFUSALS_COUNT; i++)
		by_limits += r->by_reason[i];
	if (r->samples == 0)
		return OK;
	return err_set(e, by_limits ? E_INVALID : E_QUOTA,
		"%" PRIu64 " samples were refused, the others are stored: %s", r->samples,
		r->reason);
}

void ingest_batch_end(struct ingest_batch *b, enum status s, const char *error)
{
	struct ingest *in = b->inlet->ingest;
	if (s != OK) {
		metric_add(&b->inlet->failed, 1);
		if (!b->stored)
			count_refused(&in->metrics, s);
	}
	/* Only pushed messages come from an agent; scraped ones do not. */
	if (b->profile.strings.v && !b->inlet->protocol->asks)
		agent_list_note(&in->agents, &b->profile,
			&(struct agent_push){ .tenant = b->tenant,
				.user_agent = b->user_agent,
				.peer = b->peer,
				.error = error,
				.begin_ns = b->begun_ns,
				.end_ns = clock_realtime_ns(),
				.refused = b->refused.samples });
	profile_deinit(&b->profile);
	struct samples_sink *sink = sink_of(in);
	if (sink)
		sink->ops->admit_end(sink, b->entry);
	b->entry = NULL;
}
