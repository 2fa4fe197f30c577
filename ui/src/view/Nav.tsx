// SPDX-License-Identifier: Apache-2.0
/** The navigation: a bar at the left, which takes no height; in narrow windows a menu on top. */
import { useState } from "preact/hooks";
import { go } from "../app/store.ts";
import { formatUrl, type Page } from "../model/url.ts";
import { stateNow } from "../app/store.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Popover } from "./Menu.tsx";

const ENTRIES: readonly { page: Page; name: string; icon: IconName; title: string }[] = [
	{ page: "explore", name: "Explore", icon: "flame", title: "Where the time goes" },
	{ page: "compare", name: "Compare", icon: "compare", title: "What changed between two times or two selectors" },
	{ page: "fleet", name: "Fleet", icon: "fleet", title: "Services and hosts, by what they use" },
	{ page: "agents", name: "Agents", icon: "agents", title: "Who sends profiles, and how that goes" },
	{ page: "targets", name: "Targets", icon: "targets", title: "What is scraped, and how that goes" },
	{ page: "symbols", name: "Symbols", icon: "symbols", title: "Code without names, by what it costs" },
	{ page: "store", name: "Store", icon: "store", title: "What is kept, how much, since when" },
];

function Entries({ page, done }: { page: Page; done?: () => void }) {
	return (
		<ul>
			{ENTRIES.map((entry) => (
				<li key={entry.page}>
					<a
						href={location.pathname + formatUrl({ ...stateNow(), page: entry.page, zoom: "" })}
						class={entry.page === page ? "on" : ""}
						aria-current={entry.page === page ? "page" : undefined}
						title={entry.title}
						onClick={(e) => {
							if (!e.ctrlKey && !e.metaKey && !e.shiftKey && e.button === 0) {
								e.preventDefault();
								go({ page: entry.page, zoom: "", sort: "" });
								done?.();
							}
						}}
					>
						<Icon name={entry.icon} />
						<span>{entry.name}</span>
					</a>
				</li>
			))}
		</ul>
	);
}

/** The bar at the left of wide windows. */
export function Rail({ page }: { page: Page }) {
	return (
		<nav class="rail" aria-label="Pages">
			<a class="brand" href={location.pathname} title="firn: start over">
				<img src="icon.svg" alt="firn" width="24" height="24" />
			</a>
			<Entries page={page} />
		</nav>
	);
}

/** The same as a menu, which stands in the bar on top of narrow windows. */
export function NavMenu({ page }: { page: Page }) {
	const [open, setOpen] = useState(false);
	const name = ENTRIES.find((entry) => entry.page === page)?.name ?? "";
	return (
		<Popover
			class="nav-menu"
			title="Pages"
			open={open}
			setOpen={setOpen}
			label={
				<>
					<img src="icon.svg" alt="firn" width="18" height="18" />
					<span>{name}</span>
					<Icon name="down" />
				</>
			}
		>
			<nav aria-label="Pages">
				<Entries page={page} done={() => setOpen(false)} />
			</nav>
		</Popover>
	);
}
