import { type ConvTensor, operandTensors, tensorShape } from "../problem/conv_problem.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import type { HostArray } from "../reference/geometry.ts";
import type { ConvBlock, ConvOperands } from "./conv_operands.ts";
import { lastExponent } from "./unit_sums.ts";

const largestValues = new WeakMap<ConvOperands, readonly [Float64Array, Float64Array]>();

const lastBits = new WeakMap<ConvOperands, Float64Array>();

/** The exponents of the last bits by which it is found whether low halves are made for the left ones of a block. */
export function lastBitsOf(operands: ConvOperands, { group, lefts }: ConvBlock): Float64Array {
  const { geometry: { op, batch, groups, inChannels }, first } = operands;
  const byChannel = op === "bwd-filter";
  const known = lastBits.get(operands) ?? reduceKeys(
    operands,
    first,
    operandTensors(op)[0],
    byChannel ? groups * inChannels : batch,
    byChannel ? (_, channel) => channel : (image) => image,
    Infinity,
    (least, value) => Math.min(least, lastExponent(value)),
  );
  lastBits.set(operands, known);
  return Float64Array.from(
    lefts,
    ([outer]) => known[byChannel ? group * inChannels + outer : outer]!,
  );
}

/** The largest values by which the left and right ones of a block are scaled where they are split into halves. */
export function largestOf(
  operands: ConvOperands,
  { group, lefts, rights }: ConvBlock,
  scaled: PlanArithmetic["scaled"],
) {
  const { geometry: g } = operands;
  const known = largestValues.get(operands) ?? findLargest(operands);
  largestValues.set(operands, known);
  const of = (values: Float64Array, places: readonly number[], perGroup = 0) =>
    Float64Array.from(places, (place) => values[group * perGroup + place]!);
  const outers = lefts.map(([outer]) => outer);
  return g.op === "bwd-filter"
    ? { lefts: of(known[0], outers, g.inChannels), rights: of(known[1], rights, g.outChannels) }
    : {
      ...(scaled === "tiles" ? {} : { lefts: of(known[0], outers) }),
      rights: of(known[1], rights, g.op === "fwd" ? g.outChannels : g.inChannels),
    };
}

/** The largest value of each image, or channel, of the first operand, and of each channel of the result of the second. */
function findLargest(operands: ConvOperands) {
  const { geometry: g, first, second, problem } = operands;
  const [left, right] = operandTensors(problem.op);
  const over = (
    data: HostArray,
    which: ConvTensor,
    count: number,
    keyOf: (a: number, b: number) => number,
  ) =>
    reduceKeys(
      operands,
      data,
      which,
      count,
      keyOf,
      0,
      (most, value) => value > most ? value : value === value ? most : Infinity,
    );
  const { batch, groups, inChannels, outChannels } = g;
  if (problem.op === "bwd-filter") {
    const byChannel = (_: number, channel: number) => channel;
    return [
      over(first, left, groups * inChannels, byChannel),
      over(second, right, groups * outChannels, byChannel),
    ] as const;
  }
  return [
    over(first, left, batch, (image) => image),
    problem.op === "fwd" ? over(second, right, groups * outChannels, (k) => k) : over(
      second,
      right,
      groups * inChannels,
      (k, c) => Math.floor(k / outChannels) * inChannels + c,
    ),
  ] as const;
}

/** Reduces the sizes of a tensor's values by keys, so many, of its first two axes. */
function reduceKeys(
  { geometry: g, problem }: ConvOperands,
  data: HostArray,
  which: ConvTensor,
  count: number,
  keyOf: (a: number, b: number) => number,
  initial: number,
  reduce: (so: number, size: number) => number,
): Float64Array {
  const stridesOf = { input: g.inputStrides, filter: g.filterStrides, output: g.outputStrides };
  const sizesOf = { input: g.inputSize, filter: g.filterSize, output: g.outputSize };
  const reduced = new Float64Array(count).fill(initial);
  const [sa, sb, s0, s1, s2] = stridesOf[which] as [number, number, number, number, number];
  const [n0, n1, n2] = sizesOf[which];
  const [na, nb] = tensorShape(problem, which) as [number, number];
  for (let a = 0; a < na; a++) {
    for (let b = 0; b < nb; b++) {
      const key = keyOf(a, b);
      let so = reduced[key]!;
      for (let i = 0; i < n0; i++) {
        for (let j = 0; j < n1; j++) {
          const row = a * sa + b * sb + i * s0 + j * s1;
          for (let k = 0; k < n2; k++) so = reduce(so, Math.abs(data[row + k * s2]!));
        }
      }
      reduced[key] = so;
    }
  }
  return reduced;
}
