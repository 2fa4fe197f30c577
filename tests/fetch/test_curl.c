/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "fetch/curl.h"

/* Each name is a function of the installed library, which has all that fetch asks of it. */
static void loads_the_library_once(void **state)
{
	(void)state;
	const struct curl_functions *first = NULL, *again = NULL;
	struct err e = { 0 };
	CHECK_OK(curl_load(&first, &e), &e);
	CHECK_OK(curl_load(&again, &e), &e);
	CHECK(first && first == again);
	CURL *easy = first->easy_init();
	CHECK(easy);
	CHECK(first->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK);
	CHECK(first->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK);
	first->easy_cleanup(easy);
}

TEST_MAIN(cmocka_unit_test(loads_the_library_once))
