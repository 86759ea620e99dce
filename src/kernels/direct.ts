import template from "../../shaders/direct.wgsl" with { type: "text" };
import {
  accumulationLength,
  type ConvProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { type Elements, elementsTrait, sumOf } from "../elements/elements.ts";
import { zeroOf } from "../elements/scalar.ts";
import { elementCount } from "../tensor/tensor.ts";
import { type FilterLayout, type Layout, layoutAxes, stridesInLayout } from "../tensor/layout.ts";
import { axisDigits, digitsText } from "./axes.ts";
import { applyEpilogue, type EpilogueFactory, epilogueTrait } from "./epilogue.ts";
import {
  loopIterations,
  type ModuleBuilder,
  moduleBuilder,
  render,
  type SizedKernel,
  sizedKernel,
  type SizeMode,
  splitTrait,
  type TensorSplit,
} from "./module.ts";

export interface DirectShape {
  readonly problem: ConvProblem;
  readonly layout: Layout;
  readonly filterLayout: FilterLayout;
  /** Threads that share one result; more than one leaves partial results to be reduced. */
  readonly splits: number;
  readonly mode: SizeMode;
  readonly elements: Elements;
}

/** The definition of the convolution, one thread a result: slow, simple, the oracle of the other kernels. */
export function directKernel(
  shape: DirectShape,
  epilogue: EpilogueFactory,
  tensors: Readonly<Record<ConvTensor, TensorSplit>>,
): SizedKernel {
  const { problem, layout, filterLayout, mode, elements } = shape;
  const { op } = problem;
  const result = resultTensor(op);
  const [left, right] = operandTensors(op);
  const module = moduleBuilder(mode);
  const a = module.tensor(left, "read", 1, tensors[left], elements.storage);
  const b = module.tensor(right, "read", 1, tensors[right], elements.storage);
  const sum = sumOf(elements);
  const stored = shape.splits > 1 ? sum : elements.result;
  const out = module.tensor(result, "write", 1, tensors[result], stored);
  const steps = epilogue(module, 1, (row) => row);
  const rank = problem.filterSize.length;
  const axes = Array.from({ length: rank }, (_, d) => d);
  const layoutOf = (which: ConvTensor) => which === "filter" ? filterLayout : layout;
  const size = (name: string, value: number) => module.size(name, value);
  const offset = (which: ConvTensor, coordinates: readonly string[]) => {
    const strides = stridesInLayout(tensorShape(problem, which), layoutOf(which));
    return coordinates
      .map((coordinate, axis) =>
        `${coordinate} * ${size(`${which}_stride${axis}`, strides[axis]!)}`
      )
      .join(" + ");
  };
  const name = `direct_${op.replace("-", "_")}_${
    elementsTrait(elements)
  }_${rank}d_${layout}_${filterLayout}${epilogueTrait(steps)}${
    splitTrait(tensors[left], tensors[right], tensors[result])
  }`;
  const terms = accumulationLength(problem);
  const text = termText(problem, size);
  const values = {
    name,
    count: size("count", elementCount(tensorShape(problem, result))),
    splits: size("splits", shape.splits),
    terms: size("terms", terms),
    termsPerSplit: size("terms_per_split", Math.ceil(terms / shape.splits)),
    coordinates: coordinatesText(problem, result, layoutOf(result), size),
    term: text.term,
    zero: zeroOf(sum, 1),
    whole: sum === "i32",
    a: a.load(offset(left, [...text.left, ...axes.map((d) => text.leftSpatial(d))])),
    b: b.load(offset(right, [...text.right, ...axes.map((d) => text.rightSpatial(d))])),
    store: out.store(
      "id",
      applyEpilogue(steps, "sum", {
        width: 1,
        side: "rows",
        row: "r1",
        column: "s0",
        offset: "id",
      }),
    ),
    functions: steps.map(({ declarations }) => declarations).join("\n"),
  };
  const wgsl = render(template, { ...values, declarations: module.declarations() });
  const iterations = loopIterations(Math.ceil(terms / shape.splits));
  return sizedKernel(name, mode, wgsl, module, [64, 1, 1], 0, iterations);
}

/** Declares r0, r1 and s0.. (canonical coordinates) of flat element `rest` of the result. */
function coordinatesText(
  problem: ConvProblem,
  result: ConvTensor,
  layout: Layout | FilterLayout,
  size: ModuleBuilder["size"],
): string {
  const canonical = tensorShape(problem, result);
  const name = (axis: number) => axis < 2 ? `r${axis}` : `s${axis - 2}`;
  const axes = layoutAxes(layout, canonical.length - 2);
  const radices = axes.map((axis) => size(`result${axis}`, canonical[axis]!));
  return digitsText("i", "rest", axisDigits(axes.map(name), radices));
}

interface TermText {
  /** Declares the coordinates of both operands, and `inside`. */
  readonly term: string;
  readonly left: readonly string[];
  readonly right: readonly string[];
  leftSpatial(axis: number): string;
  rightSpatial(axis: number): string;
}

function termText(problem: ConvProblem, size: ModuleBuilder["size"]): TermText {
  const rank = problem.filterSize.length;
  const axes = Array.from({ length: rank }, (_, d) => d);
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
