/**
 * Where half precision is slower than f32 on a GPU, and which plan would have been faster:
 *   deno run -A bench/half_rivals.ts --out FOLDER [--workers 15] [--seconds 240] [--suite networks,more_networks] [--op LIST]
 *     [--layout nhwc,nchw] [--layers N] [--only FILE] [--rivals 9] [--backend dawn]
 *   deno run -A bench/half_rivals.ts --summary FOLDER
 * A case is a layer, an operation and a layout: first those of a list of layers whose f16 is slow, then those of the suites, each in a
 * drawn order. Timed are what `auto` takes for f16, the best other ways of every kind, and what `auto` takes for f32 through this
 * backend and through wgpu. Workers plan and compile side by side, and time one after the other. FOLDER gets a line of JSON a case.
 * --only times the cases that FILE names alone, `NAME OP LAYOUT` a line.
 * Without a network: deno bundle bench/half_rivals.ts -o dist/half_rivals.js.
 */
import { parseArgs } from "node:util";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { autoRequest } from "./measured_case.ts";
import { predictMs, rankRivals, requestFor } from "../src/algorithms/cost/auto.ts";
import { deviceOf } from "../src/algorithms/device/h200.ts";
import { sizedModel } from "../src/algorithms/device/known.ts";
import { tryPlanGemm } from "../src/algorithms/gemm/plan.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal, type Planned } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { readSuite } from "../src/bench/suite_files.ts";
import { oneOf, parseShard, someOf, wholeNumber } from "../src/cli/values.ts";
import { type GpuDevice, openDevice } from "../src/gpu/device.ts";
import { compileKernels } from "../src/gpu/prepare.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { MATRIX_POLICY_NAMES, TAP_POLICY_NAMES } from "../src/kernels/matrix_policies.ts";
import { TILE_POLICIES } from "../src/kernels/policy.ts";
import { OPERATIONS } from "../src/problem/conv_problem.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { gemmProblem } from "../src/problem/gemm_problem.ts";
import { median } from "../src/report/stats.ts";
import { gpuPlanning } from "../src/run/executor.ts";
import { planRoom } from "../src/run/time_plans.ts";
import type { Timed } from "../src/run/timing.ts";
import { LAYOUTS } from "../src/tensor/layout.ts";
import { RandomWords } from "../src/tensor/random.ts";

/** Layers whose f16 was slower than f32 or far below cuDNN's on an H200, and their neighbours. */
const SLOW = `
mb32ic3ih224oc16oh112kh3sh2ph1n"stem_3_16" mb32ic3ih224oc32oh112kh3sh2ph1n"stem_3_32"
mb64ic3ih96oc24oh48kh3sh2ph1n"stem_3_24" mb8ic4ih128oc64kh3ph1n"stem_4_64"
mb8ic64ih128oc1kh3ph1n"to_1" mb8ic64ih256oc3kh3ph1n"to_3" mb4ic64ih256oc3kh9ph4n"to_3_9x9"
mb8ic25ih96oc25kh3ph1n"25_25" mb16ic24ih56oc24kh3ph1n"24_24" mb8ic7ih64oc9kh3ph1n"7_9"
mb8ic64iw16000oc1kw9pw4n"1d_to_1" mb8ic32iw24000oc1kw7pw3n"1d_to_1_7" mb8ic1iw24000oc32kw9pw4n"1d_from_1"
g64mb8ic64ih64oc64kh51kw5ph25pw2n"strips_51x5" g64mb8ic64ih64oc64kh5kw51ph2pw25n"strips_5x51"
g96mb16ic96ih56oc96kh7ph9dh2n"dw_7x7_d3" mb4ic64ih56oc64kh7ph9dh2n"7x7_d3"
mb128ic1ih28oc6kh5ph2n"lenet_1" mb128ic6ih14oc16kh5n"lenet_2"
mb1ic2560ih16oc640kh1n"1x1_2560" mb1ic640ih16oc2560kh1n"1x1_640" mb1ic2048ih7oc512kh1n"1x1_2048"
mb1ic512ih28oc128kh1n"1x1_512" mb1ic256ih56oc64kh1n"1x1_256" mb16ic2048ih14oc1024kh1n"1x1_2048_16"
mb16ic352ih28oc128kh3ph1n"352_128" mb16ic352ih28oc128kh1n"352_128_1x1"
mb2ic96id16ih56iw56oc96kd3kh3kw3pd1ph1pw1n"3d_96" mb4ic96id8ih28iw28oc192kd3kh3kw3sd2sh2sw2pd1ph1pw1n"3d_96_s2"
mb1ic1280ih8oc1280kh3ph1n"1280_8" mb2ic1280ih16oc1280kh3ph1n"1280_16"
mb16ic37ih45iw61oc53oh23ow31kh3sh2ph1n"37_53" mb16ic8ih96oc7kh3ph1n"8_7" mb16ic64ih56oc9kh3ph1n"64_9"
mb8ic128ih56oc128kh3ph2dh1n"128_d2" g2mb16ic96ih28oc256kh5ph2n"g2_5x5"`;

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

