import type { Attack } from "./attack.ts";
export const FAULTS = { kind: "faults" } as unknown as Attack;
