// SPDX-License-Identifier: Apache-2.0
/** The pages besides Explore and Compare: one file of the built page. */
export { Agents } from "./Agents.tsx";
export { Fleet } from "./Fleet.tsx";
export { Store } from "./Store.tsx";
export { Symbols } from "./Symbols.tsx";
export { Targets } from "./Targets.tsx";
