/** The smallest part of a wrong result that shows it: one image and channel, with the operands that make it. */
import {
  type ConvProblem,
  convProblem,
  type ConvTensor,
  operandTensors,
  resultTensor,
  tensorShape,
} from "../problem/conv_problem.ts";
import { type GemmProblem, gemmProblem } from "../problem/gemm_problem.ts";
import { type ConvAsked, convSubject } from "../run/conv_subject.ts";
import { gemmSubject } from "../run/gemm_subject.ts";
import type { HostData, HostOperands, Subject } from "../run/subject.ts";
import { stridesInLayout } from "../tensor/layout.ts";
import { elementCount, unravelIndex } from "../tensor/tensor.ts";
import { channelOperands, NO_EPILOGUE } from "../problem/epilogue.ts";

/** A part of a result, as a problem of its own; tensors lie as nchw and kcrs. */
export interface SmallCase {
  readonly subject: Subject;
  readonly operands: HostOperands;
  /** What the kernel gave. */
  readonly got: HostData;
  /** The options of `wgconv verify` that say the problem, but for its files. */
  readonly options: readonly string[];
}

/**
 * Cuts out the image and channel (of products the row and column) that an output is of.
 *
 * @param index Canonical and flat.
 * @returns undefined where operands have zero points, or results are scaled.
 */
export function smallestCase(
  { asked, shape }: Subject,
  operands: HostOperands,
  result: HostData,
  index: number,
): SmallCase | undefined {
  if ("gemm" in asked) return smallestProduct(asked.gemm, operands, result, index);
  const { integers, epilogue } = asked.conv;
  if (integers !== undefined || epilogue?.scale !== undefined) return undefined;
  return smallestConv(asked.conv, operands, result, unravelIndex(index, shape));
}

/** First and last but one of a tensor's first two axes. */
type Ranges = readonly [readonly [number, number], readonly [number, number]];

function smallestConv(
  asked: ConvAsked,
  operands: HostOperands,
  result: HostData,
  [outer, channel]: readonly number[],
): SmallCase {
  const { problem, epilogue } = asked;
  const { op, groups } = problem;
  const [ins, outs] = [problem.inChannels / groups, problem.outChannels / groups];
  const [a, b] = [outer!, channel!];
  const group = Math.floor(op === "bwd-data" ? b / ins : (op === "fwd" ? b : a) / outs);
  const one = (at: number) => [at, at + 1] as const;
  const inner = [group * ins, (group + 1) * ins] as const;
  const wide = [group * outs, (group + 1) * outs] as const;
  const all = [0, problem.batch] as const;
  const ranges: Readonly<Record<ConvTensor, Ranges>> = op === "fwd"
    ? { input: [one(a), inner], filter: [one(b), [0, ins]], output: [one(a), one(b)] }
    : op === "bwd-data"
    ? { input: [one(a), one(b)], filter: [wide, one(b - group * ins)], output: [one(a), wide] }
    : { input: [all, one(group * ins + b)], filter: [one(a), one(b)], output: [all, one(a)] };
  const part = (which: ConvTensor, data: HostData) => {
    const layout = which === "filter" ? asked.filterLayout : asked.layout;
    const shape = tensorShape(problem, which);
    return cut(data, shape, stridesInLayout(shape, layout), ranges[which]);
  };
  const small = convProblem({
    ...problem,
    groups: 1,
    batch: op === "bwd-filter" ? problem.batch : 1,
    inChannels: op === "fwd" ? ins : 1,
    outChannels: op === "bwd-data" ? outs : 1,
  });
  return {
    subject: convSubject({ ...asked, problem: small, layout: "nchw", filterLayout: "kcrs" }),
    operands: {
      ...Object.fromEntries(
        operandTensors(op).map((which) => [which, part(which, operands[which]!)]),
      ),
      ...Object.fromEntries(
        channelOperands(epilogue ?? NO_EPILOGUE).map((role) =>
          [role, operands[role]!.slice(b, b + 1)] as const
        ),
      ),
    },
    got: part(resultTensor(op), result),
    options: convOptions(small, epilogue?.activation ?? "none"),
  };
}

/** Part of a tensor, in canonical order. */
function cut(
  data: HostData,
  shape: readonly number[],
  strides: readonly number[],
  [[first, firstEnd], [second, secondEnd]]: Ranges,
): HostData {
  const sizes = [firstEnd - first, secondEnd - second, ...shape.slice(2)];
  const made = data.slice(0, elementCount(sizes)) as HostData;
  for (let i = 0; i < made.length; i++) {
    const at = unravelIndex(i, sizes);
    made[i] = data[
      at.reduce(
        (sum, place, axis) =>
          sum + (place + (axis === 0 ? first : axis === 1 ? second : 0)) * strides[axis]!,
        0,
      )
    ]!;
  }
  return made;
}

function convOptions(
  { op, stride, dilation, paddingBegin, paddingEnd, inputSize, filterSize }: ConvProblem,
  activation: string,
): string[] {
  // Elements that no filter reaches are left out by themselves.
  const ends = paddingEnd.map((end) => Math.max(0, end));
  return [
    ...(op === "fwd" ? [] : ["--op", op]),
    ...["--stride", stride.join()],
    ...["--padding", [...paddingBegin, ...ends].join()],
    ...["--dilation", dilation.join()],
    ...(op === "bwd-data" ? ["--input-size", inputSize.join()] : []),
    ...(op === "bwd-filter" ? ["--filter-size", filterSize.join()] : []),
    ...(activation === "none" ? [] : ["--activation", activation]),
  ];
}

function smallestProduct(
  problem: GemmProblem,
  operands: HostOperands,
  result: HostData,
  index: number,
): SmallCase {
  const { m, n, k, transpose, bias, beta, residual, alpha, activation } = problem;
  const column = index % n, row = Math.floor(index / n) % m, one = Math.floor(index / (m * n));
  const line = (data: HostData, first: number, step: number) =>
    data.slice(0, k).map((_, i) => data[first + i * step]!) as HostData;
  const at = (data: HostData, place: number) => data.slice(place, place + 1) as HostData;
  const [aRow, aStep] = transpose[0] === "n" ? [k, 1] : [1, m];
  const [bColumn, bStep] = transpose[1] === "n" ? [1, n] : [k, 1];
  const small = gemmProblem({ ...problem, m: 1, n: 1, batch: 1, transpose: "nn" });
  const dtype = result instanceof Float64Array
    ? "f64"
    : result instanceof Int32Array
    ? "i8"
    : "f32";
  return {
    subject: gemmSubject(small, { dtype }),
    operands: {
      a: line(operands.a!, one * m * k + row * aRow, aStep),
      b: line(operands.b!, one * k * n + column * bColumn, bStep),
      ...(beta === 0 ? {} : { c: at(operands.c!, index) }),
      ...(bias === "none" ? {} : { bias: at(operands.bias!, bias === "row" ? row : column) }),
      ...(residual ? { residual: at(operands.residual!, index) } : {}),
    },
    got: at(result, index),
    options: [
      ...(alpha === 1 ? [] : ["--alpha", `${alpha}`]),
      ...(beta === 0 ? [] : ["--beta", `${beta}`]),
      ...(activation === "none" ? [] : ["--activation", activation]),
    ],
  };
}
