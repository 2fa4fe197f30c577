/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "test.h"

#include <unistd.h>

/* What log_line() writes to standard error, without the time. */
static void captured(char out[1024], void (*write_lines)(void))
{
	int ends[2];
	CHECK(pipe(ends) == 0);
	int saved = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	write_lines();
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	ssize_t n = read(ends[0], out, 1023);
	close(ends[0]);
	out[MAX(n, (ssize_t)0)] = 0;
}

static void some_lines(void)
{
	char q[64];
	log_configure(LOG_INFO, LOG_LOGFMT);
	log_debug("hidden", "x=%d", 1);
	log_info("part written", "part=%s rows=%u", "a.part", 7u);
	log_configure(LOG_INFO, LOG_JSON);
	log_warn("odd name", "name=%s n=%d", log_quote(STR("a \"b\"\n"), q, sizeof(q)), 3);
	log_configure(LOG_INFO, LOG_LOGFMT);
}

static void writes_both_formats(void **state)
{
	(void)state;
	char text[1024];
	captured(text, some_lines);
	CHECK(!strstr(text, "hidden"));
	CHECK(strstr(text, " level=info msg=\"part written\" part=a.part rows=7\n"));
	CHECK(strstr(text, "\"level\":\"warn\",\"msg\":\"odd name\",\"name\":"));
	CHECK(strstr(text, "\"n\":\"3\"}\n"));
}

static void parses_flags(void **state)
{
	(void)state;
	enum log_level level;
	enum log_format format;
	CHECK(log_parse_level(STR("warn"), &level) && level == LOG_WARN);
	CHECK(!log_parse_level(STR("loud"), &level) && level == LOG_WARN);
	CHECK(log_parse_format(STR("json"), &format) && format == LOG_JSON);
	CHECK(!log_parse_format(STR("xml"), &format));
}

TEST_MAIN(cmocka_unit_test(writes_both_formats), cmocka_unit_test(parses_flags))
