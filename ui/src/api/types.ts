// SPDX-License-Identifier: Apache-2.0
/** Answers of the HTTP API as docs/api.md writes them. */
import type { Instruction } from "../model/code.ts";
import type { ApiSeries } from "../model/series.ts";
import type { Row } from "../model/table.ts";

/** A profile type that has samples. Times are in milliseconds since 1970. */
export interface ProfileType {
	type: string;
	unit: string;
	delta: boolean;
	first: number;
	last: number;
}

/** /api/series */
export interface SeriesAnswer {
	unit: string;
	/** Milliseconds. */
	step: number;
	by: string[];
	series: ApiSeries[];
}

/** /api/source */
export interface SourceAnswer {
	unit: string;
	/** Of all samples of the question. */
	total: number;
	pending: number;
	/** Build ids that have lines of the file, the largest value first. */
	builds: string[];
	/** Line, self, total. */
	places: [number, number, number][];
	/** Where the text is from; undefined: there is no text. */
	origin?: "upload" | "debuginfod" | "host";
	text?: string;
	/** When the file on the server's host was changed, in milliseconds since 1970. */
	modified?: number;
}

/** /api/instructions */
export interface InstructionsAnswer {
	unit: string;
	total: number;
	pending: number;
	builds: string[];
	/** The requested binary, or the one with the largest value. */
	binary: string;
	/** Why there are none. */
	missing?: string;
	instructions: Instruction[];
}

/** /api/flamegraph */
export interface FlameAnswer {
	unit: string;
	total: number;
	trimmed: number;
	/** Number of samples of the shown values; null: it cannot be computed. */
	samples: number | null;
	pending: number;
	strings: string[];
	nodes: {
		parent: number[];
		/** In place of `parent`, if requested. */
		depth?: number[];
		name: number[];
		file: number[];
		line: number[];
		binary: number[];
		kind: number[];
		inlined: number[];
		self: number[];
		total: number[];
		/** Of a flame chart: microseconds after `begin`. */
		time?: number[];
	};
	/** Milliseconds since 1970. */
	begin?: number;
}

/** /api/top */
export interface TopAnswer {
	unit: string;
	total: number;
	rows: Row[];
}

/** An agent of /api/agents, and how its last push ended. */
export interface Agent {
	id: string;
	lastError: string;
	/** RFC 3339. */
	lastPush: string;
	/** "0.0225s" */
	lastPushDuration: string;
	/** Its own name and version: "firn/0.1.0". */
	version?: string;
	/** Samples that the server's limits refused since the agent is listed; a decimal text. */
	refusedSamples?: string;
	/** The error of an earlier push, and its time. */
	lastFailure?: string;
	lastFailureTime?: string;
}

/** A target of /api/targets. */
export interface Target {
	/** Before relabelling. */
	discoveredLabels?: LabelSet;
	labels?: LabelSet;
	lastError: string;
	lastScrape?: string;
	lastScrapeDuration?: string;
	nextScrape?: string;
	url: string;
	health: string;
	/** It is not scraped, because relabelling dropped it. */
	dropped?: boolean;
}

export interface LabelSet {
	labels?: { name: string; value: string }[];
}

/** A discovery of a job, which finds targets. */
export interface Discovery {
	job: string;
	/** The key in the configuration, such as dns_sd_configs. */
	key: string;
	/** How many addresses it found, as a decimal text. */
	found?: string;
	lastError?: string;
}

/** A job of scrape_configs. */
export interface Job {
	name: string;
	targets: Target[];
	discoveries: Discovery[];
}
