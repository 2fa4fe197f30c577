/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames: the stack of a sample in a batch's profile: files, kernel, language runtimes, code that a
 * process has made, and a marker where the stack is not whole. Private to agent/. Not thread safe:
 * the poll thread's.
 */
#pragma once

#include "agent/bpf/shared.h"
#include "agent/files/files.h"
#include "agent/names/names.h"
#include "agent/send/jitframes.h"
#include "agent/send/runtimes_met.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/vec.h"
#include "profile/profile.h"

/* A file of this batch. */
struct batch_file {
	uint32_t file_id;
	uint32_t mapping;
	bool known;          /* info is filled */
	struct file_key key; /* of code that a process has made; inode 0: not known any more */
	struct file_info info;
};

/* A frame in a file that was not known when the sample was taken. It mostly is by the end of the
 * interval: then the location gets its mapping and its address. */
struct batch_late {
	uint32_t location;
	struct file_key key;
};

struct batch_frames {
	struct profile *profile;
	/* As batch.h's configuration has them. */
	struct files *files;
	struct kallsyms *kallsyms;
	struct codes *codes;
	bool keep_interpreters;
	void (*met)(void *ctx, uint32_t file_id, const struct file_info *file, int pid);
	void *ctx;
	metric_value *unnamed_kernel;
	int pid; /* of the sample that is added */
	VEC(struct batch_file) entries;
	struct map file_index;
	VEC(struct batch_late) late;
	struct jitframes jit;
	struct remapped remapped;
	bool missed_kernel; /* a kernel address had no symbol */
	struct runtimes_met runtimes;
	uint32_t runtime; /* of the sample that is added: its first one, as in runtimes_met */
	bool misses_frames;
};

/* The profile has been cleared, too. */
void batch_frames_clear(struct batch_frames *b);
void batch_frames_deinit(struct batch_frames *b);
/* The sample's stack, in the profile. A stack that fails leaves pieces there that do no harm. */
NODISCARD enum status batch_frames_stack(
	struct batch_frames *b, const struct event_sample *s, uint32_t *out);
/* To be called last, right before the profile is encoded: nothing is interned after it. */
void batch_frames_resolve(struct batch_frames *b);
