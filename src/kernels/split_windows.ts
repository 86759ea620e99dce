import template from "../../shaders/split_windows.wgsl" with { type: "text" };
import {
  type ConvProblem,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { elementCount } from "../tensor/tensor.ts";
import { axisDigits, digitsText } from "./axes.ts";
import { termText } from "./conv_terms.ts";
import {
  loopIterations,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
} from "./module.ts";

/** Marks of images and their places, and where those of results' places go. */
export interface SplitWindows {
  /** Forward or backward-data. */
  readonly problem: ConvProblem;
  /** Before the largest values of images. */
  readonly firstLargest: number;
  /** Before the counts of small values of images' places, and from those to the counts of large ones. */
  readonly counts: { readonly first: number; readonly kind: number };
  /** Before the marks of results' places, and words of a kind, of which the last says by how much a result is enlarged. */
  readonly places: { readonly first: number; readonly kind: number };
  /** That of all products, and from how many on it is that (`driftOf()`); of a tap so many. */
  readonly drift: { readonly most: number; readonly length: number; readonly channels: number };
}

/** Places of all images of a tensor. */
export function imagePlaces(problem: ConvProblem, which: "source" | "result"): number {
  const tensor = which === "source" ? operandTensors(problem.op)[0] : resultTensor(problem.op);
  const [batch, , ...sizes] = tensorShape(problem, tensor) as [number, number, ...number[]];
  return batch * elementCount(sizes);
}

/** Workgroups of a {@linkcode splitWindowsKernel}. */
export function splitWindowsWorkgroups({ problem }: SplitWindows): number {
  return Math.ceil(imagePlaces(problem, "result") / 256);
}

/** Adds up the marks of what the taps of each place of the result meet. Binds `marks`. */
export function splitWindowsKernel(shape: SplitWindows, mode: SizeMode): SizedKernel {
  const { problem, firstLargest, counts, places, drift } = shape;
  const { op, filterSize } = problem;
  const module = moduleBuilder(mode);
  const size = (name: string, value: number) => module.size(name, value);
  const marks = module.atomics("marks");
  const axes = filterSize.map((_, d) => d);
  const [, , ...spots] = tensorShape(problem, resultTensor(op));
  const [, , ...source] = tensorShape(problem, operandTensors(op)[0]);
  const { term, leftSpatial } = termText(problem, size);
  const taps = elementCount(filterSize);
  const name = `split_windows_${op.replace("-", "_")}_${axes.length}d`;
  const wgsl = render(template, {
    name,
    count: size("count", imagePlaces(problem, "result")),
    coordinates: digitsText(
      "i",
      "rest",
      axisDigits(
        ["r0", ...axes.map((d) => `s${d}`)],
        ["", ...axes.map((d) => size(`result${d}`, spots[d]!))],
      ),
    ),
    taps: size("taps", taps),
    term,
    firstCount: size("first_count", counts.first),
    place: axes.reduce(
      (place, d) => `(${place} * ${size(`source${d}`, source[d]!)} + ${leftSpatial(d)})`,
      "r0",
    ),
    load: marks.load,
    kind: size("count_kind", counts.kind),
    first: size("first_place", places.first),
    words: size("place_kind", places.kind),
    largest: marks.load(`${size("first_largest", firstLargest)} + r0`),
    store: marks.store,
    drift: `min(${size("drift", drift.most)}, (${size("drift", drift.most)} * met * ${
      size("tap_channels", drift.channels)
    } + ${size("drift_length", drift.length)} / 2u) / ${size("drift_length", drift.length)})`,
    declarations: module.declarations(),
  });
  return sizedKernel(name, mode, wgsl, module, [256, 1, 1], 0, loopIterations(taps));
}
