// SPDX-License-Identifier: Apache-2.0
/** Style sheets of views that are fetched when they are opened. */

const added = new Map<string, Promise<void>>();

/** Adds a style sheet once, and waits until it is applied; "": none. */
export function addStyle(address: string): Promise<void> {
	let there = added.get(address);
	if (address === "" || there) {
		return there ?? Promise.resolve();
	}
	there = new Promise((done, failed) => {
		const link = document.createElement("link");
		link.rel = "stylesheet";
		link.href = address;
		link.onload = () => done();
		link.onerror = () => {
			added.delete(address);
			link.remove();
			failed(new Error("the style sheet did not come"));
		};
		document.head.append(link);
	});
	added.set(address, there);
	return there;
}
