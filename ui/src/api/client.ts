// SPDX-License-Identifier: Apache-2.0
/** All requests to the server: GET and POST, JSON; errors have a message for people. */
import type { Flame } from "../model/flame.ts";
import type { Mark } from "../model/marks.ts";
import { learnClock } from "./clock.ts";
import { decodeFlame, decodeTop } from "./decode.ts";
import type { Agent, Discovery, FlameAnswer, InstructionsAnswer, Job, ProfileType, SeriesAnswer, SourceAnswer, Target, TopAnswer } from "./types.ts";

/** An error: the server's, or with `status` 0 a failure to reach it. */
export class ApiError extends Error {
	readonly status: number;
	readonly code: string;
	/** The server asks for at least this wait before the next attempt, in milliseconds. */
	readonly retryMs: number;

	constructor(message: string, status: number, code: string, retryMs = 0) {
		super(message);
		this.status = status;
		this.code = code;
		this.retryMs = retryMs;
	}
}

/** Query parameters; a list repeats the parameter, undefined leaves it out. */
export type Parameters = Record<string, string | number | string[] | undefined>;

/** The path with its parameters, relative to the page. */
export function apiUrl(path: string, parameters: Parameters): string {
	const p = new URLSearchParams();
	for (const [name, value] of Object.entries(parameters)) {
		for (const one of Array.isArray(value) ? value : [value]) {
			if (one !== undefined && one !== "") {
				p.append(name, String(one));
			}
		}
	}
	const text = p.toString();
	return text === "" ? path : `${path}?${text}`;
}

let refused = () => {};

/** Calls `listen` whenever the server requires a login. */
export function onRefused(listen: () => void): void {
	refused = listen;
}

async function errorOf(response: Response): Promise<ApiError> {
	if (response.status === 401) {
		refused();
	}
	const text = await response.text();
	const retryMs = 1000 * (Number(response.headers.get("retry-after")) || 0);
	try {
		const { error, code } = JSON.parse(text) as { error?: string; code?: string };
		if (error) {
			return new ApiError(error, response.status, code ?? "", retryMs);
		}
	} catch {
		// not JSON: the message is made of the status
	}
	const what = `the server answered ${response.status} ${response.statusText}`.trim();
	return new ApiError(what, response.status, "", retryMs);
}

async function get<T>(path: string, parameters: Parameters, signal: AbortSignal): Promise<T> {
	return (await (await ask(path, parameters, signal)).json()) as T;
}

async function ask(path: string, parameters: Parameters, signal: AbortSignal): Promise<Response> {
	let response: Response;
	try {
		response = await fetch(apiUrl(path, parameters), { signal });
	} catch (e) {
		if (signal.aborted) {
			throw e;
		}
		throw new ApiError("The server does not answer.", 0, "");
	}
	learnClock(response.headers.get("date"));
	if (!response.ok) {
		throw await errorOf(response);
	}
	return response;
}

/** Sends a password or a token (as a header's value) to the server; only the server's cookie is kept. */
export async function logIn(authorization: string): Promise<void> {
	if (!/^[\t\x20-\x7e]*$/.test(authorization)) {
		throw new ApiError("A token has only letters, digits and signs of ASCII.", 400, "CLIENT");
	}
	let response: Response;
	try {
		response = await fetch("api/login", { method: "POST", headers: { authorization } });
	} catch {
		throw new ApiError("The server does not answer.", 0, "");
	}
	if (!response.ok) {
		throw await errorOf(response);
	}
}

/** Ends the session of this browser. */
export async function logOut(): Promise<void> {
	await fetch("api/logout", { method: "POST" });
}

/** Selects samples: a selector and a time range. */
export interface Question {
	/** `type{matchers}` */
	query: string;
	from: string;
	to: string;
}

/** The profile types that have samples; with a query `{matchers}` those that have such samples. */
export async function getTypes(signal: AbortSignal, query?: string): Promise<ProfileType[]> {
	const asked = query === undefined ? { from: "0" } : { from: "0", query };
	return (await get<{ types?: ProfileType[] }>("api/types", asked, signal)).types ?? [];
}

/** Names of labels of the samples that the query selects. */
export async function getLabels(q: Question, signal: AbortSignal): Promise<string[]> {
	return (await get<{ labels?: string[] }>("api/labels", { ...q }, signal)).labels ?? [];
}

/** Values of one label. */
export async function getValues(
	label: string,
	q: Question,
	signal: AbortSignal,
): Promise<string[]> {
	const path = `api/labels/${encodeURIComponent(label)}/values`;
	return (await get<{ values?: string[] }>(path, { ...q }, signal)).values ?? [];
}

/** Sums over steps, split by one label or several: the largest `limit` series, and the rest as one. */
export function getSeries(
	q: Question,
	by: string | string[],
	stepMs: number,
	limit: number,
	signal: AbortSignal,
): Promise<SeriesAnswer> {
	const step = `${stepMs / 1000}s`;
	return get("api/series", { ...q, by, step, limit }, signal);
}

/** Parameters of a flame graph besides the question. */
export interface Form {
	/** Callers first. */
	inverted: boolean;
	/** Frames below this share of the total are left out. */
	trim: number;
	/** The label whose values are frames below the root; "": none. */
	by: string;
}

