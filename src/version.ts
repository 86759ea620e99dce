/** The program's version: the one of `deno.json` (a test holds them together). */
export const VERSION = "0.1.0";
