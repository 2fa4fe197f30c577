// SPDX-License-Identifier: Apache-2.0
/** The window on a flame chart, and the span that is requested for it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { stretchOf } from "../../model/strips.ts";
import type { Span } from "../../model/time.ts";

/** Number of samples in the first window. */
const SAMPLES = 3000;
/** The shortest window, in milliseconds. */
export const NARROWEST_MS = 50;
/** How much is requested on either side of the window, as a share of it. */
const BESIDE = 0.5;

/** The window inside the range, and how it moves. */
export function useWindow(range: Span, samples: number | null, key: string) {
	const [win, setWin] = useState<Span>(() => stretchOf(range, samples, SAMPLES));
	const first = useRef(key);
	useEffect(() => {
		if (first.current !== key) {
			first.current = key;
			setWin(stretchOf(range, samples, SAMPLES));
		}
	}, [key]);
	const put = (fromMs: number, width: number) => {
		const least = Math.min(range.fromMs, win.fromMs);
		const most = Math.max(range.toMs, win.toMs);
		const wide = Math.min(Math.max(width, NARROWEST_MS), most - least);
		const from = Math.min(Math.max(fromMs, least), most - wide);
		setWin({ fromMs: from, toMs: from + wide });
	};
	const width = win.toMs - win.fromMs;
	return {
		win,
		put,
		/** As wide as it is, up to a newer end. */
		follow: (toMs: number) => setWin({ fromMs: toMs - width, toMs }),
		moveBy: (ms: number) => put(win.fromMs + ms, width),
		zoomBy: (factor: number, at = 0.5) => put(win.fromMs + at * width * (1 - factor), width * factor),
	};
}

/**
 * The requested span: the window with its neighbourhood, until the window leaves it or becomes much narrower.
 */
export function useAsked(win: Span, range: Span): [asked: Span, forget: () => void] {
	const asked = useRef<Span | null>(null);
	const width = win.toMs - win.fromMs;
	const have = asked.current;
	const fits = have && have.fromMs <= win.fromMs && have.toMs >= win.toMs && have.toMs - have.fromMs < 40 * width;
	if (!fits) {
		const from = Math.max(Math.min(range.fromMs, win.fromMs), win.fromMs - BESIDE * width);
		asked.current = { fromMs: Math.floor(from), toMs: Math.ceil(win.toMs + BESIDE * width) };
	}
	const forget = () => {
		asked.current = null;
	};
	return [asked.current!, forget];
}
