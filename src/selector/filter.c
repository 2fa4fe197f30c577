/* SPDX-License-Identifier: Apache-2.0 */
#include "selector/selector.h"

#include "regex/regex.h"

#define WHY_MAX 128

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool same_text(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (lower(a[i]) != lower(b[i]))
			return false;
	return true;
}

static bool contains(struct str text, struct str part)
{
	for (size_t at = 0; at + part.len <= text.len; at++)
		if (same_text(text.p + at, part.p, part.len))
			return true;
	return false;
}

bool filter_op_is_negative(enum filter_op op)
{
	return op == FILTER_NE || op == FILTER_NOT_CONTAINS || op == FILTER_NOT_STARTS ||
	       op == FILTER_IS_NOT || op == FILTER_NOT_MATCHES;
}

enum status filter_condition_compile(struct filter_condition *c, struct err *e)
{
	char why[WHY_MAX] = "";
	if (c->op != FILTER_MATCHES && c->op != FILTER_NOT_MATCHES)
		return OK;
	c->regex = regex_new(c->text.p, c->text.len, why, sizeof(why));
	if (c->regex)
		return OK;
	return err_set(e, why[0] ? E_INVALID : E_NOMEM, "regular expression '%.*s': %s",
		STR_ARG(str_sub(c->text, 0, 64)), why[0] ? why : "no memory");
}

void filter_condition_deinit(struct filter_condition *c)
{
	regex_free(c->regex);
	c->regex = NULL;
}

bool filter_text_holds(const struct filter_condition *c, struct str text)
{
	bool found = false;
	switch (c->op) {
	case FILTER_EQ:
	case FILTER_NE:
		found = text.len == c->text.len && same_text(text.p, c->text.p, text.len);
		break;
	case FILTER_CONTAINS:
	case FILTER_NOT_CONTAINS:
		found = contains(text, c->text);
		break;
	case FILTER_STARTS:
	case FILTER_NOT_STARTS:
		found = text.len >= c->text.len && same_text(text.p, c->text.p, c->text.len);
		break;
	case FILTER_IS:
	case FILTER_IS_NOT:
		found = str_eq(text, c->text);
		break;
	case FILTER_MATCHES:
	case FILTER_NOT_MATCHES:
		found = c->regex && regex_match(c->regex, text.p, text.len);
		break;
	}
	return found != filter_op_is_negative(c->op);
}

bool filter_number_holds(const struct filter_condition *c, uint64_t number)
{
	return (number == c->number) != filter_op_is_negative(c->op);
}
