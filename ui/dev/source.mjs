// SPDX-License-Identifier: Apache-2.0
// Sources of the made samples: files below /srv are on the host, the text of others is not at hand.
import { PROCESSES } from "./data.mjs";

/** Where functions begin. */
const FRAMES = new Map(PROCESSES.flatMap((one) => [...one.base, ...one.steps.flat()]).map((frame) => [frame.name, frame]));

/** Lines of a made file: what the table has of its functions, spread over lines from where they begin. */
export function sourceOf({ rows, total }, unit, file) {
	const values = new Map();
	for (const row of rows.filter((one) => one.file === file)) {
		const begin = FRAMES.get(row.name)?.line ?? 1;
		for (const [i, share] of [0.1, 0.6, 0.3].entries()) {
			const at = begin + 1 + 2 * i;
			const have = values.get(at) ?? [0, 0];
			values.set(at, [have[0] + Math.round(row.self * share), have[1] + Math.round(row.total * share)]);
		}
	}
	const places = [...values].map(([at, [self, all]]) => [at, self, all]).sort((a, b) => a[0] - b[0]);
	const last = places.at(-1)?.[0] ?? 0;
	const lines = Array.from({ length: last + 30 }, (_, i) => `\tstep_${i + 1} = work(${i}, "a line of ${file}")`);
	const host = file.startsWith("/srv/") ? { origin: "host", text: `${lines.join("\n")}\n`, modified: Date.now() - 864e5 } : {};
	return { unit, total, pending: 0, builds: host.text ? ["0f3a5c7e9b1d2468"] : ["0f3a5c7e9b1d2468", "11223344556677"], places, ...host };
}

const CODE = ["push rbp", "mov rbp, rsp", "mov rax, qword ptr [rdi + 8]", "test rax, rax", "je 0x4011c0", "call 0x401f00", "imul rsi, rsi, 0x24924925", "pop rbp", "ret"];

/** Instructions of a made function: those of python3.11 are at hand. `binary` "": the one that costs most. */
export function instructionsOf({ rows, total }, unit, name, binary) {
	const row = rows.find((one) => one.name === name && (!binary || one.binary === binary));
	const frame = FRAMES.get(name);
	const answer = { unit, total, pending: 0, builds: row ? ["0f3a5c7e9b1d2468"] : [], binary: row?.binary ?? binary, instructions: [] };
	if (!row || row.binary !== "python3.11") {
		return row ? { ...answer, missing: "no executable of this build id" } : answer;
	}
	answer.instructions = CODE.map((text, i) => {
		const share = i === 2 ? 0.7 : i === 5 ? 0.3 : 0;
		const place = frame?.file ? [frame.file, frame.line + Math.floor(i / 3), name] : [];
		return [(0x401000 + 4 * i).toString(16), text, Math.round(row.self * share), Math.round(row.total * share), ...place];
	});
	return answer;
}
