/**
 * What `wgconv bench` does not tell of im2win and im2col, on the GPU at hand, as JSON lines on stdout:
 *   deno run -A bench/im2win.ts SUITE LAYOUTS PARTS > im2win12.parts.jsonl
 * PARTS is a comma list of
 * - parts: each plan whole, its transforms alone, its products alone, and `wgconv gemm` on the same m, n, k;
 * - ablation: im2win and the product without one of the main loop's techniques, or with the double buffer;
 * - limit: im2win and im2col under the same limits of workspace.
 * The forward operation; rates are TFLOP/s of direct flops. Rivals are sampled in turn. Results are not checked
 * here: `wgconv bench` and the tests do.
 */
import { modelOf } from "../src/algorithms/device/h200.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import { type PlanMemory, planMemory } from "../src/algorithms/memory.ts";
import type { BufferRole, Plan } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import type { AlgorithmName } from "../src/algorithms/names.ts";
import { readSuite } from "../src/bench/suite_files.ts";
import { timedPlan, timeRivals } from "../src/run/timing.ts";
import { createBuffer, upload } from "../src/gpu/buffers.ts";
import { type GpuDevice, openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import type { MainLoopVariant } from "../src/kernels/main_loop_variant.ts";
import { type ConvProblem, directFlops } from "../src/problem/conv_problem.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { gemmProblem } from "../src/problem/gemm_problem.ts";
import { elementCount } from "../src/tensor/tensor.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, type Layout, LAYOUTS } from "../src/tensor/layout.ts";

const PROTOCOL = { samples: 15, fillMs: 5, spread: 0.01 };
const PATTERN_BYTES = 16 << 20;
/** The paper's ablation; the tuned kernel has no double buffer, so that is added instead. */
const VARIANTS: readonly [string, MainLoopVariant | undefined][] = [
  ["tuned", undefined],
  ["without micro-kernel", { microKernel: false }],
  ["without vector-load", { vectorLoads: false }],
  ["without prefetch", { prefetch: false }],
  ["with double-buffer", { doubleBuffer: true }],
  ["without prefetch, with double-buffer", { prefetch: false, doubleBuffer: true }],
];
/** Of workspace, in MiB. */
const LIMITS = [64, 256, 1024] as const;

/** A plan, or some of its passes, on buffers that it shares with others. */
interface Rival {
  readonly label: string;
  readonly plan: Plan;
  /** Index of the plan whose buffers it works on. */
  readonly on: number;
}

function convRequest(gpu: GpuDevice, problem: ConvProblem, layout: Layout): PlanRequest {
  return {
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "im2win",
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight),
  };
}

/** Fills a buffer with a pattern of [-1, 1), on the device: zeros would run faster than data. */
function fill(gpu: GpuDevice, buffer: GPUBuffer, pattern: GPUBuffer): void {
  const encoder = gpu.device.createCommandEncoder();
  for (let at = 0; at < buffer.size; at += PATTERN_BYTES) {
    encoder.copyBufferToBuffer(pattern, 0, buffer, at, Math.min(PATTERN_BYTES, buffer.size - at));
  }
  gpu.device.queue.submit([encoder.finish()]);
}

/** Milliseconds of each rival, sampled in turn. Plans share what is neither workspace nor result. */
async function timeAll(gpu: GpuDevice, plans: readonly Plan[], rivals: readonly Rival[]) {
  using resources = new DisposableStack();
  const pattern = createBuffer(gpu, PATTERN_BYTES, "pattern");
  resources.defer(() => pattern.destroy());
  const values = fillTensor("f32", [PATTERN_BYTES / 4], "uniform11", 1).data;
  upload(gpu, pattern, 0, values);
  const shared: Partial<Record<BufferRole, GPUBuffer>> = {};
  const sets = [];
  for (const plan of plans) {
    const set = resources.use(createPlanBuffers(gpu, plan, shared));
    for (const { role } of plan.buffers) {
      if (role === "workspace" || shared[role] !== undefined) continue;
      shared[role] = set.get(role);
      fill(gpu, set.get(role), pattern);
    }
    sets.push(set);
  }
  const prepared = [];
  for (const { plan, on } of rivals) {
    prepared.push([resources.use(await preparePlan(gpu, plan, sets[on]!))]);
  }
  // Whole plans first: passes alone then work on what they would.
  for (const one of prepared) await execute(gpu, one);
  const times = await timeRivals(
    gpu.info.software,
    prepared.map((one) => timedPlan(gpu, one)),
    PROTOCOL,
  );
  return times.map(({ median }) => median);
}

function say(record: object): void {
  console.log(JSON.stringify({ schema: 1, ...record }));
}

/** What a record says of a rival. */
function rateOf(flops: number, ms: number) {
  return { ms, tflops: flops / ms / 1e9 };
}

const PART_ALGORITHMS: readonly AlgorithmName[] = [
  "im2win",
  "im2win-fused",
  "im2col",
  "implicit-gemm",
];

/** Whether a pass writes the input in window order or as a matrix. */
function isTransform({ kernel: { name } }: Plan["passes"][number]): boolean {
  return /^im2(win|col)_f32/.test(name);
}

