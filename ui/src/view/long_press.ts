// SPDX-License-Identifier: Apache-2.0
import { useRef } from "preact/hooks";

/** How long a press must last, in milliseconds, and how far the finger may move, in pixels. */
const LONG_MS = 450;
const SLIP_PX = 10;

/** A long press opens the same as a right click. */
export function useLongPress(open: (x: number, y: number) => void) {
	const latest = useRef(open);
	latest.current = open;
	const press = useRef({ timer: 0, x: 0, y: 0, long: false });
	const stop = () => clearTimeout(press.current.timer);
	return {
		start(e: PointerEvent) {
			const { clientX: x, clientY: y } = e;
			stop();
			const timer = window.setTimeout(() => {
				press.current.long = true;
				latest.current(x, y);
			}, LONG_MS);
			press.current = { timer, x, y, long: false };
		},
		move(e: PointerEvent) {
			const { x, y } = press.current;
			if (Math.hypot(e.clientX - x, e.clientY - y) > SLIP_PX) {
				stop();
			}
		},
		stop,
		/** Whether the click that follows was a long press; resets it. */
		wasLong(): boolean {
			const { long } = press.current;
			press.current.long = false;
			return long;
		},
	};
}
