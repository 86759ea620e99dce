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
import { autoRequest } from "./measured_case.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { parseShard, wholeNumber } from "../src/cli/values.ts";
import { type GpuDevice, openDevice } from "../src/gpu/device.ts";
import { compileKernels } from "../src/gpu/prepare.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { median } from "../src/report/stats.ts";
import { gpuPlanning } from "../src/run/executor.ts";
import { planRoom } from "../src/run/time_plans.ts";
import type { Timed } from "../src/run/timing.ts";
import { hashOf, type Line, type Way, type WayLine, waysOf } from "./half_ways.ts";
import { summarize } from "./half_summary.ts";

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

/** Ways are not timed on whose first run took so many times the fastest. */
const BEHIND = 2.5;
const WARM_UP_NS = 20e6;
const SAMPLE_NS = 1.5e6;
const SAMPLES = 5;
const MOST_REPEATS = 1024;

/** Where ways of a backend run. */
interface Place {
  readonly gpu: GpuDevice;
  readonly room: ReturnType<typeof planRoom>;
}

const { values } = parseArgs({
  options: {
    ...WORKER_OPTIONS,
    workers: { type: "string", default: "15" },
    seconds: { type: "string", default: "240" },
    layout: { type: "string", default: "nhwc,nchw" },
    only: { type: "string" },
    rivals: { type: "string", default: "9" },
    backend: { type: "string", default: "dawn" },
  },
});
const folder = values.summary ?? values.out;
if (folder === undefined) {
  console.error("half_rivals: give --out FOLDER, or --summary FOLDER");
  Deno.exit(2);
}
if (values.shard !== undefined) await work(folder, values.shard, Number(values.until));
else {
  if (values.summary === undefined) await runWorkers(folder, values);
  summarize(readLines(folder), values.backend);
}

async function work(folder: string, part: string, until: number): Promise<void> {
  const shard = parseShard(part);
  const backend = backendOf(values.backend);
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
    appendLine(folder, shard.index, line);
  }
  other?.close();
}

function deviceName(gpu: GpuDevice): string {
  return gpuPlanning(gpu, {}).device!.name;
}

function placeName({ backend, dtype }: Pick<Way, "backend" | "dtype">): string {
  return `${backend} ${dtype}`;
}

/** The cases to time, the slow layers' first. */
function allCases(): PlanRequest[] {
  const only = values.only === undefined
    ? undefined
    : new Set(Deno.readTextFileSync(values.only).trim().split("\n"));
  return [parseSuite(SLOW, "slow"), problemsOf(values.suite)].flatMap((problems) =>
    drawnCases(
      problems,
      values,
      (problem, layout) => autoRequest(problem, layout, "f16"),
      (request) => only?.has(caseName(request)) ?? true,
    )
  );
}

/** `vgg_1 fwd nhwc`. */
function caseName({ problem, layout }: PlanRequest): string {
  return `${problem.name ?? printDescriptor(problem)} ${problem.op} ${layout}`;
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
  const ways = waysOf(asked, devices, wholeNumber(0)(values.rivals));
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
