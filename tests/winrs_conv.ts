import fc from "fast-check";
import { checkedResult, convRequest } from "./checked_plan.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import type { GpuDevice } from "../src/gpu/device.ts";
import { type ConvProblem, convProblem, dilatedSize } from "../src/problem/conv_problem.ts";
import type { Layout } from "../src/tensor/layout.ts";

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
}

/** A request with sizes in a uniform. */
export function winrsRequest(
  gpu: GpuDevice,
  problem: ConvProblem,
  more: Partial<PlanRequest>,
): PlanRequest {
  return convRequest(gpu, problem, { algorithm: "winrs", ...more });
}

/** Runs a problem on seeded data and holds the gradient against FP64. Gives the kernels' names. */
export async function checkWinrs(
  gpu: GpuDevice,
  { filter = [3, 3], problem = filterProblem(filter), ...more }: WinrsRun,
): Promise<string> {
  const { plan } = await checkedResult(gpu, winrsRequest(gpu, problem, more));
  return plan.passes.map(({ kernel }) => kernel.name).join(" ");
}
