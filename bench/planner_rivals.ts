/**
 * Holds what `auto` chooses on the device at hand against all that it weighs, timed in turn:
 *   deno run -A bench/planner_rivals.ts [--device-model FILE] [--third SEED] [--shard 1/4] [--op LIST] [--layout LIST]
 *     [--jsonl FILE] [--backend dawn] [--compile]
 * Of the layers of resnet3x3, vgg16 and networks, or a seeded third of them; a choice is good within 5 % of the best rival, of
 * those predicted to take up to five times the fastest. On a CPU of 20 small problems every algorithm, the best of three
 * samples; a choice is good within 1.3 times the best. --jsonl appends records for `bench/planner_check.ts`. --compile only
 * makes the pipelines, so that drivers that keep them on disk have them when they are timed: a shard a core. Exit 1 where too
 * few choices are good. Without a network: deno bundle bench/planner_rivals.ts -o dist/planner_rivals.js.
 */
import { parseArgs } from "node:util";
import { autoRequest, GPU_GOODNESS, printGoodness } from "./measured_case.ts";
import { rankRivals, requestFor } from "../src/algorithms/cost/auto.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { planConv, tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import { algorithmNames } from "../src/algorithms/registry.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { readDeviceModel } from "../src/bench/calibrate/model_file.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { oneOf, parseShard, someOf, wholeNumber } from "../src/cli/values.ts";
import { openDevice } from "../src/gpu/device.ts";
import { pipelineOf } from "../src/gpu/prepare.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { type ConvProblem, directFlops, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor, printDescriptor } from "../src/problem/descriptor.ts";
import { caseRecord } from "../src/run/case_record.ts";
import { gpuPlanning } from "../src/run/executor.ts";
import { timePlans } from "../src/run/time_plans.ts";
import { LAYOUTS } from "../src/tensor/layout.ts";
import { RandomWords } from "../src/tensor/random.ts";
import networks from "./suites/networks.txt" with { type: "text" };
import resnet from "./suites/resnet3x3.txt" with { type: "text" };
import vgg from "./suites/vgg16.txt" with { type: "text" };

const GPU_PROTOCOL = { samples: 11, fillMs: 5, spread: 0.01, warmUpMs: { first: 200, next: 50 } };
/** Rivals that are predicted to take so many times the fastest are not timed. */
const HOPELESS = 5;
const CPU_GOODNESS = { good: 1.3, share: 1, worst: 1.3 };
const CPU_PROTOCOL = { samples: 3, fillMs: 20 };
const SMALL = `
  fwd nchw mb1ic3ih32oc16kh3ph1, fwd nhwc mb1ic3ih64oc8kh5sh2ph2, fwd nchw mb1ic16ih28oc16kh3ph1,
  fwd nhwc mb1ic16ih28oc32kh3ph1, fwd nchw mb2ic32ih14oc32kh3ph1, fwd nchw mb1ic64ih28oc64kh1,
  fwd nhwc mb1ic32ih28oc16kh1sh2, fwd nchw g32mb1ic32ih28oc32kh3ph1, fwd nhwc g4mb1ic32ih14oc32kh3ph1,
  fwd nchw mb1ic64ih14oc64kh3sh2ph1, fwd nchw mb4ic8iw256oc16kw5pw2,
  fwd nhwc mb1ic4id8ih8iw8oc8kd3kh3kw3pd1ph1pw1, fwd nchw mb1ic8ih32oc1kh3ph1,
  bwd-data nchw mb1ic16ih28oc16kh3ph1, bwd-data nhwc mb1ic32ih14oc32kh3ph1,
  bwd-data nchw mb1ic16ih28oc32kh3sh2ph1, bwd-filter nchw mb2ic16ih28oc16kh3ph1,
  bwd-filter nhwc mb1ic32ih14oc32kh3ph1, bwd-filter nhwc mb1ic16ih28oc16kh5ph2,
  bwd-filter nchw mb2ic3ih32oc16kh3ph1`;

interface Timed {
  readonly plan: Plan;
  /** As it is asked for, where it is. */
  readonly tile?: string | undefined;
}

