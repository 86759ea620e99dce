import fc from "fast-check";
import { planConv } from "../src/algorithms/planner.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { convResult, convSubject } from "../src/run/conv_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { checkResult } from "../src/run/case_checks.ts";
import { runPlan } from "../src/run/executor.ts";
import type { HostOperands } from "../src/run/subject.ts";
import type { GpuDevice } from "../src/gpu/device.ts";
import { type ConvProblem, convProblem, dilatedSize } from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { filterLayoutFor, type Layout } from "../src/tensor/layout.ts";

/** Fits every device with 16 slices, and compiles fast. */
export const SMALLEST = "8x8x4_4x4";

/** Filters that WinRS must do: 1 to 9 rows of 2 to 9 columns, wider and narrower ones. */
export function filterSizes(): [height: number, width: number][] {
  const sizes: [number, number][] = [];
  for (let height = 1; height <= 9; height++) {
    for (let width = 2; width <= 9; width++) sizes.push([height, width]);
  }
  return [...sizes, [12, 14], [10, 1]];
}

/**
 * A small problem with a filter of this size. Batches of 1 to 9, groups, odd channels and paddings change from size
 * to size, and all occur.
 */
export function filterProblem([height, width]: readonly [number, number]): ConvProblem {
  const turn = 3 * height + width;
  const groups = 1 + turn % 3;
  return convProblem({
    op: "bwd-filter",
    batch: 1 + (height + 2 * width) % 9,
    groups,
    inChannels: groups * (3 + turn % 7),
    outChannels: groups * (9 - height % 5),
    inputSize: [height + turn % 4, width + 7 + turn % 6],
    filterSize: [height, width],
    paddingBegin: [turn % height, height % (width + 1)],
    paddingEnd: [turn % 2, turn % width],
  });
}

/** Limits of a random gradient. */
interface GradientLimits {
  /** Lengths of the filter. */
  readonly filter: fc.Arbitrary<number>;
  /** Stride and dilation of an axis. */
  readonly steps: readonly (readonly [stride: number, dilation: number])[];
  readonly batch: number;
  /** Channels of a group, of one of two. */
  readonly channels: number;
}

/** Gradients of filters along one to three axes, with groups and padding that is unlike at both ends. */
export function randomGradients(
  { filter, steps, batch, channels }: GradientLimits,
): fc.Arbitrary<ConvProblem> {
  const axis = fc.record({
    filter,
    more: fc.integer({ min: 0, max: 7 }),
    begin: fc.integer({ min: 0, max: 4 }),
    end: fc.integer({ min: 0, max: 4 }),
    step: fc.constantFrom(...steps),
  });
  const even = fc.integer({ min: 1, max: channels }).map((each) => 2 * each);
  const rest = fc.record({
    batch: fc.integer({ min: 1, max: batch }),
    groups: fc.integer({ min: 1, max: 2 }),
    inChannels: even,
    outChannels: even,
  });
  return fc.tuple(fc.array(axis, { minLength: 1, maxLength: 3 }), rest).map(([axes, rest]) =>
    convProblem({
      ...rest,
      op: "bwd-filter",
      inputSize: axes.map(({ filter, more, step: [, dilation] }) =>
        dilatedSize(filter, dilation) + more
      ),
      filterSize: axes.map(({ filter }) => filter),
      stride: axes.map(({ step: [stride] }) => stride),
      dilation: axes.map(({ step: [, dilation] }) => dilation),
      paddingBegin: axes.map(({ begin }) => begin),
      paddingEnd: axes.map(({ end }) => end),
    })
  );
}

/** What to run: a filter of a size or a problem, and what is forced. */
export interface WinrsRun extends Partial<Omit<PlanRequest, "problem">> {
  readonly filter?: readonly [height: number, width: number];
  readonly problem?: ConvProblem;
  readonly layout: Layout;
  readonly onResult?: (result: Float32Array) => void;
}

/** A request with sizes in a uniform. */
export function winrsRequest(
  gpu: GpuDevice,
  problem: ConvProblem,
  more: Partial<PlanRequest>,
): PlanRequest {
  const layout = more.layout ?? "nchw";
  return {
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "winrs",
    limits: gpu.limits,
    sizes: "uniform",
    ...more,
  };
}

/** Runs a request. */
export async function runWinrs(
  gpu: GpuDevice,
  request: PlanRequest,
  operands: HostOperands,
): Promise<{ plan: Plan; result: Float32Array<ArrayBuffer> }> {
  const plan = planConv(request);
  const { result } = await runPlan(gpu, plan, operands, convResult(request.problem), 2);
  return { plan, result };
}

/**
 * Runs a problem on seeded data and compares the gradient with the FP64 reference's. Gives the kernels' names.
 *
 * @throws {Error} if the gate fails.
 */
export async function checkWinrs(gpu: GpuDevice, run: WinrsRun): Promise<string> {
  const { filter, problem: given, onResult, ...more } = run;
  const problem = given ?? filterProblem(filter ?? [3, 3]);
  const request = winrsRequest(gpu, problem, more);
  const subject = convSubject(request);
  const operands = fillOperands(subject, "uniform11", 5);
  const { plan, result } = await runWinrs(gpu, request, operands);
  onResult?.(result);
  const names = plan.passes.map(({ kernel }) => kernel.name).join(" ");
  const { verdict, message } = await checkResult({
    subject,
    operands,
    mode: "full",
    seed: 1,
    result,
    arithmetic: plan.arithmetic,
  });
  if (verdict === "pass") return names;
  throw new Error(
    `${problem.filterSize.join("x")} ${request.layout} ${run.pair ?? ""} with ${names}: ${message}`,
  );
}
