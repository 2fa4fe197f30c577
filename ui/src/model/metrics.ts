// SPDX-License-Identifier: Apache-2.0
/** The server's own metrics, as /metrics writes them: `name{label="value"} number`. */

/** One metric. */
export interface Metric {
	name: string;
	labels: Record<string, string>;
	value: number;
}

/** The most lines that are read. */
const LINES_MAX = 20_000;

/** Parses the text; malformed lines are skipped. */
export function parseMetrics(text: string): Metric[] {
	const found: Metric[] = [];
	for (const line of text.split("\n").slice(0, LINES_MAX)) {
		const [, name, inside, value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([-+\deE.]+|NaN|[+-]Inf)$/.exec(line) ?? [];
		if (!name) {
			continue;
		}
		const labels: Record<string, string> = {};
		for (const [, key, text] of (inside ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
			labels[key!] = text!.replace(/\\(.)/g, "$1");
		}
		found.push({ name, labels, value: Number(value) });
	}
	return found;
}

/** Looks up metrics; missing ones are 0. */
export class Metrics {
	readonly atMs: number;
	private readonly all: Metric[];

	constructor(text: string, atMs: number) {
		this.all = parseMetrics(text);
		this.atMs = atMs;
	}

	has(name: string): boolean {
		return this.all.some((m) => m.name === name);
	}

	/** The sum of a metric over its labels. */
	sum(name: string): number {
		return this.all.reduce((sum, m) => (m.name === name ? sum + m.value : sum), 0);
	}

	/** The values of a metric that are not 0, by a label, the largest first. */
	by(name: string, label: string): { text: string; value: number }[] {
		return this.all
			.filter((m) => m.name === name && m.value > 0)
			.map((m) => ({ text: m.labels[label] ?? "", value: m.value }))
			.sort((a, b) => b.value - a.value);
	}
}
