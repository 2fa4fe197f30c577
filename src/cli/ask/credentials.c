/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the Authorization header of the credentials that were given. */
#include "cli/ask/credentials.h"

#include <stdio.h>
#include <string.h>

#include "http/http.h"
#include "os/os.h"

#define VALUE_MAX 4096

static bool is_given(const char *text)
{
	return text && text[0];
}

static enum status token_of(const struct cli_credentials *c, struct buf *value, struct err *e)
{
	CLEANUP(buf_deinit) struct buf file;
	struct str token = str_of(c->token);
	buf_init(&file, VALUE_MAX);
	if (is_given(c->token_file)) {
		enum status s = os_read_file(c->token_file, &file, e);
		if (s != OK)
			return err_prefix(e, E_INVALID, "--bearer-token-file");
		token = str_trim(buf_view(&file));
	}
	buf_cstr(value, "Bearer ");
	buf_str(value, token);
	return OK;
}

static enum status set(struct fetch *f, const struct cli_credentials *c, struct err *e)
{
	CLEANUP(buf_deinit) struct buf value;
	int count = is_given(c->token) + is_given(c->token_file) + is_given(c->basic);
	enum status s = OK;
	buf_init(&value, 2 * VALUE_MAX);
	if (count == 0)
		return OK;
	if (count > 1)
		return err_set(e, E_INVALID,
			"--bearer-token, --bearer-token-file and --basic-auth: one of them is "
			"enough");
	if (is_given(c->basic) && !strchr(c->basic, ':'))
		return err_set(e, E_INVALID, "--basic-auth: expected NAME:PASSWORD");
	if (is_given(c->basic)) {
		buf_cstr(&value, "Basic ");
		http_base64_encode(&value, str_of(c->basic));
	} else {
		s = token_of(c, &value, e);
	}
	buf_u8(&value, 0);
	if (s == OK && buf_status(&value) != OK)
		s = err_set(e, E_INVALID, "the password or token is too long");
	return s == OK ? fetch_header(f, "authorization", (const char *)value.data, e) : s;
}

enum status cli_fetch_new(
	const char *server, const struct cli_credentials *c, struct fetch **out, struct err *e)
{
	struct fetch *f = NULL;
	enum status s = fetch_new(&(struct fetch_config){ .address = server }, &f, e);
	if (s == OK && c)
		s = set(f, c, e);
	if (s != OK) {
		fetch_free(f);
		return s;
	}
	*out = f;
	return OK;
}
