/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole: what share of a program's stacks reaches the root, once the files that it runs are known;
 * for tests and benchmarks. Include after live.h, once.
 */
#pragma once

/* So many samples pass before what the program has mapped is looked at: it has begun then. */
#define WHOLE_WARM_SAMPLES 40
#define WHOLE_REASONS_MAX 5 /* of stacks that are not whole: so many are printed */

struct whole {
	struct live live;
	uint32_t text_id; /* of the program's file */
	size_t from;      /* live.samples before are of its beginning */
	size_t samples;   /* from there on, with a user stack */
	size_t whole;
};

static inline void whole_poll_until(struct live *l, size_t samples, int64_t deadline_ns)
{
	while (l->samples.len < samples && clock_monotonic_ns() < deadline_ns)
		live_poll(l, 50);
}

/* Samples a program until there are so many of it that count, or the time is over. The caller ends
 * w->live. */
static inline void whole_run(struct whole *w, const char *const *args, uint32_t frequency_hz,
	size_t samples, int64_t duration_ns)
{
	int64_t deadline = clock_monotonic_ns() + duration_ns;
	*w = (struct whole){ 0 };
	int pid = live_spawn(args, -1);
	live_begin(&w->live, frequency_hz, pid);
	w->text_id = live_publish_file(&w->live, args[0]);
	for (int i = 1; args[i]; i++) /* a plugin, which is not mapped all the time */
		if (args[i][0] == '/')
			(void)live_publish_file(&w->live, args[i]);
	live_start(&w->live);
	whole_poll_until(&w->live, WHOLE_WARM_SAMPLES, deadline);
	live_publish_process(&w->live, pid);
	live_poll(&w->live, 0); /* what was taken before */
	w->from = w->live.samples.len;
	whole_poll_until(&w->live, w->from + samples, deadline);
	live_stop(&w->live);
	live_kill(pid);
	int printed = 0;
	for (size_t i = w->from; i < w->live.samples.len; i++) {
		const struct live_sample *s = &w->live.samples.v[i];
		bool is_whole = stack_end_is_whole(s->h.stack_end);
		w->samples += s->user_count > 0;
		w->whole += is_whole && s->user_count > 0;
		if (is_whole || printed++ >= WHOLE_REASONS_MAX)
			continue;
		const uint64_t *f = live_user_frames(&w->live, s);
		uint64_t last = s->user_count ? f[s->user_count - 1] : 0;
		(void)fprintf(stderr,
			"# %s ends %u, %u frames, leaf %" PRIx64 ", last %" PRIx64 " of %s\n",
			args[0], s->h.stack_end, s->user_count,
			(uint64_t)(f[0] & FRAME_OFFSET_MASK), (uint64_t)(last & FRAME_OFFSET_MASK),
			last >> FRAME_FILE_SHIFT >= FRAME_FILE_FIRST
				? w->live.files.v[(last >> FRAME_FILE_SHIFT) - FRAME_FILE_FIRST]
					  .path
				: "none");
	}
}
