/** Simulated f32 kernels of Winograd's algorithms with points and scalings of one's own: what those are chosen by. */
import { type AccuracyReport, F32, measureAccuracy } from "../src/accuracy/mod.ts";
import type { ReferenceResult } from "../src/reference/reference.ts";
import { type FillKind, fillTensor } from "../src/tensor/fill.ts";
import {
  appliedMatrix,
  TRANSFORM_NAMES,
  transformCounts,
  type TransformName,
} from "../src/winograd/counts.ts";
import { linearProgram } from "../src/winograd/linear_program.ts";
import type { LinearProgram, Term } from "../src/winograd/program.ts";
import type { WinogradTransform } from "../src/winograd/transform.ts";

/** Evaluates straight-line code in some arithmetic. */
export type Evaluate = (inputs: ArrayLike<number>) => Float64Array;

/** The steps of a program in f32, each rounded once as a fused multiply-add is, on constants in f32. */
export function inF32({ inputs, steps, results }: LinearProgram): Evaluate {
  const values = new Float64Array(inputs + steps.length);
  const factor = (term: Term | undefined) => term ? Math.fround(term.factor.valueOf()) : 0;
  const code = steps.map(({ left, right }) => ({
    left: left.node,
    right: right?.node ?? 0,
    leftFactor: factor(left),
    rightFactor: factor(right),
  }));
  const outputs = results.map((term) => ({ node: term?.node ?? 0, factor: factor(term) }));
  return (given) => {
    for (let i = 0; i < inputs; i++) values[i] = given[i]!;
    let next = inputs;
    for (const { left, right, leftFactor, rightFactor } of code) {
      values[next++] = Math.fround(values[left]! * leftFactor + values[right]! * rightFactor);
    }
    return Float64Array.from(outputs, ({ node, factor }) => values[node]! * factor);
  };
}

/** An algorithm: three transforms on flat arrays, and the sums of products that it computes. */
export interface Algorithm {
  readonly alpha: number;
  readonly inputs: number;
  readonly taps: number;
  readonly input: Evaluate;
  readonly filter: Evaluate;
  readonly output: Evaluate;
  /** Of the three transforms together. */
  readonly instructions: number;
  /** Element of the input that tap `k` of result `i` meets. */
  readonly meets: readonly (readonly number[])[];
}

/** F(n,r) as its simplified programs compute it. */
export function algorithm1d(transform: WinogradTransform): Algorithm {
  const { n, r, alpha } = transform;
  const evaluate = (name: TransformName) => inF32(linearProgram(appliedMatrix(transform, name)));
  return {
    alpha,
    inputs: alpha,
    taps: r,
    input: evaluate("input"),
    filter: evaluate("filter"),
    output: evaluate("output"),
    instructions: instructions([transform]),
    meets: range(n).map((i) => range(r).map((k) => i + k)),
  };
}

/** F(n0xn1,r0xr1): one transform along the rows, the other along the columns of what it gives. */
export function algorithm2d(rows: WinogradTransform, columns: WinogradTransform): Algorithm {
  const [first, second] = [algorithm1d(rows), algorithm1d(columns)];
  return {
    instructions: instructions([rows, columns]),
    alpha: first.alpha * second.alpha,
    inputs: first.inputs * second.inputs,
    taps: first.taps * second.taps,
    input: nested(first.input, second.input, rows.alpha, columns.alpha),
    filter: nested(first.filter, second.filter, rows.r, columns.r),
    output: nested(first.output, second.output, rows.alpha, columns.alpha),
    meets: first.meets.flatMap((above) =>
      second.meets.map((across) => above.flatMap((i) => across.map((j) => i * columns.alpha + j)))
    ),
  };
}

function nested(rows: Evaluate, columns: Evaluate, height: number, width: number): Evaluate {
  return (values) => {
    const across = range(height).map((i) =>
      columns(range(width).map((j) => values[i * width + j]!))
    );
    const length = across[0]!.length;
    const down = range(length).map((j) => rows(across.map((row) => row[j]!)));
    return Float64Array.from(
      { length: down[0]!.length * length },
      (_, i) => down[i % length]![Math.floor(i / length)]!,
    );
  };
}

