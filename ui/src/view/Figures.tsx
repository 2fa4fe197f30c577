// SPDX-License-Identifier: Apache-2.0
import type { Data } from "../app/data.ts";
import type { Flame } from "../model/flame.ts";
import { meaningOf } from "../model/types.ts";
import { formatCount, formatShare, formatValue } from "../model/units.ts";

/** A line of numbers about the shown part. */
export function Figures({ flame, zoom, data }: { flame: Flame; zoom: number; data: Data }) {
	const { trimmed, unit } = flame;
	const total = data.whole?.total ?? flame.total;
	const value = flame.value[zoom]!;
	const samples = data.whole ? data.whole.samples : flame.samples;
	const taken = samples === null ? "" : `${formatCount(samples)} samples`;
	const share = value < total ? formatShare(value, total) : "";
	const parts = share && `${share} of ${taken || "all"}`;
	const pending = data.flame.data?.pending ?? 0;
	return (
		<p class="figures" data-testid="figures">
			<span>
				<b>{formatValue(value, unit)}</b> {meaningOf(data.type?.type ?? "").after}
			</span>
			{(parts || taken) && <span>{parts || taken}</span>}
			{data.held && (
				<span data-testid="held" title="They are shown once you point elsewhere; r shows them now">
					newer samples wait while you read
				</span>
			)}
			{pending > 0 && (
				<span
					class="pending"
					data-testid="pending"
					title="The server is still reading symbols; they are filled in by themselves"
				>
					{formatCount(pending)} names on their way
				</span>
			)}
			{trimmed > 0 && (
				<span title="In frames too small to send; zoom in to see them">
					{formatShare(trimmed, total)} in tiny frames
				</span>
			)}
		</p>
	);
}