/** Ways that are predicted to take so many times the fastest are not timed, ... */
const HOPELESS = 4;
/** ... nor tiles that are so far behind the best of their kind, ... */
const WORSE = 2;
/** ... nor those on with which a first run took so many times the fastest. */
const BEHIND = 2.5;
const WARM_UP_NS = 20e6;
const SAMPLE_NS = 1.5e6;
const SAMPLES = 5;
const MOST_REPEATS = 1024;
/** Workers that do not end by themselves are ended so long after the time is over. */
const GRACE_MS = 10_000;

/** A way to compute a case. */
interface Way {
  readonly names: string[];
  readonly backend: string;
  readonly dtype: "f16" | "f32";
  readonly plan: Plan;
  readonly predictedMs?: number | undefined;
}

/** Ways by name. */
type Ways = readonly (readonly [string, PlanRequest])[];

/** A way as it is written. */
interface WayLine extends Omit<Way, "plan"> {
  readonly kernel: string;
  /** {@linkcode hashOf}. */
  readonly key: string;
  /** A sentence where it did not run. */
  readonly ms: number | string;
  /** Whether only its first run was timed. */
  readonly once?: boolean;
}

/** A line of the output. */
interface Line {
  readonly name: string;
  readonly problem: string;
  readonly op: string;
  readonly layout: string;
  readonly compileMs: number;
  readonly timingMs: number;
  readonly ways: readonly WayLine[];
}

/** Where ways of a backend run. */
interface Place {
  readonly gpu: GpuDevice;
  readonly room: ReturnType<typeof planRoom>;
}

const { values } = parseArgs({
  options: {
    out: { type: "string" },
    summary: { type: "string" },
    workers: { type: "string", default: "15" },
    seconds: { type: "string", default: "240" },
    suite: { type: "string", default: "networks,more_networks" },
    op: { type: "string", default: OPERATIONS.join() },
    layout: { type: "string", default: "nhwc,nchw" },
    layers: { type: "string" },
    only: { type: "string" },
    rivals: { type: "string", default: "9" },
    backend: { type: "string", default: "dawn" },
    shard: { type: "string" },
    until: { type: "string" },
  },
});
const folder = values.summary ?? values.out;
if (folder === undefined) {
  console.error("half_rivals: give --out FOLDER, or --summary FOLDER");
  Deno.exit(2);
}
if (values.summary !== undefined) summarize(folder);
else if (values.shard === undefined) await startWorkers(folder);
else await work(folder, values.shard, Number(values.until));

/** Runs this program as workers, a part of the cases each, and sums up. */
async function startWorkers(folder: string): Promise<void> {
  Deno.mkdirSync(folder, { recursive: true });
  const count = wholeNumber(1)(values.workers);
  const until = Date.now() + 1000 * wholeNumber(1)(values.seconds);
  const children = Array.from({ length: count }, (_, index) =>
    new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--no-check", Deno.mainModule, ...Deno.args],
        ...[`--shard=${index + 1}/${count}`, `--until=${until}`],
      ],
      stdout: "inherit",
      stderr: "inherit",
    }).spawn());
  const end = setTimeout(
    () => children.forEach((child) => child.kill("SIGKILL")),
    until + GRACE_MS - Date.now(),
  );
  const ended = await Promise.all(children.map(({ status }) => status));
  clearTimeout(end);
  const failed = ended.filter(({ success }) => !success).length;
  if (failed > 0) console.error(`half_rivals: ${failed} workers failed, or were ended`);
  summarize(folder);
}

async function work(folder: string, part: string, until: number): Promise<void> {
  const shard = parseShard(part);
  const backend = oneOf(BACKENDS)(values.backend);
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"], robust: false });
  const other = backend === "wgpu"
    ? undefined
    : await openDevice({ robust: false }).catch(() => {});
  if (shard.index === 1) {
    const units = gpu.matrixUnits === undefined ? "without" : "with";
    console.log(`${gpu.info.adapter}, ${backend}, ${units} matrix units, ${deviceName(gpu)}`);
    if (other) console.log(`f32 beside it: ${other.info.adapter}, ${other.info.backend}`);
  }
  const devices = other ? [gpu, other] : [gpu];
  // Tensors are shared by plans of one type on one device.
  const rooms = new Map(
    devices.flatMap((gpu) =>
      (["f16", "f32"] as const).map((dtype): [string, Place] => [
        placeName({ backend: gpu.info.backend, dtype }),
        { gpu, room: planRoom(gpu, true) },
      ])
    ),
  );
  const cases = allCases().filter((_, place) => place % shard.count === shard.index - 1);
  using lock = Deno.openSync(join(folder, "lock"), { create: true, write: true });
  for (const request of cases) {
    if (Date.now() > until) break;
    const line = await measure(request, devices, rooms, lock, until);
    if (line === undefined) break;
    Deno.writeTextFileSync(join(folder, `part${shard.index}.jsonl`), `${JSON.stringify(line)}\n`, {
      append: true,
    });
  }
  other?.close();
}

