// SPDX-License-Identifier: Apache-2.0
/** A text in two parts, of which the first is cut if there is no room: the end of a name says most. */
export function Cut({ parts: [head, tail] }: { parts: [string, string] }) {
	return (
		<span class="cut">
			{head && <span class="cut-head">{head}</span>}
			<span class="cut-tail">{tail}</span>
		</span>
	);
}
