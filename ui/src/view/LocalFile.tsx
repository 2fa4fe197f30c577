// SPDX-License-Identifier: Apache-2.0
/** A file that was dropped on the page: its graph and table. It stays in this tab, and is sent nowhere. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { TopAnswer } from "../api/types.ts";
import { useZoom, type Data } from "../app/data.ts";
import type { SeriesData } from "../app/series.ts";
import type { Query } from "../app/use_query.ts";
import { transform } from "../model/filter.ts";
import type { Flame } from "../model/flame.ts";
import { invertFlame } from "../model/invert.ts";
import { FILE_BYTES_MAX, parseFile, type View } from "../model/local.ts";
import { calleesOf, callersOf } from "../model/merge.ts";
import { formatValue } from "../model/units.ts";
import type { State } from "../model/url.ts";
import { NoneLeft, NotThere } from "./Blank.tsx";
import { Loading } from "./Empty.tsx";
import { FlamePanel } from "./FlamePanel.tsx";
import { Icon } from "./icons.tsx";
import { NavMenu } from "./Nav.tsx";
import type { PageProps } from "./pages/Frame.tsx";
import { PageButtons } from "./TopBar.tsx";

/** A query with an answer, as the server's would be. */
function answer<T>(data: T | null, id: string): Query<T> {
	return { data, id, error: null, trouble: null, slow: false, atMs: 0, tookMs: 0 };
}

/** The graph in the form that panels of the server's samples take. */
function useLocal(state: State, view: View, name: string): Data {
	const { filters, group, focus, invert } = state;
	const inverted = invert && focus === "";
	const whole = useMemo(() => (inverted ? invertFlame(view.flame) : view.flame), [view, inverted]);
	const flame = useMemo(() => transform(whole, filters, group), [whole, filters, group]);
	const shown = useMemo<Flame | null>(
		() => (focus === "" ? flame : (invert ? callersOf : calleesOf)(flame, focus)),
		[flame, focus, invert],
	);
	const zoom = useZoom(shown, state.zoom);
	const type = { type: "", unit: flame.unit, delta: true, first: 0, last: 0 };
	return {
		types: answer([type], "types"),
		type,
		problem: "",
		labels: [],
		by: "",
		series: answer<SeriesData>(null, ""),
		flame: answer(flame, `${name}${view.name}`),
		whole,
		shown,
		zoom,
		top: answer<TopAnswer>(null, "none"),
		trim: 0,
		magnified: () => {},
		held: false,
		question: null,
		span: { fromMs: 0, toMs: 0 },
		live: false,
		refresh: () => {},
	};
}

function Graph({ page, view, name }: { page: PageProps; view: View; name: string }) {
	const data = useLocal(page.state, view, name);
	if (data.flame.data!.total <= 0) {
		return (
			<section class="panel profile">
				<NoneLeft />
			</section>
		);
	}
	if (!data.shown) {
		return (
			<section class="panel profile">
				<NotThere name={page.state.focus} />
			</section>
		);
	}
	return <FlamePanel data={data} flame={data.shown} state={page.state} theme={page.theme} />;
}

/** Reads a file; a newer file replaces it. */
function useViews(file: File): { views: View[] | null; error: string } {
	const [read, set] = useState<{ file: File; views: View[] | null; error: string }>({ file, views: null, error: "" });
	useEffect(() => {
		let current = true;
		const run = async () => {
			if (file.size > FILE_BYTES_MAX) {
				throw new Error(`the file is larger than ${formatValue(FILE_BYTES_MAX, "bytes")}`);
			}
			return parseFile(new Uint8Array(await file.arrayBuffer()));
		};
		run().then(
			(views) => current && set({ file, views, error: "" }),
			(e) => current && set({ file, views: null, error: String(e instanceof Error ? e.message : e) }),
		);
		return () => {
			current = false;
		};
	}, [file]);
	return read.file === file ? read : { views: null, error: "" };
}

/** Texts on a file's page. */
interface Words {
	title: string;
	leave: string;
	about: (view: View | undefined) => string;
}

/** The page of a file; `words`: texts for a file that is not from this computer. */
export function LocalFile(page: PageProps & { file: File; close: (view: View | undefined) => void; words?: Words }) {
	const { file } = page;
	const words = page.words ?? { title: file.name, leave: "Close the file", about: () => "From this computer; it stays in this tab" };
	const { views, error } = useViews(file);
	const [at, setAt] = useState(0);
	useEffect(() => {
		setAt(0);
		document.title = `${words.title} · firn`;
	}, [file]);
	const view = views?.[Math.min(at, views.length - 1)];
	const close = () => page.close(view);
	const about = view || error ? words.about(view) : "";
	return (
		<div class={`app ${page.state.view === "both" ? "" : `app-${page.state.view}`}`} data-testid="local-file">
			<header class="top-bar">
				<NavMenu page={page.state.page} />
				<h1 class="file-name">{words.title}</h1>
				{views && views.length > 1 && (
					<select aria-label="What of the file" value={at} onChange={(e) => setAt(Number(e.currentTarget.value))}>
						{views.map((one, i) => (
							<option key={`${i}${one.name}`} value={i}>
								{one.name}
							</option>
						))}
					</select>
				)}
				<p class="file-about" title={about}>
					{about}
				</p>
				<button type="button" class="button" onClick={close}>
					<Icon name="close" />
					{words.leave}
				</button>
				<PageButtons choice={page.choice} setTheme={page.setTheme} showHelp={page.showHelp} />
			</header>
			<main>
				{error ? (
					<section class="panel profile">
						<div class="blank in-panel" role="alert" data-testid="bad-file">
							<h1>This file cannot be shown</h1>
							<p>{error}.</p>
							<div class="blank-ways">
								<button type="button" class="button primary" onClick={close}>
									Back to the server's samples
								</button>
							</div>
						</div>
					</section>
				) : view ? (
					<Graph page={page} view={view} name={file.name} />
				) : (
					<section class="panel profile" aria-busy="true">
						<Loading text={`Reading ${file.name}`} trouble={null} />
					</section>
				)}
			</main>
		</div>
	);
}