function deviceName(gpu: GpuDevice): string {
  return gpuPlanning(gpu, {}).device!.name;
}

function placeName({ backend, dtype }: Pick<Way, "backend" | "dtype">): string {
  return `${backend} ${dtype}`;
}

/** All cases, the slow layers' first, each list in an order that is drawn: any part of it stands for the others. */
function allCases(): PlanRequest[] {
  const only = values.only === undefined
    ? undefined
    : new Set(Deno.readTextFileSync(values.only).trim().split("\n"));
  const suites = values.suite.split(",").flatMap((name) => readSuite(name));
  return [parseSuite(SLOW, "slow"), suites].flatMap((problems) => {
    const some = problems.slice(
      0,
      values.layers === undefined ? undefined : wholeNumber(1)(values.layers),
    );
    const requests = some.flatMap((problem) =>
      someOf(OPERATIONS)(values.op).flatMap((op) =>
        someOf(LAYOUTS)(values.layout).map((layout) =>
          autoRequest({ ...problem, op }, layout, "f16")
        )
      )
    );
    const asked = requests.filter((request) => only?.has(caseName(request)) ?? true);
    const words = new Uint32Array(asked.length);
    new RandomWords(1).fill(words);
    return [...asked.keys()].sort((a, b) => words[a]! - words[b]!).map((at) => asked[at]!);
  });
}

/** `vgg_1 fwd nhwc`. */
function caseName({ problem, layout }: PlanRequest): string {
  return `${problem.name ?? printDescriptor(problem)} ${problem.op} ${layout}`;
}

