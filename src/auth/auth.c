/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A claim is checked in the order of cost: first against remembered ones (by a digest with a random
 * salt, so that the time of the search reveals nothing), then against the configured tokens (all
 * digests are compared, in constant time), and last, if its source has guesses left, as a password:
 * with bcrypt, one at a time, on a thread that may block. An unknown user costs the same bcrypt as
 * a known one.
 *
 * The configuration is immutable and reference counted. A reload replaces it; claims remembered
 * under the old one have an old generation and are ignored. `lock` is held only for a short time;
 * nothing blocks under it.
 */
#include "auth/internal.h"

#include <crypt.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "base/lock.h"
#include "http/http.h"

#define SALT_BYTES 32
#define SESSION_BYTES 32
#define PASSWORD_MAX 1024
#define KEYS_LOOK_MS 1000

/* The hash that is computed for an unknown user, if no user is configured; else it is a configured
 * user's. */
static const char nobody[] = "$2b$10$abcdefghijklmnopqrstuu4T826PRnz0Hu6YlprUuxkZxOOj5Fw5S";

struct remembered {
	uint8_t digest[AUTH_HASH_BYTES];
	struct auth_caller caller;
	uint64_t generation;
	int64_t until_ns; /* 0: free */
	int64_t used_ns;
};

struct auth {
	char *path;
	char *own_token;
	auth_told_fn *told;
	atomic_bool must; /* auth_require() */
	struct lock lock;
	struct auth_config *config; /* protected by `lock`, like the fields below */
	uint64_t generation;
	struct remembered known[AUTH_REMEMBERED_MAX];
	struct remembered sessions[AUTH_SESSIONS_MAX];
	struct lock look_lock;
	char problem[ERR_TEXT_MAX]; /* protected by look_lock: the error of a wrong file that was
				       logged; "" */
	struct lock password_lock;
	atomic_uint waiting;
	pthread_t keys; /* thread that fetches the issuers' keys */
	bool keys_run;
	int stop_fd;
	struct auth_web web;
	struct auth_config *first; /* `web` points to texts of this one */
	uint8_t salt[SALT_BYTES];
	struct auth_sources sources;
	struct auth_metrics metrics;
};

/* ---- the configuration ---- */

static bool is_required(const struct auth_config *c)
{
	return c->users.len || c->tokens.len || c->issuer_count;
}

static enum status load(struct auth *a, struct auth_config **out, struct err *e)
{
	struct auth_config *c = NULL;
	enum status s = auth_config_load(a->path, &c, e);
	if (s != OK)
		return s;
	bool required = is_required(c);
	struct auth_caller agent = { .scopes = AUTH_READ | AUTH_WRITE, .name = "own agent" };
	if (!required && atomic_load(&a->must))
		s = err_set(e, E_INVALID,
			"%s: neither users nor tokens: others reach this server, which does not "
			"run with --http-allow-unauthenticated",
			a->path);
	if (s == OK && required && a->own_token)
		s = auth_add_token(c, str_of(a->own_token), &agent, e);
	if (s != OK) {
		auth_config_unref(c);
		return s;
	}
	*out = c;
	return OK;
}

static struct auth_config *take(struct auth *a, uint64_t *out_generation)
{
	lock_take(&a->lock);
	struct auth_config *c = a->config;
	atomic_fetch_add(&c->refs, 1);
	*out_generation = a->generation;
	lock_release(&a->lock);
	return c;
}

bool auth_is_required(struct auth *a)
{
	lock_take(&a->lock);
	bool yes = is_required(a->config);
	lock_release(&a->lock);
	return yes;
}

bool auth_require(struct auth *a)
{
	atomic_store(&a->must, true);
	return auth_is_required(a);
}

const struct auth_web *auth_web(const struct auth *a)
{
	return &a->web;
}

/* The thread that serves all issuers, also those of files loaded later. */
static void *keys_main(void *ctx)
{
	struct auth *a = ctx;
	struct pollfd p = { .fd = a->stop_fd, .events = POLLIN };
	int n;
	do {
		uint64_t generation;
		struct auth_config *c = take(a, &generation);
		for (uint32_t i = 0; i < c->issuer_count; i++)
			auth_issuer_refresh(c->issuers[i], a->stop_fd, a->told);
		auth_config_unref(c);
		n = poll(&p, 1, KEYS_LOOK_MS);
	} while (n == 0 || (n < 0 && errno == EINTR)); /* EINTR: by SIGPROF */
	return NULL;
}

