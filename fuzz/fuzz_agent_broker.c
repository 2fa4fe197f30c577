/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a request is refused with a sentence or has a kind of the format, and no path that is
 * opened leads out of the places of the format: not up, not into a descriptor, not into memory.
 */
#include "fuzz/fuzz.h"

#include "agent/broker/broker_request.h"

#include <string.h>

static void check_place(const struct broker_request *r)
{
	static const struct broker_config config = { .own_files = { "/own" } };
	const char *below = NULL;
	enum broker_place where = broker_place_of(&config, r->path, &below);
	(void)broker_is_link(r->path);
	(void)broker_may_hang(r->path);
	if (where == BROKER_NOWHERE || where == BROKER_OWN)
		return;
	FUZZ_CHECK(strncmp(r->path, "/proc/", 6) == 0);
	FUZZ_CHECK(!strstr(r->path, "/../") && !strstr(r->path, "//"));
	FUZZ_CHECK(!below == (where != BROKER_IN_ROOT));
	if (!below && where != BROKER_MAPPED) /* an address may begin with fd */
		FUZZ_CHECK(!strstr(r->path, "/mem") && !strstr(r->path, "/fd"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct broker_request r;
	struct err e = { 0 };
	if (broker_request_parse(str_make(data, size), &r, &e) != OK) {
		FUZZ_CHECK(e.text[0]);
		return 0;
	}
	FUZZ_CHECK(r.kind >= BROKER_OPEN && r.kind <= BROKER_DOTNET_READ);
	FUZZ_CHECK(strlen(r.path) <= BROKER_PATH_MAX);
	FUZZ_CHECK(r.len <= BROKER_READ_BYTES_MAX && r.offset <= INT64_MAX);
	FUZZ_CHECK(r.pid <= INT32_MAX);
	if (r.kind == BROKER_OPEN || r.kind == BROKER_LINK || r.kind == BROKER_HOLD)
		check_place(&r);
	return 0;
}
