// SPDX-License-Identifier: Apache-2.0
/** Which profile types there are, and which one is shown. */
import { useEffect, useRef, useState } from "preact/hooks";
import { getTypes } from "../api/client.ts";
import type { ProfileType } from "../api/types.ts";
import { usualType } from "../model/types.ts";
import { joinQuery, type State } from "../model/url.ts";
import { useTicks } from "./ticks.ts";
import { type Query, useQuery } from "./use_query.ts";

/** How often the page checks that the server is up and has newer samples, in milliseconds. */
const BEAT_MS = 5000;
/** How long to wait for the answer to that check, in milliseconds. */
const BEAT_LATE_MS = 10_000;

/** The profile types: requested every second until there is one, then every BEAT_MS as a check. */
export function useTypes(): Query<ProfileType[]> {
	const [wait, setWait] = useState(1000);
	const [tick] = useTicks(wait, true);
	const types = useQuery("types", tick, (signal) => getTypes(signal), BEAT_LATE_MS);
	const empty = (types.data?.length ?? 0) === 0;
	useEffect(() => setWait(empty ? 1000 : BEAT_MS), [empty]);
	return types;
}

/** The type of the URL, also if the server does not know it; else the usual one. */
export function pickType(types: ProfileType[] | null, wanted: string): ProfileType | null {
	if (!types || types.length === 0) {
		return null;
	}
	const found = types.find((t) => t.type === wanted);
	if (found || wanted === "") {
		return found ?? usualType(types);
	}
	const delta = wanted.endsWith(":delta");
	return { type: wanted, unit: "", delta, first: 0, last: 0 };
}

/**
 * The shown type, and all types. A link may name labels and no type, as that of a span does: then
 * it is the usual type of those that have such samples. This is requested once, for the selector
 * with which the page was opened.
 */
export function useType(state: State): { types: Query<ProfileType[]>; type: ProfileType | null } {
	const types = useTypes();
	const opened = useRef(state.type === "" ? state.matchers : "");
	const of = state.type === "" && opened.current !== "" ? joinQuery("", opened.current) : null;
	const having = useQuery(of, 0, (signal) => getTypes(signal, of ?? ""));
	if (of && !having.data && !having.error) {
		return { types: { ...types, data: null }, type: null };
	}
	const wanted = of && having.data ? usualType(having.data)?.type : undefined;
	return { types, type: pickType(types.data, wanted ?? state.type) };
}
