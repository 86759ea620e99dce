/** The ways to compute a convolution in half precision that `bench/half_rivals.ts` times. */
import { createHash } from "node:crypto";
import { predictMs, rankRivals, requestFor } from "../src/algorithms/cost/auto.ts";
import { deviceOf } from "../src/algorithms/device/h200.ts";
import { sizedModel } from "../src/algorithms/device/known.ts";
import { tryPlanGemm } from "../src/algorithms/gemm/plan.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal, type Planned } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import type { GpuDevice } from "../src/gpu/device.ts";
import { MATRIX_POLICY_NAMES, TAP_POLICY_NAMES } from "../src/kernels/matrix_policies.ts";
import { TILE_POLICIES } from "../src/kernels/policy.ts";
import { gemmProblem } from "../src/problem/gemm_problem.ts";
import { gpuPlanning } from "../src/run/executor.ts";

/** A way to compute a case. */
export interface Way {
  readonly names: string[];
  readonly backend: string;
  readonly dtype: "f16" | "f32";
  readonly plan: Plan;
  readonly predictedMs?: number | undefined;
}

/** Ways by name. */
type Ways = readonly (readonly [string, PlanRequest])[];

/** A way as it is written. */
export interface WayLine extends Omit<Way, "plan"> {
  readonly kernel: string;
  /** {@linkcode hashOf}. */
  readonly key: string;
  /** A sentence where it did not run. */
  readonly ms: number | string;
  /** Whether only its first run was timed. */
  readonly once?: boolean;
}

/** A line of the output. */
export interface Line {
  readonly name: string;
  readonly problem: string;
  readonly op: string;
  readonly layout: string;
  readonly compileMs: number;
  readonly timingMs: number;
  readonly ways: readonly WayLine[];
}

/** Tiles of matrix units without a name, of few rows or columns and of longer steps. */
const OTHER_TILES = [
  "16x128x32_16x32m",
  "16x64x32_16x16m",
  "32x128x32_16x64m",
  "32x64x32_16x32m",
  "64x16x32_16x16m",
  "128x16x32_32x16m",
  "128x32x32_32x32m",
  "64x64x64_32x32m",
  "64x128x64_32x64m",
  "128x64x64_64x32m",
  "128x128x64_64x64m",
];

/** Ways that are predicted to take so many times the fastest are left out, ... */
const HOPELESS = 4;
/** ... and tiles that are so far behind the best of their kind. */
const WORSE = 2;
/** Ways of a case that differ: what `auto` takes in f16 and in f32, and the first others in f16. */
export function waysOf(
  asked: PlanRequest,
  [gpu, other]: readonly GpuDevice[],
  most: number,
): Way[] {
  const found = new Map<string, Way>();
  const half = { ...asked, ...gpuPlanning(gpu!, {}) };
  let rivals = 0;
  let fastest = Infinity;
  const add = (name: string, request: PlanRequest, plan: Planned<Plan>, on: GpuDevice) => {
    if (isRefusal(plan) || plan.passes.length === 0) return;
    const dtype = request.dtype as Way["dtype"];
    const { backend } = on.info;
    const key = `${backend} ${hashOf(plan)}`;
    const known = found.get(key);
    if (known) {
      known.names.push(name);
      return;
    }
    // What another size makes of it is no time of this device.
    const predictedMs = on !== gpu || request.device === half.device
      ? plan.predictedMs ?? predicted(request, plan)
      : undefined;
    const isRival = dtype === "f16" && name !== "auto";
    if (isRival && (rivals === most || (predictedMs ?? 0) > HOPELESS * fastest)) return;
    if (isRival) rivals++;
    else if (dtype === "f16") fastest = predictedMs ?? Infinity;
    found.set(key, { names: [name], backend, dtype, plan, predictedMs });
  };
  add("auto", half, tryPlanConv(half), gpu!);
  const whole: PlanRequest = { ...half, dtype: "f32" };
  add("f32 auto", whole, tryPlanConv(whole), gpu!);
  const threads: PlanRequest = { ...whole, math: "f32" };
  add("f32 threads", threads, tryPlanConv(threads), gpu!);
  if (other) {
    const { matrixUnits: _, ...rest } = whole;
    const beside: PlanRequest = { ...rest, ...gpuPlanning(other, {}) };
    add("f32 wgpu", beside, tryPlanConv(beside), other);
  }
  const product = asProduct(half);
  if (product) add("gemm", half, product, gpu!);
  for (const [name, request] of otherWays(half)) add(name, request, tryPlanConv(request), gpu!);
  return [...found.values()];
}

