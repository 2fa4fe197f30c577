// SPDX-License-Identifier: Apache-2.0
/** Files that are dropped on the page, or chosen. */
import { useEffect, useState } from "preact/hooks";
import { go, stateNow } from "./store.ts";

const listeners = new Set<(file: File) => void>();

/** Lets the user choose a file. */
export function chooseFile(): void {
	const input = document.createElement("input");
	input.type = "file";
	input.onchange = () => {
		const file = input.files?.[0];
		if (file) {
			for (const listener of listeners) {
				listener(file);
			}
		}
	};
	input.click();
}

/**
 * The open file; whether one is being dragged over the page; and a function that closes the file.
 */
export function useFile(): { file: File | null; over: boolean; close: () => void } {
	const [file, setFile] = useState<File | null>(null);
	const [over, setOver] = useState(false);
	useEffect(() => {
		const open = (next: File) => {
			setFile(next);
			go({ zoom: "", focus: "", mark: "", binary: "", search: "", filters: [], group: "function", sandwich: false });
		};
		const hasFile = (e: DragEvent) => e.dataTransfer?.types.includes("Files") === true;
		const drag = (e: DragEvent) => {
			if (hasFile(e)) {
				e.preventDefault();
				setOver(true);
			}
		};
		const leave = (e: DragEvent) => e.relatedTarget === null && setOver(false);
		const drop = (e: DragEvent) => {
			setOver(false);
			const dropped = e.dataTransfer?.files[0];
			if (hasFile(e)) {
				e.preventDefault();
			}
			if (dropped) {
				open(dropped);
			}
		};
		listeners.add(open);
		window.addEventListener("dragover", drag);
		window.addEventListener("dragleave", leave);
		window.addEventListener("drop", drop);
		return () => {
			listeners.delete(open);
			window.removeEventListener("dragover", drag);
			window.removeEventListener("dragleave", leave);
			window.removeEventListener("drop", drop);
		};
	}, []);
	const { page } = stateNow();
	useEffect(() => setFile(null), [page]);
	return { file, over, close: () => setFile(null) };
}
