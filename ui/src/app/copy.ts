// SPDX-License-Identifier: Apache-2.0
/**
 * Copies a text to the clipboard, also on pages without TLS, where browsers do not have
 * navigator.clipboard.
 */
export function copyText(text: string): void {
	if (navigator.clipboard) {
		navigator.clipboard.writeText(text).catch(() => copyBySelection(text));
	} else {
		copyBySelection(text);
	}
}

function copyBySelection(text: string): void {
	const area = document.createElement("textarea");
	area.value = text;
	area.className = "visually-hidden";
	document.body.append(area);
	area.select();
	document.execCommand("copy");
	area.remove();
}
