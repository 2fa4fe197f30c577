/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: line by line. A folded line is a stack from the root on, and a value after the last blank. A
 * sample of perf's is a line that begins at the margin (comm, pid/tid, [cpu], time:, period,
 * event:) and the frames below it, leaf first, each "address symbol+0xoffset (file)"; an empty
 * line, or the next head, ends it. Sources: FlameGraph's flamegraph.pl and stackcollapse-perf.pl;
 * linux/tools/perf/builtin-script.c.
 */
#include "stacktext/stacktext.h"

#include <math.h>

#define LOOK_BYTES ((size_t)64 << 10) /* bytes of a file from which the format is found */
#define EVENTS_MAX 256
#define DURATION_NS ((int64_t)1000000000)

struct decoder {
	struct profile *out;
	struct stacktext_stats *stats;
	struct err *e;
	int64_t time_ns;
	uint64_t line; /* from 1 on */
	VEC(uint32_t) frames;
	/* of perf's sample that is being read */
	bool in_sample;
	uint32_t head, labels;
	int64_t value;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct str trimmed(struct str s)
{
	while (s.len && (is_blank(s.p[0]) || s.p[0] == '\r'))
		s = str_sub(s, 1, s.len);
	while (s.len && (is_blank(s.p[s.len - 1]) || s.p[s.len - 1] == '\r'))
		s.len--;
	return s;
}

/* The text up to the next blank; moves *rest beyond it. */
static struct str next_word(struct str *rest)
{
	size_t n = 0;
	*rest = trimmed(*rest);
	while (n < rest->len && !is_blank(rest->p[n]))
		n++;
	struct str word = str_sub(*rest, 0, n);
	*rest = str_sub(*rest, n, rest->len);
	return word;
}

/* ---- what it is ---- */

/* "  55d0c0ffee main+0x1f (/bin/x)" */
static bool is_perf_frame(struct str line)
{
	uint64_t address;
	struct str rest = line;
	if (!line.len || !is_blank(line.p[0]))
		return false;
	struct str word = next_word(&rest);
	return word.len <= 16 && str_parse_u64(word, 16, &address) && trimmed(rest).len > 0;
}

enum stacktext_format stacktext_guess(struct str bytes)
{
	struct str rest = str_sub(bytes, 0, LOOK_BYTES), line;
	for (size_t i = 0; i < rest.len; i++) {
		uint8_t c = (uint8_t)rest.p[i];
		if (c < 0x20 && c != '\n' && c != '\t' && c != '\r')
			return STACKTEXT_NONE;
	}
	while (str_split(&rest, '\n', &line))
		if (is_perf_frame(line))
			return STACKTEXT_PERF;
	return bytes.len ? STACKTEXT_FOLDED : STACKTEXT_NONE;
}

/* ---- parts of a profile ---- */

static enum status add_frame(struct decoder *d, struct str name, struct str file)
{
	struct profile_function f = { 0 };
	struct profile_mapping m = { 0 };
	struct profile_location l = { 0 };
	struct profile_line line = { 0 };
	uint32_t location;
	if (d->frames.len == STACKTEXT_FRAMES_MAX)
		return err_set(d->e, E_LIMIT, "line %llu: a stack of more than %u frames",
			(unsigned long long)d->line, STACKTEXT_FRAMES_MAX);
	enum status s = profile_add_string(d->out, name.len ? name : STR("[unknown]"), &f.name);
	if (s == OK)
		s = profile_add_function(d->out, &f, &line.function);
	if (s == OK && file.len) {
		s = profile_add_string(d->out, file, &m.filename);
		if (s == OK)
			s = profile_add_mapping(d->out, &m, &l.mapping);
	}
	if (s == OK)
		s = profile_add_location(d->out, &l, &line, 1, &location);
	if (s != OK)
		return s;
	return VEC_PUSH(&d->frames, location) ? OK : E_NOMEM;
}

static enum status add_head(
	struct decoder *d, struct str name, struct str sample_type, struct str unit, uint32_t *out)
{
	struct profile_type t = { .delta = true };
	struct profile_head h = { .time_ns = d->time_ns, .duration_ns = DURATION_NS };
	enum status s = profile_add_name(d->out, name, &t.name);
	if (s == OK)
		s = profile_add_type_part(d->out, sample_type, &t.sample_type);
	if (s == OK)
		s = profile_add_type_part(d->out, unit, &t.sample_unit);
	/* One period type for all samples, as pprof requires. */
	if (s == OK)
		s = profile_add_string(d->out, STR("samples"), &t.period_type);
	if (s == OK)
		s = profile_add_string(d->out, STR("count"), &t.period_unit);
	if (s == OK)
		s = profile_add_type(d->out, &t, &h.type);
	for (uint32_t i = 1; s == OK && i < d->out->heads.len; i++)
		if (d->out->heads.v[i].type == h.type) {
			*out = i;
			return OK;
		}
	if (s == OK && d->out->heads.len > EVENTS_MAX)
		return err_set(d->e, E_LIMIT, "line %llu: more than %d events",
			(unsigned long long)d->line, EVENTS_MAX);
	return s == OK ? profile_add_head(d->out, &h, out) : s;
}

/* Adds a sample of the collected frames, leaf first. */
static enum status add_sample(struct decoder *d)
{
	struct profile_sample x = {
		.value = d->value, .time_ns = d->time_ns, .head = d->head, .own = d->labels
	};
	enum status s = profile_add_stack(d->out, d->frames.v, (uint32_t)d->frames.len, &x.stack);
	return s == OK ? profile_add_sample(d->out, &x) : s;
}

static void skip(struct decoder *d)
{
	if (d->stats->skipped++ == 0)
		d->stats->first_skipped = d->line;
}

/* ---- folded ---- */

static bool read_value(struct str s, int64_t *out)
{
	uint64_t whole;
	double value;
	if (str_parse_u64(s, 10, &whole) && whole <= INT64_MAX) {
		*out = (int64_t)whole;
		return true;
	}
	if (!str_parse_double(s, &value) || !(value >= 0 && value < 0x1p62))
		return false;
	*out = llround(value);
	return true;
}

static void reverse(struct decoder *d)
{
	for (size_t i = 0, k = d->frames.len; i + 1 < k; i++) {
		uint32_t frame = d->frames.v[i];
		d->frames.v[i] = d->frames.v[--k];
		d->frames.v[k] = frame;
	}
}

/* "# unit: nanoseconds", which firn writes above its folded stacks. */
static enum status folded_comment(struct decoder *d, struct str line)
{
	static const struct {
		const char *unit, *type;
	} units[] = { { "nanoseconds", "time" }, { "microseconds", "time" },
		{ "milliseconds", "time" }, { "seconds", "time" }, { "bytes", "space" } };
	struct str key = STR("# unit: ");
	struct str unit = str_starts(line, key) ? str_sub(line, key.len, line.len) : STR("");
	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (str_eq(unit, str_of(units[i].unit)))
			return add_head(d, STR("folded"), str_of(units[i].type), unit, &d->head);
	return OK;
}

static enum status folded_line(struct decoder *d, struct str line)
{
	struct str stack, frame;
	line = trimmed(line);
	if (line.len == 0)
		return OK;
	if (line.p[0] == '#')
		return folded_comment(d, line);
	size_t blank = line.len;
	while (blank > 0 && !is_blank(line.p[blank - 1]))
		blank--;
	stack = trimmed(str_sub(line, 0, blank));
	if (stack.len == 0 || !read_value(str_sub(line, blank, line.len), &d->value)) {
		skip(d);
		return OK;
	}
	d->stats->lines++;
	VEC_CLEAR(&d->frames);
	enum status s = OK;
	while (s == OK && str_split(&stack, ';', &frame))
		if (frame.len)
			s = add_frame(d, frame, STR(""));
	reverse(d);
	if (s == OK && !d->head) /* the text names no unit */
		s = add_head(d, STR("folded"), STR("samples"), STR("count"), &d->head);
	return s == OK && d->value ? add_sample(d) : s;
}

/* ---- perf script ---- */

/* The name without "+0x1f" at its end. */
static struct str without_offset(struct str symbol)
{
	size_t plus = str_rindex(symbol, '+');
	uint64_t n;
	struct str rest = str_sub(symbol, plus + 1, symbol.len);
	bool is_offset = plus < symbol.len && str_starts(rest, STR("0x")) &&
			 str_parse_u64(str_sub(rest, 2, rest.len), 16, &n);
	return is_offset ? str_sub(symbol, 0, plus) : symbol;
}

/* Where " (file)" begins; the symbol before it may have brackets too. */
static size_t file_of(struct str s)
{
	static const struct str deleted = { " (deleted))", 11 };
	if (s.len == 0 || s.p[s.len - 1] != ')')
		return s.len;
	size_t end = str_ends(s, deleted) ? s.len - deleted.len : s.len;
	while (end > 1 && !(s.p[end - 1] == '(' && is_blank(s.p[end - 2])))
		end--;
	if (end > 1)
		return end - 2;
	return s.p[0] == '(' ? 0 : s.len;
}

static enum status perf_frame(struct decoder *d, struct str line)
{
	struct str rest = line;
	(void)next_word(&rest);
	rest = trimmed(rest);
	size_t at = file_of(rest);
	struct str symbol = without_offset(trimmed(str_sub(rest, 0, at)));
	struct str file = trimmed(str_sub(rest, at, rest.len));
	if (file.len > 2)
		file = str_sub(file, 1, file.len - 2);
	bool none = str_eq(file, STR("inlined")) || str_eq(file, STR("[unknown]"));
	d->stats->lines++;
	return add_frame(d, symbol, none ? STR("") : file);
}

static enum status end_perf_sample(struct decoder *d)
{
	enum status s = OK;
	if (d->in_sample && d->frames.len && d->value)
		s = add_sample(d);
	d->in_sample = false;
	VEC_CLEAR(&d->frames);
	return s;
}

/* Finds "4711" or "4711/4712" between blanks, where comm ends. */
static bool find_pid(
	struct str line, struct str *comm, struct str *pid, struct str *tid, struct str *rest)
{
	uint64_t n;
	for (size_t i = 1; i < line.len; i++) {
		if (!is_blank(line.p[i - 1]) || is_blank(line.p[i]))
			continue;
		struct str behind = str_sub(line, i, line.len), word = next_word(&behind);
		size_t slash = str_index(word, '/');
		*pid = str_sub(word, 0, slash);
		*tid = str_sub(word, slash + 1, word.len);
		if (!str_parse_u64(*pid, 10, &n) || (tid->len && !str_parse_u64(*tid, 10, &n)))
			continue;
		*comm = trimmed(str_sub(line, 0, i));
		*rest = behind;
		return comm->len > 0;
	}
	return false;
}

static enum status add_labels(struct decoder *d, struct str comm, struct str pid, struct str tid)
{
	const struct str names[] = { STR("comm"), STR("pid"), STR("tid") };
	const struct str values[] = { comm, pid, tid };
	struct profile_label labels[3];
	enum status s = OK;
	for (size_t i = 0; s == OK && i < ARRAY_COUNT(labels); i++) {
		s = profile_add_string(d->out, names[i], &labels[i].name);
		if (s == OK)
			s = profile_add_string(d->out, values[i], &labels[i].value);
	}
	return s == OK ? profile_add_labels(d->out, labels, ARRAY_COUNT(labels), &d->labels) : s;
}

/* "cycles:ppp" without the modifiers; "sched:sched_switch" is one name. */
static struct str event_name(struct str event)
{
	size_t colon = str_rindex(event, ':');
	struct str behind = str_sub(event, colon + 1, event.len);
	for (size_t i = 0; i < behind.len; i++)
		if (!strchr("ukhGHpPSDIWe", behind.p[i]))
			return event;
	return str_sub(event, 0, colon);
}

static enum status perf_head(struct decoder *d, struct str line)
{
	struct str comm, pid, tid, rest, event = STR("");
	uint64_t period = 0, n;
	if (!find_pid(line, &comm, &pid, &tid, &rest)) {
		skip(d);
		return OK;
	}
	while (trimmed(rest).len && event.len == 0) {
		struct str word = next_word(&rest);
		bool ends = word.p[word.len - 1] == ':';
		if (str_parse_u64(word, 10, &n))
			period = n;
		else if (ends && !(word.p[0] >= '0' && word.p[0] <= '9'))
			event = event_name(str_sub(word, 0, word.len - 1));
	}
	bool clock = str_eq(event, STR("cpu-clock")) || str_eq(event, STR("task-clock"));
	struct str type = !period ? STR("samples") : clock ? STR("cpu") : event;
	struct str unit = period && clock ? STR("nanoseconds") : STR("count");
	enum status s = add_head(d, STR("perf"), type.len ? type : STR("samples"), unit, &d->head);
	if (s == OK)
		s = add_labels(d, comm, pid, tid);
	if (s != OK)
		return s;
	d->stats->lines++;
	d->in_sample = true;
	d->value = period && period <= INT64_MAX ? (int64_t)period : 1;
	/* Without call chains the only frame is after the event. */
	struct str frame = str_make(line.p + (line.len - rest.len), rest.len);
	return is_perf_frame(frame) ? perf_frame(d, frame) : OK;
}

static enum status perf_line(struct decoder *d, struct str line)
{
	struct str text = trimmed(line);
	if (text.len && text.p[0] == '#')
		return OK;
	if (d->in_sample && is_perf_frame(line))
		return perf_frame(d, line);
	if (text.len && is_blank(line.p[0]) && d->in_sample && d->frames.len) {
		skip(d); /* a source line, or another field */
		return OK;
	}
	enum status s = end_perf_sample(d);
	return s == OK && text.len ? perf_head(d, text) : s;
}

/* ---- */

enum status stacktext_decode(struct str text, enum stacktext_format f, int64_t time_ns,
	struct profile *out, struct stacktext_stats *stats, struct err *e)
{
	struct err none;
	struct decoder d = { .out = out, .stats = stats, .e = e ? e : &none, .time_ns = time_ns };
	size_t before = out->samples.len;
	struct str line;
	enum status s = OK;
	*stats = (struct stacktext_stats){ 0 };
	*d.e = (struct err){ 0 };
	if (f == STACKTEXT_NONE)
		return err_set(d.e, E_INVALID, "this is no text");
	for (d.line = 1; s == OK && str_split(&text, '\n', &line); d.line++)
		s = f == STACKTEXT_PERF ? perf_line(&d, line) : folded_line(&d, line);
	if (s == OK)
		s = end_perf_sample(&d);
	VEC_FREE(&d.frames);
	if (s == OK && out->samples.len == before)
		s = err_set(d.e, E_INVALID,
			"there is no stack in it, neither folded nor of perf script");
	if (s != OK) {
		out->samples.len = before;
		if (!d.e->text[0])
			err_set(d.e, s, "line %llu: %s", (unsigned long long)d.line,
				status_text(s));
	}
	return s;
}
