// SPDX-License-Identifier: Apache-2.0
/** Code whose functions have no names, the largest value first, with remedies. */
import { useMemo } from "preact/hooks";
import { getTop, getValues } from "../../api/client.ts";
import { pickType, useTypes } from "../../app/type.ts";
import { go } from "../../app/store.ts";
import { useQuery } from "../../app/use_query.ts";
import { type Unnamed, unnamedOf } from "../../model/fleet.ts";
import { toApiTime, spanOf, rangeProblem } from "../../model/time.ts";
import { serverNow } from "../../api/clock.ts";
import { formatCount, formatShare, formatValue } from "../../model/units.ts";
import { DEFAULTS, formatUrl, joinQuery } from "../../model/url.ts";
import { baseName } from "../../model/words.ts";
import { RangePicker } from "../RangePicker.tsx";
import { TypePicker } from "../TopBar.tsx";
import { Command, Copy, Frame, notYet, type PageProps, Panel, ShareBar, Table } from "./Frame.tsx";

const ROWS_MAX = 20_000;
const SHOWN_MAX = 200;

/** How a binary gets its names. */
function Mend({ one, path }: { one: Unnamed; path: string }) {
	if (one.cause === "kernel") {
		return (
			<>
				The agent may not read the kernel's names: <Command text="sysctl kernel.kptr_restrict=0" />
			</>
		);
	}
	if (one.cause === "made") {
		return (
			<>
				Code made at run time. Let the runtime write its names: <Command text="node --perf-basic-prof" />{" "}
				<Command text="php -d opcache.jit_debug=0x10" /> <Command text="erl +JPperf true" />
				<span class="mend-note">
					Java needs nothing, nor does Node.js but for Debian's. Other code that programs make has no names anywhere.
				</span>
			</>
		);
	}
	const text = uploadOf(path || one.binary);
	return <Copy text={text} title={`Copy: ${text}`} />;
}

/** The command that sends names of a file to this server. */
function uploadOf(file: string): string {
	const secure = location.protocol === "https:" ? "" : " --insecure";
	return `firn debuginfo upload --store-address ${location.host}${secure} ${file}`;
}

/** The page Symbols. */
export function Symbols(page: PageProps) {
	const { state } = page;
	const types = useTypes();
	const type = pickType(types.data, state.type);
	const problem = rangeProblem(state.range, serverNow());
	const query = type && problem === "" ? joinQuery(type.type, state.matchers) : "";
	const ask = () => {
		const { fromMs, toMs } = spanOf(state.range, serverNow());
		return { query, from: toApiTime(fromMs), to: toApiTime(toMs) };
	};
	const id = query && JSON.stringify(["symbols", query, state.range]);
	const top = useQuery(id || null, 0, (signal) => getTop(ask(), ROWS_MAX, signal));
	const paths = useQuery(id || null, 0, (signal) => getValues("executable", ask(), signal));
	const found = useMemo(() => unnamedOf(top.data?.rows ?? []), [top.data]);
	const whole = top.data?.total ?? 0;
	const missing = found.reduce((a, one) => a + one.self, 0);
	const pathOf = (binary: string) => (paths.data ?? []).find((p) => p.startsWith("/") && baseName(p) === binary) ?? "";
	return (
		<Frame
			page={page}
			title="Symbols"
			about="Code whose functions have no names, and what gives them theirs"
			controls={
				type && (
					<>
						<TypePicker types={types.data ?? []} type={type} />
						<RangePicker range={state.range} choose={(range) => go({ range, select: null })} />
					</>
				)
			}
		>
			{notYet(top, "functions") ?? (
				<Panel
					title={found.length === 0 ? "All functions have names" : `${formatShare(missing, whole)} of ${formatValue(whole, top.data!.unit)} is in functions without a name`}
					note={
						found.length === 0
							? whole > 0
								? "Nothing is missing in this time range."
								: "There are no samples in this time range."
							: `In ${formatCount(found.length)} ${found.length === 1 ? "binary" : "binaries"}. Names that arrive later are there for samples of the past, too.`
					}
				>
					{found.some((one) => one.cause === "file") && (
						<p class="page-how">
							A stripped file has no names. With the unstripped one, or its debug file (Debian has them as <code>-dbgsym</code> packages):{" "}
							<Command text={uploadOf("FILE")} />
						</p>
					)}
					{found.length > 0 && (
						<Table heads={[["Binary"], ["Without names", true], ["Of its time", true], ["Functions", true], ["What mends it"]]}>
							{found.slice(0, SHOWN_MAX).map((one) => {
								const filters = [{ op: "only", field: "binary", text: `"${one.binary}"` }] as const;
								return (
									<tr class="unnamed" key={`${one.binary}${one.cause}`}>
										<td>
											{one.binary === "" ? (
												"no file"
											) : (
												<a
													href={location.pathname + formatUrl({ ...DEFAULTS, range: state.range, filters })}
													onClick={(e) => {
														if (!e.ctrlKey && !e.metaKey && e.button === 0) {
															e.preventDefault();
															go({ page: "explore", filters, zoom: "" });
														}
													}}
												>
													{one.binary}
												</a>
											)}
										</td>
										<td class="number">
											<ShareBar part={one.self} whole={whole} />
										</td>
										<td class="number">{formatShare(one.self, one.all)}</td>
										<td class="number">{formatCount(one.functions)}</td>
										<td class="mend">
											<Mend one={one} path={pathOf(one.binary)} />
										</td>
									</tr>
								);
							})}
						</Table>
					)}
				</Panel>
			)}
		</Frame>
	);
}
