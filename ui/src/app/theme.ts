// SPDX-License-Identifier: Apache-2.0
/**
 * Dark or light: the system's setting, unless the user chose. The choice is kept in this browser.
 */
import { useEffect, useState } from "preact/hooks";
import type { Theme } from "../model/colour.ts";

/** The user's choice. */
export type ThemeChoice = "auto" | Theme;

const KEY = "firn.theme";
/** A setting: "1" if this browser has logged in, so that the page offers to log out. */
export const LOGGED_IN = "firn.login";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** Reads a setting of this browser; "" if there is none, or reading is not allowed. */
export function readSetting(key: string): string {
	try {
		return localStorage.getItem(key) ?? "";
	} catch {
		return "";
	}
}

/** Keeps a setting in this browser, if that is allowed. */
export function writeSetting(key: string, value: string): void {
	try {
		localStorage.setItem(key, value);
	} catch {
		// private windows may refuse; the setting then lasts as long as the page
	}
}

function readChoice(): ThemeChoice {
	const value = readSetting(KEY);
	return value === "dark" || value === "light" ? value : "auto";
}

function resolve(choice: ThemeChoice): Theme {
	return choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
}

/** The choice, the current theme, and a function that chooses. */
export function useTheme(): [ThemeChoice, Theme, (choice: ThemeChoice) => void] {
	const [choice, setChoice] = useState<ThemeChoice>(readChoice);
	const [theme, setTheme] = useState<Theme>(() => resolve(choice));
	useEffect(() => {
		const update = () => setTheme(resolve(choice));
		update();
		dark.addEventListener("change", update);
		return () => dark.removeEventListener("change", update);
	}, [choice]);
	document.documentElement.dataset["theme"] = theme;
	const choose = (next: ThemeChoice) => {
		writeSetting(KEY, next);
		setChoice(next);
	};
	return [choice, theme, choose];
}

/** A custom property of the style sheet. */
export function cssValue(name: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** "#rrggbb" as a pixel of ImageData. */
export function hexPixel(hex: string): number {
	const n = Number.parseInt(hex.slice(1), 16);
	return (0xff000000 | ((n & 0xff) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}