static enum status start_keys(struct auth *a, struct err *e)
{
	if (!a->path || !a->path[0])
		return OK;
	a->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->stop_fd < 0)
		return err_os(e, "eventfd");
	enum status s = os_thread_start(&a->keys, "auth-keys", keys_main, a, e);
	a->keys_run = s == OK;
	return s;
}

enum status auth_open(const char *path, const char *own_token, auth_told_fn *told,
	struct auth **out, struct err *e)
{
	struct auth *a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(e, E_NOMEM, "authentication");
	lock_init(&a->lock, LOCK_AUTH);
	lock_init(&a->look_lock, LOCK_AUTH_LOOK);
	lock_init(&a->password_lock, LOCK_AUTH_PASSWORD);
	lock_init(&a->sources.lock, LOCK_AUTH_SOURCES);
	a->told = told;
	a->stop_fd = -1;
	a->path = path ? strdup(path) : NULL;
	a->own_token = own_token ? strdup(own_token) : NULL;
	enum status s = OK;
	if ((path && !a->path) || (own_token && !a->own_token))
		s = err_set(e, E_NOMEM, "authentication");
	else if (RAND_bytes(a->salt, sizeof(a->salt)) != 1)
		s = err_set(e, E_IO, "no random numbers");
	else
		s = load(a, &a->config, e);
	if (s != OK) {
		auth_close(a);
		return s;
	}
	a->web = a->config->web;
	a->first = a->config;
	atomic_fetch_add(&a->first->refs, 1);
	s = start_keys(a, e);
	if (s != OK) {
		auth_close(a);
		return s;
	}
	*out = a;
	return OK;
}

void auth_close(struct auth *a)
{
	if (!a)
		return;
	if (a->keys_run) {
		if (eventfd_write(a->stop_fd, 1) == 0)
			pthread_join(a->keys, NULL);
	}
	fd_cleanup(&a->stop_fd);
	auth_config_unref(a->config);
	auth_config_unref(a->first);
	lock_destroy(&a->lock);
	lock_destroy(&a->look_lock);
	lock_destroy(&a->password_lock);
	lock_destroy(&a->sources.lock);
	free(a->path);
	free(a->own_token);
	free(a);
}

static bool has_changed(const struct auth_config *c)
{
	for (uint32_t i = 0; i < c->file_count; i++) {
		struct os_stamp now = { 0 };
		if (os_read_own(c->files[i].path, NULL, &now, NULL) != OK ||
			!os_stamp_is_same(&now, &c->files[i].stamp))
			return true;
	}
	return false;
}

enum status auth_look(struct auth *a, bool *out_changed, struct err *e)
{
	uint64_t generation;
	struct auth_config *fresh = NULL;
	struct err why = { 0 };
	enum status s = OK;
	lock_take(&a->look_lock);
	struct auth_config *old = take(a, &generation);
	bool differs = has_changed(old), changed = differs;
	if (changed)
		s = load(a, &fresh, &why);
	if (changed && s == OK) {
		auth_issuers_inherit(fresh, old);
		metric_add(&a->metrics.reloads, 1);
		lock_take(&a->lock);
		a->config = fresh;
		a->generation++;
		lock_release(&a->lock);
		auth_config_unref(old); /* drops the reference of `auth` itself */
	} else if (changed && strcmp(a->problem, err_text(&why, s)) == 0) {
		s = OK; /* it was told */
		changed = false;
	} else if (changed) {
		metric_add(&a->metrics.reload_failed, 1);
		snprintf(a->problem, sizeof(a->problem), "%s", err_text(&why, s));
		if (e)
			*e = why;
	}
	if (s == OK && (changed || !differs))
		a->problem[0] = 0;
	auth_config_unref(old);
	lock_release(&a->look_lock);
	if (s == OK)
		*out_changed = changed;
	return s;
}

/* ---- what is remembered ---- */

