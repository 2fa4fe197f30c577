// SPDX-License-Identifier: Apache-2.0
import { go } from "../app/store.ts";
import { Icon } from "./icons.tsx";

/** The focused function, and a button back to the whole graph. */
export function FocusChip({ focus, invert }: { focus: string; invert: boolean }) {
	return (
		<span class="focus-chip">
			{invert ? "Callers of " : "Callees of "}
			<b title={focus}>{focus}</b>
			<button
				type="button"
				class="bare"
				title="Show everything again (Esc)"
				onClick={() => go({ focus: "", invert: false, zoom: "" })}
			>
				<Icon name="close" />
			</button>
		</span>
	);
}