const { values } = parseArgs({
  options: {
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
const ops = someOf(OPERATIONS)(values.op);
const layouts = someOf(LAYOUTS)(values.layout);
const shard = parseShard(values.shard);
const seed = values.third === undefined ? undefined : wholeNumber(0)(values.third);
const file = values["device-model"];
const model = file === undefined ? undefined : readDeviceModel(file);
using gpu = await openDevice({ backend: oneOf(BACKENDS)(values.backend) });
const { adapter, backend, software } = gpu.info;
console.log(`${adapter}, ${backend}, ${model?.name ?? "the model built in"}`);

const planning = gpuPlanning(gpu, {}, model);
const requests = (software ? smallRequests() : layerRequests())
  .filter(({ problem: { op }, layout }) => ops.includes(op) && layouts.includes(layout))
  .filter((_, place) => place % shard.count === shard.index - 1)
  .map((request) => ({ ...request, ...planning }));
const ratios: number[] = [];
for (const request of requests) {
  const auto = planConv(request);
  // A plan that is auto's under its own name is timed once.
  const rivals = [
    ...new Map(
      [{ plan: auto } as Timed, ...rivalsOf(request)].map((one) => [textOf(one.plan), one]),
    )
      .values(),
  ];
  if (values.compile) {
    for (const { kernel } of rivals.flatMap(({ plan }) => plan.passes)) {
      await pipelineOf(gpu, kernel);
    }
    continue;
  }
  const { problem, dtype, layout } = request;
  const protocol = software ? CPU_PROTOCOL : GPU_PROTOCOL;
  const times = await timePlans(gpu, rivals.map(({ plan }) => ({ plan, dtype })), protocol);
  const taken = rivals.flatMap(({ plan, tile }, index) => {
    const time = times[index]!;
    if (typeof time === "string") return [];
    const outcome = { plan, time, verdict: "none" } as const;
    const setup = {
      problem: printDescriptor(problem),
      op: problem.op,
      algorithm: textOf(plan) === textOf(auto) ? "auto" as const : plan.algorithm,
      dtype,
      layout,
      device: adapter,
      flops: directFlops(problem),
      ...(tile === undefined ? {} : { tile }),
    };
    return [{ plan, ms: software ? time.min : time.median, record: caseRecord(setup, outcome) }];
  });
  const own = taken.find(({ plan }) => textOf(plan) === textOf(auto));
  const best = taken.reduce((a, b) => b.ms < a.ms ? b : a);
  const ratio = (own?.ms ?? Infinity) / best.ms;
  ratios.push(ratio);
  console.log(
    `${ratio.toFixed(3)}  ${problem.op} ${layout} ${problem.name ?? printDescriptor(problem)}: ` +
      `${auto.kernel} ${own?.ms.toPrecision(4)} ms; best ${best.plan.kernel} ` +
      `${best.ms.toPrecision(4)}, of ${taken.length}`,
  );
  if (values.jsonl !== undefined) {
    const lines = taken.map(({ record }) => `${JSON.stringify(record)}\n`).join("");
    Deno.writeTextFileSync(values.jsonl, lines, { append: true });
  }
}
if (!values.compile) {
  if (ratios.length === 0) throw new RangeError("Cannot compare rivals: no case is in this part");
  if (!printGoodness(ratios, software ? CPU_GOODNESS : GPU_GOODNESS)) Deno.exitCode = 1;
}

function smallRequests(): PlanRequest[] {
  return SMALL.split(",").map((text) => {
    const [op = "", layout = "", descriptor = ""] = text.trim().split(" ");
    return autoRequest(parseDescriptor(descriptor, oneOf(OPERATIONS)(op)), oneOf(LAYOUTS)(layout));
  });
}

/** The suites' layers in every operation and layout. */
function layerRequests(): PlanRequest[] {
  const suites = { networks, resnet3x3: resnet, vgg16: vgg };
  const problems = Object.entries(suites).flatMap(([name, text]) => parseSuite(text, name));
  return third(problems).flatMap((problem) =>
    OPERATIONS.flatMap((op) => LAYOUTS.map((layout) => autoRequest({ ...problem, op }, layout)))
  );
}

/** A third of the problems, drawn by the seed; all where there is none. */
function third(problems: readonly ConvProblem[]): ConvProblem[] {
  if (seed === undefined) return [...problems];
  const words = new Uint32Array(problems.length);
  new RandomWords(seed).fill(words);
  const order = [...problems.keys()].sort((a, b) => words[a]! - words[b]!);
  const drawn = new Set(order.slice(0, Math.ceil(problems.length / 3)));
  return problems.filter((_, place) => drawn.has(place));
}

/** Rivals that may run and are not far behind what is predicted to be the fastest; on a CPU every algorithm. */
function rivalsOf(request: PlanRequest): Timed[] {
  const running = rankRivals(request).filter(({ reason }) => reason === undefined);
  const most = HOPELESS * Math.min(...running.map(({ predictedMs = 0 }) => predictedMs));
  const asked: PlanRequest[] = software
    ? algorithmNames().map((algorithm) => ({ ...request, algorithm }))
    : running.filter(({ predictedMs = 0 }) => predictedMs <= most)
      .map((rival) => requestFor(request, rival));
  return asked.flatMap((one) => {
    const plan = tryPlanConv(one);
    return isRefusal(plan) ? [] : [{ plan, tile: one.tile }];
  });
}

/** What tells plans apart. */
function textOf({ passes }: Plan): string {
  return passes.map(({ kernel, grid }) => `${kernel.name} ${grid}`).join();
}
