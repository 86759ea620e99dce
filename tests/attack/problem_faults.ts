/** Faults put into a result, which the gate has to find. */
import type { Checked } from "../../src/run/check.ts";
import type { Activation } from "../../src/problem/activations.ts";
import type { ReferenceResult } from "../../src/reference/reference.ts";
import { unravelIndex } from "../../src/tensor/tensor.ts";
import { Finding } from "./attack.ts";
import type { Draw } from "./draw.ts";
import type { PlainResult } from "../support/plain_reference.ts";

/** What a case made, and how it is judged. */
export interface Computed {
  readonly kernel: string;
  readonly result: Values;
  readonly reference: ReferenceResult;
  readonly plain: PlainResult;
  /** Relative error that the reference itself may have. */
  readonly exactness: number;
  /** Strides of the result in memory, of its canonical axes. */
  readonly strides: readonly number[];
  /** Of the result. */
  readonly dtype: string;
  /** Unit roundoff of the sums; 0 of integers. */
  readonly roundoff: number;
  readonly activation: Activation;
  /** Whether Winograd's tiles share errors. */
  readonly tiled: boolean;
  readonly check: (result: Values) => Checked;
}

export type Values =
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>
  | Float16Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>;

/** What can be wrong with a result. Each changes a copy of it. */
const SPOILERS: Readonly<
  Record<string, (draw: Draw, computed: Computed, values: Values, room: Float64Array) => void>
> = {
  "one output off": (draw, { reference, strides }, values, room) => {
    const index = draw.int(0, values.length - 1);
    const at = placeOf(index, reference.shape, strides);
    // So that rounding does not bring it below.
    const amount = values instanceof Int32Array ? 1 : 1.1 * room[index]!;
    values[at] = values[at]! + (draw.chance(0.5) ? amount : -amount);
  },
  "a channel scaled": (draw, computed, values) => {
    const { shape } = computed.reference;
    const axis = channelAxis(shape);
    const channel = draw.int(0, shape[axis]! - 1);
    for (const [at, index] of places(computed)) {
      if (index[axis] === channel) values[at] = values[at]! * 1.02;
    }
  },
  "a tile zeroed": (draw, computed, values) => {
    const { shape } = computed.reference;
    const begin = shape.map((size) => draw.int(0, size - 1));
    const size = shape.map((_, axis) => axis < 2 ? draw.int(1, 32) : draw.int(1, 6));
    for (const [at, index] of places(computed)) {
      if (
        index.every((value, axis) => value >= begin[axis]! && value < begin[axis]! + size[axis]!)
      ) {
        values[at] = 0;
      }
    }
  },
  "two channels swapped": (draw, computed, values) => {
    const { shape } = computed.reference;
    const axis = channelAxis(shape);
    const [one, other] = [draw.int(0, shape[axis]! - 1), draw.int(0, shape[axis]! - 1)];
    const before = values.slice();
    for (const [at, index] of places(computed)) {
      const channel = index[axis] === one ? other : index[axis] === other ? one : undefined;
      if (channel === undefined) continue;
      const from = index.with(axis, channel);
      values[at] = before[offsetOf(from, computed.strides)]!;
    }
  },
};

/** The axis of the product's rows: K of filters, else the second; of products m. */
function channelAxis(shape: readonly number[]): number {
  return shape.length > 1 ? 1 : 0;
}

function offsetOf(index: readonly number[], strides: readonly number[]): number {
  return index.reduce((sum, value, axis) => sum + value * strides[axis]!, 0);
}

function placeOf(index: number, shape: readonly number[], strides: readonly number[]): number {
  return offsetOf(unravelIndex(index, shape), strides);
}

function* places({ reference, strides }: Computed): Generator<[at: number, index: number[]]> {
  for (let i = 0; i < reference.values.length; i++) {
    const index = unravelIndex(i, reference.shape);
    yield [offsetOf(index, strides), index];
  }
}

/** Roundings of what cancels in its own order, which other orders of the same sum may show. */
const CANCELLED = 256;
/** Times the typical error that a single output must not be wrong by. */
const SINGLE_FAULT = 20;
/** Roundings that an activation of exponentials may add. */
const ACTIVATION_ROUNDINGS = 64;

