// SPDX-License-Identifier: Apache-2.0
declare module "*.tsv" {
	const text: string;
	export default text;
}
