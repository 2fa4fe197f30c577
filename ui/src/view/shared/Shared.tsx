// SPDX-License-Identifier: Apache-2.0
/** A profile that is kept on the server, shown as a file would be. */
import { getShared } from "../../api/client.ts";
import { go } from "../../app/store.ts";
import { useQuery } from "../../app/use_query.ts";
import { Loading } from "../Empty.tsx";
import { LocalFile } from "../LocalFile.tsx";
import type { PageProps } from "../pages/Frame.tsx";

/** The page of a snapshot. */
export function Shared(page: PageProps) {
	const { shared } = page.state;
	const file = useQuery(shared, 0, (signal) => getShared(shared, signal));
	const close = () => go({ shared: "", zoom: "" });
	if (file.data) {
		return <LocalFile {...page} file={file.data} close={close} about="A snapshot that is kept on this server" />;
	}
	return (
		<main class="waiting">
			{file.error ? (
				<div class="blank" role="alert" data-testid="no-snapshot">
					<h1>This snapshot is not here</h1>
					<p>{file.error.message}.</p>
					<div class="blank-ways">
						<button type="button" class="button primary" onClick={close}>
							To the server's samples
						</button>
					</div>
				</div>
			) : (
				<Loading text="Fetching the snapshot" trouble={file.trouble} />
			)}
		</main>
	);
}
