/* SPDX-License-Identifier: Apache-2.0 */
/* Better one value too many than a secret in a label: names are searched for parts of words; short
 * ones only for their last word, as "bypass" and "author" are no secrets. Some secrets need no
 * name: tokens that begin as their issuer has them begin, so that such as this one finds them. */
#include "agent/process/redact.h"

#define REDACTED "[redacted]"

static const char *const words[] = { "password", "passwd", "passphrase", "secret", "token",
	"credential", "apikey", "api-key", "api_key", "access-key", "access_key", "private-key",
	"private_key", "authorization", "cookie", "pwd", "jwt", "accountkey", "accesskey",
	"sharedaccess", "sessionid", "session-id", "session_id", "signature" };
static const char *const last_words[] = { "pass", "auth", "pw", "pin", "sig" };
/* GitHub, GitLab, Slack, Stripe, Vault, npm, PyPI, DigitalOcean; a JSON Web Token's {" in base64.
 */
static const char *const tokens[] = { "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
	"glpat-", "xoxb-", "xoxp-", "xapp-", "sk_live_", "rk_live_", "hvs.", "npm_", "pypi-",
	"dop_v1_", "eyJ" };
#define TOKEN_BYTES_MIN 20

/* "db" and "pass" are the words of "--db-pass". */
static bool ends_in_word(struct str name, struct str word)
{
	if (name.len < word.len ||
		!str_eq_nocase(str_sub(name, name.len - word.len, word.len), word))
		return false;
	uint8_t before = name.len > word.len ? (uint8_t)name.p[name.len - word.len - 1] : '-';
	return before == '-' || before == '_' || before == '.';
}

static bool is_secret_name(struct str name)
{
	for (size_t w = 0; w < ARRAY_COUNT(words); w++) {
		struct str word = str_of(words[w]);
		for (size_t i = 0; i + word.len <= name.len; i++)
			if (str_eq_nocase(str_sub(name, i, word.len), word))
				return true;
	}
	for (size_t w = 0; w < ARRAY_COUNT(last_words); w++)
		if (ends_in_word(name, str_of(last_words[w])))
			return true;
	return false;
}

static bool is_of_name(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' ||
	       c == '-' || c == '.';
}

/* The word that ends before `at`; a quote between them counts for nothing. */
static struct str name_before(struct str s, size_t at)
{
	if (at > 0 && (s.p[at - 1] == '"' || s.p[at - 1] == '\''))
		at--;
	size_t begin = at;
	while (begin > 0 && is_of_name((uint8_t)s.p[begin - 1]))
		begin--;
	return str_sub(s, begin, at - begin);
}

/* Where the first value begins that is a secret by its name; len: nowhere. */
static size_t secret_value(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((s.p[i] == '=' || s.p[i] == ':') && is_secret_name(name_before(s, i)))
			return i + 1;
	return s.len;
}

static bool is_number(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return true;
}

/* Of a URL behind its "://": the secret in "user:password@", or in "token@" over TLS. A password
 * may have a slash: then what stands before it is no port. False: there is none. */
static bool url_secret(struct str rest, bool is_tls, size_t *begin, size_t *end)
{
	struct str word = str_sub(rest, 0, str_index(rest, ' '));
	struct str authority = str_sub(word, 0, str_index(word, '/'));
	size_t at = str_rindex(authority, '@');
	size_t colon = str_index(str_sub(authority, 0, at), ':');
	if (at == authority.len && colon < authority.len &&
		!is_number(str_sub(authority, colon + 1, authority.len)))
		at = str_rindex(word, '@');
	if (at == authority.len || at == word.len || (colon >= at && !is_tls))
		return false;
	*begin = colon < at ? colon + 1 : 0;
	*end = at;
	return *begin < *end;
}

/* Of Go's "user:password@tcp(host)" with its '@' at `at`: where the password begins; `at`: there is
 * none. */
static size_t dsn_secret(struct str s, size_t from, size_t at)
{
	size_t i = at + 1;
	while (i < s.len && (is_of_name((uint8_t)s.p[i])))
		i++;
	if (i == at + 1 || i == s.len || s.p[i] != '(')
		return at;
	struct str before = str_sub(s, from, at - from);
	size_t blank = str_rindex(before, ' ');
	size_t word = blank < before.len ? blank + 1 : 0;
	size_t colon = word + str_index(str_sub(before, word, before.len), ':');
	return colon < before.len ? from + colon + 1 : at;
}

