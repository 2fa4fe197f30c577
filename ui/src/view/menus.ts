// SPDX-License-Identifier: Apache-2.0
/** Menus of frames and rows, and whether the user reads, while newer answers wait. */
import { useEffect, useState } from "preact/hooks";
import { keepReading, stopReading } from "../app/hold.ts";
import { usePlace } from "../app/place.ts";
import type { Flame } from "../model/flame.ts";
import type { Point } from "./Tooltip.tsx";

/** The open menu of a frame, and how it opens. */
export function useFrameMenu(flame: Flame) {
	const [node, setNode] = usePlace(flame);
	const [at, setAt] = useState<Point>({ x: 0, y: 0 });
	const open = (wanted: number, where: Point) => {
		keepReading(true);
		setNode(wanted);
		setAt(where);
	};
	const close = () => {
		keepReading();
		setNode(-1);
	};
	return { node, at, open, close };
}

/** Notes whether the user points at graph or table. */
export function useReader(hasMenu: boolean): void {
	useEffect(() => {
		const look = (e: PointerEvent) => {
			const inside = e.target instanceof Element && e.target.closest(".profile-body, .menu");
			const left = e.type === "pointerout" && e.relatedTarget === null;
			if (hasMenu || (e.type === "pointerout" && !left)) {
				return;
			}
			if (inside && !left) {
				keepReading();
			} else if (e.pointerType === "mouse") {
				stopReading();
			}
		};
		const kinds = ["pointermove", "pointerdown", "pointerout"] as const;
		for (const kind of kinds) {
			document.addEventListener(kind, look);
		}
		return () => {
			for (const kind of kinds) {
				document.removeEventListener(kind, look);
			}
		};
	}, [hasMenu]);
	useEffect(() => stopReading, []);
}

/** The same for a row of the table. */
export function useRowMenu() {
	const [menu, set] = useState<{ name: string; binary: string; at: Point } | null>(null);
	const open = (name: string, binary: string, at: Point) => {
		keepReading(true);
		set({ name, binary, at });
	};
	const close = () => {
		keepReading();
		set(null);
	};
	return { menu, open, close };
}
