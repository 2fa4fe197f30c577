// SPDX-License-Identifier: Apache-2.0
/** Views that are fetched together when one of them is opened: each further file would cost the first view more. */
export { BadRange, Nothing } from "./Blank.tsx";
export { CallGraphView } from "./calls/CallGraph.tsx";
export { Help } from "./Help.tsx";
export { Builder } from "./builder/Builder.tsx";
export { Keep } from "./shared/Keep.tsx";
export { TimeView } from "./time/TimeView.tsx";
export { SavedViews } from "./saved/SavedViews.tsx";
export { CodeView } from "./code/Code.tsx";
