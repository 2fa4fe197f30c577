// SPDX-License-Identifier: Apache-2.0
/** Views that are fetched when they are opened. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { addStyle } from "../app/style.ts";
import { Loading } from "./Empty.tsx";

/** A view that is loaded later. */
export interface LazyView<P> {
	load: () => Promise<ComponentType<P>>;
	there: ComponentType<P> | null;
}

/**
 * A view in another file of the page: `lazy(() => import("./x.tsx"), (m) => m.X)`; `style` is the address of
 * its own style sheet, if any.
 */
export function lazy<M, P>(fetch: () => Promise<M>, pick: (m: M) => ComponentType<P>, style = ""): LazyView<P> {
	const view: LazyView<P> = {
		there: null,
		load: async () => {
			const [found] = await Promise.all([fetch(), addStyle(style)]);
			view.there ??= pick(found);
			return view.there;
		},
	};
	return view;
}

/** The view once it is loaded. If loading fails, a button tries again. */
export function Lazy<P extends object>(props: { of: LazyView<P> } & P) {
	const { of, ...rest } = props;
	const [state, set] = useState<"" | "failed">("");
	const [tries, again] = useState(0);
	const [, render] = useState(0);
	useEffect(() => {
		set("");
		of.load().then(
			() => render((n) => n + 1),
			() => set("failed"),
		);
	}, [of, tries]);
	const View = of.there as ComponentType<object> | null;
	if (View) {
		return <View {...rest} />;
	}
	return (
		<section class="panel profile" aria-busy={state === ""}>
			{state === "failed" ? (
				<div class="blank in-panel" role="alert">
					<h1>This part of the page did not come</h1>
					<p>The server was not reached, or another version of it runs now.</p>
					<div class="blank-ways">
						<button type="button" class="button primary" onClick={() => again((n) => n + 1)}>
							Ask again
						</button>
						<button type="button" class="button" onClick={() => location.reload()}>
							Load the page anew
						</button>
					</div>
				</div>
			) : (
				<Loading text="Fetching this view" trouble={null} />
			)}
		</section>
	);
}
