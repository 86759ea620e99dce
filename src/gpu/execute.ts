import { schedule, timeByWall, type TimedPass, type Work } from "./schedule.ts";
import { nsPerTick, PassTimer, TIMED_PASSES } from "./calibrate.ts";
import type { GpuDevice } from "./device.ts";
import type { BoundPlan } from "./prepare.ts";

export {
  type BoundPlan,
  createPlanBuffers,
  type PlanBuffers,
  type PreparedPlan,
  preparePlan,
  type Step,
} from "./prepare.ts";

/** Where times come from: the device, or the CPU's clock around waits. */
export type Clock = "timestamp" | "wall";

/** How long a plan took. */
export interface Execution {
  /** One figure a sample: nanoseconds of a single run of the plan. */
  readonly samplesNs: number[];
  /** What measured. */
  readonly clock: Clock;
}

/** How often a plan runs, and what measures it. */
export interface ExecuteOptions {
  /** Timed passes. Default 1. */
  readonly samples?: number;
  /** Back-to-back runs of the plan in each of them. Default 1. */
  readonly repeats?: number;
  /** Untimed runs before. Default 0. */
  readonly warmup?: number;
  /** What one run takes, where the caller knows; spares the two runs that find it out. */
  readonly estimateNs?: number;
  /** Default `timestamp` where the device has them. */
  readonly clock?: Clock;
}

/** Runs in all up to which nothing is estimated and each sample is one submission. */
const FEW_RUNS = 4;

/**
 * Runs a plan and waits for its end. Given several prepared plans, runs cycle through them: copies on
 * other buffers keep the cache cold. A sample's runs share one compute pass unless that would keep the
 * device busy for longer than watchdogs like; its time then is the sum over several.
 *
 * @throws {DeviceError} on errors of the device
 * @throws {UnsupportedError} where memory ran out
 * @throws {RangeError} on options that are no counts, or without a plan
 * @example
 * ```ts
 * import { gemmProblem, openDevice, planGemm } from "@wgconv/wgconv";
 * import { createPlanBuffers, execute, preparePlan } from "@wgconv/wgconv/internals";
 * import assert from "node:assert/strict";
 *
 * using gpu = await openDevice();
 * const problem = gemmProblem({ m: 64, n: 64, k: 64 });
 * const plan = planGemm({ problem, dtype: "f32", limits: gpu.limits });
 * using buffers = createPlanBuffers(gpu, plan);
 * const prepared = await preparePlan(gpu, plan, buffers);
 * const { samplesNs } = await execute(gpu, prepared, { samples: 3, warmup: 1 });
 * assert.equal(samplesNs.length, 3);
 * ```
 */
export async function execute(
  gpu: GpuDevice,
  prepared: BoundPlan | readonly BoundPlan[],
  options: ExecuteOptions = {},
): Promise<Execution> {
  const plans: readonly BoundPlan[] = "steps" in prepared ? [prepared] : prepared;
  const samples = count("samples", options.samples ?? 1, 1);
  const repeats = count("repeats", options.repeats ?? 1, 1);
  const warmup = count("warmup", options.warmup ?? 0, 0);
  if (plans.length === 0) throw new RangeError("Cannot execute: no plan is given");
  gpu.check(DOING);
  const encode = (pass: GPUComputePassEncoder, from: number, runs: number) => {
    for (let run = from; run < from + runs; run++) encodeSteps(pass, plans[run % plans.length]!);
  };
  const work: Work = { encode, samples, repeats, warmup, estimateNs: options.estimateNs };
  const clock = options.clock ?? (gpu.timestamps ? "timestamp" : "wall");
  const tickNs = clock === "timestamp" ? await nsPerTick(gpu) : 1;
  const samplesNs = await gpu.exclusive(() =>
    clock === "wall" ? timeByWall(gpu, work) : timeByDevice(gpu, work, tickNs)
  );
  return { samplesNs, clock };
}

const DOING = "Cannot execute";

async function timeByDevice(gpu: GpuDevice, work: Work, tickNs: number): Promise<number[]> {
  const { samples, repeats } = work;
  const many = samples * repeats > FEW_RUNS;
  let estimate = work.estimateNs;
  if (many && estimate === undefined) {
    warmUp(gpu, work, Math.max(1, work.warmup));
    const [ticks = 0] = await runTimed(gpu, work, [[{ sample: 0, from: 0, runs: 1 }]]);
    estimate = ticks * tickNs;
  } else if (work.warmup > 0) {
    warmUp(gpu, work, work.warmup);
  }
  const samplesNs = new Array<number>(samples).fill(0);
  for (const batch of schedule(samples, repeats, many ? estimate ?? 0 : undefined, TIMED_PASSES)) {
    const ticks = await runTimed(gpu, work, batch);
    batch.flat().forEach((pass, index) => {
      samplesNs[pass.sample] = (samplesNs[pass.sample] ?? 0) +
        (ticks[index] ?? 0) * tickNs / repeats;
    });
  }
  return samplesNs;
}

/** Runs passes, grouped by submission; gives each one's ticks. Waits once. */
async function runTimed(
  gpu: GpuDevice,
  work: Work,
  submissions: readonly (readonly TimedPass[])[],
): Promise<number[]> {
  const timer = PassTimer.of(gpu);
  const total = submissions.reduce((sum, passes) => sum + passes.length, 0);
  let index = 0;
  for (const passes of submissions) {
    const encoder = gpu.device.createCommandEncoder();
    for (const { from, runs } of passes) {
      const pass = timer.beginPass(encoder, index++);
      work.encode(pass, from, runs);
      pass.end();
    }
    if (index === total) timer.resolve(encoder, total);
    gpu.device.queue.submit([encoder.finish()]);
  }
  const ticks = await timer.read(total, DOING);
  return Array.from({ length: total }, (_, i) => {
    return Number(BigInt.asUintN(64, (ticks[2 * i + 1] ?? 0n) - (ticks[2 * i] ?? 0n)));
  });
}

function warmUp(gpu: GpuDevice, work: Work, runs: number): void {
  for (let run = 0; run < runs; run++) {
    const encoder = gpu.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    work.encode(pass, run, 1);
    pass.end();
    gpu.device.queue.submit([encoder.finish()]);
  }
}

/** Encodes one run of a plan. */
export function encodeSteps(pass: GPUComputePassEncoder, { steps }: BoundPlan): void {
  for (const { pipeline, bindGroup, grid } of steps) {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindGroup);
    pass.dispatchWorkgroups(...grid);
  }
}

function count(name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new RangeError(`Cannot execute: ${name} is ${value}, not a count from ${least} on`);
}
