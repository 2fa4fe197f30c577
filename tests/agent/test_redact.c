/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/redact.h"
#include "test.h"

/* '|' stands for the NUL between arguments. */
static const struct line_case {
	const char *name;
	const char *in;
	const char *out;
} cases[] = {
	{ "nothing", "", "" },
	{ "plain", "ls|-l|/tmp|", "ls -l /tmp" },
	{ "with =", "x|--db-password=hunter2|-v|", "x --db-password=[redacted] -v" },
	{ "apart", "x|--api-key|hunter2|-v|", "x --api-key [redacted] -v" },
	{ "flag without a value", "x|--use-token|--verbose|", "x --use-token --verbose" },
	{ "any case", "x|-DSecretValue=1|", "x -DSecretValue=[redacted]" },
	{ "variable", "env|GITHUB_TOKEN=abc|make|", "env GITHUB_TOKEN=[redacted] make" },
	{ "header", "curl|-H|Authorization: Bearer abc|", "curl -H Authorization:[redacted]" },
	{ "URL", "psql|postgres://joe:hunter2@db/x|", "psql postgres://joe:[redacted]@db/x" },
	{ "URL with @ in the password", "x|http://a:b@c@d/e@f|", "x http://a:[redacted]@d/e@f" },
	{ "URL without a password", "x|http://joe@db:80/|", "x http://joe@db:80/" },
	{ "URL in a flag", "x|--url=amqp://u:p@h|", "x --url=amqp://u:[redacted]@h" },
	{ "second name", "psql|host=db user=joe password=hunter2 port=1|",
		"psql host=db user=joe password=[redacted]" },
	{ "header in a flag", "curl|--header=Authorization: Bearer hunter2|",
		"curl --header=Authorization:[redacted]" },
	{ "variable in a flag", "docker|run|--env=DB_PASSWORD=hunter2|img|",
		"docker run --env=DB_PASSWORD=[redacted] img" },
	{ "script", "sh|-c|FOO=1 PGPASSWORD=hunter2 psql|", "sh -c FOO=1 PGPASSWORD=[redacted]" },
	{ "query of a URL", "x|-Du=jdbc:pg://h/db?user=joe&password=hunter2|",
		"x -Du=jdbc:pg://h/db?user=joe&password=[redacted]" },
	{ "path of a name", "helm|--set=auth.password=hunter2|",
		"helm --set=auth.password=[redacted]" },
	{ "JSON", "x|--config={\"password\":\"hunter2\"}|", "x --config={\"password\":[redacted]" },
	{ "value that looks like a flag", "x|--password|-hunter2|", "x --password [redacted]" },
	{ "two URLs", "x|redis://a:x@h,redis://b:hunter2@h|",
		"x redis://a:[redacted]@h,redis://b:[redacted]@h" },
	{ "URL behind a path", "x|http://a/http://u:p/hunter2@h/|",
		"x http://a/http://u:[redacted]@h/" },
	{ "URL with a token", "git|clone|https://hunter2@github.com/x|",
		"git clone https://[redacted]@github.com/x" },
	{ "URL with a port", "x|http://db:80/a@b|", "x http://db:80/a@b" },
	{ "URL without anything", "x|://|http://|http://@|https://@h|",
		"x :// http:// http://@ https://@h" },
	{ "MySQL's variable", "docker|run|-e|MYSQL_PWD=hunter2|img|",
		"docker run -e MYSQL_PWD=[redacted] img" },
	{ "pass", "x|--pass|hunter2|--db-pass=hunter2|-v|",
		"x --pass [redacted] --db-pass=[redacted] -v" },
	{ "of openssl", "openssl|-passin|pass:hunter2|", "openssl -passin pass:[redacted]" },
	{ "auth, jwt, pw", "x|--auth|hunter2|--jwt=a.b.c|REDIS_AUTH=hunter2|--pw=hunter2|",
		"x --auth [redacted] --jwt=[redacted] REDIS_AUTH=[redacted] --pw=[redacted]" },
	{ "other words with these letters", "x|--author=joe|--bypass=1|--compass|n|--passes=2|",
		"x --author=joe --bypass=1 --compass n --passes=2" },
	{ "account's key", "x|--c=AccountName=joe;AccountKey=hunter2==;EndpointSuffix=y|",
		"x --c=AccountName=joe;AccountKey=[redacted]" },
	{ "shared key", "x|Endpoint=sb://h/;SharedAccessKeyName=joe;SharedAccessKey=hunter2|",
		"x Endpoint=sb://h/;SharedAccessKeyName=[redacted]" },
	{ "shared signature", "x|SharedAccessSignature=sr=1&sig=hunter2|",
		"x SharedAccessSignature=[redacted]" },
	{ "database of Go", "x|--dsn=joe:hunter2@tcp(h:3306)/db?x=y|",
		"x --dsn=joe:[redacted]@tcp(h:3306)/db?x=y" },
	{ "the same alone", "x|joe:hun@ter:2@unix(/run/s)/db|",
		"x joe:[redacted]@unix(/run/s)/db" },
	{ "two of them", "x|a:x1@tcp(h)/d b:x2@tcp(h)/e|",
		"x a:[redacted]@tcp(h)/d b:[redacted]@tcp(h)/e" },
	{ "as a URL", "x|mysql://joe:hunter2@tcp(h)/db|", "x mysql://joe:[redacted]@tcp(h)/db" },
	{ "without a password", "x|joe@tcp(h:3306)/db|a:b@h|x:@(|@tcp(|@|",
		"x joe@tcp(h:3306)/db a:b@h x:@( @tcp( @" },
	{ "folders", "env|PWD=/home/joe|OLDPWD=/|PGPWD=/x|PWD=x|",
		"env PWD=/home/joe OLDPWD=/ PGPWD=[redacted] PWD=[redacted]" },
	{ "of ODBC", "x|DRIVER=y;UID=joe;PWD=/hunter2|PWD=/hunter2;UID=joe|",
		"x DRIVER=y;UID=joe;PWD=[redacted] PWD=[redacted]" },
	{ "of curl", "curl|-u|joe:hunter2|--proxy-user|joe:hunter:2|-u|joe|-u|http://h|",
		"curl -u joe:[redacted] --proxy-user joe:[redacted] -u joe -u http://h" },
	{ "user and group", "docker|run|-u|1000:1000|img|", "docker run -u 1000:1000 img" },
	{ "of mysql", "/usr/bin/mysqldump|-ujoe|-phunter2|-p|--port|1|",
		"/usr/bin/mysqldump -ujoe -p[redacted] -p --port 1" },
	{ "of ssh", "sshpass|-p|hunter2|ssh|-p|22|h|",
		"sshpass -p [redacted] ssh -p [redacted] h" },
	{ "not of others", "ssh|-p22|mysql|", "ssh -p22 mysql" },
	{ "tokens",
		"x|ghp_0123456789abcdef0123|a=glpat-0123456789abcdef;b|https://h/"
		"?x=eyJhbGciOiJIUzI1NiJ9.e30.abc|",
		"x [redacted] a=[redacted];b https://h/?x=[redacted]" },
	{ "no tokens", "x|ghp_short|myghp_0123456789abcdef0123|eyJ|",
		"x ghp_short myghp_0123456789abcdef0123 eyJ" },
	{ "session and PIN", "x|--session-id=1|--pin|1234|--spin=2|?se=1&sig=abc|",
		"x --session-id=[redacted] --pin [redacted] --spin=2 ?se=1&sig=[redacted]" },
	{ "separators alone", "=|:|=:=|", "= : =:=" },
	{ "no NUL at the end", "a|--secret", "a --secret" },
	{ "empty arguments", "a||b|", "a  b" },
};

static void takes_secrets_out(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		char text[256];
		size_t len = strlen(c->in);
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1 << 16);
		for (size_t i = 0; i < len; i++)
			text[i] = c->in[i] == '|' ? 0 : c->in[i];
		redact_command_line(str_make(text, len), &out);
		CHECK_CASE(c, str_eq(buf_view(&out), str_of(c->out)));
	}
}

TEST_MAIN(cmocka_unit_test(takes_secrets_out))
