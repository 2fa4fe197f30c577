// SPDX-License-Identifier: Apache-2.0
import { useRef } from "preact/hooks";

/** How long a finger rests before it is meant, in milliseconds, and how far it may slip, in pixels. */
const LONG_MS = 450;
const SLIP_PX = 10;

/** A finger that rests opens what a right click opens. */
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
		/** Whether the click that follows was a long press; asked once. */
		wasLong(): boolean {
			const { long } = press.current;
			press.current.long = false;
			return long;
		},
	};
}