/** How much data is simulated. */
export interface Simulation {
  readonly fill: FillKind;
  /** Products summed in each place of the transformed domain: channels times what rows of a filter are left. */
  readonly depth: number;
  readonly filters: number;
  readonly tiles: number;
  readonly seed?: number;
  /** Products after which the accumulator is flushed into a second one; never, if left out. */
  readonly flush?: number;
}

/** What a simulated kernel gives, a channel a filter: [1, filters, results of all tiles]. */
export interface SimulatedResults {
  readonly results: Float32Array<ArrayBuffer>;
  readonly reference: ReferenceResult;
  /** Products in an output. */
  readonly length: number;
}

/** Runs an algorithm on seeded data with one f32 accumulator a product, and the reference in doubles. */
export function simulateWinograd(algorithm: Algorithm, given: Simulation): SimulatedResults {
  const { fill, depth, filters, tiles, seed = 1, flush = Infinity } = given;
  const { alpha, inputs, taps, meets } = algorithm;
  const x = fillTensor("f32", [tiles, depth, inputs], fill, seed).data;
  const w = fillTensor("f32", [filters, depth, taps], fill, seed + 1).data;
  const transformedX = transformAll(algorithm.input, x, inputs, alpha);
  const transformedW = transformAll(algorithm.filter, w, taps, alpha);
  const shape = [1, filters, tiles * meets.length];
  const results = new Float32Array(filters * tiles * meets.length);
  const values = new Float64Array(results.length);
  const magnitudes = new Float64Array(results.length);
  const products = new Float64Array(alpha);
  let at = 0;
  for (let filter = 0; filter < filters; filter++) {
    for (let tile = 0; tile < tiles; tile++) {
      const [atX, atW] = [tile * depth, filter * depth];
      for (let a = 0; a < alpha; a++) {
        let sum = 0, flushed = 0;
        for (let c = 0; c < depth; c++) {
          const product = transformedX[(atX + c) * alpha + a]! *
            transformedW[(atW + c) * alpha + a]!;
          sum = Math.fround(sum + product);
          if ((c + 1) % flush === 0) {
            flushed = Math.fround(flushed + sum);
            sum = 0;
          }
        }
        products[a] = Math.fround(flushed + sum);
      }
      const outputs = algorithm.output(products);
      for (const [i, met] of meets.entries()) {
        let exact = 0, magnitude = 0;
        for (let c = 0; c < depth; c++) {
          for (let k = 0; k < taps; k++) {
            const product = x[(atX + c) * inputs + met[k]!]! * w[(atW + c) * taps + k]!;
            exact += product;
            magnitude += Math.abs(product);
          }
        }
        results[at] = outputs[i]!;
        values[at] = exact;
        magnitudes[at] = magnitude;
        at++;
      }
    }
  }
  return { results, reference: { values, magnitudes, shape }, length: depth * taps };
}

/** Unit roundoff of f32. */
export const UNIT_ROUNDOFF = 2 ** -24;

/** The report that a check makes of simulated results. */
export function reportOf({ results, reference }: SimulatedResults): AccuracyReport {
  const [, filters, outputs] = reference.shape as [number, number, number];
  return measureAccuracy(results, reference, {
    strides: [filters * outputs, outputs, 1],
    precision: F32,
  }).report;
}

function transformAll(
  evaluate: Evaluate,
  data: Float32Array,
  size: number,
  alpha: number,
): Float32Array {
  const count = data.length / size;
  const results = new Float32Array(count * alpha);
  for (let i = 0; i < count; i++) {
    results.set(evaluate(data.subarray(i * size, (i + 1) * size)), i * alpha);
  }
  return results;
}

function instructions(axes: readonly WinogradTransform[]): number {
  return TRANSFORM_NAMES.reduce(
    (sum, name) => sum + transformCounts(axes, name).simplified.instructions,
    0,
  );
}

function range(length: number): number[] {
  return Array.from({ length }, (_, i) => i);
}
