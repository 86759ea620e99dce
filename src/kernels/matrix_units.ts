import type { Elements } from "../elements/elements.ts";
import type { Scalar } from "../elements/scalar.ts";

/** A product that a subgroup computes at once: an M x K matrix times a K x N one, added to M x N sums. */
export interface MatrixUnit {
  /** What the operands hold. */
  readonly component: "f16" | "i8";
  /** What the sums are in. */
  readonly result: "f32" | "i32";
  /** Rows of a product. */
  readonly m: number;
  /** Columns of a product. */
  readonly n: number;
  /** Products that each sum takes up. */
  readonly k: number;
  /** Whether a kernel fixes the size of its subgroups, since the device has several. */
  readonly fixesSubgroups?: boolean;
}

/** What a device multiplies on units of its own, by all threads of a subgroup together. */
export interface MatrixUnits {
  /** Threads of every subgroup that multiplies. */
  readonly lanes: number;
  /** What they multiply, a shape and types each. */
  readonly units: readonly MatrixUnit[];
  /**
   * Whether sums in f32 are taken to be cut off where they do not fit, not rounded, as those of an H100 and an H200 were measured to be.
   * NVIDIA's others are too, and were not measured.
   */
  readonly cutsOff?: boolean;
}

/** What a kernel asks of its subgroups. */
export interface Subgroups {
  /** Threads of each; the device's choice where absent. */
  readonly size?: number;
}

/** WebGPU features of a device that multiplies on matrix units. */
export const MATRIX_FEATURES: readonly string[] = [
  "subgroups",
  "chromium-experimental-subgroup-matrix",
];

/** The feature by which a kernel fixes the size of its subgroups. */
export const SUBGROUP_SIZE_FEATURE = "subgroup-size-control";

/** WebGPU features of a kernel that multiplies on the unit. */
export function matrixFeatures({ fixesSubgroups }: MatrixUnit): readonly string[] {
  return fixesSubgroups ? [...MATRIX_FEATURES, SUBGROUP_SIZE_FEATURE] : MATRIX_FEATURES;
}

/** The subgroups of such a kernel: their size where it fixes that. */
export function matrixSubgroups({ fixesSubgroups }: MatrixUnit, lanes: number): Subgroups {
  return fixesSubgroups ? { size: lanes } : {};
}

/** The unit for these elements, of several the largest; undefined where the device has none. */
export function matrixUnitFor(
  { storage, accumulate }: Pick<Elements, "storage" | "accumulate">,
  units: MatrixUnits | undefined,
): MatrixUnit | undefined {
  const component = storage === "u32" ? "i8" : storage;
  const size = ({ m, n, k }: MatrixUnit) => m * n * k;
  return units?.units
    .filter((unit) => unit.component === component && unit.result === accumulate)
    .reduce<MatrixUnit | undefined>(
      (best, unit) => best === undefined || size(unit) > size(best) ? unit : best,
      undefined,
    );
}

/** Values of a tile along the depth of one matrix product: words of four where int8. */
export function unitDepth({ component, k }: MatrixUnit): number {
  return component === "i8" ? k / 4 : k;
}

/** What tiles hold whose products run on the unit. */
export function unitScalar({ component }: MatrixUnit): Scalar {
  return component === "i8" ? "u32" : component;
}

/** `16x16x16`, as it stands in kernel names. */
export function unitShape({ m, n, k }: MatrixUnit): string {
  return `${m}x${n}x${k}`;
}

/** How far units add up before what they have is added as f32 should be. */
export interface UnitChain {
  /** Values along the depth, a product each; of f32 in halves there are two a product. */
  readonly length: number;
  /** Where the sums of chains are added up: in registers, or where the result is stored. */
  readonly totals: "registers" | "result";
}

/** What of a request decides how far units add up. */
export interface ChainRequest {
  /** Products that one accumulator adds up at most, a step at least; 0 for all, what suits the results where absent. Not of f32 in halves. */
  readonly flush?: number | undefined;
  /** Of f32 in halves: products of each sum, and whether units are known to cut off. */
  readonly split?: { readonly products: number; readonly cutsOff: boolean } | undefined;
  /** Whether results leave in fours that follow each other; of others the places alone fill a thread's registers. */
  readonly wide?: boolean | undefined;
}

/**
 * How far a unit adds up in f32; undefined for all of the depth. NVIDIA's cut sums off behind two more bits instead of rounding them, so
 * that sums of L products of one sign lose about 0.07 L units of their last place; no device says whether its own do, so
 * that all are taken to.
 *
 * Results in f32 err by 1.7e-5 of a sum of one sign after 3072 products. Those in f16 show nothing of it in far longer sums; whole
 * numbers are exact. f32 in halves is a quarter of the depth where the drift of units that are known to cut off is made up for
 * (`splitDrift()`), 112 products, which err by 6e-7 at most, where it is not known.
 *
 * @param result What the results are stored in.
 */
export function unitChain(
  result: Scalar,
  { flush, split, wide = true }: ChainRequest = {},
): UnitChain | undefined {
  const totals = wide ? "result" : "registers";
  if (split !== undefined) {
    if (flush === 0) return undefined;
    if (flush !== undefined) return { length: 2 * flush, totals };
    if (!split.cutsOff) return { length: 224, totals: "registers" };
    const products = Math.min(2048, Math.max(512, Math.ceil(split.products / 4)));
    return { length: 2 * products, totals };
  }
  if (result !== "f32" && result !== "f16" || flush === 0) return undefined;
  if (result === "f16") return { length: flush ?? 16_384, totals: "registers" };
  return { length: flush ?? 3072, totals };
}
