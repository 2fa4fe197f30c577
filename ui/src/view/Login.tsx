// SPDX-License-Identifier: Apache-2.0
/** The login: a name and a password, or a token. They are not stored, and not in any URL. */
import { useState } from "preact/hooks";
import { ApiError, logIn } from "../api/client.ts";
import { LOGGED_IN, writeSetting } from "../app/theme.ts";

/** The credentials of HTTP Basic authentication, in UTF-8. */
function basic(name: string, password: string): string {
	const bytes = new TextEncoder().encode(`${name}:${password}`);
	return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

export function Login({ done }: { done: () => void }) {
	const [name, setName] = useState("");
	const [secret, setSecret] = useState("");
	const [error, setError] = useState("");
	const [busy, setBusy] = useState(false);
	const submit = async (e: Event) => {
		e.preventDefault();
		setBusy(true);
		try {
			await logIn(name === "" ? `Bearer ${secret}` : basic(name, secret));
			setError("");
			writeSetting(LOGGED_IN, "1");
			done();
		} catch (problem) {
			setError(problem instanceof ApiError ? problem.message : String(problem));
		}
		setBusy(false);
	};
	return (
		<form class="blank login" data-testid="login" onSubmit={submit}>
			<h1>Log in to firn</h1>
			<label>
				Name
				<input
					autocomplete="username"
					value={name}
					onInput={(e) => setName(e.currentTarget.value)}
				/>
			</label>
			<label>
				Password, or a token without a name
				<input
					type="password"
					autocomplete="current-password"
					value={secret}
					onInput={(e) => setSecret(e.currentTarget.value)}
				/>
			</label>
			{error !== "" && <p role="alert" class="login-error">{error}</p>}
			<button type="submit" class="button primary" disabled={busy || secret === ""}>
				Log in
			</button>
		</form>
	);
}
