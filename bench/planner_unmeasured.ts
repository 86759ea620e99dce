/**
 * How good `auto` chooses on a GPU of which nothing but its size is measured, before and after it has timed its best candidates:
 *   deno run -A bench/planner_unmeasured.ts --out FOLDER [--workers 8] [--seconds 280] [--suite networks,more_networks]
 *     [--op LIST] [--layout nchw] [--layers N] [--backend dawn]
 *   deno run -A bench/planner_unmeasured.ts --summary FOLDER
 * The GPU is taken for an unknown one of its vendor, whatever its name. A case is a layer and an operation, in a drawn order. Every
 * plan that any of the choices or candidates names is timed; choices are held against the fastest. Workers plan and compile side by
 * side, and time one after the other. FOLDER gets a line of JSON a case. Without a network: deno bundle bench/planner_unmeasured.ts
 * -o dist/planner_unmeasured.js.
 */
import { parseArgs } from "node:util";
import { createHash } from "node:crypto";
import { join } from "node:path";
import {
  appendLine,
  backendOf,
  drawnCases,
  problemsOf,
  readLines,
  runWorkers,
  WORKER_OPTIONS,
} from "./gpu_workers.ts";
import { autoRequest, GPU_GOODNESS } from "./measured_case.ts";
import { rankRivals, requestFor } from "../src/algorithms/cost/auto.ts";
import { planKey, shortlist } from "../src/algorithms/cost/shortlist.ts";
import { H200 } from "../src/algorithms/device/h200.ts";
import { sizedModel, unknownModel } from "../src/algorithms/device/known.ts";
import type { DeviceModel } from "../src/algorithms/device/model.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { measureSize } from "../src/bench/calibrate/calibrate.ts";
import { SIZE_PROTOCOL } from "../src/cli/learn.ts";
import { parseShard } from "../src/cli/values.ts";
import { type GpuDevice, openDevice } from "../src/gpu/device.ts";
import { compileKernels } from "../src/gpu/prepare.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { gpuPlanning } from "../src/run/executor.ts";
import {
  fastestOf,
  planRoom,
  type PlanTime,
  type TimedPlan,
  timePlans,
  timeWithin,
} from "../src/run/time_plans.ts";
import { type Timed, timeRivals } from "../src/run/timing.ts";

const PROTOCOL = { samples: 5, fillMs: 2, warmUpMs: { first: 30, next: 5, most: 40 } };
/** What `conv` may spend. */
const BUDGET_MS = 1000;
/** Rivals that are timed at most, and candidates that are chosen from. */
const RIVALS = 6;
const CANDIDATES = 6;

/** A line of the output: what every plan took, and which plans the choices are. */
interface Line {
  readonly name: string;
  readonly problem: string;
  readonly op: string;
  readonly layout: string;
  /** By a plan's number; a sentence of what did not run. */
  readonly ms: readonly (number | string)[];
  readonly compileMs: readonly number[];
  /** Numbers of plans. */
  readonly ways: Readonly<Record<string, number>>;
  readonly kernels: readonly string[];
  /** Hashes of what tells plans apart. */
  readonly keys: readonly string[];
  /** What each number of candidates was timed to be the fastest within the budget, and how long that took. */
  readonly learned: Readonly<Record<number, { readonly way?: number; readonly tookMs: number }>>;
}

const { values } = parseArgs({
  options: {
    ...WORKER_OPTIONS,
    workers: { type: "string", default: "8" },
    seconds: { type: "string", default: "280" },
    layout: { type: "string", default: "nchw" },
    backend: { type: "string", default: "wgpu" },
  },
});
const folder = values.summary ?? values.out;
if (folder === undefined) {
  console.error("planner_unmeasured: give --out FOLDER, or --summary FOLDER");
  Deno.exit(2);
}
if (values.shard !== undefined) await work(folder, values.shard, Number(values.until));
else {
  if (values.summary === undefined) await runWorkers(folder, values);
  summarize(folder);
}