static void salted(const struct auth *a, struct str text, uint8_t out[AUTH_HASH_BYTES])
{
	uint8_t bytes[SALT_BYTES + AUTH_HASH_BYTES];
	memcpy(bytes, a->salt, SALT_BYTES);
	auth_digest(text, bytes + SALT_BYTES);
	auth_digest(str_make(bytes, sizeof(bytes)), out);
}

static bool recall(struct auth *a, struct remembered *table, size_t count, struct str text,
	struct auth_caller *out)
{
	uint8_t digest[AUTH_HASH_BYTES];
	int64_t now = clock_monotonic_ns();
	bool found = false;
	salted(a, text, digest);
	lock_take(&a->lock);
	for (size_t i = 0; i < count && !found; i++) {
		struct remembered *m = &table[i];
		found = m->until_ns > now && m->generation == a->generation &&
			CRYPTO_memcmp(m->digest, digest, sizeof(digest)) == 0;
		if (!found)
			continue;
		m->used_ns = now;
		/* Each use of a password prolongs the time for which it is remembered; that of
		 * issuers' tokens and sessions is fixed. A changed file forgets all. */
		if (table == a->known && m->caller.until_ns == 0)
			m->until_ns = now + AUTH_REMEMBER_NS;
		*out = m->caller;
	}
	lock_release(&a->lock);
	return found;
}

/* An expired entry is replaced first, then the least recently used one. */
static void keep(struct auth *a, struct remembered *table, size_t count, struct str text,
	const struct auth_caller *caller, uint64_t generation, int64_t until_ns)
{
	struct remembered made = { .caller = *caller,
		.generation = generation,
		.until_ns = until_ns,
		.used_ns = clock_monotonic_ns() };
	salted(a, text, made.digest);
	lock_take(&a->lock);
	struct remembered *at = &table[0];
	for (size_t i = 0; i < count; i++) {
		struct remembered *m = &table[i];
		if (m->until_ns <= made.used_ns || m->generation != a->generation)
			m->used_ns = 0;
		if (m->used_ns < at->used_ns)
			at = m;
	}
	*at = made;
	lock_release(&a->lock);
}

enum status auth_random_text(char out[AUTH_SESSION_TEXT], struct err *e)
{
	uint8_t bytes[SESSION_BYTES];
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return err_set(e, E_IO, "no random numbers");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return OK;
}

enum status auth_session_new(struct auth *a, const struct auth_caller *caller,
	char out[AUTH_SESSION_TEXT], struct err *e)
{
	char text[AUTH_SESSION_TEXT];
	enum status s = auth_random_text(text, e);
	if (s != OK)
		return s;
	lock_take(&a->lock);
	uint64_t generation = a->generation;
	lock_release(&a->lock);
	struct auth_caller named = *caller;
	named.until_ns = clock_monotonic_ns() + AUTH_SESSION_NS;
	if (caller->until_ns)
		named.until_ns = MIN(named.until_ns, caller->until_ns);
	keep(a, a->sessions, AUTH_SESSIONS_MAX, str_of(text), &named, generation, named.until_ns);
	memcpy(out, text, sizeof(text));
	return OK;
}

void auth_session_end(struct auth *a, struct str session)
{
	uint8_t digest[AUTH_HASH_BYTES];
	salted(a, session, digest);
	lock_take(&a->lock);
	for (size_t i = 0; i < AUTH_SESSIONS_MAX; i++)
		if (CRYPTO_memcmp(a->sessions[i].digest, digest, sizeof(digest)) == 0)
			a->sessions[i].until_ns = 0;
	lock_release(&a->lock);
}

/* ---- tokens and passwords ---- */

static bool token_is_known(const struct auth_config *c, struct str token, struct auth_caller *out)
{
	uint8_t digest[AUTH_HASH_BYTES];
	size_t at = c->tokens.len;
	auth_digest(token, digest);
	for (size_t i = 0; i < c->tokens.len; i++)
		if (CRYPTO_memcmp(c->tokens.v[i].digest, digest, sizeof(digest)) == 0)
			at = i;
	if (at == c->tokens.len)
		return false;
	*out = c->tokens.v[at].caller;
	return true;
}

/* False: the password is wrong, or libcrypt failed. (Not crypt_r(): the address sanitizer defines
 * one, and then libcrypt is not linked.) */
