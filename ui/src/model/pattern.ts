// SPDX-License-Identifier: Apache-2.0
/**
 * Regular expressions that cannot freeze the tab. A browser's engine tries all ways to divide a
 * text among repetitions, which may take practically for ever. So expressions with a repetition
 * within a repetition are refused; for others the length of each name and the time for all names
 * are limited.
 */

/**
 * The most characters of a name that are matched, by the number of repetitions: with k of them, and
 * any start, a text of n characters can be divided in about n^(k+1)/(k+1)! ways, which stays below
 * 100 million.
 */
export const NAME_MAX = [4000, 4000, 800, 200] as const;
/** The most time of one expression for all names, in milliseconds. */
export const TIME_MAX_MS = 1500;
const REPEATS_MAX = NAME_MAX.length - 1;

/** The number of repetitions of an expression, and the error in them, or "". */
function riskOf(source: string): { repeats: number; error: string } {
	/** For each open group: whether something in it repeats or has alternatives. */
	const open: boolean[] = [];
	let repeats = 0;
	let closed = false;
	for (let i = 0; i < source.length; i++) {
		const c = source[i]!;
		const wasClosed = closed;
		closed = false;
		if (c === "\\") {
			i++;
		} else if (c === "[") {
			for (i++; i < source.length && (source[i] !== "]" || source[i - 1] === "\\"); i++) {}
		} else if (c === "(") {
			open.push(false);
		} else if (c === ")") {
			closed = open.pop() ?? false;
			if (open.length > 0) {
				open[open.length - 1] ||= closed;
			}
		} else if (c === "|" && open.length > 0) {
			open[open.length - 1] = true;
		} else if (c === "*" || c === "+" || (c === "{" && /^\{\d+,?\d*\}/.test(source.slice(i)))) {
			if (wasClosed) {
				return { repeats, error: "a repetition of what repeats or has alternatives could take forever" };
			}
			repeats++;
			if (open.length > 0) {
				open[open.length - 1] = true;
			}
		}
	}
	return { repeats, error: repeats > REPEATS_MAX ? `more than ${REPEATS_MAX} repetitions could take forever` : "" };
}

/**
 * A test for names, or the error in the expression. When its time is up, it matches nothing more.
 */
export function compilePattern(
	source: string,
	now = () => performance.now(),
): { test: ((name: string) => boolean) | null; error: string } {
	let pattern: RegExp;
	try {
		pattern = new RegExp(source, "i");
	} catch {
		return { test: null, error: "not a regular expression" };
	}
	const { repeats, error } = riskOf(source);
	if (error !== "") {
		return { test: null, error };
	}
	const known = new Map<string, boolean>();
	let spent = 0;
	const test = (name: string) => {
		let hit = known.get(name);
		if (hit === undefined) {
			const begun = now();
			hit = spent < TIME_MAX_MS && pattern.test(name.slice(0, NAME_MAX[repeats]));
			spent += now() - begun;
			known.set(name, hit);
		}
		return hit;
	};
	return { test, error: "" };
}
