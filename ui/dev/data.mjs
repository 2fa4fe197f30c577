// SPDX-License-Identifier: Apache-2.0
// Makes samples that look like a real host's: processes with their own rhythm, stacks that share
// their beginnings, a kernel below them. The same seed gives the same samples.

import { FAULT, KERNEL, KERNEL_PATHS, markerFrame } from "./processes.mjs";

export { PROCESSES } from "./processes.mjs";

/** A small generator of numbers in [0, 1). */
export function randomOf(seed) {
	let s = seed >>> 0;
	return () => {
		s = (s + 0x6d2b79f5) >>> 0;
		let t = Math.imul(s ^ (s >>> 15), 1 | s);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
}

/** A stack of a process: a walk through its steps, deeper where the dice say so. */
export function stackOf(process, random, depth) {
	const stack = [...process.base];
	const rounds = 1 + Math.floor(random() * depth);
	for (let i = 0; i < rounds; i++) {
		const step = process.steps[Math.floor(random() ** 1.6 * process.steps.length)];
		stack.push(...step.slice(0, 1 + Math.floor(random() * step.length)));
	}
	const dice = random();
	if (process.base[0].kind !== KERNEL && dice < 0.22) {
		const path = KERNEL_PATHS[Math.floor(random() ** 1.5 * KERNEL_PATHS.length)];
		stack.push(...path.slice(0, 3 + Math.floor(random() * path.length)));
	} else if (process.base[0].kind !== KERNEL && dice < 0.3) {
		stack.push(...FAULT.slice(0, 2 + Math.floor(random() * 6)));
	} else if (dice > 0.985) {
		return [markerFrame(), ...stack.slice(process.base.length)];
	}
	return stack;
}

/** CPU use of a process at an instant, in cores: its own waves, and bursts. */
export function coresAt(process, ms) {
	const seed = process.labels.comm.length * 7919 + process.labels.comm.charCodeAt(0);
	const slow = Math.sin((ms / 1000 + seed) / 170);
	const quick = Math.sin((ms / 1000) * (0.11 + (seed % 7) / 90) + seed);
	const noise = randomOf(Math.floor(ms / 10_000) * 31 + seed)();
	const burst = randomOf(Math.floor(ms / 90_000) * 17 + seed)() > 0.72 ? 1.6 : 1;
	return Math.max(
		0,
		process.cores * burst * (0.75 + 0.22 * slow + 0.14 * quick + 0.3 * (noise - 0.5)),
	);
}
