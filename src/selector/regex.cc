/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: a struct around one RE2 object. Built without exceptions: RE2 itself throws none, and what
 * its allocations could throw is bounded by SELECTOR_REGEX_BYTES_MAX.
 */
#include "selector/regex.h"

#include <re2/re2.h>

#include <cstdio>
#include <new>

struct selector_regex {
	RE2 re;

	selector_regex(const re2::StringPiece &pattern, const RE2::Options &options)
	    : re(pattern, options)
	{
	}
};

extern "C" struct selector_regex *selector_regex_new(
	const char *pattern, size_t len, char *why, size_t why_size)
{
	RE2::Options options;
	options.set_log_errors(false);
	options.set_max_mem(SELECTOR_REGEX_BYTES_MAX);
	options.set_never_capture(true);
	auto *r = new (std::nothrow) selector_regex(re2::StringPiece(pattern, len), options);
	if (r && r->re.ok())
		return r;
	std::snprintf(why, why_size, "%s", r ? r->re.error().c_str() : "");
	delete r;
	return nullptr;
}

extern "C" void selector_regex_free(struct selector_regex *r)
{
	delete r;
}

extern "C" bool selector_regex_match(const struct selector_regex *r, const char *text, size_t len)
{
	return RE2::PartialMatch(re2::StringPiece(text, len), r->re);
}
