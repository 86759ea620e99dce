/**
 * Holds what `auto` chooses on the device at hand against all that it weighs, timed in turn:
 *   deno run -A bench/planner_rivals.ts [--device-model A.json[,B.json]] [--third SEED] [--shard 1/4] [--op LIST] [--layout LIST]
 *     [--jsonl FILE] [--backend dawn] [--compile]
 *   deno run -A bench/planner_rivals.ts --small [--jsonl FILE]
 * The first takes the layers of resnet3x3, vgg16 and networks, or a seeded third of them; a choice is good within 5 % of the
 * best rival, of those predicted to take up to five times the fastest. Of several models the first chooses, and the others say
 * how often they would choose the same. --compile only makes the pipelines, so that drivers that keep them on disk have them
 * when they are timed: a shard a core. --small is for CPUs: 20 small problems, every algorithm, the best of three samples of
 * 20 ms without compilation; a choice is good within 1.3 times the best. `bench/rivals_check.ts` holds other models against
 * what --jsonl wrote. Exit 1 where too few choices are good. Without a network: deno bundle bench/planner_rivals.ts -o
 * dist/planner_rivals.js.
 */
import { parseArgs } from "node:util";
import { algorithmNames } from "../src/algorithms/registry.ts";
import { rankRivals, requestFor } from "../src/algorithms/cost/choose.ts";
import { H200, modelOf } from "../src/algorithms/device/h200.ts";
import { planConv, tryPlanConv } from "../src/algorithms/planner.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import type { Rival } from "../src/algorithms/rival.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { readDeviceModel } from "../src/bench/calibrate/model_file.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { openDevice } from "../src/gpu/device.ts";
import { pipelineOf } from "../src/gpu/pipelines.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { type ConvProblem, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor, printDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { gpuPlanning } from "../src/run/executor.ts";
import { timePlans } from "../src/run/time_plans.ts";
import { filterLayoutFor, type Layout, LAYOUTS } from "../src/tensor/layout.ts";
import { RandomWords } from "../src/tensor/random.ts";
import networks from "./suites/networks.txt" with { type: "text" };
import resnet from "./suites/resnet3x3.txt" with { type: "text" };
import vgg from "./suites/vgg16.txt" with { type: "text" };

/** What a choice may take of the best, which share of them must, and what none may. */
const GPU_RULE = { good: 1.05, share: 0.9, worst: 1.15 };
const SMALL_RULE = { good: 1.3, share: 1, worst: 1.3 };
const GPU_PROTOCOL = {
  samples: 11,
  fillMs: 5,
  spread: 0.01,
  warmUpMs: { first: 200, next: 50 },
};
/** Rivals that are predicted to take so many times the fastest are not timed. */
const HOPELESS = 5;
const SMALL_PROTOCOL = { samples: 3, fillMs: 20 };

const SMALL = [
  "fwd nchw mb1ic3ih32oc16kh3ph1",
  "fwd nhwc mb1ic3ih64oc8kh5sh2ph2",
  "fwd nchw mb1ic16ih28oc16kh3ph1",
  "fwd nhwc mb1ic16ih28oc32kh3ph1",
  "fwd nchw mb2ic32ih14oc32kh3ph1",
  "fwd nchw mb1ic64ih28oc64kh1",
  "fwd nhwc mb1ic32ih28oc16kh1sh2",
  "fwd nchw g32mb1ic32ih28oc32kh3ph1",
  "fwd nhwc g4mb1ic32ih14oc32kh3ph1",
  "fwd nchw mb1ic64ih14oc64kh3sh2ph1",
  "fwd nchw mb4ic8iw256oc16kw5pw2",
  "fwd nhwc mb1ic4id8ih8iw8oc8kd3kh3kw3pd1ph1pw1",
  "fwd nchw mb1ic8ih32oc1kh3ph1",
  "bwd-data nchw mb1ic16ih28oc16kh3ph1",
  "bwd-data nhwc mb1ic32ih14oc32kh3ph1",
  "bwd-data nchw mb1ic16ih28oc32kh3sh2ph1",
  "bwd-filter nchw mb2ic16ih28oc16kh3ph1",
  "bwd-filter nhwc mb1ic32ih14oc32kh3ph1",
  "bwd-filter nhwc mb1ic16ih28oc16kh5ph2",
  "bwd-filter nchw mb2ic3ih32oc16kh3ph1",
];

