/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libcurl that fetch calls, in a table. Its 20 libraries would cost each process
 * of firn that starts 4 ms of CPU and 0.7 MB, if it were linked, so it is loaded when it is needed.
 * ABI: libcurl.so.4, from 7.85 on (CURLOPT_PROTOCOLS_STR).
 */
#pragma once

#include <curl/curl.h>

#include "base/err.h"

/* clang-format off */
#define CURL_FUNCTIONS(X)                                                                     \
	X(easy_init) X(easy_setopt) X(easy_getinfo) X(easy_reset) X(easy_cleanup)             \
	X(easy_pause) X(easy_strerror) X(global_init) X(multi_init) X(multi_add_handle)       \
	X(multi_remove_handle) X(multi_perform) X(multi_poll) X(multi_info_read)              \
	X(multi_cleanup) X(multi_setopt) X(multi_strerror) X(slist_append) X(slist_free_all)
/* clang-format on */

/* The library's own macros of these names check types, and know nothing of tables. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

struct curl_functions {
#define CURL_FIELD(name) __typeof__(curl_##name) *name;
	CURL_FUNCTIONS(CURL_FIELD)
#undef CURL_FIELD
};

/* Loads the library once in a process. E_UNSUPPORTED: it is not here, with the reason. */
NODISCARD enum status curl_load(const struct curl_functions **out, struct err *e);
