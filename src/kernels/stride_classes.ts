import { type Axis, axisDigits, digitsText, gcd } from "./axes.ts";
import type { ModuleBuilder } from "./module.ts";

/** A class of backward-data's places along an axis: those that the same taps meet. */
export interface StrideClass {
  /** Its places are `firstPlace + i·stride`. */
  readonly firstPlace: number;
  /** Its taps are `firstTap + j·step`, `taps` of them; places that no tap meets have none. */
  readonly firstTap: number;
  readonly taps: number;
  /** Where place i and tap j meet in the source: `origin + i − j·dilation`, with {@linkcode classSteps}' dilation. */
  readonly origin: number;
}

type StridedAxis = Pick<Axis, "places" | "taps" | "stride" | "padding" | "dilation">;

/** From one tap of a class to its next, and how far that moves in the source. */
export function classSteps(
  { stride, dilation }: Pick<StridedAxis, "stride" | "dilation">,
): { step: number; dilation: number } {
  const common = gcd(stride, dilation);
  return { step: stride / common, dilation: dilation / common };
}

/**
 * The class of an index below the stride. The first classes, as many as `step`, begin with the taps in their order, so that
 * those of most taps are first; others have none.
 */
export function strideClass(axis: StridedAxis, index: number): StrideClass {
  const { stride, padding, dilation } = axis;
  const { step } = classSteps(axis);
  const firstTap = index % step;
  const met = firstTap * dilation;
  const firstPlace = (met + Math.floor(index / step) + padding * (stride - 1)) % stride;
  const taps = index < step ? Math.max(0, Math.ceil((axis.taps - firstTap) / step)) : 0;
  return {
    firstPlace,
    firstTap,
    taps,
    origin: Math.trunc((firstPlace + padding - met) / stride),
  };
}

/** Places of a class: some have one less, and those of class places beyond the last are not stored. */
export function classPlaces({ places, stride }: Pick<StridedAxis, "places" | "stride">): number {
  return Math.ceil(places / stride);
}

/** Most taps of a class of an axis. */
export function mostTaps(axis: StridedAxis): number {
  return strideClass(axis, 0).taps;
}

/** Taps that the classes of all axes have on the mean, over the most. */
export function tapShare(axes: readonly StridedAxis[]): number {
  // Each tap is in one class.
  return axes.reduce((share, axis) => share * axis.taps / (axis.stride * mostTaps(axis)), 1);
}

/** What all classes of an axis of stride 1 or dilation 1 have in common: one window of the source that holds all of their taps. */
export interface ClassWindow {
  /** Places of the grid: class m has `first + m + i·stride`, some of which may lie outside. */
  readonly grid: number;
  /** Not above 0. */
  readonly first: number;
  /** Places of the window: of place i the one at t is `origin + i − t·dilation`. */
  readonly taps: number;
  readonly origin: number;
  /** There class m meets tap m + t·stride − lead, if that is one. */
  readonly lead: number;
}

/** The window of an axis; undefined where taps of different classes lie apart, which strides with dilation make. */
export function classWindow(axis: StridedAxis): ClassWindow | undefined {
  const { places, taps, stride, padding, dilation } = axis;
  if (stride > 1 && dilation > 1) return undefined;
  const least = Math.ceil(taps / stride);
  // From the first place on, unless the window is longer for that; then from where the padding's strides begin.
  const origin = Math.ceil(padding / stride);
  const lead = origin * stride - padding;
  if (Math.ceil((taps + lead) / stride) === least) {
    return { grid: classPlaces(axis), first: 0, taps: least, origin, lead };
  }
  const before = Math.floor(padding / stride);
  return {
    grid: Math.floor((places - 1 + padding) / stride) - before + 1,
    first: before * stride - padding,
    taps: least,
    origin: before,
    lead: 0,
  };
}

/**
 * Declares what a workgroup's class is, whose rows begin at `class_row`: for each axis `class_first`, `class_tap`,
 * `class_taps` and `class_origin` as {@linkcode StrideClass} has them; and `class_taps`, those of all axes.
 *
 * @param rows Padded rows of a class.
 */
export function classText(
  module: ModuleBuilder,
  axes: readonly StridedAxis[],
  rows: number,
): string {
  const size = (name: string, value: number) => module.size(`class_${name}`, value);
  const strides = axes.map(({ stride }, d) => size(`stride${d}`, stride));
  return [
    `  let class_index = first_row / ${size("rows", rows)};`,
    `  let class_row = class_index * ${size("rows", rows)};`,
    digitsText(
      "class_index",
      "class_rest",
      axisDigits(axes.map((_, d) => `class_index${d}`), strides),
    ),
    ...axes.flatMap((axis, d) => {
      const step = size(`step${d}`, classSteps(axis).step);
      const padding = size(`padding${d}`, axis.padding);
      const dilation = size(`dilation${d}`, axis.dilation);
      const taps = size(`taps${d}`, axis.taps);
      return [
        `  let class_tap${d} = class_index${d} % ${step};`,
        `  let class_met${d} = class_tap${d} * ${dilation};`,
        `  let class_first${d} = (class_met${d} + class_index${d} / ${step} + ${padding} * ` +
        `(${strides[d]} - 1u)) % ${strides[d]};`,
        `  let class_origin${d} = u32(i32(class_first${d} + ${padding} - class_met${d}) / ` +
        `i32(${strides[d]}));`,
        `  let class_taps${d} = ${
          evenTaps(axis) && module.mode === "constant"
            ? `${mostTaps(axis)}u`
            : `select(0u, (${taps} - class_tap${d} + ${step} - 1u) / ${step}, ` +
              `class_index${d} < ${step} && class_tap${d} < ${taps})`
        };`,
      ];
    }),
    `  let class_taps = ${axes.map((_, d) => `class_taps${d}`).join(" * ")};`,
  ].join("\n");
}

/** Whether all classes have the same number of taps. */
function evenTaps(axis: StridedAxis): boolean {
  return mostTaps(axis) * axis.stride === axis.taps;
}
