// SPDX-License-Identifier: Apache-2.0
// What the checks of the page do again and again.

/** The canvas that gets the pointer. */
export const FLAME = ".flame-overlay";

/** Opens the page and waits until the graph is painted. */
export async function open(page, url, query = "") {
	await page.goto(`${url}/${query}`);
	await painted(page);
}

/** Asks the server, not the page. A connection that the server closes just then is no failure. */
export const ask = (page, address) => page.request.get(address, { maxRetries: 3 });

/** Waits until the graph is painted. */
export async function painted(page) {
	await page.waitForSelector(FLAME, { timeout: 60_000 });
	// a canvas is 300 pixels wide until it is sized and painted; marks fail under a made clock
	await page.waitForFunction(() => document.querySelector(".flame-canvas")?.width !== 300);
}

/** Waits up to a minute until no name is on its way any more. On a host that compiles there are always some. */
export async function named(page) {
	await painted(page);
	await page.waitForSelector("[data-testid=pending]", { state: "detached", timeout: 60_000 }).catch(() => {});
}

/** A parameter of the page's URL, or null. */
export const parameter = (page, name) => new URL(page.url()).searchParams.get(name);

/** A point in the middle of the first frame of a row of the graph. */
export async function frameAt(page, row, share = 0.1) {
	const box = await page.locator(FLAME).boundingBox();
	return { x: box.x + box.width * share, y: box.y + row * 20 + 9 };
}

/** Waits until the page has drawn what the last event changed. */
const drawn = (page) =>
	page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30)))));

/** A point in a frame of a row that is wide enough to be drawn: a real host has them anywhere. */
export async function someFrame(page, row) {
	for (let share = 0.04; share < 1; share += 0.04) {
		const at = await frameAt(page, row, share);
		await page.mouse.move(at.x, at.y);
		await drawn(page); // else the tooltip may be that of the point before
		if ((await page.locator(".tooltip-name").count()) > 0) {
			return at;
		}
	}
	throw new Error(`row ${row} has no frame that is drawn`);
}

/** The name in the tooltip of the frame at a point. */
export async function hoverName(page, at) {
	await page.mouse.move(at.x, at.y);
	await drawn(page);
	await page.waitForSelector(".tooltip-name");
	return page.locator(".tooltip-name").textContent();
}

/** Waits until something that is asked for again and again is true; fails with what it says. */
export async function until(ask, what) {
	const end = Date.now() + 60_000;
	for (;;) {
		const { ok, said } = await ask();
		if (ok) {
			return;
		}
		if (Date.now() > end) {
			throw new Error(`${what}: ${said}`);
		}
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
}

/** Waits until the frame at a place of the graph has this name: the graph moves for a while. */
export function untilName(page, row, share, name, what) {
	return until(async () => {
		await page.mouse.move(1, 1); // so that it is asked anew
		const said = await hoverName(page, await frameAt(page, row, share));
		return { ok: said === name, said };
	}, what);
}

/** Waits until nothing of the page is wider than a window of this width. */
export const fits = (page, width, what) =>
	until(async () => {
		const wide = await page.evaluate(() => document.documentElement.scrollWidth);
		return { ok: wide <= width, said: `${wide} pixels wide` };
	}, what);

/** Drops a file of this name and text on the page. */
export const dropFile = (page, name, text) =>
	page.evaluate(
		([n, t]) => {
			const data = new DataTransfer();
			data.items.add(new File([t], n));
			for (const kind of ["dragover", "drop"]) {
				window.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
			}
		},
		[name, text],
	);

/**
 * Keeps what the page copies from now on; the answer tells the last text. The clipboard itself is one for
 * all pages of a browser, and other checks copy, too. To be called before the page is opened.
 */
export async function copied(page) {
	await page.addInitScript(() => {
		window.copied = "";
		navigator.clipboard.writeText = async (text) => {
			window.copied = text;
		};
	});
	return () => page.evaluate(() => window.copied);
}

/** Waits until a parameter of the URL has this value; "set": any value. */
export async function waitParameter(page, name, test) {
	await page.waitForFunction(
		([n, wanted]) => {
			const value = new URL(location.href).searchParams.get(n);
			return wanted === "set" ? value !== null : value === wanted;
		},
		[name, test],
	);
}
