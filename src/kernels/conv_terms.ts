/** What results of a convolution are sums of, term by term: for kernels that follow the definition. */
import { range } from "./lists.ts";
import type { Scalar } from "../elements/scalar.ts";
import {
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { type FilterLayout, type Layout, layoutAxes, stridesInLayout } from "../tensor/layout.ts";
import { axisDigits, digitsText } from "./axes.ts";
import type { ModuleBuilder } from "./module.ts";

/** WGSL of what a result of a convolution is a sum of. */
export interface TermText {
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