/* How long the token is that a word at the beginning of `s` is; 0: it is none. */
static size_t token_at(struct str s)
{
	size_t len = 0;
	while (len < s.len && is_of_name((uint8_t)s.p[len]))
		len++;
	if (len < TOKEN_BYTES_MIN)
		return 0;
	for (size_t i = 0; i < ARRAY_COUNT(tokens); i++)
		if (str_starts(s, str_of(tokens[i])))
			return len;
	return 0;
}

static void write_without_tokens(struct str s, struct buf *out)
{
	size_t done = 0;
	for (size_t i = 0; i < s.len; i++) {
		bool begins = i == 0 || !is_of_name((uint8_t)s.p[i - 1]);
		size_t len = begins ? token_at(str_sub(s, i, s.len)) : 0;
		if (len == 0)
			continue;
		buf_str(out, str_sub(s, done, i - done));
		buf_cstr(out, REDACTED);
		done = i + len;
		i = done - 1;
	}
	buf_str(out, str_sub(s, done, s.len));
}

static void write_without_url_secrets(struct str s, struct buf *out)
{
	size_t done = 0;
	for (size_t i = 0; i < s.len; i++) {
		size_t begin, end;
		if (s.p[i] == '@') {
			size_t password = dsn_secret(s, done, i);
			if (password == i)
				continue;
			write_without_tokens(str_sub(s, done, password - done), out);
			buf_cstr(out, REDACTED);
			done = i;
		}
		if (!str_eq(str_sub(s, i, 3), STR("://")) ||
			!url_secret(str_sub(s, i + 3, s.len),
				str_ends(str_sub(s, 0, i), STR("https")), &begin, &end))
			continue;
		write_without_tokens(str_sub(s, done, i + 3 + begin - done), out);
		buf_cstr(out, REDACTED);
		done = i + 3 + end;
		i = done - 1;
	}
	write_without_tokens(str_sub(s, done, s.len), out);
}

/* The shell's working directory: "pwd" stands for a password in all other names. */
static bool is_directory(struct str argument)
{
	return (str_starts(argument, STR("PWD=/")) || str_starts(argument, STR("OLDPWD=/"))) &&
	       str_index(argument, ';') == argument.len;
}

/* From a secret on to the end: its end is not known. */
static void write_argument(struct str argument, struct buf *out)
{
	size_t value = is_directory(argument) ? argument.len : secret_value(argument);
	write_without_url_secrets(str_sub(argument, 0, value), out);
	if (value < argument.len)
		buf_cstr(out, REDACTED);
}

/* A flag that stands alone, with its value in the next argument. */
static bool announces_secret(struct str argument)
{
	return str_starts(argument, STR("-")) && str_index(argument, '=') == argument.len &&
	       str_index(argument, ':') == argument.len && is_secret_name(argument);
}

/* curl's and others' -u, with "user:password" in the next argument. */
static bool announces_user(struct str argument)
{
	return str_eq(argument, STR("-u")) ||
	       (str_starts(argument, STR("--")) && str_ends(argument, STR("user")));
}

/* Not "1000:1000", which is a user and a group. */
static void write_user(struct str argument, struct buf *out)
{
	size_t colon = str_index(argument, ':');
	struct str rest = str_sub(argument, MIN(colon + 1, argument.len), argument.len);
	if (is_number(rest) || str_starts(rest, STR("//"))) {
		write_argument(argument, out);
		return;
	}
	write_argument(str_sub(argument, 0, colon + 1), out);
	buf_cstr(out, REDACTED);
}

/* Programs that take a password as "-psecret". */
static bool takes_password_by_p(struct str program)
{
	size_t slash = str_rindex(program, '/');
	struct str name = slash < program.len ? str_sub(program, slash + 1, program.len) : program;
	return str_starts(name, STR("mysql")) || str_starts(name, STR("mariadb")) ||
	       str_eq(name, STR("sshpass"));
}

void redact_command_line(struct str arguments, struct buf *out)
{
	struct str argument;
	bool first = true, secret = false, user = false, by_p = false;
	while (str_split(&arguments, 0, &argument)) {
		if (!first)
			buf_u8(out, ' ');
		bool is_p = by_p && str_starts(argument, STR("-p"));
		by_p = by_p || (first && takes_password_by_p(argument));
		first = false;
		if (secret && !str_starts(argument, STR("--")))
			buf_cstr(out, REDACTED);
		else if (is_p && argument.len > 2)
			buf_cstr(out, "-p" REDACTED);
		else if (user)
			write_user(argument, out);
		else
			write_argument(argument, out);
		secret = announces_secret(argument) || (is_p && argument.len == 2);
		user = announces_user(argument);
	}
}
