/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_request: the agent's requests to the broker, and which of them the broker serves
 * (docs/formats/broker.md). Private to agent/. No I/O.
 */
#pragma once

#include "agent/broker/broker.h"

enum broker_kind {
	BROKER_OPEN = 1,
	BROKER_LINK = 2,
	BROKER_CGROUP = 3,
	BROKER_PERF_EVENT = 4,
	BROKER_SLAB = 5,
	BROKER_HOLD = 6,
	BROKER_READ = 7,
	BROKER_DROP = 8,
	BROKER_JIT_LIST = 9,
	BROKER_JIT_READ = 10,
	BROKER_CONTEXT = 11,
	BROKER_DOTNET_FIND = 12,
	BROKER_DOTNET_READ = 13,
};

struct broker_request {
	enum broker_kind kind;
	uint32_t number;
	char path[BROKER_PATH_MAX + 1]; /* kinds 1, 2 and 6 */
	uint64_t cgroup_id;
	uint32_t cpu, frequency_hz;
	bool below_is_disk;
	uint32_t handle, len;
	uint64_t offset;
	uint32_t pid;     /* kinds 9 to 13 */
	uint64_t address; /* of the descriptor, of the entry, of the head, of code, of metadata */
	uint64_t descriptor; /* kind 10; kind 12: the table */
	uint32_t version;    /* kind 12 */
};

/* The answer of kind 6 where the file is pinned. */
struct pinned_files_answer {
	uint64_t handle;
	struct broker_stat stat;
};
static_assert(sizeof(struct pinned_files_answer) == 80, "docs/formats/broker.md");

/* E_INVALID: not a request. */
NODISCARD enum status broker_request_parse(
	struct str message, struct broker_request *out, struct err *e);

enum broker_place {
	BROKER_NOWHERE, /* nothing is opened there */
	BROKER_TEXT,    /* a file of /proc */
	BROKER_MAPPED,  /* a link of /proc to an executable */
	BROKER_IN_ROOT, /* a file below /proc/PID/root */
	BROKER_PERFMAP, /* names of code that a process makes: /proc/PID/root/tmp/perf-N.map */
	BROKER_OWN,     /* named at the start */
};

/* Where a path of kind BROKER_OPEN leads. *out_below: what is behind "/proc/PID/root/". */
enum broker_place broker_place_of(
	const struct broker_config *c, const char *path, const char **out_below);
/* Is this a link that the broker reads? */
bool broker_is_link(const char *path);
/* Does opening it depend on a file system? The broker chooses its threads by the same rule. */
bool broker_may_hang(const char *path);
