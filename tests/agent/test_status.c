/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/status.h"
#include "test.h"

static const char *text_of(struct buf *b)
{
	buf_u8(b, 0);
	CHECK(buf_status(b) == OK);
	return (const char *)b->data;
}

static void escapes(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *in, *want;
	} cases[] = {
		{ "plain", "a b", "a b" },
		{ "script", "<script>alert('x')</script>",
			"&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" },
		{ "attribute", "\" onload=\"x", "&quot; onload=&quot;x" },
		{ "entity", "&lt;", "&amp;lt;" },
		{ "control characters", "a\nb\033[0m\177", "a?b?[0m?" },
		{ "UTF-8", "na\303\257ve", "na\303\257ve" },
		{ "not UTF-8", "na\357ve", "na?ve" },
		{ "half a character", "\303<", "?&lt;" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1000);
		status_escape(&b, str_of(c->in));
		CHECK_CASE(c, strcmp(text_of(&b), c->want) == 0);
	}
}

/* Whatever a process is called, the page has the tags that it has without it. */
static void holds_hostile_names(void **state)
{
	(void)state;
	static const char evil[] = "</td></table><script>x</script><img src=x onerror=y>";
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	struct problems *p = problems_new();
	CHECK(p);
	problems_add(p, PROBLEM_STACK, evil, evil);
	const struct status_row row = { "processes", evil, NULL };
	status_begin(&b, evil);
	status_section(&b, "What it sees", evil);
	status_rows(&b, &row, 1);
	status_problems(&b, p, PROBLEM_STACK, "process", "why", 10);
	status_problems(&b, p, PROBLEM_FILE, "file", "why", 10);
	status_lines(&b, "Containers", str_of(evil));
	status_lines(&b, "Nothing", STR(""));
	status_foot(&b);
	status_end(&b);
	const char *page = text_of(&b);
	CHECK(!strstr(page, "<script") && !strstr(page, "<img"));
	CHECK(strstr(page, "<title>firn agent &lt;/td") && strstr(page, "None."));
	CHECK(!strstr(page, "Nothing"));
	problems_free(p);
}

static void shows_the_most_frequent(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	struct problems *p = problems_new();
	CHECK(p);
	problems_add(p, PROBLEM_FILE, "once", "why");
	for (int i = 0; i < 3; i++)
		problems_add(p, PROBLEM_FILE, "often", "why");
	status_problems(&b, p, PROBLEM_FILE, "file", "why", 1);
	const char *page = text_of(&b);
	CHECK(strstr(page, "often") && !strstr(page, "once"));
	problems_free(p);
}

TEST_MAIN(cmocka_unit_test(escapes), cmocka_unit_test(shows_the_most_frequent),
	cmocka_unit_test(holds_hostile_names))
