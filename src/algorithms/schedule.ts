import { type KernelVariant, TUNED_VARIANT, VARIANT_TRAITS } from "../kernels/variant.ts";

/** How tiles are spread over the device: all with their whole depth, all split, or only those beyond whole waves. */
export const BALANCES = ["auto", "none", "split-k", "stream-k"] as const;

/** One of them; `auto` takes what the model predicts to be fastest. */
export type Balance = typeof BALANCES[number];

/**
 * How a request's kernels run: tiles, how their depth is cut, and the switches of the mainloop's passes. Results differ by rounding
 * alone. What is absent is the planner's choice.
 */
export interface Schedule extends KernelVariant {
  /** Name of a tile policy, such as `64x64x8_8x8`. */
  readonly policy?: string;
  /** Split-K: workgroups that share the depth of a tile. */
  readonly splits?: number;
  /** Which tiles are split; only implicit GEMM and products have stream-K. */
  readonly balance?: Balance;
  /**
   * Flush interval: products that fused Winograd, WinRS and matrix units add up in one accumulator before the sum is added to others,
   * which shortens rounding errors; 0 for never. Of products on matrix units 3072 where absent, 16,384 of results in f16; of f32 in
   * halves a quarter of the depth, 512 to 2,048, where units are known to cut off, else 112.
   */
  readonly flush?: number;
}

/** Fields that are numbers. */
export const SCHEDULE_NUMBERS: readonly string[] = ["splits", "flush", "raster"];

/** Switches of the mainloop's passes, and its order of tiles: algorithms that are one product on it take them all. */
const LOOP_SWITCHES = Object.keys(TUNED_VARIANT) as (keyof KernelVariant)[];

/** All fields of a schedule. */
export const SCHEDULE_FIELDS: readonly (keyof Schedule)[] = [
  ...["policy", "splits", "balance", "flush"] as const,
  ...LOOP_SWITCHES,
];

/** What fields that are no switches choose among. */
const CHOICES = {
  policy: "tile policies",
  splits: "splits of the depth",
  balance: "tiles that are split one by one",
  flush: "flush intervals",
} as const;

/** The first field of a schedule that is none of those that an algorithm takes. */
function missingField(
  taken: readonly string[],
  schedule: Schedule,
  among: readonly (keyof Schedule)[],
): keyof Schedule | undefined {
  return among.find((name) => schedule[name] !== undefined && !taken.includes(name));
}

/** Whether a schedule says tiles or splits that an algorithm does not have: only what has them can be meant. */
export function missesTiles(taken: readonly string[], schedule: Schedule = {}) {
  return missingField(taken, schedule, ["policy", "splits"]) as "policy" | "splits" | undefined;
}

/**
 * Why an algorithm's kernels do not run as a schedule says, as a clause; undefined where they do. The one place that refuses fields.
 *
 * @param taken Fields that the algorithm takes, among others of its options.
 * @param named Whether the user named the algorithm: what was asked for must not be passed over in silence. `auto` passes over what says
 * only how sums are cut.
 */
export function refuseSchedule(
  taken: readonly string[],
  schedule: Schedule = {},
  named: boolean,
): string | undefined {
  const choices = Object.keys(CHOICES) as (keyof typeof CHOICES)[];
  const choice = named ? missingField(taken, schedule, choices) : undefined;
  if (choice !== undefined) return `it has no ${CHOICES[choice as keyof typeof CHOICES]}`;
  if (missingField(taken, schedule, LOOP_SWITCHES) === undefined) return undefined;
  const own = Object.entries(VARIANT_TRAITS).flatMap(([name, key]) =>
    taken.includes(key) ? [name] : []
  );
  return own.length === 0
    ? "its kernels come in one variant only"
    : `its kernels differ by ${own.join(", ").replace(/, ([^,]*)$/, " and $1")} alone`;
}

/**
 * A schedule in words: `policy tall, splits 4 (split-k), without prefetch`.
 *
 * @example
 * ```ts
 * import { scheduleText } from "@wgconv/wgconv/internals";
 * import assert from "node:assert/strict";
 *
 * const text = scheduleText({ policy: "tall", splits: 4, prefetch: false });
 * assert.equal(text, "policy tall, splits 4, without prefetch");
 * ```
 */
export function scheduleText(
  { policy, splits, balance, flush, raster, ...rest }: Schedule,
): string {
  const switches = (on: boolean) =>
    Object.entries(VARIANT_TRAITS).flatMap(([name, key]) => rest[key] === on ? [name] : []);
  const how = balance === undefined || balance === "none" ? "" : ` (${balance})`;
  const said: [string, string | number | undefined][] = [
    ["policy", policy],
    ["splits", splits === undefined ? undefined : `${splits}${how}`],
    ["flush", flush],
    ["raster", raster === 0 ? "rows" : raster],
    ["with", switches(true).join(" ") || undefined],
    ["without", switches(false).join(" ") || undefined],
  ];
  return said.flatMap(([name, value]) => value === undefined ? [] : [`${name} ${value}`]).join(
    ", ",
  );
}
