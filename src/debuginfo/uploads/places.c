/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an upload lies: a folder for each build id, in it a record and files for each type and
 * tenant. Names are written so that no build id and no tenant can name anything else.
 */
#include "debuginfo/uploads/internal.h"

#include <stdio.h>

static bool is_hex(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!((s.p[i] >= '0' && s.p[i] <= '9') ||
			    ((s.p[i] | 32) >= 'a' && (s.p[i] | 32) <= 'f')))
			return false;
	return true;
}

static enum status check_id(struct str id, struct err *e)
{
	if (id.len < DEBUGINFO_ID_MIN)
		return err_set(e, E_INVALID, "unexpectedly short input");
	if (id.len > DEBUGINFO_ID_MAX)
		return err_set(e, E_INVALID, "build_id: %zu bytes, %d are the limit", id.len,
			DEBUGINFO_ID_MAX);
	for (size_t i = 0; i < id.len; i++)
		if (id.p[i] <= ' ' || id.p[i] > '~')
			return err_set(e, E_INVALID, "build_id: byte 0x%02x at +%zu",
				(unsigned char)id.p[i], i);
	return OK;
}

enum status debuginfo_place_of(const struct debuginfo_uploads *u, const struct debuginfo_key *key,
	struct debuginfo_place *out, struct err *e)
{
	char lower[DEBUGINFO_ID_MAX];
	enum status s = check_id(key->build_id, e);
	if (s != OK)
		return s;
	if ((unsigned)key->type >= DEBUGINFO_TYPES)
		return err_set(e, E_INVALID, "type: %d is not known", (int)key->type);
	if (key->tenant.len > DEBUGINFO_TENANT_MAX)
		return err_set(e, E_INVALID, "tenant: more than %d bytes", DEBUGINFO_TENANT_MAX);
	bool hex = is_hex(key->build_id);
	for (size_t i = 0; i < key->build_id.len; i++)
		lower[i] = (char)(key->build_id.p[i] | (hex ? 32 : 0));
	CLEANUP(buf_deinit) struct buf name;
	buf_init(&name, DEBUGINFO_NAME_MAX);
	debuginfo_put_name(&name, str_make(lower, key->build_id.len));
	if (name.failed)
		return err_set(e, E_INVALID, "build_id: too long for a file's name");
	if (snprintf(out->dir, sizeof(out->dir), "%s/%.*s", u->config.dir,
		    STR_ARG(buf_view(&name))) >= (int)sizeof(out->dir))
		return err_set(e, E_INVALID, "the storage path is too long");
	buf_clear(&name);
	name.max = DEBUGINFO_NAME_MAX - DEBUGINFO_UPLOAD_ID_LEN - strlen("..part");
	buf_cstr(&name, debuginfo_type_name(key->type));
	if (key->tenant.len)
		buf_u8(&name, '@');
	debuginfo_put_name(&name, key->tenant);
	if (name.failed)
		return err_set(e, E_INVALID, "tenant: too long for a file's name");
	snprintf(out->base, sizeof(out->base), "%.*s", STR_ARG(buf_view(&name)));
	return OK;
}

struct debuginfo_key debuginfo_key_of(const struct debuginfo_record *r)
{
	return (struct debuginfo_key){ str_of(r->build_id), str_of(r->tenant), r->type };
}

void debuginfo_path(const struct debuginfo_place *p, const char *suffix, bool part,
	char out[DEBUGINFO_PATH_BYTES])
{
	snprintf(out, DEBUGINFO_PATH_BYTES, "%s/%s.%s%s", p->dir, p->base, suffix,
		part ? ".part" : "");
}

void debuginfo_copy_text(char *out, size_t size, struct str s)
{
	size_t n = MIN(s.len, size - 1);
	memcpy(out, s.p ? s.p : "", n);
	out[n] = 0;
}

void debuginfo_record_begin(const struct debuginfo_key *key, struct debuginfo_record *out)
{
	*out = (struct debuginfo_record){ .type = key->type };
	debuginfo_copy_text(out->build_id, sizeof(out->build_id), key->build_id);
	debuginfo_copy_text(out->tenant, sizeof(out->tenant), key->tenant);
	if (is_hex(key->build_id))
		for (char *c = out->build_id; *c; c++)
			*c = (char)(*c | 32);
}

enum status debuginfo_record_write(
	struct debuginfo_uploads *u, const struct debuginfo_record *r, struct err *e)
{
	struct debuginfo_place place;
	struct debuginfo_key key = debuginfo_key_of(r);
	char path[DEBUGINFO_PATH_BYTES];
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, DEBUGINFO_RECORD_BYTES_MAX);
	enum status s = debuginfo_place_of(u, &key, &place, e);
	if (s != OK)
		return s;
	debuginfo_record_encode(r, &bytes);
	if (buf_status(&bytes) != OK)
		return err_set(e, buf_status(&bytes), "record of build id %s", r->build_id);
	debuginfo_path(&place, "record", false, path);
	return os_replace_file(path, bytes.data, bytes.len, 0640, e);
}

bool debuginfo_upload_is_stale(
	const struct debuginfo_uploads *u, const struct debuginfo_record *r, int64_t now_ns)
{
	return r->state == DEBUGINFO_BROKEN ||
	       (r->state == DEBUGINFO_UPLOADING && now_ns - r->started_ns > u->config.stale_ns);
}
