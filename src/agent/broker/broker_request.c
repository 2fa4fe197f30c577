/* SPDX-License-Identifier: Apache-2.0 */
/* Paths are compared as texts. A path that does not match a form of the table exactly is refused;
 * so are "//" and "..". */
#include "agent/broker/broker_request.h"

#include "base/reader.h"

#define NUMBER_DIGITS_MAX 10
#define ADDRESS_DIGITS_MAX 16

/* Takes `text` off the beginning of *s, if *s begins with it. */
static bool take_text(struct str *s, const char *text)
{
	struct str prefix = str_of(text);
	if (!str_starts(*s, prefix))
		return false;
	*s = str_sub(*s, prefix.len, s->len);
	return true;
}

/* 1 to `max` digits. */
static bool take_digits(struct str *s, const char *digits, size_t max)
{
	size_t n = 0;
	while (n < s->len && s->p[n] && strchr(digits, s->p[n]))
		n++;
	*s = str_sub(*s, n, s->len);
	return n > 0 && n <= max;
}

static bool take_number(struct str *s)
{
	return take_digits(s, "0123456789", NUMBER_DIGITS_MAX);
}

static bool is_one_of(struct str s, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(s, str_of(names[i])))
			return true;
	return false;
}

/* "START-END" */
static bool is_range(struct str s)
{
	static const char hex[] = "0123456789abcdef";
	return take_digits(&s, hex, ADDRESS_DIGITS_MAX) && take_text(&s, "-") &&
	       take_digits(&s, hex, ADDRESS_DIGITS_MAX) && s.len == 0;
}

static bool is_mapped(struct str s)
{
	return str_eq(s, STR("exe")) || (take_text(&s, "map_files/") && is_range(s));
}

/* A path without empty parts, "." and "..". */
static bool is_plain(struct str s)
{
	struct str part;
	if (s.len == 0 || s.p[s.len - 1] == '/')
		return false;
	while (str_split(&s, '/', &part))
		if (part.len == 0 || str_eq(part, STR(".")) || str_eq(part, STR("..")))
			return false;
	return true;
}

static bool is_task_text(struct str s)
{
	static const char *const names[] = { "comm", "stat", "status" };
	return take_text(&s, "task/") && take_number(&s) && take_text(&s, "/") &&
	       is_one_of(s, names, ARRAY_COUNT(names));
}

static bool is_perfmap(struct str s)
{
	return take_text(&s, "root/tmp/perf-") && take_number(&s) && str_eq(s, STR(".map"));
}

static bool is_own(const struct broker_config *c, const char *path)
{
	for (size_t i = 0; i < BROKER_OWN_FILES_MAX; i++)
		if (c->own_files[i] && c->own_files[i][0] && strcmp(c->own_files[i], path) == 0)
			return true;
	return false;
}

enum broker_place broker_place_of(
	const struct broker_config *c, const char *path, const char **out_below)
{
	static const char *const whole[] = { "/proc/kallsyms", "/proc/modules" };
	static const char *const texts[] = { "maps", "cmdline", "stat", "status", "cgroup", "comm",
		"mountinfo" };
	struct str s = str_of(path);
	if (is_own(c, path))
		return BROKER_OWN;
	if (is_one_of(s, whole, ARRAY_COUNT(whole)))
		return BROKER_TEXT;
	if (!take_text(&s, "/proc/") || !take_number(&s) || !take_text(&s, "/"))
		return BROKER_NOWHERE;
	if (is_one_of(s, texts, ARRAY_COUNT(texts)) || is_task_text(s) ||
		(c->environment && str_eq(s, STR("environ"))))
		return BROKER_TEXT;
	if (is_mapped(s))
		return BROKER_MAPPED;
	if (is_perfmap(s))
		return BROKER_PERFMAP;
	if (!take_text(&s, "root/") || !is_plain(s))
		return BROKER_NOWHERE;
	*out_below = path + strlen(path) - s.len;
	return BROKER_IN_ROOT;
}

static bool is_namespace(struct str s)
{
	return take_text(&s, "ns/") && take_digits(&s, "abcdefghijklmnopqrstuvwxyz_", 32) &&
	       s.len == 0;
}

bool broker_is_link(const char *path)
{
	struct str s = str_of(path);
	return take_text(&s, "/proc/") && take_number(&s) && take_text(&s, "/") &&
	       (is_mapped(s) || is_namespace(s));
}

