/**
 * The golden cases on matrix units, by the gate: every kind of product that units take, every operation and layout it has them in, and
 * every policy. A sample of these, of whichever case each kind has in turn; with WGCONV_TEST_MATRIX=full all. Dawn has the units on
 * NVIDIA's GPUs and on the CPU with Mesa 26 (`deno task test:drivers matrix`); elsewhere there is nothing to test.
 */
import assert from "#assert";
import { tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal } from "../../src/algorithms/refusal.ts";
import type { GpuDevice } from "../../src/gpu/device.ts";
import { matrixPolicies, type TapWalk } from "../../src/kernels/matrix_policies.ts";
import { type MatrixUnit, matrixUnitFor } from "../../src/kernels/matrix_units.ts";
import { type ConvProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { type GoldenCase, loadGoldenCases } from "../golden.ts";
import { agrees, goldenRequest, type GoldenRun } from "../golden_conv.ts";
import { full, test } from "./driver.ts";

/** A kind of product, in whatever operations and layouts units take it. */
interface Kind {
  readonly name: string;
  readonly runs: readonly GoldenRun[];
  /** What its kernels' names hold. */
  readonly kernel: RegExp;
  /** Cases that it takes, in the run's operation; all where absent. */
  readonly takes?: (problem: ConvProblem) => boolean;
  /** How it may walk taps, each of which has policies of its own; none where its kernels have but one policy. */
  readonly walks?: readonly TapWalk[];
}

const halves = { dtype: "f16", matrixUnits: true } as const;
const implicit = { ...halves, algorithm: "implicit-gemm" } as const;

/** Channels of a group in vectors of eight halves. */
function inEights({ groups, inChannels, outChannels }: ConvProblem): boolean {
  return [inChannels, outChannels].every((channels) => channels / groups % 8 === 0);
}

/** Whether places of the last axis follow each other. */
function walksOnce({ stride, dilation }: ConvProblem): boolean {
  return stride.at(-1) === 1 && dilation.at(-1) === 1;
}

const KINDS: readonly Kind[] = [
  {
    name: "implicit GEMM of f16",
    runs: OPERATIONS.flatMap((op) => LAYOUTS.map((layout) => ({ ...implicit, op, layout }))),
    kernel: /^implicit_gemm_\w+_f16_\d.*_mma/,
    walks: [{ gathered: true }],
  },
  {
    name: "implicit GEMM of f16 whose results are f32, summed in parts",
    runs: OPERATIONS.flatMap((op) =>
      LAYOUTS.map((layout) => ({ ...implicit, op, layout, outDtype: "f32", flush: 16 }))
    ),
    kernel: /^implicit_gemm_\w+_f16_to_f32_.*_mma/,
    walks: [{}],
  },
  {
    name: "implicit GEMM of f16 by rows of taps",
    runs: OPERATIONS.map((op) => ({
      ...{ ...implicit, op, layout: "nhwc", variant: { tapRows: true } },
    })),
    kernel: /_mma.*_2d_row\d/,
    takes: (problem) => {
      const taps = problem.filterSize.at(-1)!;
      const steps = problem.stride.every((step) => step === 1);
      return inEights(problem) && steps && taps > 1 && taps < 6 && problem.outputSize[0]! > 1;
    },
    walks: [{ row: 3 }, { ring: 2 }, { ring: 3 }, { ring: 5 }],
  },
  {
    name: "implicit GEMM of f16 whose images are rewritten",
    runs: OPERATIONS.map((op) => ({
      ...{ ...implicit, op, layout: "nchw", variant: { channelsLast: true } },
    })),
    kernel: /_mma.*_nhwc_(to_nchw_)?2d_/,
    takes: ({ groups }) => groups === 1,
    walks: [{}],
  },
  {
    name: "implicit GEMM of int8",
    runs: [{
      ...{ op: "fwd", algorithm: "implicit-gemm", layout: "nhwc" },
      ...{ dtype: "i8", matrixUnits: true },
    }],
    kernel: /^implicit_gemm_fwd_i8_.*_mma/,
    walks: [{}],
  },
  {
    name: "windows of f16 built on the way",
    runs: LAYOUTS.map((layout) => ({ ...halves, op: "fwd", layout, algorithm: "im2win-fused" })),
    kernel: /^im2win_fused_fwd_f16_.*_mma/,
    walks: [{}],
  },
  {
    name: "WinRS of f16",
    runs: [{
      ...{ ...halves, op: "bwd-filter", algorithm: "winrs" },
      ...{ layout: "nhwc", variant: { halfTile: true } },
    }],
    kernel: /^winrs_f16_.*_mma/,
    takes: (problem) => inEights(problem) && walksOnce(problem) && problem.filterSize.at(-1)! > 1,
  },
  {
    name: "implicit GEMM of f32 in halves",
    runs: OPERATIONS.flatMap((op) =>
      (["nhwc", "nchw"] as const).map((layout) => ({
        ...{ op, algorithm: "implicit-gemm", layout },
        ...{ math: "f16x3", matrixUnits: true },
      }))
    ),
    kernel: /^implicit_gemm_.*_f16x3_.*_mma/,
    takes: ({ groups }) => groups === 1,
    walks: [{}],
  },
  {
    name: "Winograd of f32 in halves",
    runs: OPERATIONS.flatMap((op) =>
      LAYOUTS.map((layout) => ({
        ...{ op, algorithm: "winograd2d-nonfused", layout },
        ...{ math: "f16x3", matrixUnits: true },
      }))
    ),
    kernel: /_f16x3_m/,
    takes: ({ stride, dilation }) => [...stride, ...dilation].every((step) => step === 1),
    walks: [{}],
  },
];

const CASES = loadGoldenCases();

/** What of a kind runs a case. */
function runsOf({ runs, takes = () => true }: Kind, { problems }: GoldenCase): GoldenRun[] {
  return runs.filter((run) => takes(problems[run.op]));
}

/** What multiplies a run's operands. */
function unitOf({ matrixUnits }: GpuDevice, { dtype }: GoldenRun): MatrixUnit {
  const elements = dtype === "i8"
    ? { storage: "u32", accumulate: "i32" } as const
    : { storage: "f16", accumulate: "f32" } as const;
  return matrixUnitFor(elements, matrixUnits)!;
}

/** The smallest tile of a run: backward-filter by rows has all taps' matrices beside each other. */
function smallest(
  { m, n, k }: MatrixUnit,
  { variant, op }: GoldenRun,
  { filterSize }: ConvProblem,
): string {
  if (!variant?.tapRows || op !== "bwd-filter") return "matrix-small";
  const across = filterSize.at(-1)! * n;
  return `${2 * m}x${2 * across}x${2 * k}_${2 * m}x${across}m`;
}

for (const [turn, kind] of KINDS.entries()) {
  const taken = CASES.map((golden) => [golden, runsOf(kind, golden)] as const)
    .filter(([, runs]) => runs.length > 0);
  const chosen = full
    ? taken.flatMap(([golden, runs]) => runs.map((run) => [golden, run] as const))
    : taken.filter((_, i) => (i + turn) % 2 === 0).map(([golden, runs], i) =>
      [golden, runs[(i + turn) % runs.length]!] as const
    );
  test.units(`${kind.name} on matrix units agrees with FP64, ${chosen.length} golden cases`, async (gpu) => {
    assert.ok(taken.length >= 5, `${taken.length} cases`);
    for (const [golden, run] of chosen) {
      const policy = smallest(unitOf(gpu, run), run, golden.problems.fwd);
      const kernel = await agrees(
        gpu,
        golden,
        kind.walks === undefined ? run : { ...run, policy },
      );
      assert.match(kernel, kind.kernel, golden.name);
    }
  });
}

/** Of so many policies a sample has one. */
const SAMPLED = 12;
/** From one policy to the next, of the pairs of cases and runs: coprime to what there are of them, so that all have their turn. */
const STEP = 7;

/** Cases that policies are tried with: of three, five and two taps, with strides, and of channels that divide nothing. */
const FEW = ["resnet_conv2_small", "filter_5x5", "even_filter_2x2", "stride2_3x3", "odd_channels"];

for (const [turn, kind] of KINDS.entries()) {
  const { name, runs: [first], walks } = kind;
  if (walks === undefined) continue;
  test.units(`${name} on matrix units agrees with FP64 by ${full ? "every policy" : "policies"}`, async (gpu) => {
    const unit = unitOf(gpu, first!);
    const { lanes } = gpu.matrixUnits!;
    const policies = walks.flatMap((walk) =>
      matrixPolicies(unit, lanes, first!.math === "f16x3", walk)
    );
    const names = [...new Set(policies.map(({ name }) => name))];
    assert.ok(names.length > 12, names.join());
    const pairs = CASES.filter(({ name }) => FEW.includes(name))
      .flatMap((golden) => runsOf(kind, golden).map((run) => [golden, run] as const));
    for (const [i, policy] of names.entries()) {
      if (!full && i % SAMPLED !== turn) continue;
      // Not every one divides the taps of every case: the first that it does, from another one each time.
      const way = pairs.map((_, j) => pairs[(STEP * (i + turn) + j) % pairs.length]!)
        .map(([golden, run]) => [golden, { ...run, policy }] as const)
        .find(([golden, run]) => !isRefusal(tryPlanConv(goldenRequest(gpu, golden, run))));
      if (way === undefined) throw new Error(`${policy} cuts no case of ${name}`);
      const [golden, run] = way;
      assert.match(await agrees(gpu, golden, run), kind.kernel, golden.name);
    }
  });
}
