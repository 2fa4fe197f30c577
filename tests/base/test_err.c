/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include "test.h"

#include <errno.h>

static void says_what_failed(void **state)
{
	(void)state;
	struct err e = { 0 };
	CHECK(err_set(&e, E_INVALID, "%s: no header at +%d", "a.part", 8) == E_INVALID);
	CHECK_STR(str_of(err_text(&e, E_INVALID)), "a.part: no header at +8");
	CHECK(err_prefix(&e, E_INVALID, "tenant %d", 3) == E_INVALID);
	CHECK_STR(str_of(e.text), "tenant 3: a.part: no header at +8");
	/* A sentence of another failure is not this one's. */
	CHECK_STR(str_of(err_text(&e, E_IO)), status_text(E_IO));
	CHECK(err_set(NULL, E_LIMIT, "x") == E_LIMIT);
	CHECK_STR(str_of(err_text(NULL, E_LIMIT)), "larger than a documented limit");
}

static void maps_errno(void **state)
{
	(void)state;
	struct err e;
	errno = ENOENT;
	CHECK(err_os(&e, "open %s", "/x") == E_NOTFOUND && errno == ENOENT);
	CHECK_STR(str_of(e.text), "open /x: No such file or directory");
	errno = ENOSPC;
	CHECK(err_os(NULL, "write") == E_NOSPACE);
	errno = EDQUOT;
	CHECK(err_os(NULL, "write") == E_NOSPACE);
	errno = EMFILE;
	CHECK(err_os(NULL, "open") == E_UNAVAILABLE);
	errno = EIO;
	CHECK(err_os(NULL, "write") == E_IO);
	errno = EPERM;
	CHECK(err_os(NULL, "write") == E_DENIED);
}

static void cuts_long_sentences(void **state)
{
	(void)state;
	struct err e;
	char longer[1000];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	(void)err_set(&e, E_IO, "%s", longer);
	CHECK(strlen(e.text) == ERR_TEXT_MAX - 1);
	(void)err_prefix(&e, E_IO, "%s", longer);
	CHECK(strlen(e.text) == ERR_TEXT_MAX - 1);
	errno = EIO;
	(void)err_os(&e, "%s", longer);
	CHECK(strlen(e.text) == ERR_TEXT_MAX - 1);
}

static void keeps_the_reason(void **state)
{
	(void)state;
	struct err e;
	(void)err_set(&e, E_INVALID, "too many levels");
	for (int i = 0; i < 100; i++)
		(void)err_prefix(&e, E_INVALID, "värde[%d]", i);
	CHECK(strlen(e.text) < ERR_TEXT_MAX);
	CHECK(str_starts(str_of(e.text), STR("värde[99]: ")));
	CHECK(str_ends(str_of(e.text), STR("]: värde[0]: too many levels")));
}

static void each_status_has_its_words(void **state)
{
	(void)state;
	CHECK(status_http(OK) == 200 && status_grpc(OK) == 0);
	for (int s = 1; s < STATUS_COUNT; s++) {
		CHECK(status_http((enum status)s) >= 400);
		CHECK(status_grpc((enum status)s) > 0 && status_grpc((enum status)s) <= 16);
		CHECK(status_text((enum status)s)[0] && status_name((enum status)s)[0]);
	}
}

TEST_MAIN(cmocka_unit_test(says_what_failed), cmocka_unit_test(maps_errno),
	cmocka_unit_test(cuts_long_sentences), cmocka_unit_test(keeps_the_reason),
	cmocka_unit_test(each_status_has_its_words))
