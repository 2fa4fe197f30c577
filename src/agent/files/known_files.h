/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_files: the memory of files.c: the kernel's keys that were seen (bindings), and the contents
 * behind them (known files), which have ids. Private to agent/. No thread and no lock of its own:
 * the caller holds one.
 */
#pragma once

#include "agent/files/files.h"
#include "base/map.h"
#include "base/vec.h"

enum binding_state { BINDING_FREE, BINDING_WAITING, BINDING_BOUND, BINDING_FAILED };

struct binding {
	struct file_key key;
	enum binding_state state;
	uint32_t file_id;    /* once BOUND; 0: never was */
	uint32_t generation; /* of the file with that id; key.generation is the one seen last */
	uint32_t wanted;     /* notices since it waits */
	uint32_t attempts;
	int64_t retry_ns;    /* not before, */
	int64_t finished_ns; /* but for another generation shortly after this */
};

struct known_file {
	char *identity;
	char *build_id;
	char *path;
	struct objfile_segment *segments;
	uint32_t segment_count;
	uint16_t runtime;    /* enum runtime_kind, if its frames are walked */
	bool has_no_runtime; /* searched for, and not found */
	bool has_table;
	bool live; /* false: the id rests, or was never used */
	uint64_t rows;
	uint64_t owner;  /* as long as it rests, too */
	int64_t used_ns; /* live: last asked for; not live: since when it rests */
};

struct known_files_limits {
	uint32_t keys;      /* FILES_KEYS_MAX */
	uint32_t known;     /* FILES_KNOWN_MAX */
	uint32_t owner_ids; /* FILES_OWNER_IDS_MAX */
};

struct known_files {
	struct known_files_limits limits; /* known_files_init() sets those of files.h */
	struct sampler *sampler;          /* told of each key that is forgotten */
	struct files_metrics *metrics;    /* gauges of what is known */
	VEC(struct binding) bindings;
	uint32_t binding_count;
	uint32_t binding_hint; /* where the search for a free one goes on */
	uint32_t drop_hint;    /* where the search for one to forget goes on */
	struct map by_key;
	VEC(struct known_file) known; /* by id */
	uint32_t live_count;
	struct map by_identity;
};

/* E_NOMEM. Both arguments stay the caller's. */
NODISCARD enum status known_files_init(
	struct known_files *b, struct sampler *sampler, struct files_metrics *metrics);
void known_files_deinit(struct known_files *b);

/* The number of the binding of a key (its inode and device); MAP_NONE: none. */
uint32_t known_files_find(const struct known_files *b, const struct file_key *key);
/* A new binding, FREE. If there are limits.keys, one that failed or is bound is replaced.
 * MAP_NONE: no binding can be replaced, or there is no memory. */
uint32_t known_files_bind(struct known_files *b, const struct file_key *key, int64_t now_ns);
void known_files_unbind(struct known_files *b, uint32_t binding);

/* What is to be known of a file. `obj` NULL: it is no ELF file. */
struct known_file_content {
	const char *identity; /* equal for files of equal content */
	const char *build_id;
	const char *path;
	const struct objfile *obj;
	uint64_t owner; /* its user, on its file system */
};

/* Gives a content an id, or finds the one that it has. *out_is_new: it was not known before. If too
 * many are known, the least recently used one is forgotten. E_LIMIT: every id, or too many of its
 * owner, are in use or rest. */
NODISCARD enum status known_files_know(struct known_files *b,
	const struct known_file_content *content, int64_t now_ns, uint32_t *out_id,
	bool *out_is_new, struct err *e);
/* Makes the vDSO known, under an id that no other file gets. */
NODISCARD bool known_files_know_vdso(
	struct known_files *b, const struct known_file_content *content);
/* NULL: the id names nothing. */
struct known_file *known_files_get(struct known_files *b, uint32_t id);
/* Notes whether it has a table in the kernel now, and of how many rows. */
void known_files_set_table(struct known_files *b, uint32_t id, bool has_table, uint64_t rows);
