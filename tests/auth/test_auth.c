/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts: right, wrong, of another scope, too often; reloads and sessions. */
#include "test.h"

#include "auth/internal.h"
#include "http/http.h"

#include <unistd.h>

#define HASH "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" /* of "secret" */
#define TOKEN "0123456789abcdef"

static char path[64];
static char said[256];
static uint64_t said_count;

static void told(const char *source, uint64_t count, const char *why)
{
	snprintf(said, sizeof(said), "%s %s", source, why);
	said_count += count;
}

static void put(const char *yaml)
{
	struct err e;
	CHECK_OK(os_replace_file(path, yaml, strlen(yaml), 0600, &e), &e);
}

static struct auth *open_with(const char *yaml)
{
	struct auth *a = NULL;
	struct err e;
	said[0] = 0;
	said_count = 0;
	snprintf(path, sizeof(path), "/tmp/firn-test-auth-%d.yml", (int)getpid());
	put(yaml);
	CHECK_OK(auth_open(path, NULL, told, &a, &e), &e);
	return a;
}

static void shut(struct auth *a)
{
	auth_close(a);
	unlink(path);
}

/* A verdict as a letter, and the status of a refusal in `e`. */
static enum auth_verdict judge(struct auth *a, const char *header, uint32_t scope, bool may_block,
	struct auth_caller *out, struct err *e)
{
	const struct auth_claim c = {
		.authorization = str_of(header), .source = "192.0.2.1:4711", .scope = scope
	};
	e->status = OK;
	return auth_judge(a, &c, may_block, out, e);
}

static const char *basic(const char *text)
{
	static char out[256];
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 200);
	http_base64_encode(&b, str_of(text));
	snprintf(out, sizeof(out), "Basic %.*s", STR_ARG(buf_view(&b)));
	return out;
}

static const char yaml[] = "basic_auth_users: {alice: " HASH ", bob: " HASH "}\n"
			   "users: {bob: {scopes: [read], tenant: b}}\n"
			   "tokens: [{name: agents, token: " TOKEN ", scopes: [write]}]\n";

static void judges(void **state)
{
	(void)state;
	static const struct {
		const char *name, *user, *header;
		uint32_t scope;
		enum status status;
	} cases[] = {
		{ "nothing", NULL, "", AUTH_READ, E_UNAUTHENTICATED },
		{ "password", "alice:secret", NULL, AUTH_ADMIN, OK },
		{ "wrong", "alice:Secret", NULL, AUTH_READ, E_UNAUTHENTICATED },
		{ "empty", "alice:", NULL, AUTH_READ, E_UNAUTHENTICATED },
		{ "stranger", "carol:secret", NULL, AUTH_READ, E_UNAUTHENTICATED },
		{ "no colon", "alice", NULL, AUTH_READ, E_UNAUTHENTICATED },
		{ "scope", "bob:secret", NULL, AUTH_READ, OK },
		{ "other scope", "bob:secret", NULL, AUTH_WRITE, E_DENIED },
		{ "no base64", NULL, "Basic !!!!", AUTH_READ, E_UNAUTHENTICATED },
		{ "token", NULL, "Bearer " TOKEN, AUTH_WRITE, OK },
		{ "small letters", NULL, "bearer " TOKEN, AUTH_WRITE, OK },
		{ "token's scope", NULL, "Bearer " TOKEN, AUTH_READ, E_DENIED },
		{ "wrong token", NULL, "Bearer " TOKEN "0", AUTH_WRITE, E_UNAUTHENTICATED },
		{ "digest", NULL, "Digest x", AUTH_READ, E_UNAUTHENTICATED },
	};
	struct auth *a = open_with(yaml);
	CHECK(auth_is_required(a));
	FOR_EACH_CASE (c, cases) {
		struct auth_caller caller = { 0 };
		struct err e = { 0 };
		const char *header = c->user ? basic(c->user) : c->header;
		enum auth_verdict v = judge(a, header, c->scope, false, &caller, &e);
		CHECK_CASE(c, !c->user || v == AUTH_BLOCKS || e.status == E_DENIED);
		if (v == AUTH_BLOCKS)
			v = judge(a, header, c->scope, true, &caller, &e);
		CHECK_CASE(c, v == (c->status == OK ? AUTH_YES : AUTH_NO));
		CHECK_CASE(c, e.status == c->status);
	}
	/* Remembered: it does not block again, and tells the tenant. */
	struct auth_caller caller = { 0 };
	struct err e;
	CHECK(judge(a, basic("bob:secret"), AUTH_READ, false, &caller, &e) == AUTH_YES);
	CHECK(caller.has_tenant && strcmp(caller.tenant, "b") == 0);
	CHECK(strcmp(caller.name, "bob") == 0);
	shut(a);
}

static void limits_guesses(void **state)
{
	(void)state;
	struct auth *a = open_with(yaml);
	struct auth_caller caller;
	struct err e;
	CHECK(judge(a, basic("alice:secret"), AUTH_READ, true, &caller, &e) == AUTH_YES);
	for (int i = 0; i < AUTH_GUESSES_MAX; i++) {
		char guess[32];
		snprintf(guess, sizeof(guess), "alice:guess%d", i);
		CHECK(judge(a, basic(guess), AUTH_READ, true, &caller, &e) == AUTH_NO);
		CHECK(e.status == E_UNAUTHENTICATED);
	}
	CHECK(judge(a, basic("alice:guess"), AUTH_READ, false, &caller, &e) == AUTH_NO);
	CHECK(e.status == E_QUOTA);
	CHECK(judge(a, basic("bob:secret"), AUTH_READ, true, &caller, &e) == AUTH_NO);
	CHECK(e.status == E_QUOTA);
	/* Whoever was let in before, and tokens, which nobody guesses, stay. */
	CHECK(judge(a, basic("alice:secret"), AUTH_READ, false, &caller, &e) == AUTH_YES);
	CHECK(judge(a, "Bearer " TOKEN, AUTH_WRITE, false, &caller, &e) == AUTH_YES);
	CHECK(said_count == 1 && strcmp(said, "192.0.2.1 the name or the password is wrong") == 0);
	shut(a);
}

