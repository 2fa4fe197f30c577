/* SPDX-License-Identifier: Apache-2.0 */
/* Property: no bytes are a token that anybody signed. The first line is the token, the rest a set
 * of keys and a web-config file. */
#include "fuzz/fuzz.h"

#include "auth/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct auth_issuer issuer = { .issuer = "i", .audience = "a" };
	struct str rest = str_make(data, size), token;
	struct auth_keys keys = { 0 };
	struct auth_config *config = NULL;
	struct auth_caller caller;
	int64_t until;
	struct err e = { 0 };
	if (!str_split(&rest, '\n', &token))
		return 0;
	enum status s = auth_keys_parse(rest, &keys, &e);
	FUZZ_CHECK(s != OK || (keys.v.len > 0 && keys.v.len <= AUTH_KEYS_MAX));
	FUZZ_CHECK(auth_jwt_check(&issuer, &keys, token, 0, &caller, &until, &e) != OK);
	auth_keys_free(&keys);
	if (auth_config_read(rest, "/nowhere/web.yml", &config, &e) == OK)
		auth_config_unref(config);
	return 0;
}
