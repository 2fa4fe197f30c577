/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "profile/profile.h"

typedef enum status add_fn(struct profile *p, struct str s, uint32_t *out);

/* clang-format off */
static const struct {
	const char *name; add_fn *add; const char *in; const char *want;
} cases[] = {
	{ "plain",           profile_add_string, "comm",             "comm" },
	{ "utf-8",           profile_add_string, "h\xC3\xA9",        "h\xC3\xA9" },
	{ "four bytes",      profile_add_string, "\xF0\x9F\x94\xA5", "\xF0\x9F\x94\xA5" },
	{ "one bad byte",    profile_add_string, "a\xFF""b",         "a\xEF\xBF\xBD""b" },
	{ "cut sequence",    profile_add_string, "a\xC3",            "a\xEF\xBF\xBD" },
	{ "bad, then good",  profile_add_string, "\xE2\x82\xC3\xA9", "\xEF\xBF\xBD\xEF\xBF\xBD\xC3\xA9" },
	{ "name",            profile_add_name,   "service.name",     "service_name" },
	{ "leading digit",   profile_add_name,   "9lives",           "_9lives" },
	{ "utf-8 in a name", profile_add_name,   "\xC3\xA9",         "__" },
	{ "empty name",      profile_add_name,   "",                 "" },
	{ "unit",            profile_add_type_part, "nanoseconds",   "nanoseconds" },
	{ "ucum unit",       profile_add_type_part, "By/s",          "By/s" },
	{ "annotation",      profile_add_type_part, "{samples}",     "_samples_" },
	{ "colon",           profile_add_type_part, "a:b c",         "a_b_c" },
	{ "bad byte",        profile_add_type_part, "a:\xFF",        "a_\xEF\xBF\xBD" },
	{ "build id",        profile_add_build_id, "00ffAB",         "00ffAB" },
	{ "content id", profile_add_build_id, "x0123456789abcdef0123456789abcdef",
	                                      "x0123456789abcdef0123456789abcdef" },
	{ "short content id", profile_add_build_id, "x0123",         "x0123" },
	{ "a path",          profile_add_build_id, "../../etc",      "../../etc" },
	{ "go build id",     profile_add_build_id, "abc/def",        "abc/def" },
};
/* clang-format on */

static void texts_are_made_fit(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	FOR_EACH_CASE (c, cases) {
		uint32_t id;
		CHECK_CASE(c, c->add(&p, str_of(c->in), &id) == OK);
		CHECK_CASE(c, str_eq(profile_str(&p, id), str_of(c->want)));
		CHECK_CASE(c, str_is_utf8(profile_str(&p, id)));
	}
}

static void long_names_are_cut(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	static char text[2000];
	memset(text, 'a', sizeof(text));
	uint32_t id;
	CHECK(profile_add_name(&p, str_make(text, sizeof(text)), &id) == OK);
	CHECK(profile_str(&p, id).len == 1024);
	CHECK(profile_add_type_part(&p, str_make(text, sizeof(text)), &id) == OK);
	CHECK(profile_str(&p, id).len == 256);
	text[255] = '\xC3'; /* the cut goes through a character */
	CHECK(profile_add_type_part(&p, str_make(text, sizeof(text)), &id) == OK);
	CHECK(profile_str(&p, id).len == 258 && str_is_utf8(profile_str(&p, id)));
}

static void long_build_ids_are_none(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	char hex[PROFILE_BUILD_ID_MAX + 1];
	memset(hex, 'a', sizeof(hex));
	uint32_t id;
	CHECK(profile_add_build_id(&p, str_make(hex, sizeof(hex)), &id) == OK && id == 0);
	CHECK(profile_add_build_id(&p, str_make(hex, sizeof(hex) - 1), &id) == OK && id != 0);
}

TEST_MAIN(cmocka_unit_test(texts_are_made_fit), cmocka_unit_test(long_names_are_cut),
	cmocka_unit_test(long_build_ids_are_none))
