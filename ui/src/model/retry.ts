// SPDX-License-Identifier: Apache-2.0
/** When a request without an answer is repeated, and when the page says so. */

/** Trouble that lasts this long is shown, in milliseconds. */
export const LASTING_MS = 6000;
/** How long an answer is waited for, in milliseconds. */
export const LATE_MS = 90_000;
const FIRST_MS = 700;
const MOST_MS = 15_000;

/** Whether the same request may succeed later: no server, a busy one, or one that starts. */
export function isPassing(status: number, code: string): boolean {
	return (status === 0 && code !== "CLIENT") || [408, 429, 502, 503, 504].includes(status);
}

/** Whether an answer may still come: there is none yet, and repeating the request may help. */
export function isAwaited(answer: unknown, error: { status: number; code: string } | null): boolean {
	return !answer && (error === null || isPassing(error.status, error.code));
}

/**
 * The wait before attempt `count` (1 is the first one after a failure), in milliseconds. `random`
 * in [0, 1) spreads the requests of pages that were refused at the same time. The wait is at least
 * the one that the server asks for.
 */
export function retryWait(count: number, random: number, leastMs = 0): number {
	const wait = Math.min(MOST_MS, FIRST_MS * 1.7 ** (count - 1));
	return Math.max(Math.min(leastMs, MOST_MS), wait * (0.7 + 0.6 * random));
}
