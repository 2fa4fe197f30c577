// SPDX-License-Identifier: Apache-2.0
import { type Flame, nodeName, pathTo } from "../model/flame.ts";
import { fitName } from "../model/names.ts";

const SHOWN = 6;
const NAME_MAX = 36;

/** The path from the root to the zoomed frame; a click on a step zooms out to it. */
export function Breadcrumb(props: { flame: Flame; zoom: number; zoomTo: (node: number) => void }) {
	const { flame, zoom, zoomTo } = props;
	const path = pathTo(flame, zoom);
	const hidden = Math.max(0, path.length - 1 - SHOWN);
	const steps = [path[0]!, ...path.slice(1 + hidden)];
	return (
		<nav class="crumbs" aria-label="Callers of the zoomed frame">
			{steps.map((node, i) => (
				<span key={node} class="crumb">
					{i > 0 && <span class="crumb-arrow">›</span>}
					{i === 1 && hidden > 0 && (
						<>
							<button
								type="button"
								class="bare crumb-more"
								title={`${hidden} callers more: zoom out to ${nodeName(flame, path[hidden]!)}`}
								onClick={() => zoomTo(path[hidden]!)}
							>
								… {hidden}
							</button>
							<span class="crumb-arrow">›</span>
						</>
					)}
					{node === zoom ? (
						<b title={nodeName(flame, node)}>{crumbText(flame, node)}</b>
					) : (
						<button
							type="button"
							class="bare"
							title={nodeName(flame, node)}
							onClick={() => zoomTo(node)}
						>
							{crumbText(flame, node)}
						</button>
					)}
				</span>
			))}
		</nav>
	);
}

function crumbText(f: Flame, node: number): string {
	return fitName(nodeName(f, node), NAME_MAX);
}