function predicted(request: PlanRequest, { algorithm }: Plan): number | undefined {
  if (request.algorithm === "auto") return undefined;
  const ms = predictMs(request, algorithm);
  return isRefusal(ms) ? undefined : ms;
}

/** What tells plans apart: kernels' texts but for comments. */
export function hashOf({ passes }: Plan): string {
  const text = passes.map(({ kernel, grid }) =>
    `${kernel.wgsl.replaceAll(/^ *\/\/.*$/gm, "")} ${grid}`
  );
  return createHash("sha256").update(text.join()).digest("hex").slice(0, 12);
}

/** Other ways in f16, a first one of every kind before further ones. */
function otherWays(asked: PlanRequest): Ways {
  const gemm: PlanRequest = { ...asked, algorithm: "implicit-gemm" };
  const plain: PlanRequest = { ...gemm, schedule: { ...gemm.schedule, matrixUnits: false } };
  const named = (kind: string, request: PlanRequest, policies: readonly string[]) =>
    policies.flatMap((policy) => {
      const one = { ...request, schedule: { ...request.schedule, policy } };
      const ms = predictMs(one, "implicit-gemm");
      return isRefusal(ms) || ms === undefined ? [] : [{ name: `${kind} ${policy}`, one, ms }];
    }).toSorted((a, b) => a.ms - b.ms);
  const within = (list: ReturnType<typeof named>, [best] = list) =>
    list.filter(({ ms }) => ms <= WORSE * best!.ms).map(({ name, one }) => [name, one] as const);
  const onUnits = (policies: readonly string[]) =>
    asked.matrixUnits === undefined ? [] : named("units", gemm, policies);
  const own = onUnits([...MATRIX_POLICY_NAMES, ...TAP_POLICY_NAMES]);
  const units = within(own);
  const tiles = within(onUnits(OTHER_TILES), own);
  const threads = within(named("threads", plain, TILE_POLICIES.map(({ name }) => name)));
  const halfTile = threads.slice(0, 1).map(([name, one]) =>
    [`${name} half tile`, {
      ...one,
      schedule: { ...one.schedule, matrixUnits: false, halfTile: true },
    }] as const
  );
  const algorithms = ["depthwise", "im2win-fused", "direct"].map((algorithm) =>
    [algorithm, { ...asked, algorithm }] as const
  );
  const rivals = rankRivals(asked).filter(({ reason, algorithm }) =>
    reason === undefined && algorithm !== "direct"
  ).map((rival) =>
    [`${rival.algorithm} ${rival.tile ?? ""}`.trim(), requestFor(asked, rival)] as const
  );
  const variants = ["channelsLast", "tapRows", "packedFilter"].map((name) =>
    [name, { ...gemm, schedule: { ...gemm.schedule, [name]: true } }] as const
  );
  const device = deviceOf(asked);
  const sizes = [0.5, 2].map((size) =>
    [
      `size ${size}`,
      { ...asked, device: sizedModel(device, Math.ceil(size * device.multiprocessors)) },
    ] as const
  );
  // What is `auto`'s own comes first in most lists.
  return [
    ...algorithms.slice(0, 2),
    ...units.slice(0, 2),
    ...threads.slice(0, 1),
    ...tiles.slice(0, 1),
    ...rivals.slice(0, 2),
    ...variants,
    ...units.slice(2, 3),
    ...sizes,
    ...halfTile,
    ...tiles.slice(1, 2),
    ...threads.slice(1, 2),
    ...rivals.slice(2, 4),
    ...algorithms.slice(2),
    ...units.slice(3, 6),
  ];
}

/** A 1x1 convolution with channels innermost as a plain product. */
function asProduct(request: PlanRequest): Planned<Plan> | undefined {
  const { problem, layout } = request;
  const { op, batch, inChannels, outChannels, groups, outputSize } = problem;
  const pointwise = problem.filterSize.every((taps) => taps === 1) &&
    problem.inputSize.every((size, d) => size === outputSize[d]);
  if (layout !== "nhwc" || groups > 1 || !pointwise) return undefined;
  const places = outputSize.reduce((all, size) => all * size, batch);
  const sizes = {
    fwd: { m: places, n: outChannels, k: inChannels, transpose: "nt" },
    "bwd-data": { m: places, n: inChannels, k: outChannels, transpose: "nn" },
    "bwd-filter": { m: outChannels, n: inChannels, k: places, transpose: "tn" },
  } as const;
  const { limits, matrixUnits, device } = request;
  return tryPlanGemm({
    problem: gemmProblem(sizes[op]),
    dtype: "f16",
    limits,
    ...(matrixUnits && { matrixUnits }),
    ...(device && { device }),
  });
}
