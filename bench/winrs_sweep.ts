/**
 * How well WinRS plans on the GPU at hand:
 *   deno run -A bench/winrs_sweep.ts [--half] [SECONDS] [LAYOUT] [REGEX] [SUITE]
 * First kernels alone, which gives throughput coefficients; then, planned with these, segment counts around the
 * planner's choice, and the next best pairs of kernels. Problems: those of a suite's file, else of winrs_bfc.txt
 * and resnet3x3.txt, whose name matches REGEX; with --half f16 whose transformed data is f16, on Dawn's matrix units, whatever it
 * errs. Kernels are compiled before anything is measured, since a GPU clocks
 * down meanwhile; what there is no time for is left out.
 *
 * Lines: `one` is a measurement: problem, phase, pair, tiles, grid (in brackets the last row's share of the others), buckets, ms,
 * predicted ms, TFLOP/s of direct flops, distance from the problem's first result (relative L2). `choice` is a problem's summary. JSON lines are the
 * coefficients, as `throughputTable()` of src/algorithms/winrs/throughput.ts takes them.
 */
import { pipelinesOf } from "../src/gpu/pipelines.ts";
import { parseArgs } from "node:util";
import { kernelRates } from "../src/algorithms/winrs/half.ts";
import { modelOf } from "../src/algorithms/device/h200.ts";
import { expectPlanned } from "../src/algorithms/refusal.ts";
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
  pairOptions,
} from "../src/algorithms/winrs/configure.ts";
import { admissible, omegaName, OMEGAS } from "../src/algorithms/winrs/omega.ts";
import { parsePair, possiblePairs } from "../src/algorithms/winrs/pair.ts";
import { configureOptions, planConfiguration } from "../src/algorithms/winrs/plan.ts";
import { gridSegments, mostRows } from "../src/algorithms/winrs/segments.ts";
import { throughputOf, type ThroughputTable } from "../src/algorithms/winrs/throughput.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { openDevice } from "../src/gpu/device.ts";
import { pipelineOf } from "../src/gpu/pipelines.ts";
import { type ConvProblem, directFlops } from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { filterLayoutFor, type Layout } from "../src/tensor/layout.ts";
import { Data, Operands, pairName, type Trial } from "./winrs_timing.ts";
import bfc from "./suites/winrs_bfc.txt" with { type: "text" };
import resnet from "./suites/resnet3x3.txt" with { type: "text" };

const { values: { half }, positionals } = parseArgs({
  options: { half: { type: "boolean", default: false } },
  allowPositionals: true,
});
const [seconds = "190", layout = "nhwc", match = "", suite] = positionals;
const begin = performance.now();
const elapsed = () => (performance.now() - begin) / 1000;
/** Shares of the time at which compiling the two phases' kernels ends. */
const COMPILE_UNTIL = [0.25, 0.75].map((share) => share * Number(seconds));
const texts = suite === undefined ? [bfc, resnet] : [Deno.readTextFileSync(suite)];
const problems = texts.flatMap((text) => parseSuite(text, suite ?? "suite", "bwd-filter"))
  .filter(({ name }) => new RegExp(match).test(name ?? ""));
/** A kernel is measured alone on so many problems; the direct one only where filters are small. */
const ALONE = 3;
const DIRECT_UP_TO = 3;
using gpu = await openDevice(
  half ? { backend: "dawn", features: ["shader-f16"], robust: false } : {},
);
console.log(`${gpu.info.adapter} ${layout}, ${problems.length} problems`);
using data = new Data(gpu, half ? "f16" : "f32");

function requestFor(problem: ConvProblem): PlanRequest {
  return {
    problem,
    ...(half
      ? {
        dtype: "f16",
        variant: { halfTile: true },
        maxBoundRatio: Infinity,
        ...(gpu.matrixUnits && { matrixUnits: gpu.matrixUnits }),
      }
      : { dtype: "f32" }),
    layout: layout as Layout,
    filterLayout: filterLayoutFor(layout as Layout),
    epilogue: NO_EPILOGUE,
    algorithm: "winrs",
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight),
  };
}

