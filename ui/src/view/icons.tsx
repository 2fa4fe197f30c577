// SPDX-License-Identifier: Apache-2.0
/** Line icons on a 16-unit grid; decoration only, the button says what it does. */

const SHAPES = {
	refresh: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3",
	pause: "M5.5 3.5v9M10.5 3.5v9",
	play: "M5 3.2v9.6l7.5-4.8z",
	close: "M4 4l8 8M12 4l-8 8",
	down: "M4 6.5l4 4 4-4",
	left: "M9.8 4l-4 4 4 4",
	right: "M6.2 4l4 4-4 4",
	search: "M7 11.5a4.5 4.5 0 1 1 0-9 4.5 4.5 0 0 1 0 9zM10.3 10.3 13.5 13.5",
	sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.6v1.2M8 13.2v1.2M1.6 8h1.2M13.2 8h1.2M3.5 3.5l.8.8M11.7 11.7l.8.8M12.5 3.5l-.8.8M4.3 11.7l-.8.8",
	moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z",
	auto: "M8 2.2a5.8 5.8 0 1 0 0 11.6zM8 2.2a5.8 5.8 0 0 1 0 11.6",
	link: "M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.2-2.2A2.6 2.6 0 0 0 9 3.300L8.200 4.100M9.200 6.800a2.600 2.600 0 0 0-3.700 0L3.300 9a2.600 2.600 0 0 0 3.700 3.700l.8-.8",
	save: "M8 2.5v7.500M4.800 6.800 8 10l3.200-3.200M2.800 13.300h10.400",
	flame: "M2.500 3.500h11M2.500 6.500h7.500M2.500 9.500h4.500M2.500 12.500h2.500",
	compare: "M5 2.500v11M11 2.500v11M5 5.500H2.500M13.500 10.500H11M8 2v12",
	fleet: "M2.500 3h4v4h-4zM9.500 3h4v4h-4zM2.500 9.500h4v4h-4zM9.500 9.500h4v4h-4z",
	agents: "M3 4h10v6H3zM6 13h4M8 10v3M5.500 7h1M8.500 7h2",
	targets: "M8 13.500a5.500 5.500 0 1 0 0-11 5.500 5.500 0 0 0 0 11zM8 10.300a2.300 2.300 0 1 0 0-4.600 2.300 2.300 0 0 0 0 4.600z",
	symbols: "M5.500 3 2.500 8l3 5M10.500 3l3 5-3 5",
	store: "M3 4.500C3 3.100 13 3.100 13 4.500S3 5.900 3 4.500zM3 4.500v7c0 1.400 10 1.400 10 0v-7M3 8c0 1.400 10 1.400 10 0",
	filter: "M2.500 3.500h11L9.500 8.300v4.200l-3-1.500V8.300z",
	leave: "M9.500 2.500H3v11h6.500M7 8h6.500M11 5.500 13.500 8 11 10.500",
	saved: "M4.500 2.500h7v11L8 10.800l-3.500 2.700z",
	swap: "M3 5.500h9.500M10 3l2.500 2.500L10 8M13 10.500H3.500M6 8l-2.500 2.500L6 13",
} as const;

/** Names of the icons. */
export type IconName = keyof typeof SHAPES;

/** An icon of 16 CSS pixels. */
export function Icon({ name }: { name: IconName }) {
	return (
		<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
			<path d={SHAPES[name]} />
		</svg>
	);
}
