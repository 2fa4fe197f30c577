// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

const POINTER: readonly [string, string][] = [
	["Drag in the chart", "look at that time only"],
	["Shift and a drag in the chart", "compare with that time"],
	["Double click in the chart", "back to the whole range"],
	["Click a name beside the chart", "only its samples; with Alt: all but its"],
	["Click a bar of the graph", "zoom in: it fills the width"],
	["Click a bar above it", "zoom out to that caller"],
	["Right click on a bar or a row", "its callers, its callees, copy, search; on a touch screen, rest on it"],
	["Ctrl and the wheel", "make the graph wider there; Shift and the wheel move it"],
	["Click \u201cframes too small to draw\u201d", "make them wider"],
	["Click a binary above the graph", "mark its frames"],
	["Click a row of the table", "mark the function wherever it occurs"],
];

const KEYS: readonly [string, string][] = [
	["/ or Ctrl F", "search; Enter and Shift Enter go from match to match"],
	["↓ ↑ ← →", "in the graph: callee, caller, neighbours; in the chart: move the range"],
	["Enter", "zoom to the frame in focus; in the table: menu of the marked row"],
	["Backspace", "zoom out by one"],
	["m · c · s · v", "menu of the frame · copy its name · its callers and callees · its source"],
	["o · d · h", "only stacks through it · drop them · hide its frames"],
	["Alt Enter", "in the search: keep only stacks with a match"],
	["Esc", "step by step back to everything"],
	["1 2 3 4 5", "both, graph, table, calls, over time"],
	["i", "turn the graph around"],
	["r · p", "ask again · pause"],
	["?", "this page"],
];

function List({ rows, keys }: { rows: readonly [string, string][]; keys: boolean }) {
	return (
		<dl>
			{rows.map(([what, does]) => (
				<div key={what}>
					<dt>{keys ? <kbd>{what}</kbd> : what}</dt>
					<dd>{does}</dd>
				</div>
			))}
		</dl>
	);
}

/** How to read the page, and the keys. */
export function Help({ close }: { close: () => void }) {
	const dialog = useRef<HTMLDialogElement>(null);
	useEffect(() => dialog.current?.showModal(), []);
	return (
		<dialog
			class="help"
			ref={dialog}
			aria-labelledby="help-title"
			onClose={close}
			onClick={(e) => e.target === dialog.current && dialog.current?.close()}
		>
			<div class="help-inner">
				<div class="help-head">
					<h2 id="help-title">Reading a flame graph</h2>
					<button
						type="button"
						class="button square"
						aria-label="Close"
						onClick={() => dialog.current?.close()}
					>
						<Icon name="close" />
					</button>
				</div>
				<p>
					Many times a second the profiler looks at what each CPU is doing: which function runs, who
					called it, who called that one, up to the start of the program. The graph puts all these
					stacks on top of each other. A bar is a function. Its width is the share of the time it
					was seen in; left and right mean nothing. Below it are the functions it called; where
					nothing is below it, it was doing the work itself (<b>self</b>). Look for wide bars with
					nothing below them.
				</p>
				<p>
					The colour says which binary the code is from, or which package where one binary is nearly
					all there is. The kernel is orange, rare binaries and code without a name are pale, and
					hatched bars say why a stack ends. A live graph waits while you point at it.
				</p>
				<div class="help-columns">
					<section>
						<h3>Pointer</h3>
						<List rows={POINTER} keys={false} />
					</section>
					<section>
						<h3>Keys</h3>
						<List rows={KEYS} keys={true} />
					</section>
				</div>
				<p>
					A pprof, perf script, speedscope or folded file that is dropped on the page is shown, and sent
					nowhere.
				</p>
				<p>
					What the agent on this host sees, and what it could not do: <a href="agent">status</a>.
					More to read: <a href="docs/first-hour.html">the first hour</a>, <a href="docs/symbols.html">why
					there are addresses</a>, <a href="docs/">all of the documentation</a>.
				</p>
			</div>
		</dialog>
	);
}