const { values } = parseArgs({
  options: {
    small: { type: "boolean", default: false },
    "device-model": { type: "string" },
    third: { type: "string" },
    shard: { type: "string", default: "1/1" },
    op: { type: "string", default: OPERATIONS.join() },
    layout: { type: "string", default: "nchw,nhwc" },
    jsonl: { type: "string" },
    compile: { type: "boolean", default: false },
    backend: { type: "string", default: "wgpu" },
  },
});

refuseUnknown("op", values.op, OPERATIONS);
refuseUnknown("layout", values.layout, LAYOUTS);
refuseUnknown("backend", values.backend, BACKENDS);
if (!/^([1-9]\d*)\/([1-9]\d*)$/.test(values.shard)) refuse(`--shard is 1/4, not ${values.shard}`);
if (values.third !== undefined && !/^\d+$/.test(values.third)) {
  refuse(`--third is a seed, a whole number, not ${values.third}`);
}

interface Case {
  readonly problem: ConvProblem;
  readonly layout: Layout;
}

const rule = values.small ? SMALL_RULE : GPU_RULE;
const protocol = values.small ? SMALL_PROTOCOL : GPU_PROTOCOL;
const models =
  values["device-model"]?.split(",").map((path) =>
    path === "h200" ? H200 : readDeviceModel(path)
  ) ?? [];
using gpu = await openDevice({ backend: BACKENDS.find((name) => name === values.backend)! });
console.log(`${gpu.info.adapter}, ${gpu.info.backend}, ${models[0]?.name ?? "the model built in"}`);
const ratios: number[] = [];
let [asked, alike, alone] = [0, 0, 0];
for (const one of values.small ? SMALL.map(smallCase) : suiteCases()) {
  const request = requestOf(one);
  const auto = planConv(request);
  const named = values.small
    ? algorithmNames().map((algorithm) => tryPlanConv({ ...request, algorithm }))
    : hopeful(rankRivals(request)).map((rival) => tryPlanConv(requestFor(request, rival)));
  // A plan that is `auto`'s under its own name is timed once.
  const plans = new Map([auto, ...named.filter((plan) => !isRefusal(plan)) as Plan[]]
    .map((plan) => [kernelsOf(plan), plan]));
  for (const model of models.slice(1)) {
    const device = modelOf(gpu.workgroupsInFlight, model);
    asked++;
    alike += Number(kernelsOf(planConv({ ...request, device })) === kernelsOf(auto));
  }
  if (values.compile) {
    for (
      const kernel of [...plans.values()].flatMap(({ passes }) => passes.map((one) => one.kernel))
    ) {
      await pipelineOf(gpu, kernel);
    }
    continue;
  }
  const times = await timePlans(
    gpu,
    [...plans.values()].map((plan) => ({ plan, dtype: request.dtype })),
    protocol,
  );
  const taken = [...plans.values()].map((plan, index) => {
    const time = times[index]!;
    const ms = typeof time === "string" ? Infinity : values.small ? time.min : time.median;
    return { algorithm: plan.algorithm, kernel: plan.kernel, ms };
  });
  const own = taken[[...plans.keys()].indexOf(kernelsOf(auto))]!;
  const best = taken.reduce((a, b) => b.ms < a.ms ? b : a);
  const ratio = own.ms / best.ms;
  ratios.push(ratio);
  if (taken.length === 1) alone++;
  const { problem, layout } = one;
  console.log(
    `${ratio.toFixed(3)}  ${problem.op} ${layout} ${problem.name ?? printDescriptor(problem)}: ` +
      `${own.algorithm} ${own.ms.toPrecision(4)} ms; best ${best.kernel} ` +
      `${best.ms.toPrecision(4)}, of ${taken.length}`,
  );
  if (values.jsonl !== undefined) {
    const record = {
      problem: printDescriptor(problem),
      op: problem.op,
      layout,
      chosen: own,
      taken,
    };
    Deno.writeTextFileSync(values.jsonl, `${JSON.stringify(record)}\n`, { append: true });
  }
}
if (values.compile) Deno.exit();
if (ratios.length === 0) refuse("no case is in this part");
const good = ratios.filter((ratio) => ratio <= rule.good).length;
const worst = Math.max(...ratios);
console.log(
  `${good} of ${ratios.length} choices (${(100 * good / ratios.length).toFixed(1)} %) within ` +
    `${rule.good} times the best, the worst ${worst.toFixed(3)}; ${alone} of them had no rival`,
);
if (asked > 0) {
  console.log(`${alike} of ${asked} choices (${(100 * alike / asked).toFixed(1)} %) the same`);
}
if (good < rule.share * ratios.length || worst > rule.worst) Deno.exitCode = 1;

