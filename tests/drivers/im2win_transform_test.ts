/** The transforms of im2win and im2col on the driver at hand, against what their definitions say. */
import assert from "#assert";
import fc from "fast-check";
import { convRequest } from "../checked_plan.ts";
import { randomAxes, spatialSizes } from "../random_axes.ts";
import { full, test } from "./driver.ts";
import { planConv } from "../../src/algorithms/planner.ts";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { im2colGeometry, windowGeometry } from "../../src/algorithms/windows/geometry.ts";
import { download, upload } from "../../src/gpu/buffers.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../../src/gpu/execute.ts";
import type { SizeMode } from "../../src/kernels/module.ts";
import {
  type ConvProblem,
  convProblem,
  type ConvProblemInit,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { parseDescriptor } from "../../src/problem/descriptor.ts";
import { printDescriptor } from "../../src/problem/descriptor.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { type Layout, LAYOUTS, stridesInLayout } from "../../src/tensor/layout.ts";
import { elementCount } from "../../src/tensor/tensor.ts";

/** Runs the transform of a request's plan on one input and gives that and a workspace buffer, by name. */
async function transformed(gpu: GpuDevice, request: PlanRequest, name: string) {
  const whole = planConv(request);
  const passes = whole.passes.filter(({ kernel }) => /^im2(win|col)_f32/.test(kernel.name));
  const plan = { ...whole, passes };
  const input = fillOperands(convSubject(request), "uniform11", 3).input as Float32Array;
  const place = plan.buffers.findIndex((buffer) => buffer.name === name);
  using buffers = createPlanBuffers(gpu, plan);
  upload(gpu, buffers.get("input"), 0, input);
  using prepared = await preparePlan(gpu, plan, buffers);
  await execute(gpu, prepared);
  const result = new Float32Array(plan.buffers[place]!.bytes / 4);
  await download(gpu, buffers.buffers[place]!, 0, result.byteLength, new Uint8Array(result.buffer));
  return { input, result };
}

function requestOf(
  gpu: GpuDevice,
  problem: ConvProblem,
  algorithm: "im2win" | "im2col",
  layout: Layout,
  sizes: SizeMode,
): PlanRequest {
  const schedule = { policy: "tiny", splits: 1 };
  return convRequest(gpu, problem, { algorithm, layout, sizes, schedule });
}

/** Coordinates of every element of a shape, the last fastest. */
function* coordinates(shape: readonly number[]): Generator<number[]> {
  for (let i = 0; i < elementCount(shape); i++) {
    let rest = i;
    yield shape.toReversed().map((size) => {
      const at = rest % size;
      rest = Math.floor(rest / size);
      return at;
    }).toReversed();
  }
}

/** The input at (image, channel, place·stride + tap·dilation − padding); 0 outside. */
function inputReader({ input, problem, layout }: {
  input: Float32Array;
  problem: ConvProblem;
  layout: Layout;
}) {
  const strides = stridesInLayout(tensorShape(problem, "input"), layout);
  return (image: number, channel: number, at: readonly number[]): number =>
    at.every((one, d) => one >= 0 && one < problem.inputSize[d]!)
      ? input[[image, channel, ...at].reduce((sum, one, d) => sum + one * strides[d]!, 0)]!
      : 0;
}

/** Î by its definition, in the order that the kernels write. */
function plainWindows(request: PlanRequest, input: Float32Array): Float32Array {
  const { problem, layout } = request;
  const read = inputReader({ input, problem, layout });
  const { batch, groups, stride, dilation, paddingBegin, paddingEnd } = problem;
  const outer = problem.filterSize.slice(0, -1);
  const outerPlaces = problem.outputSize.slice(0, -1);
  const last = outer.length;
  const width = problem.inputSize[last]! + paddingBegin[last]! + paddingEnd[last]!;
  const four = windowGeometry(request).interleave;
  const channels = problem.inChannels / groups;
  const rank = outer.length;
  const shape = [batch / four, groups, ...outerPlaces, width, ...outer, channels, four];
  return Float32Array.from(coordinates(shape), (at) => {
    const [images, group] = at as [number, number];
    const places = at.slice(2, 2 + rank);
    const k = at[2 + rank]!;
    const taps = at.slice(3 + rank, 3 + 2 * rank);
    const [channel, image] = at.slice(-2) as [number, number];
    const spatial = places.map((place, d) =>
      place * stride[d]! + taps[d]! * dilation[d]! - paddingBegin[d]!
    );
    return read(images * four + image, group * channels + channel, [
      ...spatial,
      k - paddingBegin[last]!,
    ]);
  });
}

/** The im2col matrix by its definition: rows count channels fastest. */
function plainMatrix(request: PlanRequest, input: Float32Array): Float32Array {
  const { problem, layout } = request;
  const read = inputReader({ input, problem, layout });
  const { batch, groups, stride, dilation, paddingBegin } = problem;
  const channels = problem.inChannels / groups;
  const rowsInner = layout === "nhwc";
  const four = im2colGeometry(request).interleave;
  const rows = [...coordinates([...problem.filterSize, channels])];
  const columns = [...coordinates([batch / four, ...problem.outputSize, four])];
  const [lines, inner] = rowsInner ? [columns, rows] : [rows, columns];
  const leading = Math.ceil(inner.length / 4) * 4;
  const result = new Float32Array(groups * lines.length * leading);
  for (let group = 0; group < groups; group++) {
    lines.forEach((line, l) =>
      inner.forEach((one, i) => {
        const [row, column] = rowsInner ? [one, line] : [line, one];
        const at = problem.outputSize.map((_, d) =>
          column[1 + d]! * stride[d]! + row[d]! * dilation[d]! - paddingBegin[d]!
        );
        const image = column[0]! * four + column.at(-1)!;
        result[(group * lines.length + l) * leading + i] = read(
          image,
          group * channels + row.at(-1)!,
          at,
        );
      })
    );
  }
  return result;
}

const problems = fc.record({
  axes: randomAxes({ more: 9, stride: 4 }),
  batch: fc.constantFrom(1, 3, 4, 8),
  groups: fc.constantFrom(1, 2),
  groupIn: fc.constantFrom(1, 3, 4, 17),
}).map(({ axes, batch, groups, groupIn }): ConvProblemInit => ({
  batch,
  groups,
  inChannels: groups * groupIn,
  outChannels: groups,
  ...spatialSizes(axes),
}));

const TRANSFORMS = [
  ["im2win", "input in window order", plainWindows],
  ["im2col", "im2col matrix", plainMatrix],
] as const;

const MODES = ["uniform", "constant"] as const;

/** Small problems hardly fill a tile of the staged transform: whole runs of 9 to 64, cut ones, threads with 1 to 4 elements. */
const TILES: readonly [channels: number, filter: [number, number], size: [number, number]][] = [
  [1, [3, 3], [5, 90]],
  [3, [3, 3], [6, 60]],
  [3, [7, 7], [9, 100]],
  [3, [11, 11], [13, 67]],
  [16, [4, 2], [5, 41]],
  [22, [3, 3], [4, 33]],
  [40, [3, 3], [4, 21]],
];

for (const [algorithm, buffer, plain] of TRANSFORMS) {
  /** Holds the transform of a problem against its definition. */
  const check = async (gpu: GpuDevice, init: ConvProblemInit, layout: Layout, mode: SizeMode) => {
    const request = requestOf(gpu, convProblem(init), algorithm, layout, mode);
    const { input, result } = await transformed(gpu, request, buffer);
    const expected = plain(request, input);
    // The difference of arrays as large as these is not to be printed.
    const wrong = expected.findIndex((value, i) => result[i] !== value);
    assert.equal(wrong, -1, `${printDescriptor(request.problem)} ${layout} ${mode}`);
  };

  test(`${algorithm}'s transform is its definition on random strides and paddings`, async (gpu) => {
    const drawn = [problems, fc.constantFrom(...LAYOUTS), fc.constantFrom(...MODES)] as const;
    await fc.assert(
      fc.asyncProperty(...drawn, (init, layout, mode) => check(gpu, init, layout, mode)),
      { numRuns: full ? 300 : 60, seed: 6 },
    );
  });

  test(`${algorithm}'s transform is its definition on tiles of every kind`, async (gpu) => {
    for (const [inChannels, filterSize, inputSize] of TILES) {
      for (const [batch, stride] of [[4, 1], [3, 2]] as const) {
        const init = {
          batch,
          inChannels,
          outChannels: 1,
          inputSize,
          filterSize,
          stride: [1, stride],
        };
        for (const mode of MODES) {
          for (const layout of full ? LAYOUTS : ["nchw"] as const) {
            await check(gpu, init, layout, mode);
          }
        }
      }
    }
  });
}

test("the paper's example is transformed to 36 and 48 elements", async (gpu) => {
  const problem = parseDescriptor("mb1ic3ih3oc1kh2");
  for (
    const [[algorithm, buffer, plain], elements] of [[TRANSFORMS[0], 36], [
      TRANSFORMS[1],
      48,
    ]] as const
  ) {
    const request = requestOf(gpu, problem, algorithm, "nchw", "constant");
    const { input, result } = await transformed(gpu, request, buffer);
    assert.equal(result.length, elements);
    assert.deepEqual(result, plain(request, input));
  }
});
