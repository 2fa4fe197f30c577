/* SPDX-License-Identifier: Apache-2.0 */
/* The table of names, and the response message. */
#include "otlp/otlp.h"

#include "otlp/names.h"
#include "pb/pb.h"

/* clang-format off */
static const struct {
	struct str attribute;
	struct str label;
} names[] = {
#define NAME(attribute, label) { { attribute, sizeof(attribute) - 1 }, { label, sizeof(label) - 1 } }
	NAME("host.name",               "node"),
	NAME("process.pid",             "pid"),
	NAME("process.executable.name", "executable"),
	NAME("thread.id",               "thread_id"),
	NAME("thread.name",             "thread_name"),
	NAME("cpu.logical_number",      "cpu"),
	NAME("container.id",            "container_id"),
	NAME("container.name",          "container"),
	NAME("k8s.namespace.name",      "namespace"),
	NAME("k8s.pod.name",            "pod"),
	NAME("service.name",            "service_name"),
	NAME("service.namespace",       "service_namespace"),
	NAME("service.version",         "service_version"),
#undef NAME
};
/* clang-format on */

struct str otlp_label_of_attribute(struct str key)
{
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(names[i].attribute, key))
			return names[i].label;
	return key;
}

struct str otlp_attribute_of_label(struct str label)
{
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(names[i].label, label))
			return names[i].attribute;
	return label;
}

struct str otlp_attribute_of_own_label(struct str label)
{
	return str_eq(label, STR("cpu")) ? label : otlp_attribute_of_label(label);
}

bool otlp_attribute_gives_label(struct str attribute, struct str label)
{
	if (attribute.len != label.len)
		return false;
	for (size_t i = 0; i < label.len; i++)
		if ((attribute.p[i] == '.' ? '_' : attribute.p[i]) != label.p[i])
			return false;
	return true;
}

void otlp_encode_response(const struct otlp_rejects *rejects, struct buf *out)
{
	if (!rejects->profiles && !rejects->reason[0])
		return;
	size_t partial = pb_begin(out, 1);
	pb_put_i64(out, 1, rejects->profiles);
	pb_put_str(out, 2, str_of(rejects->reason));
	pb_end(out, partial);
}

enum status otlp_decode_response(struct str message, struct otlp_rejects *out, struct err *e)
{
	struct otlp_rejects got = { 0 };
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f, g;
	while (pb_next(&r, &f)) {
		if (f.number != 1 || f.wire != PB_BYTES)
			continue;
		struct reader partial = pb_message(&f);
		while (pb_next(&partial, &g)) {
			if (FIELD(g.number, g.wire) == FIELD(1, PB_VARINT)) {
				got.profiles = (int64_t)g.u64;
			} else if (FIELD(g.number, g.wire) == FIELD(2, PB_BYTES)) {
				size_t n = MIN(g.bytes.len, sizeof(got.reason) - 1);
				memcpy(got.reason, g.bytes.p, n);
				got.reason[n] = 0;
			}
		}
		if (partial.failed)
			return err_set(e, E_INVALID, "partial_success: malformed");
	}
	if (r.failed)
		return err_set(e, E_INVALID, "ExportProfilesServiceResponse: malformed at byte %zu",
			reader_offset(&r));
	*out = got;
	return OK;
}
