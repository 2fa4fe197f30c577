// SPDX-License-Identifier: Apache-2.0
/** Answers of the HTTP API as docs/api.md writes them. */
import type { Instruction } from "../model/code.ts";
import type { ApiSeries } from "../model/series.ts";
import type { Row } from "../model/table.ts";

/** A profile type that samples exist for. Instants in milliseconds since 1970. */
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
	/** Of everything that the question has. */
	total: number;
	pending: number;
	/** Build ids that have lines of the file, by what they cost. */
	builds: string[];
	/** Line, self, total. */
	places: [number, number, number][];
	/** Where the text is from; none: it is not at hand. */
	origin?: "upload" | "debuginfod" | "host";
	text?: string;
	/** When the file of this host was changed, in milliseconds since 1970. */
	modified?: number;
}

/** /api/instructions */
export interface InstructionsAnswer {
	unit: string;
	total: number;
	pending: number;
	builds: string[];
	/** The one that was asked for, or the one that costs most. */
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
	/** That were taken, of what is shown; null where the values do not say. */
	samples: number | null;
	pending: number;
	strings: string[];
	nodes: {
		parent: number[];
		/** In place of `parent`, where it was asked for. */
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

/** An agent of /api/agents: who pushed, and how the last push ended. */
export interface Agent {
	id: string;
	lastError: string;
	/** RFC 3339. */
	lastPush: string;
	/** "0.0225s" */
	lastPushDuration: string;
	/** What it calls itself: "firn/0.1.0". */
	version?: string;
	/** By the server's limits, since it is listed; a decimal text. */
	refusedSamples?: string;
	/** Of an earlier push, and when that was. */
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
	/** By relabelling: it is not scraped. */
	dropped?: boolean;
}

export interface LabelSet {
	labels?: { name: string; value: string }[];
}

/** How the targets of a job are found out. */
export interface Discovery {
	job: string;
	/** Such as dns_sd_configs. */
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