function trial(phase: string, problem: ConvProblem, configuration: Configuration): Trial {
  const plan = expectPlanned(planConfiguration(requestFor(problem), "constant", configuration));
  return { phase, problem, configuration, plan };
}

/** Compiles what there is time for; gives the trials whose kernels are there. */
async function compiled(trials: readonly Trial[], until: number): Promise<Trial[]> {
  const ready: Trial[] = [];
  for (const one of trials) {
    const known = one.plan.passes.every(({ kernel }) => pipelinesOf(gpu).has(kernel.name));
    if (!known && elapsed() > until) continue;
    for (const { kernel } of one.plan.passes) await pipelineOf(gpu, kernel);
    ready.push(one);
  }
  console.log(`${ready.length} of ${trials.length} compiled after ${elapsed().toFixed(0)} s`);
  return ready;
}

function optionsFor(problem: ConvProblem, throughput?: ThroughputTable): ConfigureOptions {
  return {
    ...expectPlanned(configureOptions(requestFor(problem))),
    ...(throughput === undefined ? {} : { throughput }),
  };
}

const geomean = (values: readonly number[]) =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);

/** Kernels alone, each on a few problems. */
function aloneTrials(): Trial[] {
  const counts = new Map<string, number>();
  return problems.flatMap((problem) => {
    const { axes } = configure(problem, optionsFor(problem));
    const { filterWidth, outputWidth } = axes;
    // Nested kernels are in f32 alone.
    const tiledRows = half ? 0 : axes.tiledRows;
    return admissible(filterWidth, tiledRows).flatMap((omega) => {
      const name = omegaName(omega);
      const count = counts.get(name) ?? 0;
      if (count >= ALONE || (omega.alpha === 2 && filterWidth > DIRECT_UP_TO)) return [];
      counts.set(name, count + 1);
      const pair = parsePair(name, filterWidth, outputWidth, undefined, tiledRows);
      return [trial("alone", problem, configure(problem, { ...optionsFor(problem), pair }))];
    });
  });
}

/** The rate at which the model would have predicted what was measured. */
function impliedRate(
  { problem, configuration: { pair, segmentation } }: Trial,
  ms: number,
): number {
  const options = optionsFor(problem);
  const at = (rate: number) => {
    const throughput = { ...options.throughput, [omegaName(pair.first)]: rate };
    return configureAs(problem, pair, segmentation, { ...options, throughput }).predictedMs;
  };
  const fixed = at(1e15);
  return (at(1) - fixed) / Math.max(1e-9, ms - fixed);
}