static bool password_is(const char *hash, const char *password)
{
	struct crypt_data *data = calloc(1, sizeof(*data));
	const char *made = data ? crypt_rn(password, hash, data, (int)sizeof(*data)) : NULL;
	size_t len = strlen(hash);
	bool good = made && strlen(made) == len && CRYPTO_memcmp(made, hash, len) == 0;
	if (data)
		explicit_bzero(data, sizeof(*data));
	free(data);
	return good;
}

/* Checks "name:password" in base64. */
static bool basic_is_known(
	struct auth *a, const struct auth_config *c, struct str base64, struct auth_caller *out)
{
	char password[PASSWORD_MAX + 1];
	CLEANUP(buf_deinit) struct buf text = { 0 };
	const struct auth_user *user = NULL;
	buf_init(&text, AUTH_CREDENTIAL_MAX);
	if (!http_base64_decode(&text, base64))
		return false;
	struct str all = buf_view(&text);
	size_t colon = str_index(all, ':');
	struct str name = str_sub(all, 0, colon), rest = str_sub(all, colon + 1, all.len);
	if (colon == all.len || rest.len > PASSWORD_MAX || str_index(rest, 0) < rest.len)
		return false;
	memcpy(password, rest.p, rest.len);
	password[rest.len] = 0;
	for (size_t i = 0; i < c->users.len; i++)
		if (str_eq(c->users.v[i].name, name))
			user = &c->users.v[i];
	/* A hash that costs as much as the users'. */
	const char *other = c->users.len ? c->users.v[0].hash : nobody;
	metric_add(&a->metrics.passwords, 1);
	bool good = password_is(user ? user->hash : other, password) && user;
	explicit_bzero(password, sizeof(password));
	explicit_bzero(text.data, text.len);
	if (good)
		*out = user->caller;
	return good;
}

/* ---- the verdict ---- */

static enum auth_verdict refuse(struct auth *a, const struct auth_claim *c, metric_value *counter,
	bool guess, const struct err *e)
{
	metric_add(counter, 1);
	uint64_t count = auth_sources_add(&a->sources, c->source, guess, clock_monotonic_ns());
	char name[48];
	auth_source_name(c->source, name, sizeof(name));
	if (count && a->told)
		a->told(name, count, e->text);
	return AUTH_NO;
}

static bool scheme_of(struct str header, struct str scheme, struct str *out_rest)
{
	if (header.len <= scheme.len || !str_eq_nocase(str_sub(header, 0, scheme.len), scheme) ||
		header.p[scheme.len] != ' ')
		return false;
	*out_rest = str_trim(str_sub(header, scheme.len, header.len));
	return true;
}

/* Checks one password at a time. A page sends several requests at once with the same password: all
 * but the first find it remembered. */
static enum auth_verdict judge_password(struct auth *a, const struct auth_config *config,
	const struct auth_claim *c, struct str base64, uint64_t generation, struct auth_caller *out,
	struct err *e)
{
	if (atomic_fetch_add(&a->waiting, 1) >= AUTH_WAITING_MAX) {
		atomic_fetch_sub(&a->waiting, 1);
		err_set(e, E_UNAVAILABLE, "too many passwords to be checked, try again");
		return refuse(a, c, &a->metrics.busy, false, e);
	}
	lock_take(&a->password_lock);
	bool known = recall(a, a->known, AUTH_REMEMBERED_MAX, c->authorization, out);
	bool over = !known && auth_sources_over(&a->sources, c->source, clock_monotonic_ns());
	bool good = known || (!over && basic_is_known(a, config, base64, out));
	if (good && !known)
		keep(a, a->known, AUTH_REMEMBERED_MAX, c->authorization, out, generation,
			clock_monotonic_ns() + AUTH_REMEMBER_NS);
	lock_release(&a->password_lock);
	atomic_fetch_sub(&a->waiting, 1);
	if (good)
		return AUTH_YES;
	err_set(e, E_UNAUTHENTICATED, "the name or the password is wrong");
	return refuse(a, c, &a->metrics.wrong, true, e);
}

/* Checks a token of an issuer; a valid one is remembered for AUTH_REMEMBER_NS, at most until it
 * ends. The error is the last issuer's. A refused token does not count as a guess while an issuer
 * has no keys yet. */
