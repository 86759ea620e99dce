/**
 * How well WinRS plans on the GPU at hand:
 *   deno run -A bench/winrs_sweep.ts [SECONDS] [LAYOUT] [REGEX] [SUITE]
 * First every kernel alone on every problem, which gives throughput coefficients; then, planned with these, segment
 * counts around the planner's choice, pairs of kernels around its choice, and sums kept whole. Problems: those of
 * a suite's file, else of winrs_bfc.txt and resnet3x3.txt, whose name matches REGEX.
 *
 * Lines: `one` is a measurement: problem, phase, pair, tiles, grid, buckets, ms, predicted ms, TFLOP/s of direct
 * flops, distance from the problem's first result (relative L2). `choice` is a problem's summary. JSON lines are the
 * coefficients, as `throughputTable()` of src/algorithms/winrs/throughput.ts takes them.
 */
import {
  dataElements,
  filterElements,
  workgroupsInFlight,
} from "../src/algorithms/winrs/baseline.ts";
import {
  type Configuration,
  configure,
  configureAs,
  type ConfigureOptions,
} from "../src/algorithms/winrs/configure.ts";
import { admissible, type Omega, omegaName, OMEGAS } from "../src/algorithms/winrs/omega.ts";
import { type KernelPair, parsePair, possiblePairs } from "../src/algorithms/winrs/pair.ts";
import { configureOptions, planWinrs } from "../src/algorithms/winrs/plan.ts";
import { gridSegments, mostRows, type Segmentation } from "../src/algorithms/winrs/segments.ts";
import { throughputOf, type ThroughputTable } from "../src/algorithms/winrs/throughput.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { createBuffer, download, upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import { type ConvProblem, directFlops, tensorShape } from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, type Layout } from "../src/tensor/layout.ts";
import { elementCount } from "../src/tensor/tensor.ts";
import bfc from "./suites/winrs_bfc.txt" with { type: "text" };
import resnet from "./suites/resnet3x3.txt" with { type: "text" };

const [seconds = "190", layout = "nhwc", match = "", suite] = Deno.args;
const end = performance.now() + 1000 * Number(seconds);
const texts = suite === undefined ? [bfc, resnet] : [Deno.readTextFileSync(suite)];
const problems = texts.flatMap((text) => parseSuite(text, suite ?? "suite", "bwd-filter"))
  .filter(({ name }) => new RegExp(match).test(name ?? ""));
/** Direct kernels of large filters tell nothing new. */
const DIRECT_UP_TO = 3;
/** Seeded data, repeated through both operands. */
const CHUNK = 2 ** 24;
const COMPARED = 2 ** 16;
using gpu = await openDevice();
console.log(`${gpu.info.adapter} ${layout}, ${problems.length} problems`);
const source = createBuffer(gpu, 4 * CHUNK, "data");
upload(gpu, source, 0, fillTensor("f32", [CHUNK], "uniform11", 1).data);
let compileMs = 0;

function requestFor(problem: ConvProblem, more: Partial<PlanRequest> = {}): PlanRequest {
  return {
    problem,
    dtype: "f32",
    layout: layout as Layout,
    filterLayout: filterLayoutFor(layout as Layout),
    epilogue: NO_EPILOGUE,
    algorithm: "winrs",
    limits: gpu.limits,
    workgroupsInFlight: gpu.workgroupsInFlight,
    ...more,
  };
}

/** A problem on the device. */
class Case implements Disposable {
  readonly #buffers: Partial<Record<"input" | "output" | "filter", GPUBuffer>> = {};
  #first: Float32Array | undefined;
  readonly name: string;
  constructor(readonly problem: ConvProblem) {
    this.name = problem.name ?? "?";
    for (const which of ["input", "output", "filter"] as const) {
      const bytes = 4 * elementCount(tensorShape(problem, which));
      const buffer = createBuffer(gpu, bytes, which);
      const encoder = gpu.device.createCommandEncoder();
      for (let at = 0; which !== "filter" && at < bytes; at += 4 * CHUNK) {
        encoder.copyBufferToBuffer(source, 0, buffer, at, Math.min(4 * CHUNK, bytes - at));
      }
      gpu.device.queue.submit([encoder.finish()]);
      this.#buffers[which] = buffer;
    }
  }