/** The choice, segment counts of the same columns around it, the next best pairs. */
function choiceTrials(problem: ConvProblem, throughput: ThroughputTable): Trial[] {
  const options = optionsFor(problem, throughput);
  const chosen = configure(problem, options);
  const { axes, pair, segmentation: { rows, last, firstColumns, count } } = chosen;
  const inFlight = workgroupsInFlight(options.block!(pair.first), options.parameters!);
  const rounds = [1, 2, 3, 4, 6].map((k) => k * inFlight / chosen.blocks[0] / firstColumns);
  const around = [1 / 4, 1 / 2, 1 / 1.5, 1.5, 2, 3].map((share) => share * rows);
  const most = Math.min(
    mostRows(axes.outputRows, axes.paddingRows),
    (3 * chosen.baseline + 2) / firstColumns,
    (1 + 2 * dataElements(problem) / filterElements(problem)) / firstColumns,
  );
  const rowCounts = new Set([...rounds, ...around, rows].map((value) => Math.floor(value)));
  const segments = [...rowCounts]
    .filter((value) =>
      value >= 1 && value <= most && value >= rows / 6 && (value !== rows || last !== 1)
    )
    .sort((a, b) => Math.abs(a - rows) - Math.abs(b - rows))
    .map((value) =>
      gridSegments(axes.outputRows, axes.outputWidth, pair, value, firstColumns, true)
    )
    // One bucket is another kernel, worth compiling only near the choice.
    .filter((grid) => grid.count > 1 || count <= 4)
    .map((grid) => trial("segments", problem, configureAs(problem, pair, grid, options)));
  const others = possiblePairs(
    axes.filterWidth,
    axes.outputWidth,
    throughputOf(throughput),
    half ? {} : pairOptions(axes),
  )
    .map((other) => configure(problem, { ...options, pair: other }))
    .filter((other) => pairName(other.pair) !== pairName(pair))
    .sort((a, b) => a.predictedMs - b.predictedMs);
  const names = [...new Set(others.map((other) => pairName(other.pair)))].slice(0, 2);
  const pairs = names.map((name) =>
    trial("pairs", problem, others.find((other) => pairName(other.pair) === name)!)
  );
  return [trial("chosen", problem, chosen), ...segments, ...pairs];
}

const rates = new Map<string, number[]>();
const alone = await compiled(aloneTrials(), COMPILE_UNTIL[0]!);
for (const problem of problems) {
  const trials = alone.filter((one) => one.problem === problem);
  if (trials.length === 0) continue;
  using operands = new Operands(gpu, data, problem);
  for (const one of trials) {
    const name = omegaName(one.configuration.pair.first);
    const rate = impliedRate(one, await operands.time(one));
    rates.set(name, [...rates.get(name) ?? [], rate]);
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
    dtype: half ? "f16" : "f32",
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

/** Kernels that were not measured are taken to fall as short of the default rates as the others do. */
const rated = kernelRates(requestFor(problems[0]!));
const shortfall = geomean(
  Object.entries(measured).map(([name, rate]) => rate / rated[name]!),
);
const table: ThroughputTable = Object.fromEntries(
  OMEGAS.map(omegaName).map((
    name,
  ) => [name, measured[name] ?? shortfall * rated[name]!]),
);
let within = 0;
const rateOfChoices: number[] = [];
const trials = problems.map((problem) => choiceTrials(problem, table));
// Choices first, then what shares their kernels, then other pairs.
const order = ["chosen", "segments", "pairs"];
const ready = await compiled(
  trials.flat().toSorted((a, b) => order.indexOf(a.phase) - order.indexOf(b.phase)),
  COMPILE_UNTIL[1]!,
);
for (const problem of problems) {
  const own = ready.filter((one) => one.problem === problem);
  const [chosen] = own;
  if (chosen?.phase !== "chosen" || elapsed() > Number(seconds)) {
    console.log(`no time for ${problem.name}`);
    continue;
  }
  using operands = new Operands(gpu, data, problem);
  const times: number[] = [];
  for (const one of own) times.push(await operands.time(one));
  const best = Math.min(...times);
  const { pair, segmentation } = own[times.indexOf(best)]!.configuration;
  rateOfChoices.push(directFlops(problem) / times[0]! / 1e9);
  if (times[0]! <= 1.05 * best) within++;
  console.log([
    "choice",
    problem.name,
    pairName(chosen.configuration.pair),
    `Z=${chosen.configuration.segmentation.count}`,
    `${times[0]!.toFixed(4)} ms`,
    `predicted ${chosen.configuration.predictedMs.toFixed(4)}`,
    `best ${best.toFixed(4)} (${pairName(pair)} Z=${segmentation.count})`,
    (times[0]! / best).toFixed(3),
  ].join("\t"));
}
console.log(
  `within 5 % of the best: ${within} of ${rateOfChoices.length}; geomean ${
    geomean(rateOfChoices).toFixed(1)
  } TFLOP/s; ${elapsed().toFixed(0)} s`,
);
