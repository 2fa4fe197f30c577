// SPDX-License-Identifier: Apache-2.0
// Agents of the server of made samples: a good one, a late one that failed before, and one with an error.

function agent(now, id, ago, lastError, lastFailure = lastError) {
	return {
		id,
		lastError,
		lastPush: new Date(now - ago).toISOString(),
		lastPushDuration: "0.004500s",
		version: "firn/0.1.0",
		refusedSamples: lastError ? "312" : "0",
		lastFailure,
		lastFailureTime: lastFailure ? new Date(now - ago - 60_000).toISOString() : null,
	};
}

/** The answer's list. */
export const agentsOf = (now) => [
	agent(now, "web-1", 1200, ""),
	agent(now, "web-2", 190_000, "", "the server is busy: try again"),
	agent(now, "db-1", 2500, "quota: the series of this tenant are full"),
];
