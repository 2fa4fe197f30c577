// SPDX-License-Identifier: Apache-2.0
/**
 * Places nodes in layers, so that calls go down (after Sugiyama): calls that close a circle are
 * left out first; a node is one layer below its lowest caller; a long call gets a place in each
 * layer that it passes; layers are ordered by the mean position of their neighbours, up and down a
 * few times.
 */

export interface Link {
	from: number;
	to: number;
}

/** Positions, in units that the caller of layout() multiplies by its own sizes. */
export interface Layout {
	/** By node: its layer, and its place in the layer. */
	layer: number[];
	x: number[];
	/** By link: the places that it passes between its ends, one in each layer. */
	bends: { layer: number; x: number }[][];
	layers: number;
	/** The widest layer. */
	width: number;
}

const SWEEPS = 6;
/** Width of a link that passes a layer; a node's is 1. */
const BEND_WIDTH = 0.25;

/** Links back to a node from which their begin is reached. */
function backward(count: number, links: readonly Link[]): Set<number> {
	const out: number[][] = Array.from({ length: count }, () => []);
	links.forEach((link, i) => out[link.from]!.push(i));
	const state = new Uint8Array(count);
	const back = new Set<number>();
	for (let first = 0; first < count; first++) {
		const path: [node: number, next: number][] = state[first] === 0 ? [[first, 0]] : [];
		while (path.length > 0) {
			const step = path[path.length - 1]!;
			const [node] = step;
			state[node] = 1;
			const link = out[node]![step[1]++];
			if (link === undefined) {
				state[node] = 2;
				path.pop();
			} else if (state[links[link]!.to] === 1) {
				back.add(link);
			} else if (state[links[link]!.to] === 0) {
				path.push([links[link]!.to, 0]);
			}
		}
	}
	return back;
}

function layersOf(count: number, links: readonly Link[], back: Set<number>): number[] {
	const layer = new Array<number>(count).fill(0);
	// at most as many rounds as the longest path has nodes
	for (let changed = true, rounds = 0; changed && rounds <= count; rounds++) {
		changed = false;
		links.forEach(({ from, to }, i) => {
			if (!back.has(i) && layer[to]! <= layer[from]!) {
				layer[to] = layer[from]! + 1;
				changed = true;
			}
		});
	}
	return layer;
}

/** Lays out `count` nodes; earlier ones come first if nothing else decides. */
export function layout(count: number, links: readonly Link[]): Layout {
	const back = backward(count, links);
	const layer = layersOf(count, links, back);
	/** Elements: the nodes, then the bends. */
	const above: number[][] = Array.from({ length: count }, () => []);
	const below: number[][] = Array.from({ length: count }, () => []);
	const level = [...layer];
	const chains: number[][] = links.map(() => []);
	const join = (a: number, b: number) => {
		below[a]!.push(b);
		above[b]!.push(a);
	};
	links.forEach(({ from, to }, i) => {
		if (back.has(i)) {
			return;
		}
		let last = from;
		for (let at = layer[from]! + 1; at < layer[to]!; at++) {
			const bend = level.push(at) - 1;
			above.push([]);
			below.push([]);
			chains[i]!.push(bend);
			join(last, bend);
			last = bend;
		}
		join(last, to);
	});
	const rows: number[][] = Array.from({ length: Math.max(0, ...level) + 1 }, () => []);
	level.forEach((at, element) => rows[at]!.push(element));
	const size = (element: number) => (element < count ? 1 : BEND_WIDTH);
	const x = new Array<number>(level.length).fill(0);
	const place = (row: number[]) => {
		let at = -row.reduce((sum, one) => sum + size(one), 0) / 2;
		for (const one of row) {
			x[one] = at + size(one) / 2;
			at += size(one);
		}
	};
	rows.forEach(place);
	for (let sweep = 0; sweep < SWEEPS; sweep++) {
		const next = sweep % 2 === 0 ? above : below;
		for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
			const middle = new Map(
				row.map((one) => {
					const near = next[one]!;
					return [one, near.length === 0 ? x[one]! : near.reduce((sum, n) => sum + x[n]!, 0) / near.length];
				}),
			);
			row.sort((a, b) => middle.get(a)! - middle.get(b)!);
			place(row);
		}
	}
	const width = Math.max(1, ...rows.map((row) => row.reduce((sum, one) => sum + size(one), 0)));
	return {
		layer,
		x: x.slice(0, count).map((one) => one + width / 2),
		bends: chains.map((chain) => chain.map((one) => ({ layer: level[one]!, x: x[one]! + width / 2 }))),
		layers: rows.length,
		width,
	};
}
