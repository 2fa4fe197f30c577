// SPDX-License-Identifier: Apache-2.0
/** A flame graph as an SVG file: each frame has its name and values as a title. */
import type { Paint } from "./colour.ts";
import { type Flame, nodeBinary, nodeName } from "./flame.ts";
import { layoutFrames, NAMED_PX, newLayout } from "./layout.ts";
import { formatShare, formatValue } from "./units.ts";

/** The content of the picture. */
export interface Picture {
	flame: Flame;
	paint: Paint;
	/** Frames that keep their colour; null: all. */
	hit: Uint8Array | null;
	zoom: number;
	/** The text above the graph. */
	title: string;
	/** Colours as CSS writes them. */
	back: string;
	text: string;
}

const ROW = 20;
const HEAD = 34;
const PAD = 10;
const CHAR = 6.9;
/** The most rows of a picture; a deeper recursion is cut. */
export const ROWS_MAX = 400;

function escape(text: string): string {
	// biome-ignore lint/suspicious/noControlCharactersInRegex: XML has no way to write them
	const plain = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\ufffd");
	return plain.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

/** "#rrggbb" of a pixel of ImageData. */
function hex(pixel: number): string {
	const bytes = [pixel & 0xff, (pixel >> 8) & 0xff, (pixel >> 16) & 0xff];
	return `#${bytes.map((v) => v.toString(16).padStart(2, "0")).join("")}`;
}

/** The deepest row at or below a node, at most ROWS_MAX. */
export function rowsOf(f: Flame, node: number): number {
	let deepest = f.depth[node]!;
	for (let i = node; i < f.end[node]!; i++) {
		deepest = Math.max(deepest, f.depth[i]!);
	}
	return Math.min(deepest + 1, ROWS_MAX);
}

/** The SVG file; `width` in pixels. */
export function flameSvg(p: Picture, width: number): string {
	const { flame: f, zoom } = p;
	const rows = rowsOf(f, zoom);
	const layout = newLayout();
	const inner = width - 2 * PAD;
	const x0 = f.start[zoom]!;
	const window = { x0, x1: x0 + f.value[zoom]!, width: inner, top: 0, bottom: rows - 1 };
	layoutFrames(f, window, layout);
	const height = HEAD + rows * ROW + PAD;
	const out = [
		`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="11.5">`,
		`<rect width="100%" height="100%" fill="${p.back}"/>`,
		`<text x="${PAD}" y="21" font-family="sans-serif" font-size="13" fill="${p.text}">${escape(p.title)}</text>`,
	];
	for (let k = 0; k < layout.count; k++) {
		const node = layout.node[k]!;
		if (node < 0) {
			continue;
		}
		const left = PAD + layout.left[k]!;
		const wide = layout.right[k]! - layout.left[k]!;
		const y = HEAD + layout.depth[k]! * ROW;
		const isDim = (p.hit && !p.hit[node]) || f.depth[node]! < f.depth[zoom]!;
		const name = nodeName(f, node);
		const figures = `${formatValue(f.value[node]!, f.unit)}, ${formatShare(f.value[node]!, f.value[0]!)}`;
		const own = `self ${formatValue(f.self[node]!, f.unit)}`;
		const title = [name, nodeBinary(f, node), figures, own].filter(Boolean).join("\n");
		const fill = hex((isDim ? p.paint.dim : p.paint.full)[node]!);
		out.push(
			`<g><title>${escape(title)}</title><rect x="${left.toFixed(1)}" y="${y}" width="${Math.max(wide - 1, 0.3).toFixed(1)}" height="${ROW - 1}" fill="${fill}"/>`,
		);
		const room = Math.floor((wide - 8) / CHAR);
		if (wide >= NAMED_PX) {
			const label = name.length <= room ? name : `${name.slice(0, room - 1)}…`;
			out.push(`<text x="${(left + 4).toFixed(1)}" y="${y + 14}" fill="${p.text}">${escape(label)}</text>`);
		}
		out.push("</g>");
	}
	out.push("</svg>\n");
	return out.join("\n");
}

/** Cells as CSV (RFC 4180); cells that a spreadsheet would take for a formula are made texts. */
export function csv(rows: readonly (readonly (string | number)[])[]): string {
	const cell = (value: string | number) => {
		const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
		return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
	};
	return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Folded stacks: "root;…;leaf value" a line; above them their unit, as the server writes it. */
export function folded(f: Flame): string {
	const lines: string[] = f.unit ? [`# unit: ${f.unit}`] : [];
	const path: string[] = [];
	for (let i = 1; i < f.count; i++) {
		path.length = f.depth[i]! - 1;
		path.push(nodeName(f, i).replace(/[;\n]/g, ":"));
		if (f.self[i]! > 0) {
			lines.push(`${path.join(";")} ${f.self[i]}`);
		}
	}
	return `${lines.join("\n")}\n`;
}
