// SPDX-License-Identifier: Apache-2.0
/** The server's time. */

let skewMs = 0;

/** Learns the server's clock from the Date header of an answer; whole seconds are its precision. */
export function learnClock(header: string | null): void {
	const server = Date.parse(header ?? "");
	if (!Number.isNaN(server)) {
		const skew = server - Date.now();
		skewMs = Math.abs(skew) > 2500 ? skew : 0;
	}
}

/** Milliseconds since 1970 by the server's clock. */
export function serverNow(): number {
	return Date.now() + skewMs;
}
