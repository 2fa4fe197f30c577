/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: a struct around one RE2 object. Built without exceptions: RE2 itself throws none, and what
 * its allocations could throw is bounded by REGEX_BYTES_MAX.
 */
#include "regex/regex.h"

#include <re2/re2.h>

#include <cstdio>
#include <new>
#include <string>

struct regex {
	RE2 re;

	regex(const re2::StringPiece &pattern, const RE2::Options &options) : re(pattern, options)
	{
	}
};

static struct regex *make(
	const char *pattern, size_t len, bool capturing, char *why, size_t why_size)
{
	RE2::Options options;
	options.set_log_errors(false);
	options.set_max_mem(REGEX_BYTES_MAX);
	options.set_never_capture(!capturing);
	options.set_dot_nl(capturing);
	auto *r = new (std::nothrow) regex(re2::StringPiece(pattern, len), options);
	if (r && r->re.ok())
		return r;
	std::snprintf(why, why_size, "%s", r ? r->re.error().c_str() : "");
	delete r;
	return nullptr;
}

extern "C" struct regex *regex_new(const char *pattern, size_t len, char *why, size_t why_size)
{
	return make(pattern, len, false, why, why_size);
}

extern "C" struct regex *regex_new_capturing(
	const char *pattern, size_t len, char *why, size_t why_size)
{
	return make(pattern, len, true, why, why_size);
}

extern "C" void regex_free(struct regex *r)
{
	delete r;
}

extern "C" bool regex_match(const struct regex *r, const char *text, size_t len)
{
	return RE2::PartialMatch(re2::StringPiece(text, len), r->re);
}

extern "C" bool regex_capture(const struct regex *r, const char *text, size_t len,
	struct regex_span out[REGEX_GROUPS_MAX], size_t *out_count)
{
	re2::StringPiece groups[REGEX_GROUPS_MAX];
	/* Groups that took no part have no data; an empty text must not look like them. */
	re2::StringPiece whole(text ? text : "", len);
	int count = r->re.NumberOfCapturingGroups() + 1;
	if (count > REGEX_GROUPS_MAX)
		count = REGEX_GROUPS_MAX;
	if (!r->re.Match(whole, 0, len, RE2::ANCHOR_BOTH, groups, count))
		return false;
	for (int i = 0; i < count; i++) {
		bool took = groups[i].data() != nullptr;
		size_t begin = took ? (size_t)(groups[i].data() - whole.data()) : 1;
		out[i] = { begin, took ? begin + groups[i].size() : 0 };
	}
	*out_count = (size_t)count;
	return true;
}

extern "C" int regex_find_group(const struct regex *r, const char *name, size_t len)
{
	const auto &groups = r->re.NamedCapturingGroups();
	auto found = groups.find(std::string(name, len));
	return found == groups.end() ? -1 : found->second;
}