static void reloads(void **state)
{
	(void)state;
	struct auth *a = open_with(yaml);
	struct auth_caller caller;
	struct err e = { 0 };
	bool changed = true;
	CHECK(auth_require(a));
	CHECK_OK(auth_look(a, &changed, &e), &e);
	CHECK(!changed);
	CHECK(judge(a, basic("alice:secret"), AUTH_READ, true, &caller, &e) == AUTH_YES);
	put("tokens: [{name: t, token: " TOKEN ", scopes: [read]}]\n");
	CHECK_OK(auth_look(a, &changed, &e), &e);
	CHECK(changed);
	CHECK(judge(a, basic("alice:secret"), AUTH_READ, true, &caller, &e) == AUTH_NO);
	CHECK(judge(a, "Bearer " TOKEN, AUTH_READ, true, &caller, &e) == AUTH_YES);
	/* A wrong file, and one that lets everybody in, change nothing. */
	put("tokens: [\n");
	CHECK(auth_look(a, &changed, &e) == E_INVALID);
	CHECK_OK(auth_look(a, &changed, &e), &e); /* told once */
	CHECK(!changed);
	CHECK(judge(a, "Bearer " TOKEN, AUTH_READ, true, &caller, &e) == AUTH_YES);
	put("{}\n");
	CHECK(auth_look(a, &changed, &e) == E_INVALID &&
		strstr(e.text, "neither users nor tokens"));
	CHECK(judge(a, "", AUTH_READ, true, &caller, &e) == AUTH_NO);
	unlink(path);
	CHECK(auth_look(a, &changed, &e) != OK);
	CHECK(judge(a, "Bearer " TOKEN, AUTH_READ, true, &caller, &e) == AUTH_YES);
	shut(a);
}

static void keeps_sessions(void **state)
{
	(void)state;
	struct auth *a = open_with(yaml);
	const struct auth_caller bob = { .scopes = AUTH_READ, .name = "bob" };
	struct auth_caller caller = { 0 };
	char session[AUTH_SESSION_TEXT];
	bool changed;
	struct err e = { 0 };
	CHECK_OK(auth_session_new(a, &bob, session, &e), &e);
	struct auth_claim c = { .session = str_of(session), .source = "unix", .scope = AUTH_READ };
	CHECK(auth_judge(a, &c, false, &caller, &e) == AUTH_YES);
	CHECK(strcmp(caller.name, "bob") == 0);
	c.scope = AUTH_WRITE;
	CHECK(auth_judge(a, &c, false, &caller, &e) == AUTH_NO && e.status == E_DENIED);
	c.scope = AUTH_READ;
	c.session = STR("0000");
	CHECK(auth_judge(a, &c, false, &caller, &e) == AUTH_NO);
	c.session = str_of(session);
	auth_session_end(a, c.session);
	CHECK(auth_judge(a, &c, false, &caller, &e) == AUTH_NO);
	/* One that is made of a token, or of a session, ends with it. */
	struct auth_caller brief = bob;
	brief.until_ns = clock_monotonic_ns() + 3600 * NS_PER_SEC;
	CHECK_OK(auth_session_new(a, &brief, session, &e), &e);
	CHECK(auth_judge(a, &c, false, &caller, &e) == AUTH_YES);
	CHECK(caller.until_ns == brief.until_ns);
	CHECK_OK(auth_session_new(a, &caller, session, &e), &e);
	CHECK(auth_judge(a, &c, false, &caller, &e) == AUTH_YES);
	CHECK(caller.until_ns == brief.until_ns);
	brief.until_ns = 1;
	CHECK_OK(auth_session_new(a, &brief, session, &e), &e);
	CHECK(auth_judge(a, &c, false, &caller, &e) == AUTH_NO);
	CHECK_OK(auth_session_new(a, &bob, session, &e), &e);
	put("tokens: [{name: t, token: " TOKEN ", scopes: [read]}]\n");
	CHECK_OK(auth_look(a, &changed, &e), &e);
	CHECK(auth_judge(a, &c, false, &caller, &e) == AUTH_NO);
	shut(a);
}

static void lets_in_without_a_file(void **state)
{
	(void)state;
	struct auth *a = NULL;
	struct auth_caller caller = { 0 };
	struct err e = { 0 };
	CHECK_OK(auth_open(NULL, "0123456789abcdef0123", told, &a, &e), &e);
	CHECK(!auth_is_required(a) && !auth_require(a));
	CHECK(judge(a, "", AUTH_ADMIN, false, &caller, &e) == AUTH_YES);
	auth_close(a);
	CHECK(auth_open("/nowhere/web.yml", NULL, told, &a, &e) == E_NOTFOUND);
}

TEST_MAIN(cmocka_unit_test(judges), cmocka_unit_test(limits_guesses), cmocka_unit_test(reloads),
	cmocka_unit_test(keeps_sessions), cmocka_unit_test(lets_in_without_a_file))
