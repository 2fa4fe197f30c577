// SPDX-License-Identifier: Apache-2.0
declare module "*.css";
/** A style sheet that is fetched with its view: its address. */
declare module "*.lazy.css" {
	const address: string;
	export default address;
}
