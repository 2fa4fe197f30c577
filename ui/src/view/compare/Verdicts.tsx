// SPDX-License-Identifier: Apache-2.0
import { type Theme, toHex } from "../../model/colour.ts";
import { STEPS, UNKNOWN, verdictColour } from "../../model/verdict.ts";

/** The legend of the colours. */
export function Verdicts({ theme }: { theme: Theme }) {
	return (
		<ul class="verdicts" aria-label="Colours: change since the base" data-testid="verdicts">
			{STEPS.map((step, i) => (
				<li key={step.name}>
					<i style={{ background: toHex(verdictColour(i, theme)) }} />
					<span>{step.name}</span>
				</li>
			))}
			<li class="verdict-unknown" title="They differ, but chance alone does that once in a hundred times">
				<i style={{ background: toHex(verdictColour(UNKNOWN, theme)) }} />
				<span>too few samples to tell</span>
			</li>
		</ul>
	);
}
