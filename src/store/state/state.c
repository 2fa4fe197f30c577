/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that all steps of an open store use: whether its directory is still its own, and how near
 * the process is to its memory limit. The resident memory of the process is measured, at most every
 * few milliseconds, since free pieces of the heap count too. Near the limit free memory is given
 * back to the system.
 */
#include "store/state/state.h"

#include "base/clock.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>

/* How often the process is measured, and how often free memory is given back. */
#define LOOK_INTERVAL_NS (5 * NS_PER_MS)
#define TRIM_INTERVAL_NS (NS_PER_SEC / 10)
/* The process is near its limit when less than this is left: three sixteenths, or at least what
 * writing one more part takes. Free memory is given back above thirteen sixteenths. */
#define SPARE_SIXTEENTHS 3
#define SPARE_BYTES_MIN ((uint64_t)20 << 20)
#define TRIM_SIXTEENTHS 13

void store_say(struct store *s, const char *fmt, ...)
{
	if (!s->notice)
		return;
	char text[512];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	s->notice(s->notice_ctx, text);
}

enum status store_check_home(struct store *s, struct err *e)
{
	char path[STORE_PATH_MAX];
	enum status st = store_path(path, e, "%s/LOCK", s->path);
	if (st == OK && !store_io_same(path, s->lock_fd))
		st = err_set(e, E_UNAVAILABLE,
			"%s was removed or replaced while in use: nothing is written there; "
			"restart firn",
			s->path);
	return st;
}

static bool is_due(atomic_int_fast64_t *last_ns, int64_t interval_ns)
{
	int64_t now = clock_monotonic_ns(), last = atomic_load(last_ns);
	return now - last >= interval_ns && atomic_compare_exchange_strong(last_ns, &last, now);
}

static uint64_t near_limit(const struct store *s)
{
	uint64_t limit = s->config.resident_bytes;
	return limit - MIN(MAX(limit / 16 * SPARE_SIXTEENTHS, SPARE_BYTES_MIN), limit / 2);
}

bool store_relieve(struct store *s)
{
	uint64_t limit = near_limit(s);
	if (!s->config.resident_bytes || !is_due(&s->looked_ns, LOOK_INTERVAL_NS))
		return atomic_load(&s->pressed);
	uint64_t resident = os_self_rss_read(s->resident_fd);
	if (resident > limit / 16 * TRIM_SIXTEENTHS && is_due(&s->trimmed_ns, TRIM_INTERVAL_NS)) {
		(void)malloc_trim(0);
		resident = os_self_rss_read(s->resident_fd);
	}
	bool pressed = resident > limit;
	if (pressed && !atomic_exchange(&s->pressed, true))
		metric_add(&s->metrics.pressed, 1);
	atomic_store(&s->pressed, pressed);
	return pressed;
}

uint64_t store_upkeep_bytes(struct store *s)
{
	uint64_t share = REWRITE_BYTES(s), limit = near_limit(s);
	if (!s->config.resident_bytes)
		return share;
	(void)store_relieve(s);
	uint64_t resident = os_self_rss_read(s->resident_fd);
	return MIN(share, MAX(resident < limit ? limit - resident : 0, share / 4));
}