/** Ends with a sentence and exit code 2. */
function refuse(reason: string): never {
  console.error(`planner_rivals: ${reason}`);
  Deno.exit(2);
}

function refuseUnknown(option: string, list: string, known: readonly string[]): void {
  const wrong = list.split(",").find((one) => !known.includes(one));
  if (wrong !== undefined) refuse(`--${option} ${wrong} is none of ${known.join(", ")}`);
}

function smallCase(text: string): Case {
  const [op, layout, descriptor] = text.split(" ");
  return {
    problem: parseDescriptor(descriptor!, OPERATIONS.find((one) => one === op)!),
    layout: LAYOUTS.find((one) => one === layout)!,
  };
}

/** The part of the suites that is asked for, in every operation and layout. */
function suiteCases(): Case[] {
  const suites = { networks, resnet3x3: resnet, vgg16: vgg };
  const problems = Object.entries(suites).flatMap(([name, text]) => parseSuite(text, name));
  const cases = third(problems).flatMap((problem) =>
    OPERATIONS.filter((op) => values.op.split(",").includes(op)).flatMap((op) =>
      LAYOUTS.filter((one) => values.layout.split(",").includes(one)).map((layout) => ({
        problem: { ...problem, op },
        layout,
      }))
    )
  );
  const [index = 1, count = 1] = values.shard.split("/").map(Number);
  return cases.filter((_, place) => place % count === index - 1);
}

/** A third of the problems, drawn by the seed; all where there is none. */
function third(problems: readonly ConvProblem[]): ConvProblem[] {
  if (values.third === undefined) return [...problems];
  const words = new Uint32Array(problems.length);
  new RandomWords(Number(values.third)).fill(words);
  const order = [...problems.keys()].sort((a, b) => words[a]! - words[b]!);
  const drawn = new Set(order.slice(0, Math.ceil(problems.length / 3)));
  return problems.filter((_, place) => drawn.has(place));
}

function requestOf({ problem, layout }: Case): PlanRequest {
  return {
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    ...gpuPlanning(gpu, {}, models[0]),
  };
}

/** Rivals that may run and are not far behind what is predicted to be the fastest. */
function hopeful(rivals: readonly Rival[]): Rival[] {
  const running = rivals.filter(({ reason }) => reason === undefined);
  const times = running.map(({ predictedMs = 0 }) => predictedMs);
  const most = HOPELESS * Math.min(...times);
  return running.filter(({ predictedMs = 0 }) => predictedMs <= most);
}

/** What tells plans apart. */
function kernelsOf({ passes }: Plan): string {
  return passes.map(({ kernel, grid }) => `${kernel.name} ${grid}`).join();
}
