// SPDX-License-Identifier: Apache-2.0
/** Views of profiles that are files, fetched together. */
export { LocalFile } from "./LocalFile.tsx";
export { Shared } from "./shared/Shared.tsx";
