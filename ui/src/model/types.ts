// SPDX-License-Identifier: Apache-2.0
/**
 * Descriptions of profile types "NAME:TYPE:UNIT:PERIOD TYPE:PERIOD UNIT", with ":delta" at the end
 * for sums.
 */

/** What a type measures, for headings, values and the sentence for newcomers. */
export interface Meaning {
	/** "Memory in use" */
	name: string;
	/** Completes "as wide as …". */
	width: string;
	/** Follows a value: "of CPU time". */
	after: string;
}

const MEANINGS: Record<string, Meaning> = {
	cpu: { name: "CPU", width: "the CPU time it took", after: "of CPU time" },
	wallclock: {
		name: "Wall-clock time",
		width: "the time it took, waiting included",
		after: "of wall-clock time",
	},
	inuse_space: {
		name: "Memory in use",
		width: "the memory it allocated that is still in use",
		after: "in use on average",
	},
	inuse_objects: {
		name: "Objects in use",
		width: "the number of objects it allocated that are still in use",
		after: "objects in use on average",
	},
	alloc_space: {
		name: "Memory allocated",
		width: "the memory it allocated",
		after: "allocated",
	},
	alloc_objects: {
		name: "Objects allocated",
		width: "the number of objects it allocated",
		after: "objects allocated",
	},
	goroutine: {
		name: "Goroutines",
		width: "the number of goroutines that are in it",
		after: "goroutines on average",
	},
	contentions: {
		name: "Lock contentions",
		width: "how often it waited for a lock",
		after: "contentions",
	},
	delay: { name: "Time blocked", width: "the time it was blocked", after: "of waiting" },
};

/** What a type measures. */
export function meaningOf(type: string): Meaning {
	const [source = "", sample = "", , period = ""] = type.split(":");
	const what = sample === "samples" && period !== "" ? period : sample === "time" ? period : sample;
	const found = MEANINGS[what] ?? MEANINGS[what.replace(/s$/, "")];
	if (found) {
		return found;
	}
	if (type === "") {
		return { name: "", width: "its share of all", after: "" };
	}
	const words = (what || source).replace(/_/g, " ");
	const name = words.charAt(0).toUpperCase() + words.slice(1);
	return { name, width: `its share of ${words}`, after: type.includes(":count:") ? words : "" };
}

/**
 * The shown name of a type among others: "CPU", or "CPU · process_cpu" if there are other types of
 * CPU time; with "(delta)" if the same type also exists as a gauge.
 */
export function typeName(type: string, all: readonly string[] = []): string {
	const [source = "", sample] = type.split(":");
	const name = meaningOf(type).name;
	const alike = all.filter((t) => t !== type && meaningOf(t).name === name);
	const isTwice = alike.some((t) => t.startsWith(`${source}:`));
	const isSummed = alike.some((t) => `${t}:delta` === type);
	const isOfMany = alike.some((t) => !t.startsWith(`${source}:`));
	const from = source === "parca_agent" ? "agents" : source;
	const words = isTwice && sample === "samples" ? " samples" : "";
	return `${name}${words}${isSummed ? " (delta)" : ""}${isOfMany ? ` · ${from}` : ""}`;
}

/** The default type: CPU time of firn's agent, other CPU time, other times, anything. */
export function usualType<T extends { type: string; delta: boolean }>(types: readonly T[]): T | null {
	const tests = [
		(t: T) => /^parca_agent:samples:count:cpu:/.test(t.type),
		(t: T) => t.delta && /^[^:]*:cpu:/.test(t.type),
		(t: T) => t.delta && /:cpu:nanoseconds/.test(t.type),
		(t: T) => /:cpu:nanoseconds/.test(t.type),
		(t: T) => t.delta && /:nanoseconds/.test(t.type),
		() => true,
	];
	for (const test of tests) {
		const found = types.find(test);
		if (found) {
			return found;
		}
	}
	return null;
}

/** Labels that are offered first, if samples have them. */
export const USUAL_LABELS = [
	"comm", "executable", "service_name", "service", "job", "pod", "container_id", "cgroup", "namespace", "instance", "node", "pid", "thread_name", "cpu",
];

/** Known labels, the usual ones first. */
export function orderLabels(known: readonly string[]): string[] {
	const usual = USUAL_LABELS.filter((l) => known.includes(l));
	return [...usual, ...known.filter((l) => !usual.includes(l))];
}
