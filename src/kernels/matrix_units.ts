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
}

/** What a device multiplies on units of its own, by all threads of a subgroup together. */
export interface MatrixUnits {
  /** Threads of every subgroup. */
  readonly lanes: number;
  /** What they multiply, a shape and types each. */
  readonly units: readonly MatrixUnit[];
}

/** WebGPU features of a kernel that multiplies on matrix units. */
export const MATRIX_FEATURES: readonly string[] = [
  "subgroups",
  "chromium-experimental-subgroup-matrix",
];

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

/**
 * Values along the depth that a unit adds up in f32 before its sums move to registers. NVIDIA's cut sums off behind two more bits
 * instead of rounding them, so that sums of L products of one sign lose about 0.07 L units of their last place
 * (docs/accuracy.md); no device says whether its own do. Results in f16 show nothing of it in far longer sums; whole numbers are exact.
 *
 * @param split Of f32 in halves, two values each: 112 products, 6e-7 of a sum of one sign.
 */
export function unitChain(result: Scalar, split = false): number {
  if (split) return 224;
  return result === "f16" ? 16_384 : result === "f32" ? 128 : Infinity;
}
