// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type Point, placeNear } from "./Tooltip.tsx";

/** An entry of a menu. */
export interface MenuItem {
	name: string;
	/** The key that does the same, shown so that users learn it. */
	hint?: string;
	run: () => void;
}

/** A menu at a point: arrows move, Enter chooses, Esc or a click elsewhere closes. */
export function Menu(props: {
	at: Point;
	title: string;
	/** The values of the tooltip, for devices without a mouse. */
	note?: string;
	items: MenuItem[];
	close: () => void;
}) {
	const { at, title, note, items, close } = props;
	const element = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		const menu = element.current!;
		placeNear(menu, at, 2);
		const before = document.activeElement as HTMLElement | null;
		menu.querySelector("button")?.focus();
		return () => {
			if (menu.contains(document.activeElement) || document.activeElement === document.body) {
				before?.focus();
			}
		};
	}, [at]);
	useOutside(element, (e) => {
		close();
		if (e.pointerType === "touch") {
			swallowClick();
		}
	});
	const onKeyDown = (e: KeyboardEvent) => {
		const buttons = [...element.current!.querySelectorAll("button")];
		const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
		const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
		if (step !== 0) {
			e.preventDefault();
			buttons[(at + step + buttons.length) % buttons.length]?.focus();
		} else if (e.key === "Escape" || e.key === "Tab") {
			e.preventDefault();
			e.stopPropagation();
			close();
		}
	};
	return (
		<div class="menu floating" role="menu" ref={element} onKeyDown={onKeyDown} tabIndex={-1}>
			<div class="menu-title">{title}</div>
			{note && <div class="menu-note">{note}</div>}
			{items.map((item) => (
				<button
					type="button"
					role="menuitem"
					key={item.name}
					onClick={() => {
						close();
						item.run();
					}}
				>
					<span>{item.name}</span>
					{item.hint && <kbd>{item.hint}</kbd>}
				</button>
			))}
		</div>
	);
}

/** A tap outside of a menu only closes it: its click is swallowed. */
function swallowClick(): void {
	const swallow = (e: Event) => {
		e.preventDefault();
		e.stopPropagation();
	};
	document.addEventListener("click", swallow, { capture: true, once: true });
	const done = () => document.removeEventListener("click", swallow, true);
	document.addEventListener("pointerdown", done, { capture: true, once: true });
}

/** Calls `close` when a pointer goes down outside the element. */
export function useOutside(
	element: { current: HTMLElement | null },
	close: (e: PointerEvent) => void,
): void {
	const latest = useRef(close);
	latest.current = close;
	useEffect(() => {
		const listen = (e: PointerEvent) => {
			if (!element.current?.contains(e.target as Node)) {
				latest.current(e);
			}
		};
		document.addEventListener("pointerdown", listen, true);
		return () => document.removeEventListener("pointerdown", listen, true);
	}, [element]);
}

/** Distance of floating elements from the sides of the window, in CSS pixels. */
const EDGE_PX = 8;

/** A button whose panel opens below it. */
export function Popover(props: {
	label: ComponentChildren;
	title: string;
	class?: string;
	open: boolean;
	setOpen: (open: boolean) => void;
	children: ComponentChildren;
}) {
	const { open, setOpen } = props;
	const element = useRef<HTMLDivElement>(null);
	const panel = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		if (!open) {
			return;
		}
		const box = panel.current!;
		// a panel that would be partly outside of the window is moved
		const observer = new ResizeObserver(() => {
			box.style.transform = "";
			const { left, right } = box.getBoundingClientRect();
			const over = Math.min(0, document.documentElement.clientWidth - EDGE_PX - right);
			const by = Math.max(EDGE_PX - left, over);
			box.style.transform = left < EDGE_PX || over < 0 ? `translateX(${by}px)` : "";
		});
		observer.observe(box);
		return () => observer.disconnect();
	}, [open]);
	useOutside(element, () => open && setOpen(false));
	const onKeyDown = (e: KeyboardEvent) => {
		if (e.key === "Escape" && open) {
			e.stopPropagation();
			setOpen(false);
			element.current?.querySelector("button")?.focus();
		}
	};
	return (
		<div class={`popover ${props.class ?? ""}`} ref={element} onKeyDown={onKeyDown}>
			<button
				type="button"
				class="button"
				title={props.title}
				aria-haspopup="true"
				aria-expanded={open}
				onClick={() => setOpen(!open)}
			>
				{props.label}
			</button>
			{open && (
				<div class="popover-panel floating" ref={panel}>
					{props.children}
				</div>
			)}
		</div>
	);
}