/** Half a unit of the last place of short results: the least there is, and that of 1. */
const STORED: { readonly [dtype: string]: { least: number; half: number } | undefined } = {
  f16: { least: 2 ** -25, half: 2 ** -11 },
  bf16: { least: 2 ** -134, half: 2 ** -8 },
};

/** What each output may be off by before the gate must see it, in canonical order. */
function faultRoom(
  { reference, plain, dtype, result, roundoff, activation, tiled }: Computed,
  typical: number,
): Float64Array {
  const { shape, values, magnitudes } = reference;
  const area = shape.slice(2).reduce((product, size) => product * size, 1);
  const stored = STORED[dtype];
  // A Winograd tile has one scale, which is no larger than the largest of its image and channel, but in gradients: where padding
  // is wide, taps of a channel may meet none of what a transform reads.
  const largest = tiled && plain.reach !== undefined
    ? plain.reach.slice()
    : new Float64Array(values.length / area);
  magnitudes.forEach((magnitude, i) => {
    const slice = Math.floor(i / area);
    if (Number.isFinite(magnitude)) largest[slice] = Math.max(largest[slice]!, magnitude);
  });
  return values.map((value, i) => {
    const half = stored ? Math.max(stored.least, Math.abs(value) * stored.half) : 0;
    const least = roundoff === 0 || result instanceof Float64Array ? 0 : 2 ** -126;
    const scale = Math.max(least, roundoff * largest[Math.floor(i / area)]!) + half;
    return SINGLE_FAULT * typical * scale +
      activationRoom(activation, scale, 2 * (stored?.half ?? 0));
  });
}

function activationRoom(activation: Activation, scale: number, unit: number): number {
  switch (activation) {
    // Whatever the sum, they are at most 1.
    case "sigmoid":
    case "tanh":
      return ACTIVATION_ROUNDINGS * 2 ** -24 + unit;
    case "gelu":
    case "silu":
      return ACTIVATION_ROUNDINGS * scale;
    default:
      return 0;
  }
}

/** Spoils the result; whether the gate had to see it. Throws where it did not. */
export function holdFault(draw: Draw, computed: Computed, healthy: Checked): string {
  const { reference: { shape, values, paddedNaN }, result, strides, check } = computed;
  const cancelled = !(result instanceof Int32Array) && values.every((value) => value === 0);
  const typical = Math.max(healthy.accuracy.bound_typical ?? 0, cancelled ? CANCELLED : 0);
  const room = faultRoom(computed, typical);
  const infinite = values.findIndex((_, i) => !Number.isFinite(result[placeOf(i, shape, strides)]));
  if (infinite >= 0 && draw.chance(0.5)) {
    const at = placeOf(infinite, shape, strides);
    const lost = result.slice() as Values;
    // What padding may make NaN of may also be the reference's.
    lost[at] = Number.isNaN(result[at])
      ? values[infinite] === Infinity ? -Infinity : Infinity
      : paddedNaN?.[infinite] === 1
      ? 0
      : draw.pick([0, NaN]);
    if (check(lost).verdict === "fail") return "an infinity or NaN that is lost found";
    throw new Finding(`the gate passes ${lost[at]} in place of ${result[at]}`);
  }
  const name = draw.pick(Object.keys(SPOILERS));
  const spoilt = result.slice() as Values;
  SPOILERS[name]!(draw, computed, spoilt, room);
  let most = 0, off = "";
  for (let i = 0; i < values.length; i++) {
    const at = placeOf(i, shape, strides);
    const change = Math.abs(spoilt[at]! - result[at]!);
    // Where nothing rounds, results are exact, and any change is one too many.
    const times = room[i] === 0 ? (change > 0 ? Infinity : 0) : change / room[i]!;
    if (!Number.isFinite(change) || !(times > most)) continue;
    most = times;
    off = `[${unravelIndex(i, shape)}] of ${values[i]} by ${change}`;
  }
  if (most < 1) return "faults too small";
  const checked = check(spoilt);
  if (checked.verdict === "fail") return `faults found`;
  const { max_bound_ratio: ratio, bound_limit: limit } = checked.accuracy;
  throw new Finding(
    `the gate passes ${name}: ${off} is off by ${most} times what it must see, typical ${typical}, ` +
      `bound ratio ${ratio} of ${limit} allowed (healthy ${healthy.accuracy.max_bound_ratio}); ` +
      `kernel ${computed.kernel}`,
  );
}
