import { appliedMatrix, linearProgram, type TransformName } from "../winograd/linear_program.ts";
import type { LinearProgram, Term } from "../winograd/simplify.ts";
import type { WinogradTransform } from "../winograd/transform.ts";

/**
 * Transforms a patch that lies in `from` at `start` into `to` at `end`: row-major, of the sizes that its axes' matrices
 * have.
 */
export interface PatchTransform {
  readonly inputs: number;
  readonly outputs: number;
  apply(from: Float64Array, start: number, to: Float64Array, end: number): void;
}

/** The three transforms of a tile, as the shaders compute them in f32 and exactly. */
export interface TileTransforms {
  readonly input: RoundedTransform;
  readonly filter: RoundedTransform;
  readonly output: RoundedTransform;
}

/** One transform in f32, every step a fused multiply-add on constants in f32, and in doubles. */
export interface RoundedTransform {
  readonly rounded: PatchTransform;
  readonly exact: PatchTransform;
}

const cache = new Map<string, TileTransforms>();

/** The nested transforms of a tile over some axes; along the last axis first. */
export function tileTransforms(axes: readonly WinogradTransform[]): TileTransforms {
  const key = axes.map(({ n, r, scaling }) => `${n},${r},${scaling}`).join(";");
  const known = cache.get(key);
  if (known !== undefined) return known;
  const both = (name: TransformName) => ({
    rounded: nested(axes.map((axis) => lineTransform(programOf(axis, name), true))),
    exact: nested(axes.map((axis) => lineTransform(programOf(axis, name), false))),
  });
  const made = { input: both("input"), filter: both("filter"), output: both("output") };
  cache.set(key, made);
  return made;
}

function programOf(axis: WinogradTransform, name: TransformName): LinearProgram {
  return linearProgram(appliedMatrix(axis, name));
}

/** A transform along one axis: of `inputs` values `step` apart to `outputs` values `step` apart. */
interface LineTransform {
  readonly inputs: number;
  readonly outputs: number;
  apply(from: Float64Array, start: number, to: Float64Array, end: number, step: number): void;
}

/** Evaluates a program in doubles, or in f32: each step rounded once as a fused multiply-add, on constants in f32. */
export function lineTransform(
  { inputs, outputs, steps, results }: LinearProgram,
  rounded: boolean,
): LineTransform {
  // Decided at each step: a function that is handed in would be called a million times where V8 has an instruction.
  const round = (value: number) => rounded ? Math.fround(value) : value;
  const factor = (term: Term | undefined) => term ? round(term.factor.valueOf()) : 0;
  const left = Int32Array.from(steps, (step) => step.left.node);
  const right = Int32Array.from(steps, (step) => step.right?.node ?? 0);
  const leftFactor = Float64Array.from(steps, (step) => factor(step.left));
  const rightFactor = Float64Array.from(steps, (step) => factor(step.right));
  const node = Int32Array.from(results, (term) => term?.node ?? 0);
  const sign = Float64Array.from(results, (term) => factor(term));
  const values = new Float64Array(inputs + steps.length);
  return {
    inputs,
    outputs,
    apply(from, start, to, end, step) {
      for (let i = 0; i < inputs; i++) values[i] = from[start + i * step]!;
      for (let i = 0, next = inputs; i < left.length; i++, next++) {
        values[next] = round(
          values[left[i]!]! * leftFactor[i]! + values[right[i]!]! * rightFactor[i]!,
        );
      }
      for (let i = 0; i < outputs; i++) to[end + i * step] = values[node[i]!]! * sign[i]!;
    },
  };
}

/** Lines along the last axis, then along the one before it, and so on. */
function nested(lines: readonly LineTransform[]): PatchTransform {
  const sizes = lines.map(({ inputs }) => inputs);
  const product = (values: readonly number[]) => values.reduce((all, one) => all * one, 1);
  const most = product(lines.map(({ inputs, outputs }) => Math.max(inputs, outputs)));
  const stages = [...lines.keys()].reverse().map((axis) => {
    const outer = product(sizes.slice(0, axis));
    const step = product(lines.slice(axis + 1).map(({ outputs }) => outputs));
    return { line: lines[axis]!, outer, step, buffer: new Float64Array(most) };
  });
  return {
    inputs: product(sizes),
    outputs: product(lines.map(({ outputs }) => outputs)),
    apply(from, start, to, end) {
      stages.forEach(({ line, outer, step, buffer }, stage) => {
        const source = stage === 0 ? from : stages[stage - 1]!.buffer;
        const sourceAt = stage === 0 ? start : 0;
        const last = stage === stages.length - 1;
        const target = last ? to : buffer;
        const targetAt = last ? end : 0;
        for (let o = 0; o < outer; o++) {
          for (let i = 0; i < step; i++) {
            line.apply(
              source,
              sourceAt + o * line.inputs * step + i,
              target,
              targetAt + o * line.outputs * step + i,
              step,
            );
          }
        }
      });
    },
  };
}
