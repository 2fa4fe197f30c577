/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts: what a running agent consists of. Private to agent/: open.c makes and ends it,
 * agent.c runs it, own_http.c shows it.
 */
#pragma once

#include "agent/agent.h"
#include "agent/broker/broker.h"
#include "agent/files/files.h"
#include "agent/jitnames/jitnames.h"
#include "agent/names/names.h"
#include "agent/oom/oom.h"
#include "agent/process/process.h"
#include "agent/sample/sample.h"
#include "agent/send/send.h"
#include "agent/status/status.h"
#include "agent/uploader/uploader.h"

#include <limits.h>

struct net_server;

/* The poll thread looks at the ring no less often. */
#define AGENT_POLL_MS 250
/* How long a pass over all files waits for the server to take them. */
#define AGENT_HANDOVER_PATIENCE_NS (2 * NS_PER_SEC)

struct agent {
	struct agent_config config;
	char node[HOST_NAME_MAX + 1];
	struct ksymbols *ksymbols; /* NULL: the kernel does not tell */
	struct kallsyms *kallsyms; /* NULL: no names, and why: */
	char kallsyms_error[ERR_TEXT_MAX];
	char ksymbols_error[ERR_TEXT_MAX];
	uint32_t missing; /* of privilege_wants */
	struct metadata *metadata;
	struct containers *containers;
	struct log_once containers_logged; /* what is wrong with them */
	struct processes *processes;
	struct contexts *contexts; /* NULL: not asked for */
	struct jitnames *jitnames; /* NULL: JIT code has no names */
	struct handover *handover;
	struct sampler *sampler;
	struct files *files;
	struct problems *problems;
	struct sender *sender;
	struct uploader *uploader; /* NULL: no names are sent */
	struct codes *codes;       /* NULL: runtimes are not walked */
	struct batch *batch;
	struct deferred *deferred;
	struct offcpu *offcpu;
	struct oom *oom;          /* NULL: not asked for */
	int64_t failing_since_ns; /* 0: sampling works */
	int64_t execs_at_ns;      /* when lost execs are counted next */
	uint64_t execs_lost;      /* notices of execs and exits lost up to the last count */
	uint64_t cpus_renewed; /* renewals of CPU events that the rings of symbols have followed */
	bool is_offer_due;     /* a server was started again */
	bool is_room_told;     /* it was logged that tables have no room */
	int64_t offer_at_ns;   /* not before */
	int64_t page_at_ns;    /* the server gets the status page next then */
	struct net_server *http;
	int http_fd;         /* listens already, for `http`; -1 */
	char http_text[160]; /* where */
	struct governor governor;
	_Atomic bool is_sampling;
	_Atomic int64_t sampling_since_ns; /* 0: not yet */
	uint32_t frequency_hz;             /* at present */
	uint32_t off_cpu_halvings;
	bool paused;
	struct privilege_dir spool_dir;
	struct privilege_dir cache_dir;
	struct privilege_dir http_dir;
	_Atomic int64_t patience_ns; /* time left for waiting in a pass over all files */
};