  /** Milliseconds of a configuration. */
  async time(phase: string, configuration: Configuration, flush?: number): Promise<number> {
    const { problem } = this;
    const plan = planWinrs(
      requestFor(problem, flush === undefined ? {} : { flush }),
      "constant",
      configuration,
    );
    using buffers = createPlanBuffers(gpu, plan, this.#buffers);
    const before = performance.now();
    using prepared = await preparePlan(gpu, plan, buffers);
    compileMs += performance.now() - before;
    const [once = 1] = (await execute(gpu, prepared, { samples: 1, warmup: 1 })).samplesNs;
    const repeats = Math.max(1, Math.ceil(5e6 / once));
    const warmup = gpu.info.software ? 0 : Math.ceil(2e7 / once);
    const { samplesNs } = await execute(gpu, prepared, {
      samples: 5,
      repeats,
      warmup,
      estimateNs: once,
    });
    const ns = samplesNs.toSorted((a, b) => a - b)[2]!;
    const result = this.#buffers.filter!;
    const values = new Float32Array(Math.min(COMPARED, result.size / 4));
    await download(gpu, result, 0, values.byteLength, new Uint8Array(values.buffer));
    let [difference, norm] = [0, 0];
    values.forEach((value, i) => {
      const expected = this.#first?.[i] ?? value;
      difference += (value - expected) ** 2;
      norm += expected ** 2;
    });
    this.#first ??= values;
    const { pair, segmentation: { rows, columns, firstColumns, count } } = configuration;
    console.log([
      "one",
      this.name,
      phase,
      pairName(pair),
      `${pair.k0}+${pair.k1}`,
      `${rows}x${firstColumns}+${columns - firstColumns}`,
      count,
      (ns / 1e6).toFixed(4),
      configuration.predictedMs.toFixed(4),
      (directFlops(problem) / ns / 1e3).toFixed(1),
      Math.sqrt(difference / norm).toExponential(1),
    ].join("\t"));
    return ns / 1e6;
  }

  [Symbol.dispose](): void {
    for (const buffer of Object.values(this.#buffers)) buffer.destroy();
  }
}

function pairName({ first, second }: KernelPair): string {
  return [first, ...(second ? [second] : [])].map(omegaName).join(",");
}

function optionsFor(problem: ConvProblem, throughput?: ThroughputTable): ConfigureOptions {
  return {
    ...configureOptions(requestFor(problem)),
    ...(throughput === undefined ? {} : { throughput }),
  };
}

/** The rate at which the model would have predicted what was measured. */
function impliedRate(problem: ConvProblem, one: Configuration, omega: Omega, ms: number): number {
  const options = optionsFor(problem);
  const at = (rate: number) => {
    const throughput = { [omegaName(omega)]: rate };
    return configureAs(problem, one.pair, one.segmentation, { ...options, throughput }).predictedMs;
  };
  const fixed = at(1e15);
  return (at(1) - fixed) / Math.max(1e-9, ms - fixed);
}

const geomean = (values: readonly number[]) =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);

// Every kernel alone.
const rates = new Map<string, number[]>();
for (const problem of problems) {
  if (performance.now() > end) break;
  using one = new Case(problem);
  const { axes } = configure(problem, optionsFor(problem));
  for (const omega of admissible(axes.filterWidth)) {
    if (omega.alpha === 2 && axes.filterWidth > DIRECT_UP_TO) continue;
    const pair = parsePair(omegaName(omega), axes.filterWidth, axes.outputWidth);
    const configuration = configure(problem, { ...optionsFor(problem), pair });
    const ms = await one.time("alone", configuration);
    const rate = impliedRate(problem, configuration, omega, ms);
    rates.set(omegaName(omega), [...rates.get(omegaName(omega)) ?? [], rate]);
  }
}
const measured: ThroughputTable = Object.fromEntries(
  OMEGAS.flatMap((omega) => {
    const all = rates.get(omegaName(omega));
    return all === undefined ? [] : [[omegaName(omega), geomean(all)]];
  }),
);
for (const [kernel, rate] of Object.entries(measured)) {
  console.log(JSON.stringify({
    schema: 1,
    kind: "tuning",
    algorithm: "winrs",
    op: "bwd-filter",
    dtype: "f32",
    layout,
    device: gpu.info.adapter,
    driver: gpu.info.driver,
    kernel,
    gflops: Math.round(1000 * rate),
    cases: rates.get(kernel)!.length,
    least_gflops: Math.round(1000 * Math.min(...rates.get(kernel)!)),
    most_gflops: Math.round(1000 * Math.max(...rates.get(kernel)!)),
  }));
}

/** The grid of `count` buckets that the model likes best. */
function gridOf(
  problem: ConvProblem,
  { axes, pair }: Configuration,
  count: number,
  options: ConfigureOptions,
): Configuration | undefined {
  let best: Configuration | undefined;
  for (let columns = 1; columns <= Math.min(4, pair.k0); columns++) {
    const rows = Math.round(count / columns);
    if (rows < 1 || rows > mostRows(axes.outputRows, axes.paddingRows)) continue;
    const grid: Segmentation = gridSegments(
      axes.outputRows,
      axes.outputWidth,
      pair,
      rows,
      columns,
      true,
    );
    const made = configureAs(problem, pair, grid, options);
    if (best === undefined || made.predictedMs < 0.97 * best.predictedMs) best = made;
  }
  return best;
}

/** Segment counts to try: whole rounds of workgroups, and powers of two around the choice. */
function countsFor(
  problem: ConvProblem,
  chosen: Configuration,
  options: ConfigureOptions,
): number[] {
  const block = options.block!(chosen.pair.first);
  const inFlight = workgroupsInFlight(block, options.parameters!);
  const rounds = [1, 2, 3, 4, 6].map((k) => Math.floor(k * inFlight / chosen.blocks[0]));
  const { count } = chosen.segmentation;
  const around = [1 / 4, 1 / 2, 1 / 1.5, 1.5, 2, 3].map((share) => Math.round(share * count));
  const most = Math.min(
    3 * chosen.baseline + 2,
    1 + 2 * dataElements(problem) / filterElements(problem),
  );
  return [...new Set([...rounds, ...around])]
    .filter((z) => z >= 1 && z <= most && z !== count && z >= count / 6)
    .sort((a, b) => a - b);
}

let within = 0;
let done = 0;
const choices: number[] = [];
for (const problem of problems) {
  if (performance.now() > end) {
    console.log(`out of time before ${problem.name}`);
    break;
  }
  using one = new Case(problem);
  const options = optionsFor(problem, measured);
  const chosen = configure(problem, options);
  const chosenMs = await one.time("chosen", chosen);
  const tried = new Map<string, number>();
  for (const count of countsFor(problem, chosen, options)) {
    const other = gridOf(problem, chosen, count, options);
    const key = `Z=${other?.segmentation.count}`;
    if (other === undefined || tried.has(key)) continue;
    tried.set(key, await one.time("segments", other));
  }
  const { filterWidth, outputWidth } = chosen.axes;
  const others = possiblePairs(filterWidth, outputWidth, throughputOf(measured))
    .map((pair) => configure(problem, { ...options, pair }))
    .filter(({ pair }) => pairName(pair) !== pairName(chosen.pair))
    .sort((a, b) => a.predictedMs - b.predictedMs);
  const seen = new Set<string>();
  for (const other of others) {
    const name = pairName(other.pair);
    if (seen.has(name) || seen.size === 2) continue;
    seen.add(name);
    tried.set(name, await one.time("pairs", other));
  }
  if (/^F[3579]c/.test(one.name)) await one.time("whole sums", chosen, 0);
  const best = Math.min(chosenMs, ...tried.values());
  const by = [...tried].find(([, ms]) => ms === best)?.[0] ?? "chosen";
  done++;
  choices.push(directFlops(problem) / chosenMs / 1e9);
  if (chosenMs <= 1.05 * best) within++;
  console.log(
    `choice\t${one.name}\t${pairName(chosen.pair)}\tZ=${chosen.segmentation.count}\t${
      chosenMs.toFixed(4)
    } ms\tpredicted ${chosen.predictedMs.toFixed(4)}\tbest ${best.toFixed(4)} (${by})\t${
      (chosenMs / best).toFixed(3)
    }`,
  );
}
console.log(
  `within 5 % of the best: ${within} of ${done}; geomean ${geomean(choices).toFixed(1)} TFLOP/s; ${
    (compileMs / 1000).toFixed(0)
  } s of compiling, ${((performance.now() - end) / 1000 + Number(seconds)).toFixed(0)} s in all`,
);
source.destroy();
