// SPDX-License-Identifier: Apache-2.0
declare module "*.css";
/** The address of a style sheet that is fetched with its view. */
declare module "*.lazy.css" {
	const address: string;
	export default address;
}
