/** Data of convolutions that halves do not hold, for the tests of `--math f16x3`. */
import fc from "fast-check";
import { type ConvProblem, operandTensors, tensorShape } from "../../src/problem/conv_problem.ts";

/** Puts a value into the first or the second operand: at an image or filter, a channel, and along the axes. */
export type Setter = (which: 0 | 1, place: readonly number[], value: number) => void;
export type Spoil = (set: Setter, size: number, problem: Spoilt) => void;
/** What a spoil knows of its problem. */
interface Spoilt {
  readonly op: ConvProblem["op"];
  readonly first: readonly number[];
  readonly second: readonly number[];
}

/** Puts a value into all places of a channel of the first operand. */
function fillChannel(
  set: Setter,
  [image, channel, size]: readonly [number, number, number],
  value: (place: number) => number,
): void {
  for (let i = 0; i < size * size; i++) {
    set(0, [image, channel, Math.floor(i / size), i % size], value(i));
  }
}

/** The same of all of an image's channels. */
function fillImage(set: Setter, image: number, size: number, value: (place: number) => number) {
  for (let channel = 0; channel < CHANNELS; channel++) {
    fillChannel(set, [image, channel, size], value);
  }
}

/** Of both operands, in {@linkcode SPOILT}. */
export const CHANNELS = 6;

/** Of images of so many channels, and 3 x 3 filters; places are of the first operand, images or filters first. */
export const SPOILT: Readonly<Record<string, Spoil>> = {
  // What a filter's infinities and NaN make of padding is left open, so they lie in its middle.
  "an infinity": (set) => set(0, [0, 1, 2, 3], Infinity),
  "NaN in both": (set) => (set(0, [1, 0, 2, 3], NaN), set(1, [1, 2, 1, 1], NaN)),
  "an infinity in the second operand": (set) => set(1, [1, 2, 1, 1], -Infinity),
  "one huge value in an image": (set) => set(0, [0, 1, 5, 5], 1e30),
  "a huge value that meets zeros": (set) => {
    set(0, [0, 1, 5, 5], 1e25);
    for (let k = 0; k < CHANNELS; k++) {
      for (let i = 0; i < 9; i++) set(1, [k, 1, Math.floor(i / 3), i % 3], 0);
    }
  },
  "dots in black": (set, size) =>
    fillImage(set, 0, size, (i) => i % 40 === 0 ? 1e5 : (i % 7 - 3) * 1e-3),
  "channels of unlike scale": (set, size) => {
    for (let channel = 0; channel < CHANNELS; channel++) {
      for (const image of [0, 1]) {
        fillChannel(set, [image, channel, size], (i) => (i % 7 - 3.1) * 10 ** (4 * channel - 8));
      }
    }
  },
  "images of unlike scale": (set, size) => fillImage(set, 1, size, (i) => (i % 7 - 3.1) * 1e-20),
  "a tiny image": (set, size) => fillImage(set, 1, size, (i) => (i % 7 - 3.1) * 1e-33),
  "zeros": (set, size) => fillImage(set, 0, size, () => 0),
};

/** A place along the axes, of which there may be one. */
function along([, , outer, inner = 0]: readonly number[], step: number): number {
  return outer! + step * inner;
}

/** Every other channel is dark, and where it is bright the other operand has nothing to meet it. */
export const ALTERNATE: Spoil = (set, size, { op, first, second }) => {
  eachPlace(first, (place) => {
    const bright = place[1]! % 2 === 0;
    set(0, place, (bright ? 1 : 1e-9) * (1 + (place[0]! + 2 * place[1]! + along(place, 5)) % 4));
  });
  eachPlace(second, (place) => {
    const bright = (op === "bwd-data" ? place[0]! : place[1]!) % 2 === 0;
    const rest = op === "bwd-filter" ? 1e-7 : 0;
    set(1, place, bright ? rest : 1 + (place[0]! + along(place, 5) + size) % 3);
  });
};

/** A channel that is as bright as can be meets zeros; of the others nothing is left once multiplied by its scale. */
export const UNDERFLOW: Spoil = (set, _, { op, first, second }) => {
  eachPlace(first, (place) => {
    const bright = op === "bwd-filter" ? place[0] === 0 : place[1] === 1;
    set(0, place, (bright ? 1e38 : 1e-12) * (1 + (place[1]! * 7 + along(place, 3)) % 3));
  });
  eachPlace(second, (place) => {
    const met = op === "fwd" ? place[1] === 1 : op === "bwd-data" ? place[0] === 1 : place[0] === 0;
    set(1, place, met ? 0 : 1 + (place[0]! + along(place, 2)) % 3);
  });
};

/** The same of the second operand: what is bright in it meets zeros. */
export const MIRRORED: Spoil = (set, _, { op, first, second }) => {
  const met = (place: readonly number[], own: boolean) =>
    op === "bwd-filter" || own && op === "bwd-data" ? place[0] === 1 : place[1] === 1;
  eachPlace(first, (place) => {
    const value = 1 + (place[0]! + place[1]! + along(place, 2)) % 3;
    set(0, place, met(place, false) ? 0 : value);
  });
  eachPlace(second, (place) => {
    const value = 1 + (place[0]! * 7 + along(place, 3)) % 5;
    set(1, place, (met(place, true) ? 1e10 : 1) * value);
  });
};

/** Calls with every place of a tensor. */
export function eachPlace(
  shape: readonly number[],
  call: (place: readonly number[]) => void,
): void {
  const count = shape.reduce((all, one) => all * one, 1);
  for (let i = 0; i < count; i++) {
    let rest = i;
    const place = shape.toReversed().map((size) => {
      const digit = rest % size;
      rest = (rest - digit) / size;
      return digit;
    });
    call(place.toReversed());
  }
}

const anyValue = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(0, -0, 1, -(2 ** -126), 1e-30, 65504, 2 ** 60) },
  { weight: 4, arbitrary: fc.integer({ min: -40, max: 40 }).map((e) => 1.2345 * 2 ** e) },
  { weight: 1, arbitrary: fc.constantFrom(Infinity, -Infinity, NaN) },
);
const part = fc.nat(1000);

/** Some values of any range: of which operand, and where, modulo its sizes. */
export const spoiltValues = fc.array(
  fc.tuple(fc.constantFrom(0 as const, 1 as const), part, part, part, part, anyValue),
  { maxLength: 10 },
);

/** Puts such values into the operands of a problem; what infinities and NaN of the second make of padding is left open. */
export function spoiltBy(
  problem: ConvProblem,
  values: readonly (readonly [0 | 1, number, number, number, number, number])[],
): Spoil {
  return (set) => {
    for (const [which, a, b, c, d, value] of values) {
      if (which === 1 && !Number.isFinite(value)) continue;
      const shape = tensorShape(problem, operandTensors(problem.op)[which]!);
      set(which, [a, b, c, d].map((one, axis) => one % shape[axis]!), value);
    }
  };
}
