// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go } from "../app/store.ts";
import { Icon } from "./icons.tsx";

/**
 * The least time between searches while the user types, in milliseconds: browsers limit how often a URL
 * changes.
 */
const GAP_MS = 120;

/** The search box: search and URL follow while the user types. */
export function SearchBox(props: {
	text: string;
	error: string;
	/** "34.2 %" of what is shown, or "". */
	share: string;
	/** "3 / 17", or "". */
	place: string;
	step: (by: number) => void;
	/** Keeps only stacks with a match. */
	keep: () => void;
}) {
	const { text, error, share, place, step } = props;
	const [draft, setDraft] = useState(text);
	const input = useRef<HTMLInputElement>(null);
	const timer = useRef(0);
	/** A step that waits for its search to be sent. */
	const wanted = useRef(0);
	/** The text that was sent last: it comes back as `text`, perhaps after more was typed. */
	const sent = useRef(text);
	/** When it was sent, by the page's own clock. */
	const sentMs = useRef(-GAP_MS);
	const send = (search: string) => {
		clearTimeout(timer.current);
		sent.current = search;
		sentMs.current = performance.now();
		go({ search }, "replace");
	};
	// during the rendering, not after it: later, more may have been typed, which would be lost
	useLayoutEffect(() => {
		if (text !== sent.current) {
			sent.current = text;
			setDraft(text);
		}
	}, [text]);
	useEffect(() => {
		if (wanted.current !== 0 && draft === text) {
			step(wanted.current);
			wanted.current = 0;
		}
	});
	const change = (value: string) => {
		setDraft(value);
		clearTimeout(timer.current);
		// the first letter is sent at once; letters that follow quickly are sent together
		const wait = sentMs.current + GAP_MS - performance.now();
		if (wait <= 0) {
			send(value);
		} else {
			timer.current = window.setTimeout(() => send(value), wait);
		}
	};
	const clear = () => {
		setDraft("");
		send("");
	};
	useEffect(() => {
		const listen = (e: KeyboardEvent) => {
			const typing = (e.target as HTMLElement).closest?.("input, textarea");
			const find = (e.ctrlKey || e.metaKey) && e.key === "f";
			if (find || (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey)) {
				if (input.current && document.activeElement !== input.current) {
					e.preventDefault();
					input.current.focus();
					input.current.select();
				}
			}
		};
		window.addEventListener("keydown", listen);
		return () => window.removeEventListener("keydown", listen);
	}, []);
	const onKeyDown = (e: KeyboardEvent) => {
		if (e.key === "Enter") {
			e.preventDefault();
			const by = e.shiftKey ? -1 : 1;
			if (e.altKey && draft === text && draft !== "" && !error) {
				props.keep();
			} else if (draft === text) {
				step(by);
			} else {
				wanted.current = by;
				send(draft);
			}
		} else if (e.key === "Escape") {
			e.stopPropagation();
			if (draft === "") {
				input.current?.blur();
			}
			clear();
		}
	};
	return (
		<search class={`search ${error ? "bad" : ""}`}>
			<Icon name="search" />
			<input
				ref={input}
				type="text"
				value={draft}
				placeholder="Search functions"
				aria-label="Search functions"
				title={'Text, "exact name" or /expression/; binary:libc, file:net.c   (Ctrl+F or /)'}
				spellcheck={false}
				autocomplete="off"
				onInput={(e) => change(e.currentTarget.value)}
				onKeyDown={onKeyDown}
			/>
			{error && <span class="search-share">{error}</span>}
			{draft !== "" && !error && (
				<>
					<span class="search-share" data-testid="search-share">
						{share}
					</span>
					<span class="search-place">{place}</span>
					<button
						type="button"
						class="bare"
						title="Previous match (Shift+Enter)"
						onClick={() => step(-1)}
					>
						<Icon name="left" />
					</button>
					<button type="button" class="bare" title="Next match (Enter)" onClick={() => step(1)}>
						<Icon name="right" />
					</button>
					<button
						type="button"
						class="bare"
						title="Only stacks with a match: as a filter (Alt+Enter)"
						aria-label="Only stacks with a match"
						disabled={draft !== text}
						onClick={props.keep}
					>
						<Icon name="filter" />
					</button>
				</>
			)}
			{draft !== "" && (
				<button type="button" class="bare" title="Clear (Esc)" onClick={clear}>
					<Icon name="close" />
				</button>
			)}
		</search>
	);
}
