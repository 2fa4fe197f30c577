// SPDX-License-Identifier: Apache-2.0
/** Several graphs side by side in one: each below a frame that names it. */
import { buildFlame, emptyFlame, type Flame } from "./flame.ts";

/** Puts graphs below a common root, the largest first; those without samples are left out. */
export function joinFlames(parts: readonly { name: string; flame: Flame }[]): Flame {
	const list = parts.filter((p) => p.flame.total > 0).sort((a, b) => b.flame.total - a.flame.total);
	const sum = (of: (f: Flame) => number) => list.reduce((all, p) => all + of(p.flame), 0);
	const count = 1 + sum((f) => f.count);
	const total = sum((f) => f.total);
	const first = list[0]?.flame;
	if (!first) {
		return emptyFlame("");
	}
	const strings = [""];
	const ids = new Map([["", 0]]);
	const text = (s: string) => {
		let id = ids.get(s);
		if (id === undefined) {
			id = strings.push(s) - 1;
			ids.set(s, id);
		}
		return id;
	};
	const whole = () => new Int32Array(count);
	const [parent, name, file, binary, line] = [whole(), whole(), whole(), whole(), whole()];
	const [kind, inlined] = [new Uint8Array(count), new Uint8Array(count)];
	const [self, value] = [new Float64Array(count), new Float64Array(count)];
	value[0] = total;
	let at = 1;
	for (const part of list) {
		const f = part.flame;
		const own = Int32Array.from(f.strings, text);
		for (let i = 0; i < f.count; i++) {
			parent[at + i] = i === 0 ? 0 : at + f.parent[i]!;
			name[at + i] = i === 0 ? text(part.name) : own[f.name[i]!]!;
			file[at + i] = own[f.file[i]!]!;
			binary[at + i] = own[f.binary[i]!]!;
		}
		line.set(f.line, at);
		kind.set(f.kind, at);
		inlined.set(f.inlined, at);
		self.set(f.self, at);
		value.set(f.value, at);
		kind[at] = 0;
		at += f.count;
	}
	const known = list.every((p) => p.flame.samples !== null);
	return buildFlame({
		unit: first.unit,
		total,
		trimmed: sum((f) => f.trimmed),
		samples: known ? sum((f) => f.samples ?? 0) : null,
		pending: sum((f) => f.pending),
		strings,
		parent,
		name,
		file,
		binary,
		line,
		kind,
		inlined,
		self,
		value,
	});
}
