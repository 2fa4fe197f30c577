// SPDX-License-Identifier: Apache-2.0
/** One of several choices, as buttons in a row. */
export function Segments<T extends string>(props: {
	label: string;
	value: T;
	choices: readonly { value: T; name: string; title?: string }[];
	choose: (value: T) => void;
}) {
	return (
		<fieldset class="segments" aria-label={props.label}>
			{props.choices.map((c) => (
				<button
					type="button"
					key={c.value}
					class={c.value === props.value ? "on" : ""}
					aria-pressed={c.value === props.value}
					title={c.title}
					onClick={() => props.choose(c.value)}
				>
					{c.name}
				</button>
			))}
		</fieldset>
	);
}
