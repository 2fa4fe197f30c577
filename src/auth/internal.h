/* SPDX-License-Identifier: Apache-2.0 */
/* auth's own. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "auth/auth.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/vec.h"
#include "conf/conf.h"
#include "os/os.h"

#define AUTH_FILES_MAX 64 /* that one web-config file names */
#define AUTH_HASH_BYTES 32

/* ---- config.c: the file ---- */

struct auth_user {
	struct str name;
	const char *hash; /* bcrypt's text */
	struct auth_caller caller;
};

struct auth_token {
	uint8_t digest[AUTH_HASH_BYTES]; /* SHA-256 */
	struct auth_caller caller;
};

struct auth_file {
	const char *path;
	struct os_stamp stamp;
};

/* Immutable once it is read; counted. */
struct auth_config {
	atomic_uint refs;
	struct arena arena;
	VEC(struct auth_user) users;
	VEC(struct auth_token) tokens;
	struct auth_file files[AUTH_FILES_MAX]; /* the first is the web-config file itself */
	uint32_t file_count;
	struct auth_web web;
};

NODISCARD enum status auth_config_load(const char *path, struct auth_config **out, struct err *e);
/* `path` is for sentences and files beside it. */
NODISCARD enum status auth_config_read(
	struct str yaml, const char *path, struct auth_config **out, struct err *e);
void auth_config_unref(struct auth_config *c);
void auth_digest(struct str text, uint8_t out[AUTH_HASH_BYTES]);
NODISCARD enum status auth_add_token(
	struct auth_config *c, struct str token, const struct auth_caller *caller, struct err *e);

/* ---- sources.c: who was refused how often ---- */

struct auth_source {
	char name[48];
	int64_t minute_ns; /* when its present minute began */
	uint32_t guesses;  /* in it */
	uint64_t refused;  /* not told yet */
	int64_t told_ns;
};

struct auth_sources {
	pthread_mutex_t lock;
	struct auth_source v[AUTH_SOURCES_MAX];
	uint32_t count;
};

/* "192.0.2.1:4711" and "[2001:db8::1]:4711" without what one sender may choose. */
void auth_source_name(const char *peer, char *out, size_t out_size);
bool auth_sources_over(struct auth_sources *s, const char *peer, int64_t now_ns);
/* Counts a refusal; `guess`: credentials were wrong. Returns how many are to be told of now; 0:
 * none, as they were told of within the last minute. */
uint64_t auth_sources_add(struct auth_sources *s, const char *peer, bool guess, int64_t now_ns);