bool broker_may_hang(const char *path)
{
	struct str s = str_of(path);
	if (!take_text(&s, "/proc/"))
		return true;
	return take_number(&s) && (str_starts(s, STR("/map_files/")) ||
					  str_starts(s, STR("/root/")) || str_eq(s, STR("/exe")));
}

static enum status parse_path(struct reader *r, struct broker_request *out, struct err *e)
{
	size_t len = reader_left(r);
	struct str path = reader_str(r, len);
	if (r->failed || len == 0 || len > BROKER_PATH_MAX || memchr(path.p, 0, path.len))
		return err_set(e, E_INVALID, "request %u: a path of %zu bytes, or with a NUL",
			out->number, len);
	memcpy(out->path, path.p, path.len);
	out->path[path.len] = 0;
	return OK;
}

enum status broker_request_parse(struct str message, struct broker_request *out, struct err *e)
{
	struct reader r = reader_over(message.p, message.len);
	uint32_t kind = reader_u32(&r);
	*out = (struct broker_request){ .number = reader_u32(&r) };
	if (r.failed)
		return err_set(e, E_INVALID, "request of %zu bytes", message.len);
	out->kind = (enum broker_kind)kind;
	switch (kind) {
	case BROKER_OPEN:
	case BROKER_LINK:
		return parse_path(&r, out, e);
	case BROKER_CGROUP:
		out->cgroup_id = reader_u64(&r);
		break;
	case BROKER_PERF_EVENT:
		out->cpu = reader_u32(&r);
		out->frequency_hz = reader_u32(&r);
		if (out->frequency_hz > BROKER_FREQUENCY_MAX_HZ)
			return err_set(e, E_INVALID, "request %u: %u samples a second", out->number,
				out->frequency_hz);
		break;
	case BROKER_SLAB:
		break;
	case BROKER_HOLD:
		out->below_is_disk = reader_u32(&r) != 0;
		return parse_path(&r, out, e);
	case BROKER_READ:
		out->handle = reader_u32(&r);
		out->len = reader_u32(&r);
		out->offset = reader_u64(&r);
		if (out->len == 0 || out->len > BROKER_READ_BYTES_MAX || out->offset > INT64_MAX)
			return err_set(e, E_INVALID, "request %u: %u bytes at +%llu", out->number,
				out->len, (unsigned long long)out->offset);
		break;
	case BROKER_DROP:
		out->handle = reader_u32(&r);
		break;
	case BROKER_JIT_LIST:
	case BROKER_CONTEXT:
		out->pid = reader_u32(&r);
		out->address = reader_u64(&r);
		if (out->pid == 0 || out->pid > INT32_MAX)
			return err_set(e, E_INVALID, "request %u: pid %u", out->number, out->pid);
		break;
	case BROKER_JIT_READ:
		out->pid = reader_u32(&r);
		out->len = reader_u32(&r);
		out->address = reader_u64(&r);
		out->offset = reader_u64(&r);
		out->descriptor = reader_u64(&r);
		if (out->pid == 0 || out->pid > INT32_MAX || out->len == 0 ||
			out->len > BROKER_READ_BYTES_MAX || out->offset > INT64_MAX)
			return err_set(e, E_INVALID, "request %u: pid %u, %u bytes at +%llu",
				out->number, out->pid, out->len, (unsigned long long)out->offset);
		break;
	case BROKER_DOTNET_FIND:
		out->pid = reader_u32(&r);
		out->version = reader_u32(&r);
		out->descriptor = reader_u64(&r);
		out->address = reader_u64(&r);
		if (out->pid == 0 || out->pid > INT32_MAX)
			return err_set(e, E_INVALID, "request %u: pid %u", out->number, out->pid);
		break;
	case BROKER_DOTNET_READ:
		out->pid = reader_u32(&r);
		out->len = reader_u32(&r);
		out->address = reader_u64(&r);
		out->offset = reader_u64(&r);
		if (out->pid == 0 || out->pid > INT32_MAX || out->len == 0 ||
			out->len > BROKER_READ_BYTES_MAX || out->offset > INT64_MAX)
			return err_set(e, E_INVALID, "request %u: pid %u, %u bytes at +%llu",
				out->number, out->pid, out->len, (unsigned long long)out->offset);
		break;
	default:
		return err_set(e, E_INVALID, "request %u: kind %u", out->number, kind);
	}
	if (r.failed || reader_left(&r))
		return err_set(e, E_INVALID, "request %u of kind %u: %zu bytes", out->number, kind,
			message.len);
	return OK;
}
