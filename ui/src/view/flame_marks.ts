// SPDX-License-Identifier: Apache-2.0
/** Marks on frames besides colour and text. */
import { Kind } from "../model/flame.ts";
import type { Layout } from "../model/layout.ts";
import { GAP_PX, ROW_PX, type Scene } from "./flame_scene.ts";

/** Hatches markers, which are not functions but tell why a stack ended. `row`: height in device pixels. */
export function drawHatches(
	ctx: CanvasRenderingContext2D,
	scene: Scene,
	layout: Layout,
	row: number,
	ratio: number,
	scrollPx: number,
): void {
	ctx.strokeStyle = scene.colours.hatch;
	ctx.lineWidth = ratio;
	for (let k = 0; k < layout.count; k++) {
		const node = layout.node[k]!;
		const width = layout.right[k]! - layout.left[k]!;
		if (node < 0 || scene.flame.kind[node] !== Kind.marker || width < 4 * ratio) {
			continue;
		}
		const y = layout.depth[k]! * row - Math.round(scrollPx * ratio);
		const height = row - Math.round(GAP_PX * ratio);
		ctx.save();
		ctx.beginPath();
		ctx.rect(layout.left[k]!, y, width - ratio, height);
		ctx.clip();
		ctx.beginPath();
		for (let x = layout.left[k]! - row; x < layout.right[k]!; x += 6 * ratio) {
			ctx.moveTo(x, y + row);
			ctx.lineTo(x + row, y);
		}
		ctx.stroke();
		ctx.restore();
	}
}

/** Underlines the other frames of the same function. In CSS pixels. */
export function markEqual(
	ctx: CanvasRenderingContext2D,
	{ flame, colours }: Scene,
	layout: Layout,
	node: number,
	ratio: number,
	scrollPx: number,
): void {
	ctx.fillStyle = colours.hover;
	for (let k = 0; k < layout.count; k++) {
		const other = layout.node[k]!;
		const same = other > 0 && flame.name[other] === flame.name[node] && flame.binary[other] === flame.binary[node];
		if (same && other !== node) {
			const left = layout.left[k]! / ratio;
			const width = Math.max(layout.right[k]! / ratio - left - 1, 1.5);
			ctx.fillRect(left, (layout.depth[k]! + 1) * ROW_PX - scrollPx - GAP_PX - 2, width, 2);
		}
	}
}
