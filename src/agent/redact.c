/* SPDX-License-Identifier: Apache-2.0 */
/* Better one value too many than a secret in a label: names are searched for parts of words. */
#include "agent/redact.h"

#define REDACTED "[redacted]"

static const char *const words[] = { "password", "passwd", "passphrase", "secret", "token",
	"credential", "apikey", "api-key", "api_key", "access-key", "access_key", "private-key",
	"private_key", "authorization" };

static bool is_secret_name(struct str name)
{
	for (size_t w = 0; w < ARRAY_COUNT(words); w++) {
		struct str word = str_of(words[w]);
		for (size_t i = 0; i + word.len <= name.len; i++)
			if (str_eq_nocase(str_sub(name, i, word.len), word))
				return true;
	}
	return false;
}

/* Where the value begins in name=value or name:value; len when there is none. */
static size_t value_of(struct str argument)
{
	size_t equals = str_index(argument, '='), colon = str_index(argument, ':');
	return MIN(MIN(equals, colon) + 1, argument.len);
}

/* "scheme://user:password@": begin and end of the password; false: none. */
static bool url_password(struct str s, size_t *begin, size_t *end)
{
	for (size_t i = 0; i + 3 < s.len; i++) {
		if (!str_eq(str_sub(s, i, 3), STR("://")))
			continue;
		struct str rest = str_sub(s, i + 3, s.len);
		size_t authority = MIN(str_index(rest, '/'), str_index(rest, ' '));
		size_t at = str_rindex(str_sub(rest, 0, authority), '@');
		size_t colon = str_index(str_sub(rest, 0, at), ':');
		if (at == authority || colon == at)
			continue;
		*begin = i + 3 + colon + 1;
		*end = i + 3 + at;
		return true;
	}
	return false;
}

static void write_argument(struct str argument, struct buf *out)
{
	size_t value = value_of(argument), begin, end;
	if (value < argument.len && is_secret_name(str_sub(argument, 0, value - 1))) {
		buf_str(out, str_sub(argument, 0, value));
		buf_cstr(out, REDACTED);
	} else if (url_password(argument, &begin, &end)) {
		buf_str(out, str_sub(argument, 0, begin));
		buf_cstr(out, REDACTED);
		buf_str(out, str_sub(argument, end, argument.len));
	} else {
		buf_str(out, argument);
	}
}

/* A flag that stands alone, with its value in the next argument. */
static bool announces_secret(struct str argument)
{
	return str_starts(argument, STR("-")) && value_of(argument) == argument.len &&
	       is_secret_name(argument);
}

void redact_command_line(struct str arguments, struct buf *out)
{
	struct str argument;
	bool first = true, secret = false;
	while (str_split(&arguments, 0, &argument)) {
		if (!first)
			buf_u8(out, ' ');
		first = false;
		if (secret && !str_starts(argument, STR("-")))
			buf_cstr(out, REDACTED);
		else
			write_argument(argument, out);
		secret = announces_secret(argument);
	}
}
