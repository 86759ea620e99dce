import { type Elements, elementsTrait, sumOf } from "../elements/elements.ts";
import { type Scalar, zeroOf } from "../elements/scalar.ts";
import { axisDigits, digitsText } from "./axes.ts";
import { applyEpilogue, type EpilogueFactory, epilogueTrait } from "./epilogue.ts";
import { range } from "./lists.ts";
import type { ModuleBuilder } from "./module.ts";
import { loopIterations, mainText, type SizedKernel, textKernel } from "./sized_kernel.ts";
import {
  accumulationLength,
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { type FilterLayout, type Layout, layoutAxes, stridesInLayout } from "../tensor/layout.ts";
import { elementCount } from "../tensor/tensor.ts";

/** WGSL of what a result of a convolution is a sum of. */
interface TermText {
  /** Declares the coordinates of both operands, and `inside`. */
  readonly term: string;
  readonly left: readonly string[];
  readonly right: readonly string[];
  leftSpatial(axis: number): string;
  rightSpatial(axis: number): string;
}

/**
 * WGSL of the products of a result, given its canonical coordinates: forward and backward-data those of the taps of a channel before those
 * of the next, of backward-filter those of the places of an image.
 */
export function termText(problem: ConvProblem, size: ModuleBuilder["size"]): TermText {
  const rank = problem.filterSize.length;
  const axes = range(rank);
  const groupIn = size("group_in", problem.inChannels / problem.groups);
  const groupOut = size("group_out", problem.outChannels / problem.groups);
  const geometry = (d: number) => ({
    stride: size(`stride${d}`, problem.stride[d]!),
    padding: size(`padding${d}`, problem.paddingBegin[d]!),
    dilation: size(`dilation${d}`, problem.dilation[d]!),
    input: size(`input${d}`, problem.inputSize[d]!),
    output: size(`output${d}`, problem.outputSize[d]!),
  });
  // The term is a channel, or an image, of each tap or place.
  const parts = (outer: string, prefix: string, extent: (d: number) => string) =>
    digitsText(
      "term",
      "term_rest",
      axisDigits([outer, ...axes.map((d) => `${prefix}${d}`)], ["", ...axes.map(extent)]),
      "    ",
    );
  // The input that a place of the output meets under a tap. Unsigned: below zero is huge.
  const reach = (place: string, tap: string) =>
    axes.flatMap((d) => {
      const g = geometry(d);
      return [
        `    let at${d} = ${place}${d} * ${g.stride} + ${tap}${d} * ${g.dilation} - ${g.padding};`,
        `    let in${d} = at${d} < ${g.input};`,
      ];
    });
  const inside = `    let inside = ${axes.map((d) => `in${d}`).join(" && ")};`;
  if (problem.op === "bwd-filter") {
    return {
      term: [
        parts("image", "p", (d) => geometry(d).output),
        ...reach("p", "s"),
        inside,
      ].join("\n"),
      left: ["image", `(r0 / ${groupOut} * ${groupIn} + r1)`],
      right: ["image", "r0"],
      leftSpatial: (d) => `at${d}`,
      rightSpatial: (d) => `p${d}`,
    };
  }
  const taps = parts("channel", "tap", (d) => size(`taps${d}`, problem.filterSize[d]!));
  if (problem.op === "fwd") {
    return {
      term: [
        taps,
        ...reach("s", "tap"),
        inside,
      ].join("\n"),
      left: ["r0", `(r1 / ${groupOut} * ${groupIn} + channel)`],
      right: ["r1", "channel"],
      leftSpatial: (d) => `at${d}`,
      rightSpatial: (d) => `tap${d}`,
    };
  }
  const outChannel = `(r1 / ${groupIn} * ${groupOut} + channel)`;
  return {
    term: [
      taps,
      ...axes.flatMap((d) => {
        const g = geometry(d);
        return [
          `    let far${d} = s${d} + ${g.padding} - tap${d} * ${g.dilation};`,
          `    let at${d} = far${d} / ${g.stride};`,
          `    let in${d} = at${d} < ${g.output} && far${d} % ${g.stride} == 0u;`,
        ];
      }),
      inside,
    ].join("\n"),
    left: ["r0", outChannel],
    right: [outChannel, `(r1 % ${groupIn})`],
    leftSpatial: (d) => `at${d}`,
    rightSpatial: (d) => `tap${d}`,
  };
}

/** How a convolution's tensors lie. */
export interface ConvTensors {
  readonly problem: ConvProblem;
  readonly layout: Layout;
  readonly filterLayout: FilterLayout;
}

/**
 * Binds both operands of a convolution by their names, for a kernel that follows its definition: WGSL of a result's coordinates, given
 * its index `i`, of its products, and of the two values of each.
 */
export function convTerms(
  module: ModuleBuilder,
  { problem, layout, filterLayout }: ConvTensors,
  storage: Scalar = "f32",
): { coordinates: string; term: string; a: string; b: string } {
  const size = (name: string, value: number) => module.size(name, value);
  const layoutOf = (which: ConvTensor) => which === "filter" ? filterLayout : layout;
  const axes = range(problem.filterSize.length);
  const text = termText(problem, size);
  const [left, right] = operandTensors(problem.op);
  const value = (which: ConvTensor, outer: readonly string[], spatial: (d: number) => string) => {
    const tensor = module.bind(which, "read", 1, storage);
    const strides = stridesInLayout(tensorShape(problem, which), layoutOf(which));
    return tensor.load(
      [...outer, ...axes.map(spatial)]
        .map((at, axis) => `${at} * ${size(`${which}_stride${axis}`, strides[axis]!)}`)
        .join(" + "),
    );
  };
  const result = resultTensor(problem.op);
  // r0, r1 and s0 and on of the result's flat element.
  const shape = tensorShape(problem, result);
  const order = layoutAxes(layoutOf(result), shape.length - 2);
  const names = order.map((axis) => axis < 2 ? `r${axis}` : `s${axis - 2}`);
  const radices = order.map((axis) => size(`result${axis}`, shape[axis]!));
  return {
    coordinates: digitsText("i", "rest", axisDigits(names, radices)),
    term: text.term,
    a: value(left, text.left, text.leftSpatial),
    b: value(right, text.right, text.rightSpatial),
  };
}

const THREADS = 64;

interface DirectShape extends ConvTensors {
  /** Threads that share one result; more than one leaves partial results to be reduced. */
  readonly splits: number;
  readonly elements: Elements;
}

/** The definition of the convolution, one thread a result: slow, simple, the oracle of the other kernels. */
export function directKernel(
  module: ModuleBuilder,
  shape: DirectShape,
  epilogue: EpilogueFactory,
): SizedKernel {
  const { problem, layout, filterLayout, elements } = shape;
  const { op } = problem;
  const result = resultTensor(op);
  const text = convTerms(module, shape, elements.storage);
  const sum = sumOf(elements);
  const stored = shape.splits > 1 ? sum : elements.result;
  const out = module.bind(result, "write", 1, stored);
  const steps = epilogue(module, 1, (row) => row);
  const rank = problem.filterSize.length;
  const { size } = module;
  const name = `direct_${op.replace("-", "_")}_${
    elementsTrait(elements)
  }_${rank}d_${layout}_${filterLayout}${epilogueTrait(steps)}${module.splitTrait()}`;
  const terms = accumulationLength(problem);
  const count = elementCount(tensorShape(problem, result));
  const elementsCount = size("count", count);
  const splits = size("splits", shape.splits);
  const allTerms = size("terms", terms);
  const each = size("terms_per_split", Math.ceil(terms / shape.splits));
  const place = { width: 1, side: "rows", row: "r1", column: "s0", offset: "id" } as const;
  const wgsl = [
    steps.map(({ declarations }) => declarations),
    mainText(THREADS),
    `  let id = (workgroup.x + workgroup.y * grid.x) * ${THREADS}u + t;`,
    `  if (id >= ${elementsCount} * ${splits}) { return; }`,
    `  let i = id % ${elementsCount};`,
    `  let split = id / ${elementsCount};`,
    text.coordinates,
    `  let first = split * ${each};`,
    `  let end = min(first + ${each}, ${allTerms});`,
    `  var sum = ${zeroOf(sum, 1)};`,
    "  for (var term = first; term < end; term++) {",
    text.term,
    "    if (inside) {",
    sum === "i32"
      ? `      sum += ${text.a} * ${text.b};`
      : `      sum = fma(${text.a}, ${text.b}, sum);`,
    "    }",
    "  }",
    `  ${out.store("id", applyEpilogue(steps, "sum", place))}`,
    "}",
  ];
  const about = "one thread a result, one product a step, in the order of the definition.";
  return textKernel(module, name, about, wgsl, {
    workgroups: Math.ceil(count * shape.splits / THREADS),
    threads: THREADS,
    iterations: loopIterations(Math.ceil(terms / shape.splits)),
  });
}
