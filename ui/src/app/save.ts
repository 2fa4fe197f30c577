// SPDX-License-Identifier: Apache-2.0
/** Files made in the page: pictures, tables and stacks of the current view. */
import { type Picture, csv, flameSvg, folded, ROWS_MAX, rowsOf } from "../model/svg.ts";
import { FlameRenderer, ROW_PX } from "../view/flame_renderer.ts";
import type { Scene } from "../view/flame_scene.ts";

/** Width of pictures, in CSS pixels. */
const WIDTH = 1600;
/**
 * Pictures have two pixels for each CSS pixel, unless they would be higher than a canvas may be.
 */
const SIDE_MAX = 16_000;

/** The current view, to be saved. */
export interface Seen {
	scene: Scene;
	picture: Picture;
	/** Heading and rows of the table. */
	table: readonly (readonly (string | number)[])[];
}

/** Lets the browser save a file. */
function give(name: string, data: Blob): void {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(data);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const text = (body: string, type: string) => new Blob([body], { type });

/** The graph as a picture of pixels. */
function savePng({ scene, picture }: Seen): void {
	const rows = Math.min(rowsOf(scene.flame, scene.zoom), ROWS_MAX);
	const height = rows * ROW_PX;
	const canvas = document.createElement("canvas");
	const renderer = new FlameRenderer(canvas, document.createElement("canvas"));
	const ratio = height * 2 <= SIDE_MAX ? 2 : 1;
	renderer.resize(WIDTH, height, ratio);
	renderer.show({ ...scene, flip: false });
	const x0 = scene.flame.start[scene.zoom]!;
	renderer.extent = { x0, x1: x0 + scene.flame.value[scene.zoom]! };
	renderer.draw();
	const whole = document.createElement("canvas");
	const head = 34 * ratio;
	whole.width = canvas.width;
	whole.height = canvas.height + head;
	const ctx = whole.getContext("2d")!;
	ctx.fillStyle = picture.back;
	ctx.fillRect(0, 0, whole.width, whole.height);
	ctx.fillStyle = picture.text;
	ctx.font = `${13 * ratio}px system-ui, sans-serif`;
	ctx.fillText(picture.title, 8 * ratio, 21 * ratio);
	ctx.drawImage(canvas, 0, head);
	whole.toBlob((blob) => blob && give("firn.png", blob), "image/png");
}

/** Saves the current view in a format. */
export function save(form: "png" | "svg" | "csv" | "folded", seen: Seen): void {
	if (form === "png") {
		savePng(seen);
	} else if (form === "svg") {
		give("firn.svg", text(flameSvg(seen.picture, WIDTH), "image/svg+xml"));
	} else if (form === "csv") {
		give("firn.csv", text(csv(seen.table), "text/csv;charset=utf-8"));
	} else {
		give("firn.folded.txt", text(folded(seen.scene.flame), "text/plain;charset=utf-8"));
	}
}