async function work(folder: string, part: string, until: number): Promise<void> {
  const shard = parseShard(part);
  using gpu = await openDevice({ backend: backendOf(values.backend) });
  const { adapter, backend, software } = gpu.info;
  const unknown = unknownModel(software ? "a GPU" : adapter);
  if (shard.index === 1) console.log(`${adapter}, ${backend}, planned for as ${unknown.name}`);
  const { limits } = gpu;
  Deno.writeTextFileSync(join(folder, "device.json"), JSON.stringify({ adapter, limits }));
  const cases = drawnCases(problemsOf(values.suite), values, autoRequest)
    .filter((_, place) => place % shard.count === shard.index - 1);
  using lock = Deno.openSync(join(folder, "lock"), { create: true, write: true });
  await lock.lock(true);
  const models = { unknown, sized: await sizedModelOf(gpu, unknown) };
  await lock.unlock();
  for (const request of cases) {
    if (Date.now() > until) break;
    const line = await measure(gpu, { ...request, ...gpuPlanning(gpu, {}) }, models, lock);
    appendLine(folder, shard.index, line);
  }
}

/** The model of a GPU of unknown name, by its measured size. */
async function sizedModelOf(gpu: GpuDevice, unknown: DeviceModel): Promise<DeviceModel> {
  const start = performance.now();
  const model = await measureSize(unknown, {
    limits: gpu.limits,
    time: (plans) => timePlans(gpu, plans, SIZE_PROTOCOL),
  });
  const { multiprocessors, rates, times } = model;
  const figures = [rates.gathered, rates.stream, times.dispatch].map((one) => one.toPrecision(3));
  console.log(
    `size: ${multiprocessors} multiprocessors, gathered ${figures[0]} TFLOP/s, stream ${
      figures[1]
    } ` +
      `TB/s, dispatch ${figures[2]} us, in ${Math.round(performance.now() - start)} ms`,
  );
  return model;
}

async function measure(
  gpu: GpuDevice,
  asked: PlanRequest,
  { unknown, sized }: { readonly unknown: DeviceModel; readonly sized: DeviceModel },
  lock: Deno.FsFile,
): Promise<Line> {
  const { problem, dtype, layout } = asked;
  const plans = new Map<string, number>();
  const list: Plan[] = [];
  const ways: Record<string, number> = {};
  const add = (name: string, plan: Plan) => {
    const key = planKey(plan);
    if (!plans.has(key)) plans.set(key, list.push(plan) - 1);
    ways[name] = plans.get(key)!;
  };
  const models = { h200: H200, unknown, sized };
  for (const [name, device] of Object.entries(models)) {
    const auto = tryPlanConv({ ...asked, device });
    if (isRefusal(auto)) throw new Error(auto.text);
    add(`${name}.auto`, auto);
  }
  rankRivals({ ...asked, device: H200 }).filter(({ reason }) => reason === undefined)
    .slice(0, RIVALS).forEach((rival, place) => {
      const plan = tryPlanConv({ ...requestFor(asked, rival), device: H200 });
      if (!isRefusal(plan)) add(`h200.${place} ${rival.algorithm} ${rival.tile ?? ""}`, plan);
    });
  for (const size of [0.5, 2, 4, 8]) {
    const device = sizedModel(sized, Math.ceil(size * sized.multiprocessors));
    const plan = tryPlanConv({ ...asked, device });
    if (!isRefusal(plan)) add(`sized.${size}`, plan);
  }
  const entrants = shortlist({ ...asked, device: sized }, CANDIDATES);
  entrants.forEach(({ plan }, place) => add(`candidate.${place}`, plan));
  const compileMs: number[] = [];
  for (const plan of list) {
    const start = performance.now();
    await compileKernels(gpu, plan).catch(() => {});
    compileMs.push(Math.round(performance.now() - start));
  }
  await lock.lock(true);
  try {
    const times = await timeAll(gpu, list.map((plan) => ({ plan, dtype })));
    const learned: Record<number, { way?: number; tookMs: number }> = {};
    for (const count of [4]) {
      const some = entrants.slice(0, count);
      const start = performance.now();
      const found = fastestOf(
        await timeWithin(gpu, { dtype }, some, BUDGET_MS),
      );
      const tookMs = Math.round(performance.now() - start);
      learned[count] = {
        tookMs,
        ...(found === undefined ? {} : { way: ways[`candidate.${found}`]! }),
      };
    }
    return {
      name: problem.name ?? printDescriptor(problem),
      problem: printDescriptor(problem),
      op: problem.op,
      layout,
      ms: times.map((time) => typeof time === "string" ? time : time.median),
      compileMs,
      ways,
      kernels: list.map(({ kernel }) => kernel),
      keys: list.map(hashOf),
      learned,
    };
  } finally {
    await lock.unlock();
  }
}

