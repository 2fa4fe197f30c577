/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers are decoded field by field. A signed address is split and put together again, so that
 * only a plain host and a printable target are used.
 */
#include "upload/wire.h"

#include "pb/pb.h"

#include <inttypes.h>
#include <stdio.h>

#define STRATEGY_GRPC 1
#define STRATEGY_SIGNED_URL 2
#define HOST_LEN_MAX 255

/* Agents of Parca compare this text exactly. */
#define IN_PROGRESS                                                                            \
	"A previous upload is still in-progress and not stale yet (only stale uploads can be " \
	"retried)."

static enum status torn(const char *method, struct err *e)
{
	return err_set(e, E_IO, "%s: the server's answer is malformed", method);
}

/* { should_initiate_upload = 1; reason = 2 } */
enum status upload_answer_decode(struct str message, struct upload_answer *out, struct err *e)
{
	struct reader r = reader_over(message.p, message.len);
	struct str reason = STR("");
	struct pb_field f;
	bool wanted = false;
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == PB_VARINT)
			wanted = f.u64 != 0;
		else if (f.number == 2 && f.wire == PB_BYTES)
			reason = f.bytes;
	}
	if (r.failed)
		return torn("ShouldInitiateUpload", e);
	out->wanted = wanted;
	out->in_progress = !wanted && str_eq(reason, STR(IN_PROGRESS));
	snprintf(out->reason, sizeof(out->reason), "%.*s", STR_ARG(reason));
	return OK;
}

static bool is_text(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] == 0)
			return false;
	return true;
}

/* UploadInstructions { build_id = 1; upload_id = 2; upload_strategy = 3; signed_url = 4; type = 5 }
 */
static enum status take_instructions(struct str bytes, struct upload_ticket *out, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	uint64_t strategy = 0;
	struct str id = STR(""), url = STR("");
	while (pb_next(&r, &f)) {
		if (f.number == 2 && f.wire == PB_BYTES)
			id = f.bytes;
		else if (f.number == 3 && f.wire == PB_VARINT)
			strategy = f.u64;
		else if (f.number == 4 && f.wire == PB_BYTES)
			url = f.bytes;
	}
	if (r.failed || id.len == 0 || id.len >= sizeof(out->id) || !is_text(id))
		return torn("InitiateUpload", e);
	if (strategy != STRATEGY_GRPC && strategy != STRATEGY_SIGNED_URL)
		return err_set(
			e, E_UNSUPPORTED, "upload strategy %" PRIu64 " is not known", strategy);
	if (strategy == STRATEGY_GRPC)
		url = STR("");
	else if (url.len == 0 || !is_text(url))
		return torn("InitiateUpload", e);
	if (url.len > UPLOAD_URL_MAX)
		return err_set(e, E_LIMIT, "a signed address of %zu bytes; at most %d", url.len,
			UPLOAD_URL_MAX);
	snprintf(out->id, sizeof(out->id), "%.*s", STR_ARG(id));
	snprintf(out->url, sizeof(out->url), "%.*s", STR_ARG(url));
	return OK;
}

/* { upload_instructions = 1 } */
enum status upload_ticket_decode(struct str message, struct upload_ticket *out, struct err *e)
{
	struct reader r = reader_over(message.p, message.len);
	struct str instructions = STR("");
	bool there = false;
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == 1 && f.wire == PB_BYTES) {
			instructions = f.bytes;
			there = true;
		}
	return r.failed || !there ? torn("InitiateUpload", e)
				  : take_instructions(instructions, out, e);
}

/* Whether the host has a port; a colon within an IPv6 address begins none. */
static bool has_port(struct str host)
{
	size_t colon = str_rindex(host, ':');
	return colon < host.len && !(host.len && host.p[host.len - 1] == ']');
}

/* Whether the text is a host name, or an IPv6 address in brackets. */
static bool is_name(struct str name)
{
	bool bracketed = name.len > 2 && name.p[0] == '[' && name.p[name.len - 1] == ']';
	if (bracketed)
		name = str_sub(name, 1, name.len - 2);
	for (size_t i = 0; i < name.len; i++)
		if (strchr("[]", name.p[i]) || (name.p[i] == ':' && !bracketed))
			return false;
	return name.len > 0 && name.len <= HOST_LEN_MAX;
}

static bool is_host(struct str host)
{
	struct str port = STR("1");
	for (size_t i = 0; i < host.len; i++)
		if (host.p[i] <= ' ' || host.p[i] > '~' || host.p[i] == '@')
			return false;
	if (has_port(host)) {
		size_t colon = str_rindex(host, ':');
		port = str_sub(host, colon + 1, host.len);
		host = str_sub(host, 0, colon);
	}
	uint64_t number;
	return is_name(host) && port.len <= 5 && str_parse_u64(port, 10, &number) && number > 0 &&
	       number <= UINT16_MAX;
}

enum status upload_url_parse(
	const char *url, bool clear_text, struct upload_url *out, struct err *e)
{
	struct str rest = str_of(url);
	bool secure = str_starts(rest, STR("https://"));
	if (!secure && !str_starts(rest, STR("http://")))
		return err_set(e, E_UNSUPPORTED, "a signed address that is not one of HTTP");
	if (!secure && !clear_text)
		return err_set(e, E_UNSUPPORTED,
			"a signed address without TLS, from a server with TLS, is not used");
	rest = str_sub(rest, secure ? 8 : 7, rest.len);
	size_t end = 0;
	while (end < rest.len && !strchr("/?#", rest.p[end]))
		end++;
	struct str host = str_sub(rest, 0, end), target = str_sub(rest, end, rest.len);
	target = str_sub(target, 0, str_index(target, '#'));
	if (!is_host(host))
		return err_set(e, E_INVALID, "a signed address without a plain host");
	for (size_t i = 0; i < target.len; i++)
		if (target.p[i] <= ' ' || target.p[i] > '~')
			return err_set(e, E_INVALID, "a signed address with a byte that is none");
	snprintf(out->server, sizeof(out->server), "%s%.*s%s", secure ? "https://" : "http://",
		STR_ARG(host),
		has_port(host) ? ""
		: secure       ? ":443"
			       : ":80");
	snprintf(out->target, sizeof(out->target), "%s%.*s",
		target.len && target.p[0] == '/' ? "" : "/", STR_ARG(target));
	return OK;
}