/** The flame graph. */
export async function getFlame(q: Question, form: Form, signal: AbortSignal): Promise<Flame> {
	const { inverted, trim, by } = form;
	const parameters = { ...q, trim, depth: 1, invert: inverted ? 1 : undefined, by };
	return decodeFlame(await get<FlameAnswer>("api/flamegraph", parameters, signal));
}

/** A flame chart: the graph in the order of time. */
export interface Chart {
	flame: Flame;
	/** By node: its begin, in microseconds after `begin`, which is in milliseconds since 1970. */
	time: number[];
	begin: number;
	/** The label by which it is split; "": none. */
	by: string;
}

/** Asks for a flame chart. */
export async function getChart(q: Question, by: string, signal: AbortSignal): Promise<Chart> {
	const answer = await get<FlameAnswer>("api/flamechart", { ...q, depth: 1, by }, signal);
	const flame = decodeFlame(answer);
	const time = answer.nodes.time;
	if (!Array.isArray(time) || time.length !== flame.count) {
		throw new Error("the server's flame chart is broken: no times");
	}
	return { flame, time, begin: answer.begin ?? 0, by };
}

/** Which part of a question (a label, a value, the time) no sample matches; "": there are samples. */
export async function getReason(q: Question, signal: AbortSignal): Promise<string> {
	try {
		await get("api/top", { ...q, limit: 1, required: 1 }, signal);
	} catch (e) {
		if (e instanceof ApiError && e.status === 404) {
			return e.message;
		}
		throw e;
	}
	return "";
}

/** The functions, by self value. */
export async function getTop(q: Question, limit: number, signal: AbortSignal): Promise<TopAnswer> {
	return decodeTop(await get("api/top", { ...q, limit }, signal));
}

/** Sends a request that changes something on the server. */
async function post<T>(path: string, parameters: Parameters): Promise<T> {
	let response: Response;
	try {
		response = await fetch(apiUrl(path, parameters), { method: "POST" });
	} catch {
		throw new ApiError("The server does not answer.", 0, "");
	}
	if (!response.ok) {
		throw await errorOf(response);
	}
	return (await response.json()) as T;
}

/** Keeps the profile of a question on the server for a time ("7d"); returns its id and when it expires. */
export function keepSnapshot(q: Question, expires: string): Promise<{ id: string; expires: number }> {
	return post("api/snapshots", { ...q, expires });
}

/** A profile that is kept on the server, as a file. */
export async function getShared(id: string, signal: AbortSignal): Promise<File> {
	const answer = await ask(`shared/${id}`, {}, signal);
	return new File([await answer.blob()], `snapshot ${id.slice(0, 6)}`);
}

/** The address of the samples as gzipped profile.proto. */
export function pprofUrl(q: Question): string {
	return apiUrl("api/pprof", { ...q });
}

/** The flame graph's address in another format, with all frames; in HTML without the narrowest. */
export function graphUrl(q: Question, format: string): string {
	return apiUrl("api/flamegraph", { ...q, format, trim: format === "html" ? undefined : 0 });
}

/** Values by line of a source file, and its text; `build` "": all builds. */
export function getSource(q: Question, file: string, build: string, signal: AbortSignal): Promise<SourceAnswer> {
	return get("api/source", { ...q, file, build_id: build }, signal);
}

/** Instructions of a function with their values; `build` "": the build with the largest value. */
export function getInstructions(
	q: Question,
	one: { name: string; binary: string; build: string },
	signal: AbortSignal,
): Promise<InstructionsAnswer> {
	return get("api/instructions", { ...q, function: one.name, binary: one.binary, build_id: one.build }, signal);
}

/** A saved view of the page; `url` begins with "?". */
export interface SavedView {
	name: string;
	url: string;
}

/** Views that were saved on the server. */
export async function getViews(signal: AbortSignal): Promise<SavedView[]> {
	return (await get<{ views?: SavedView[] }>("api/views", {}, signal)).views ?? [];
}

/** Saves a view under a name; without `url`, deletes it. */
export async function changeView({ name, url }: { name: string; url?: string }): Promise<void> {
	await post("api/views", { name, url, delete: url === undefined ? 1 : undefined });
}

/** Annotations within a range. */
export async function getAnnotations(range: { from: string; to: string }, signal: AbortSignal): Promise<Mark[]> {
	const { annotations } = await get<{ annotations?: { time: number; text: string }[] }>("api/annotations", range, signal);
	return (annotations ?? []).map(({ time, text }) => ({ ms: time, text }));
}

/** The agents that pushed recently. */
export async function getAgents(signal: AbortSignal): Promise<Agent[]> {
	return (await get<{ agents?: Agent[] }>("api/agents", {}, signal)).agents ?? [];
}

/** The scraped targets, by job. */
export async function getTargets(signal: AbortSignal): Promise<Job[]> {
	const { targets = {}, discoveries = [] } = await get<{
		targets?: Record<string, { targets?: Target[] }>;
		discoveries?: Discovery[];
	}>("api/targets", {}, signal);
	const names = new Set([...discoveries.map((d) => d.job), ...Object.keys(targets)]);
	return [...names].map((name) => ({
		name,
		targets: targets[name]?.targets ?? [],
		discoveries: discoveries.filter((d) => d.job === name),
	}));
}

/** The server's own metrics. */
export async function getMetrics(signal: AbortSignal): Promise<string> {
	return (await ask("metrics", {}, signal)).text();
}