/** What plans of one problem take, in turn, on the same tensors. */
async function timeAll(gpu: GpuDevice, plans: readonly TimedPlan[]): Promise<PlanTime[]> {
  using room = planRoom(gpu, true);
  const ready: (Timed | string)[] = [];
  for (const plan of plans) ready.push(await room.prepare(plan));
  const timed = ready.filter((one) => typeof one !== "string");
  const taken = (await timeRivals(gpu.info.software, timed, PROTOCOL)).values();
  return ready.map((one) => typeof one === "string" ? one : taken.next().value!);
}

/** A plan's {@linkcode planKey} in short. */
function hashOf(plan: Plan): string {
  return createHash("sha256").update(planKey(plan)).digest("hex").slice(0, 12);
}

function summarize(folder: string): void {
  const lines = readLines<Line>(folder);
  const time = ({ ms }: Line, way: number | undefined) => {
    const taken = way === undefined ? Infinity : ms[way]!;
    return typeof taken === "number" ? taken : Infinity;
  };
  // What `auto` weighs where the device's figures are known, as planner_rivals.ts has it; and of all that was timed.
  const rivals = ({ ways, ...line }: Line) =>
    Math.min(
      ...Object.entries(ways).filter(([name]) => name.startsWith("h200."))
        .map(([, way]) => time({ ways, ...line }, way)),
    );
  const all = (line: Line) => Math.min(...line.ms.map((_, way) => time(line, way)));
  const tell = (title: string, ratio: (line: Line) => number) => {
    const ratios = lines.map(ratio);
    const good = ratios.filter((one) => one <= GPU_GOODNESS.good).length;
    const mean = Math.exp(ratios.reduce((sum, one) => sum + Math.log(one), 0) / ratios.length);
    console.log(
      `${title}: ${good} of ${lines.length} (${(100 * good / lines.length).toFixed(1)} %) within ` +
        `${GPU_GOODNESS.good} times the best, geometric mean ${mean.toFixed(3)}, worst ${
          Math.max(...ratios).toFixed(2)
        }`,
    );
  };
  for (
    const [against, best] of [["the best rival", rivals], ["all that was timed", all]] as const
  ) {
    console.log(`against ${against}:`);
    const of = (way: string) => (line: Line) => time(line, line.ways[way]) / best(line);
    tell("  (c) H200's own figures", of("h200.auto"));
    tell("  unknown GPU, unmeasured", of("unknown.auto"));
    tell("  (a) unknown GPU of a measured size, first choice", of("sized.auto"));
    tell(
      "  (b) the same after timing four",
      (line) => time(line, line.learned[4]!.way ?? line.ways["sized.auto"]) / best(line),
    );
    for (const count of [2, 3, 4, 5]) {
      tell(
        `  the best of ${count} candidates`,
        (line) =>
          Math.min(
            ...Array.from({ length: count }, (_, place) =>
              time(line, line.ways[`candidate.${place}`])),
          ) / best(line),
      );
    }
  }
  const took = lines.map(({ learned }) => learned[4]!.tookMs).toSorted((a, b) => a - b);
  const compiled = lines.map(({ ways, compileMs }) =>
    [0, 1, 2, 3].reduce((sum, place) => sum + (compileMs[ways[`candidate.${place}`] ?? -1] ?? 0), 0)
  ).toSorted((a, b) => a - b);
  const share = (all: number[], part: number) => all[Math.floor(part * (all.length - 1))];
  console.log(
    `timing four: median ${share(took, 0.5)} ms, 95 % ${
      share(took, 0.95)
    } ms beside compilation of ` +
      `median ${share(compiled, 0.5)} ms, 95 % ${share(compiled, 0.95)} ms`,
  );
}
