/** Walks over results beside their reference. */
import { type Activation, activationError } from "../problem/activations.ts";
import type { ReferenceResult } from "../reference/reference.ts";
import { unravelIndex } from "../tensor/tensor.ts";
import type { Floors } from "./yardstick.ts";
import type { Grouping } from "./groups.ts";
import { aboveLargest, errorScale, type Precision, stored } from "./precision.ts";

/** How results lie and what their errors are measured by. */
export interface MeasureOptions {
  /** Strides of the results in memory, in elements, per canonical axis. */
  readonly strides: readonly number[];
  /** In what results are summed and stored. */
  readonly precision: Precision;
  /** Products summed into an output: a GPU may flush each where it is below the normal numbers. 1 where absent. */
  readonly accumulationLength?: number;
  /** The epilogue's; what its exponentials may be off by is no error. */
  readonly activation?: Activation;
  /** Groups whose errors are added up; none where absent. */
  readonly grouping?: Grouping;
  /** What Σ|a||b| counts for at least; itself where absent. */
  readonly floors?: Floors | undefined;
  /** How many worst elements to name; 3 where absent. */
  readonly worst?: number;
}

/** An infinity is compared as a number only where it is this close, in scales: farther off no rounding explains it. */
const NEAR = 1000;

/** What errors are reduced by before they count: what a GPU may flush of so many products. */
export function flushedSize({ precision, accumulationLength = 1 }: MeasureOptions): number {
  return 2 * Math.max(1, accumulationLength) * precision.smallestNormal;
}

/** Called with each output; `error` is NaN where one of the two is not finite and the other is not the same. */
type Visit = (
  at: readonly number[],
  index: number,
  y: number,
  ref: number,
  error: number,
  scale: number,
  magnitude: number,
) => void;

/** Walks over the checked outputs. */
export function comparison(
  got: ArrayLike<number>,
  reference: ReferenceResult,
  options: MeasureOptions,
): (visit: Visit) => void {
  const { strides, precision, activation = "none", floors } = options;
  const { shape, values, magnitudes, rests, indices, paddedNaN } = reference;
  const flushed = flushedSize(options);
  // Activations are computed in f32, or f64.
  const unit = precision.result === "f64" ? 2 ** -53 : 2 ** -24;
  return (visit) => {
    const place = memoryPlaces(shape, strides);
    for (let i = 0; i < values.length; i++) {
      const index = indices === undefined ? i : indices[i]!;
      place.moveTo(index);
      const y = got[place.offset]!;
      const ref = values[i]!;
      // Beyond the range of the results' dtype its infinity is right, and NaN where padding meets one.
      const right = !Number.isFinite(y) &&
        (Object.is(y, stored(precision, ref)) || (Number.isNaN(y) && paddedNaN?.[i] === 1));
      if (right || Number.isNaN(y) || !Number.isFinite(ref)) {
        visit(place.at, index, y, ref, right ? 0 : NaN, 0, 0);
        continue;
      }
      // What rounds to the largest number by the reference may be an infinity by its own sum, and the other way round.
      const number = Number.isFinite(y) ? y : Math.sign(y) * aboveLargest(precision);
      const signed = (number - ref) - (rests?.[i] ?? 0);
      const magnitude = Math.max(magnitudes[i]!, floors?.size(index) ?? 0);
      const own = unit * activationError(activation, ref, magnitudes[i]!);
      const error = Math.sign(signed) * Math.max(0, Math.abs(signed) - flushed - own);
      const scale = errorScale(precision, magnitude, ref);
      const near = Number.isFinite(y) || Math.abs(error) < NEAR * scale;
      visit(place.at, index, y, ref, near ? error : NaN, scale, magnitude);
    }
  };
}

/** Where canonical flat indices lie in memory; ascending ones are found without divisions. */
function memoryPlaces(shape: readonly number[], strides: readonly number[]) {
  const rank = shape.length;
  const at = new Array<number>(rank).fill(0);
  const place = { offset: 0, at, moveTo };
  let current = 0;
  function moveTo(index: number): void {
    if (index === current) return;
    if (index !== current + 1) {
      place.offset = 0;
      unravelIndex(index, shape).forEach((value, axis) => {
        at[axis] = value;
        place.offset += value * strides[axis]!;
      });
    } else {
      for (let axis = rank - 1; axis >= 0; axis--) {
        at[axis]!++;
        place.offset += strides[axis]!;
        if (at[axis]! < shape[axis]!) break;
        place.offset -= strides[axis]! * shape[axis]!;
        at[axis] = 0;
      }
    }
    current = index;
  }
  return place;
}