static enum auth_verdict judge_signed(struct auth *a, const struct auth_config *config,
	const struct auth_claim *c, struct str token, uint64_t generation, struct auth_caller *out,
	struct err *e)
{
	int64_t until_ns = 0;
	bool waits = false, judged = false;
	err_set(e, E_UNAUTHENTICATED, "the token is not known here");
	for (uint32_t i = 0; i < config->issuer_count; i++) {
		struct err why = { 0 };
		enum status s = auth_issuer_check(config->issuers[i], token, out, &until_ns, &why);
		if (s == OK) {
			out->until_ns = until_ns;
			keep(a, a->known, AUTH_REMEMBERED_MAX, c->authorization, out, generation,
				MIN(until_ns, clock_monotonic_ns() + AUTH_REMEMBER_NS));
			return AUTH_YES;
		}
		waits |= s == E_UNAVAILABLE;
		judged |= s != E_UNAVAILABLE;
		if (s != E_UNAVAILABLE || !judged)
			*e = why;
	}
	return refuse(a, c, &a->metrics.wrong, !waits, e);
}

static enum auth_verdict identify(struct auth *a, const struct auth_config *config,
	const struct auth_claim *c, bool may_block, uint64_t generation, struct auth_caller *out,
	struct err *e)
{
	struct str rest;
	if (c->authorization.len == 0) {
		if (c->session.len && recall(a, a->sessions, AUTH_SESSIONS_MAX, c->session, out))
			return AUTH_YES;
		err_set(e, E_UNAUTHENTICATED, "this server asks for a password or a bearer token");
		return refuse(a, c, &a->metrics.missing, false, e);
	}
	if (c->authorization.len <= AUTH_CREDENTIAL_MAX &&
		recall(a, a->known, AUTH_REMEMBERED_MAX, c->authorization, out))
		return AUTH_YES;
	bool basic = scheme_of(c->authorization, STR("Basic"), &rest);
	bool bearer = !basic && scheme_of(c->authorization, STR("Bearer"), &rest);
	if (c->authorization.len > AUTH_CREDENTIAL_MAX || (!basic && !bearer)) {
		err_set(e, E_UNAUTHENTICATED,
			"the authorization header is neither Basic nor Bearer");
		return refuse(a, c, &a->metrics.wrong, false, e);
	}
	if (bearer && token_is_known(config, rest, out))
		return AUTH_YES;
	if (auth_sources_over(&a->sources, c->source, clock_monotonic_ns())) {
		err_set(e, E_QUOTA, "too many wrong passwords or tokens: try again in a minute");
		return refuse(a, c, &a->metrics.guesses, false, e);
	}
	if (!may_block && (basic || config->issuer_count))
		return AUTH_BLOCKS;
	if (basic)
		return judge_password(a, config, c, rest, generation, out, e);
	return judge_signed(a, config, c, rest, generation, out, e);
}

static const char *scope_name(uint32_t scope)
{
	return scope & AUTH_ADMIN ? "admin" : scope & AUTH_WRITE ? "write" : "read";
}

enum auth_verdict auth_judge(struct auth *a, const struct auth_claim *c, bool may_block,
	struct auth_caller *out, struct err *e)
{
	struct auth_caller caller = { .scopes = AUTH_ALL };
	struct err why = { 0 };
	uint64_t generation;
	struct auth_config *config = take(a, &generation);
	enum auth_verdict v = AUTH_YES;
	if (is_required(config)) {
		v = identify(a, config, c, may_block, generation, &caller, &why);
		if (v == AUTH_YES)
			metric_add(&a->metrics.accepted, 1);
	}
	if (v == AUTH_YES && (c->scope & ~caller.scopes)) {
		err_set(&why, E_DENIED, "this needs the scope \"%s\", which %s does not have",
			scope_name(c->scope), caller.name);
		v = refuse(a, c, &a->metrics.scope, false, &why);
	}
	auth_config_unref(config);
	if (v == AUTH_YES)
		*out = caller;
	if (v == AUTH_NO && e)
		*e = why;
	return v;
}

static const struct metric_def defs[] = { AUTH_METRICS(METRIC_DEF) };

void auth_write_metrics(struct auth *a, struct buf *out)
{
	metrics_write(out, defs, (const metric_value *)&a->metrics, ARRAY_COUNT(defs));
}