async function parts(gpu: GpuDevice, problem: ConvProblem, layout: Layout) {
  const flops = directFlops(problem);
  const request = convRequest(gpu, problem, layout);
  const plans = PART_ALGORITHMS.map((algorithm) => planConv({ ...request, algorithm }));
  const rivals = plans.flatMap((plan, on): Rival[] => {
    const transforms = plan.passes.filter(isTransform);
    const rest = plan.passes.filter((pass) =>
      !isTransform(pass) && !/^pack/.test(pass.kernel.name)
    );
    return [
      { label: "whole", plan, on },
      ...(transforms.length === 0 ? [] : [
        { label: "transform", plan: { ...plan, passes: transforms }, on },
        { label: "product", plan: { ...plan, passes: rest }, on },
      ]),
    ];
  });
  const times = await timeAll(gpu, plans, rivals);
  const gemm = await gemmRate(gpu, problem, layout, plans[2]!);
  plans.forEach((plan, on) => {
    const figures = Object.fromEntries(
      rivals.flatMap((rival, i) =>
        rival.on === on ? [[rival.label, rateOf(flops, times[i]!)]] : []
      ),
    );
    say({
      kind: "parts",
      problem: printDescriptor(problem),
      layout,
      algorithm: plan.algorithm,
      kernel: plan.kernel,
      memory_bytes: planMemory(plan, "fwd") satisfies PlanMemory,
      ...figures,
      gemm,
    });
  });
}

/** The plain product of the same sizes as the first chunk of im2col's. */
async function gemmRate(gpu: GpuDevice, problem: ConvProblem, layout: Layout, im2col: Plan) {
  const chunks = im2col.passes.filter(isTransform).length;
  const images = Math.ceil(problem.batch / chunks);
  const m = problem.outChannels / problem.groups;
  const n = images * elementCount(problem.outputSize);
  const k = problem.inChannels / problem.groups * elementCount(problem.filterSize);
  // As the product reads its matrix: places together, or the depth.
  const transpose = layout === "nhwc" ? "nt" : "nn";
  const plan = planGemm({
    problem: gemmProblem({ m, n, k, transpose }),
    dtype: "f32",
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight),
  });
  const [ms = 0] = await timeAll(gpu, [plan], [{ label: "gemm", plan, on: 0 }]);
  return { m, n, k, transpose, kernel: plan.kernel, ...rateOf(2 * m * n * k, ms) };
}

async function ablation(gpu: GpuDevice, problem: ConvProblem, layout: Layout) {
  const request = convRequest(gpu, problem, layout);
  for (const algorithm of ["im2win", "im2col"] as const) {
    const plans = VARIANTS.map(([, variant]) =>
      planConv({ ...request, algorithm, ...(variant === undefined ? {} : { variant }) })
    );
    // Of im2col the product alone: what a plain product loses.
    const rivals = plans.map((plan, on) => ({
      label: VARIANTS[on]![0],
      plan: algorithm === "im2win"
        ? plan
        : { ...plan, passes: plan.passes.filter((pass) => !isTransform(pass)) },
      on,
    }));
    const times = await timeAll(gpu, plans, rivals);
    rivals.forEach(({ label, plan }, i) =>
      say({
        kind: "ablation",
        problem: printDescriptor(problem),
        layout,
        algorithm: algorithm === "im2win" ? "im2win" : "gemm",
        variant: label,
        kernel: plan.kernel,
        ...rateOf(directFlops(problem), times[i]!),
      })
    );
  }
}

async function limited(gpu: GpuDevice, problem: ConvProblem, layout: Layout) {
  const request = convRequest(gpu, problem, layout);
  for (const mebibytes of LIMITS) {
    for (const algorithm of ["im2win", "im2col"] as const) {
      const maxWorkspaceBytes = mebibytes * 2 ** 20;
      const record = {
        kind: "limit",
        problem: printDescriptor(problem),
        layout,
        algorithm,
        max_workspace: maxWorkspaceBytes,
      };
      const plan = orRefusal(() => planConv({ ...request, algorithm, maxWorkspaceBytes }));
      if (typeof plan === "string") {
        say({ ...record, refused: plan });
        continue;
      }
      const [ms = 0] = await timeAll(gpu, [plan], [{ label: algorithm, plan, on: 0 }]);
      say({
        ...record,
        memory_bytes: planMemory(plan, "fwd"),
        passes: plan.passes.length,
        ...rateOf(directFlops(problem), ms),
      });
    }
  }
}

/** A plan, or why the least chunk already exceeds the limit. */
function orRefusal(plan: () => Plan): Plan | string {
  try {
    return plan();
  } catch (error) {
    if (error instanceof RangeError && /of workspace/.test(error.message)) return error.message;
    throw error;
  }
}

const PARTS = { parts, ablation, limit: limited } as const;

const [suite = "", layouts = "nchw", wanted = "parts,ablation,limit"] = Deno.args;
using gpu = await openDevice();
say({ kind: "environment", adapter: gpu.info.adapter, date: new Date().toISOString() });
for (const problem of readSuite(suite)) {
  for (const layout of LAYOUTS.filter((one) => layouts.split(",").includes(one))) {
    for (const part of ["parts", "ablation", "limit"] as const) {
      if (!wanted.split(",").includes(part)) continue;
      console.error(`${problem.name ?? printDescriptor(problem)} ${layout} ${part}`);
      try {
        await PARTS[part](gpu, problem, layout);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        say({ kind: "error", problem: printDescriptor(problem), layout, part, message });
      }
    }
  }
}