/** Ways of a case that differ: what `auto` takes in f16 and in f32, and the first others in f16. */
function waysOf(asked: PlanRequest, [gpu, other]: readonly GpuDevice[]): Way[] {
  const found = new Map<string, Way>();
  const most = wholeNumber(0)(values.rivals);
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
function hashOf({ passes }: Plan): string {
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

/** Compiles a case's ways, waits for its turn and times them; undefined where the time is over before. */
async function measure(
  asked: PlanRequest,
  devices: readonly GpuDevice[],
  places: ReadonlyMap<string, Place>,
  lock: Deno.FsFile,
  until: number,
): Promise<Line | undefined> {
  const start = performance.now();
  const ways = waysOf(asked, devices);
  for (const { plan, ...way } of ways) {
    // What does not compile says so when it is prepared.
    await compileKernels(places.get(placeName(way))!.gpu, plan).catch(() => {});
  }
  const compileMs = Math.round(performance.now() - start);
  await lock.lock(true);
  try {
    if (Date.now() > until) return undefined;
    const begin = performance.now();
    const times = await timeWays(ways, places);
    return {
      name: asked.problem.name ?? printDescriptor(asked.problem),
      problem: printDescriptor(asked.problem),
      op: asked.problem.op,
      layout: asked.layout,
      compileMs,
      timingMs: Math.round(performance.now() - begin),
      ways: ways.map(({ plan, ...way }, place) => ({
        ...way,
        kernel: plan.passes.map(({ kernel }) => kernel.name).join(" + "),
        key: hashOf(plan),
        ...times[place]!,
      })),
    };
  } finally {
    places.forEach(({ room }) => room.clear());
    await lock.unlock();
  }
}

/** What ways take in milliseconds, in turn; the first runs of those far behind. */
async function timeWays(
  ways: readonly Way[],
  places: ReadonlyMap<string, Place>,
): Promise<Pick<WayLine, "ms" | "once">[]> {
  const running: { place: number; timed: Timed; ns: number }[] = [];
  const times: Pick<WayLine, "ms" | "once">[] = [];
  for (const [place, way] of ways.entries()) {
    const { plan, dtype } = way;
    const { gpu, room } = places.get(placeName(way))!;
    const timed = await room.prepare({ plan, dtype });
    if (typeof timed === "string") {
      times[place] = { ms: timed };
      continue;
    }
    try {
      const { samplesNs } = await timed.run({ warmup: 1, samples: 2 });
      running.push({ place, timed, ns: Math.max(1, Math.min(...samplesNs)) });
      times[place] = { ms: running.at(-1)!.ns / 1e6, once: true };
    } catch (error) {
      if (!gpu.isOpen || !(error instanceof Error)) throw error;
      times[place] = { ms: error.message };
    }
  }
  const fastest = Math.min(...running.map(({ ns }) => ns));
  // Neither `auto` is left out.
  const near = running.filter(({ place, ns }) =>
    ns <= BEHIND * fastest || ways[place]!.names.some((name) => name.endsWith("auto"))
  );
  const repeatsFor = (ns: number, target: number) =>
    Math.max(1, Math.min(MOST_REPEATS, Math.ceil(target / ns)));
  const [first] = near;
  await first?.timed.run({ repeats: repeatsFor(first.ns, WARM_UP_NS), estimateNs: first.ns });
  for (const { place, timed, ns } of near) {
    const { samplesNs } = await timed.run({
      samples: SAMPLES,
      repeats: repeatsFor(ns, SAMPLE_NS),
      estimateNs: ns,
      warmup: 1,
    });
    times[place] = { ms: median(samplesNs) / 1e6 };
  }
  return times;
}

function summarize(folder: string): void {
  const lines = [...Deno.readDirSync(folder)].filter(({ name }) => /^part\d+\.jsonl$/.test(name))
    .flatMap(({ name }) => Deno.readTextFileSync(join(folder, name)).trim().split("\n"))
    .map((line): Line => JSON.parse(line));
  const timed = lines.map((line) => {
    const ran = line.ways.filter((way): way is WayLine & { ms: number } =>
      typeof way.ms === "number"
    );
    const least = (ways: typeof ran) =>
      ways.reduce<typeof ran[number] | undefined>((a, b) => a && a.ms <= b.ms ? a : b, undefined);
    const halves = ran.filter(({ dtype }) => dtype === "f16");
    return {
      line,
      auto: halves.find(({ names }) => names.includes("auto")),
      best: least(halves),
      whole: least(ran.filter(({ dtype }) => dtype === "f32")),
      pair: ["f32 threads", "f32 wgpu"].map((name) =>
        ran.find(({ names }) => names.includes(name))
      ),
    };
  }).flatMap(({ auto, best, whole, ...one }) =>
    auto && best && whole
      ? [{ ...one, auto, best, whole, ratio: whole.ms / auto.ms, missed: auto.ms / best.ms }]
      : []
  );
  const caseText = ({ name, op, layout }: Line) => `${name} ${op} ${layout}`;
  const wayText = ({ names, ms }: { names: readonly string[]; ms: number }) =>
    `${names[0]} ${(1e3 * ms).toFixed(1)}`;
  const mean = (of: readonly number[]) =>
    Math.exp(of.reduce((sum, one) => sum + Math.log(one), 0) / of.length).toFixed(3);
  console.log(`${lines.length} cases, ${timed.length} with f16 and f32 timed; times in us`);
  const slower = timed.filter(({ ratio }) => ratio < 0.97).toSorted((a, b) => a.ratio - b.ratio);
  console.log(`f16 below 0.97 of f32's speed: ${slower.length}; of the best f16, then what it is`);
  for (const { line, auto, best, whole, ratio } of slower) {
    console.log(
      `  ${ratio.toFixed(2)} ${(whole.ms / best.ms).toFixed(2)}  ${caseText(line)}: ${
        wayText(auto)
      }, ${wayText(whole)}, best ${wayText(best)}: ${best.kernel}`,
    );
  }
  const missed = timed.filter(({ missed }) => missed > 1.1).toSorted((a, b) => b.missed - a.missed);
  console.log(
    `f16's choice over the best f16: geometric mean ${
      mean(timed.map(({ missed }) => missed))
    }, above 1.1: ${missed.length}`,
  );
  for (const { line, auto, best, missed: by } of missed) {
    console.log(
      `  ${by.toFixed(2)}  ${caseText(line)}: ${wayText(auto)}, best ${
        wayText(best)
      }: ${best.kernel}, not ${auto.kernel}`,
    );
  }
  const same = timed.flatMap(({ line, pair: [dawn, wgpu] }) =>
    dawn && wgpu && dawn.key === wgpu.key ? [{ line, dawn, wgpu, ratio: dawn.ms / wgpu.ms }] : []
  ).toSorted((a, b) => b.ratio - a.ratio);
  console.log(
    `${values.backend}'s f32 over wgpu's, same plans: ${same.length}, geometric mean ${
      mean(same.map(({ ratio }) => ratio))
    }`,
  );
  for (const { line, dawn, wgpu, ratio } of same.filter(({ ratio }) => ratio > 1.08)) {
    console.log(
      `  ${ratio.toFixed(2)}  ${caseText(line)}: ${(1e3 * dawn.ms).toFixed(1)}, ${
        (1e3 * wgpu.ms).toFixed(1)
      }: ${dawn.kernel}`,
    );
  }
}
