/**
 * The program's version: the one of `deno.json` (a test holds them together).
 * @example
 * ```ts
 * import { VERSION } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * assert.match(VERSION, /^\d+\.\d+\.\d+/);
 * ```
 */
export const VERSION = "0.1.0";
