// SPDX-License-Identifier: Apache-2.0
/** The first page of a visit: the fleet if more than one host sends, else the page to explore. */
import { useEffect } from "preact/hooks";
import { getValues } from "../api/client.ts";
import { go, stateNow } from "./store.ts";
import { formatUrl } from "../model/url.ts";

const KEY = "firn.front";

/** Whether this is a visit's first page, and its address has no parameters. */
function isFront(): boolean {
	try {
		const seen = sessionStorage.getItem(KEY) !== null;
		sessionStorage.setItem(KEY, "1");
		return !seen && location.search === "";
	} catch {
		return false;
	}
}

/** Goes to the fleet, unless the user chose something before the answer came. */
export function useFront(): void {
	useEffect(() => {
		const abort = new AbortController();
		if (isFront()) {
			getValues("node", { query: "", from: "now-1h", to: "now" }, abort.signal).then(
				(hosts) => hosts.length > 1 && formatUrl(stateNow()) === "" && go({ page: "fleet" }, "replace"),
				() => {},
			);
		}
		return () => abort.abort();
	}, []);
}
