/**
 * Errors of WinRS on the GPU at hand, of data uniform on [0,1) as mean of |relative| (MARE) over the gradient:
 *   deno run -A bench/winrs_accuracy.ts lengths [EXPONENTS] [KERNELS] [FLUSHES] [--svg=FILE]
 * against the length of its sums, in powers of 2. KERNELS are named as --pair takes them, FLUSHES are products of a
 * part (0: one accumulator for all); one segment, so that a single chain of sums does all.
 *   deno run -A bench/winrs_accuracy.ts suite [SUITE] [--whole]
 * of a suite's problems as they are planned for an H200, with its pair, segments and parts, but 4 channels of each
 * side: sums do not know how many others there are.
 *   deno run -A bench/winrs_accuracy.ts half [KERNELS] [SUITE] [--whole]
 * the same of kernels whose transformed data is f16, each alone where its n divides the filter's width; ∇Y is scaled by
 * 10⁻², as in the paper's Table 4; beside it what is left where results are not rounded to f16. KERNELS are `ported` (the six that the paper ported), `all`, or named. Without a device
 * that has shader-f16 it says so.
 *   --whole    all channels, as on an H200: a sample of the outputs is checked
 */
import { expectPlanned } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { UnsupportedError } from "../src/errors.ts";
import { reduceAxes } from "../src/algorithms/winrs/axes.ts";
import { type Configuration, configure, configureAs } from "../src/algorithms/winrs/configure.ts";
import { kernelRows } from "../src/algorithms/winrs/axes.ts";
import {
  admissible,
  DIRECT,
  type Omega,
  omegaName,
  OMEGAS,
} from "../src/algorithms/winrs/omega.ts";
import { configureOptions, planConfiguration } from "../src/algorithms/winrs/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { checkAgainst, computeReference, type Reference } from "../src/run/check.ts";
import { convSubject } from "../src/run/conv_subject.ts";
import { readOperands } from "../src/run/operands.ts";
import { runPlan } from "../src/run/run_plan.ts";
import type { HostData, HostOperands } from "../src/run/subject.ts";
import { type WinrsError, winrsErrorChart } from "./winrs_error_chart.ts";
import { parseSuite } from "../src/bench/suite.ts";
import { openDevice } from "../src/gpu/device.ts";
import { type ConvDType, type ConvProblem, convProblem } from "../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { H200_LIMITS } from "./h200_limits.ts";

const CHANNELS = 4;
/** What Table 4 of the paper has in f16. */
const HALF = { dtype: "f16", variant: { halfTile: true }, maxBoundRatio: Infinity } as const;
const SCALE = 1e-2;
/** The six kernels of the paper in f16. */
const PORTED = ["a4n3r2", "a8n3r6", "a8n5r4", "a8n7r2", "a16n7r10", "a16n9r8"];
const ALL = OMEGAS.filter((omega) => omega !== DIRECT && omega.rows === undefined).map(omegaName);
const LAYOUT = { layout: "nhwc", filterLayout: "krsc" } as const;
const svg = Deno.args.find((arg) => arg.startsWith("--svg="))?.slice("--svg=".length);
const wholeProblems = Deno.args.includes("--whole");
const [mode, ...rest] = Deno.args.filter((arg) => !arg.startsWith("--"));
using gpu = await openDevice({ optionalFeatures: mode === "half" ? ["shader-f16"] : [] });
console.log(gpu.info.adapter);
if (mode === "half" && !gpu.features.has("shader-f16")) {
  throw new UnsupportedError("Cannot measure kernels in f16: the device has no shader-f16");
}
if (mode === "suite") await overSuite(rest[0]);
else if (mode === "half") await halfOverSuite(rest[0] ?? "ported", rest[1]);
else await overLengths(rest);

function requestFor(problem: ConvProblem, more: Partial<PlanRequest> = {}): PlanRequest {
  return {
    problem,
    dtype: "f32",
    ...LAYOUT,
    epilogue: NO_EPILOGUE,
    algorithm: "winrs",
    limits: gpu.limits,
    sizes: "uniform",
    ...more,
  };
}

interface Data {
  readonly operands: HostOperands;
  readonly reference: Reference;
}

async function dataFor(
  problem: ConvProblem,
  dtype: ConvDType = "f32",
  outDtype = dtype,
): Promise<Data> {
  const subject = convSubject({ problem, ...LAYOUT, dtype, outDtype });
  const made = {
    fill: "uniform01",
    seed: 7,
    ...(dtype === "f16" ? { lossScale: SCALE } : {}),
  } as const;
  const operands = await readOperands(subject, { ...made, files: {} });
  const mode = wholeProblems ? "sample" : "full";
  const reference = await computeReference({ subject, operands, mode, seed: 1 });
  return { operands, reference };
}

/** @throws {Error} if the gate fails. */
async function mareOf(plan: Plan, { operands, reference }: Data): Promise<number> {
  const { result: shape } = reference.subject;
  const { result } = await runPlan(gpu, plan, operands, shape, 2);
  const checked = checkAgainst(reference, result as HostData, plan.arithmetic);
  if (checked.verdict !== "pass") throw new Error(`${plan.kernel}: ${checked.message}`);
  return checked.accuracy.mare ?? NaN;
}

/** Steps so deep that Mesa's limit of 65,535 iterations of a loop is not met. */
function deepPolicy(alpha: number): string {
  return `8x8x${({ 2: 64, 4: 32, 8: 32 } as Record<number, number>)[alpha] ?? 16}_4x4`;
}

async function overLengths([exponents, kernels, flushes]: string[]): Promise<void> {
  const powers = (exponents ?? "8,9,10,11,12,13,14,15,16,17,18,19,20,21").split(",").map(Number);
  const named = (kernels ?? "a2n1r1,a4n3r2,a8n3r6,a16n9r8").split(",");
  const parts = (flushes ?? "0,2048").split(",").map(Number);
  const points: WinrsError[] = [];
  console.log(["kernel", "length", ...parts.map((part) => `MARE, parts of ${part}`)].join("\t"));
  for (const exponent of powers) {
    const side = 2 ** Math.min(6, Math.floor(exponent / 2));
    for (const omega of OMEGAS.filter((one) => named.includes(omegaName(one)))) {
      const width = omega.n === 1 ? 3 : omega.n;
      const problem = convProblem({
        op: "bwd-filter",
        batch: 2 ** exponent / side ** 2,
        inChannels: CHANNELS,
        outChannels: CHANNELS,
        inputSize: [side, side + width - 1],
        filterSize: [1, width],
      });
      const data = await dataFor(problem);
      const errors: number[] = [];
      for (const flush of parts) {
        const forced = {
          pair: omegaName(omega),
          splits: 1,
          flush,
          policy: deepPolicy(omega.alpha),
        };
        const mare = await mareOf(planConv(requestFor(problem, forced)), data);
        errors.push(mare);
        points.push({ kernel: omegaName(omega), length: 2 ** exponent, flush, mare });
      }
      const figures = errors.map((error) => error.toExponential(2));
      console.log([omegaName(omega), `2^${exponent}`, ...figures].join("\t"));
    }
  }
  if (svg !== undefined) await Deno.writeTextFile(svg, await winrsErrorChart(points, named));
}

/** Every problem with the pair that is planned for an H200. */
async function overSuite(path?: string): Promise<void> {
  console.log("problem\tpair\tZ\tlongest sum\tMARE");
  const worst = worstOf();
  for (const whole of suiteProblems(path)) {
    const options = expectPlanned(configureOptions(requestFor(whole, { limits: H200_LIMITS })));
    const ran = await ranAs(whole, configure(whole, options), {}, await dataFor(fewer(whole)));
    const kernels = kernelsOf(ran.configuration);
    worst.add(`α = ${Math.max(...kernels.map((omega) => omega.alpha))}`, ran.mare);
    console.log([whole.name, kernels.map(omegaName).join(","), ...ran.cells].join("\t"));
  }
  worst.print();
}

/** Every kernel in f16 on every problem whose filter's width it divides, alone; ∇Y is scaled by 10⁻². */
async function halfOverSuite(kernels: string, path?: string): Promise<void> {
  const chosen = kernels === "ported" ? PORTED : kernels === "all" ? ALL : kernels.split(",");
  console.log("problem\tkernel\tZ\tlongest sum\tMARE\tof f32 results");
  const worst = worstOf();
  for (const whole of suiteProblems(path)) {
    const { filterWidth } = reduceAxes(whole);
    const fit = admissible(filterWidth).map(omegaName).filter((name) => chosen.includes(name));
    if (fit.length === 0) continue;
    const data = await dataFor(fewer(whole), "f16");
    const unrounded = await dataFor(fewer(whole), "f16", "f32");
    for (const pair of fit) {
      const half = { ...HALF, pair };
      const asked = requestFor(whole, { ...half, limits: H200_LIMITS });
      const configuration = configure(whole, expectPlanned(configureOptions(asked)));
      const ran = await ranAs(whole, configuration, half, data);
      const f32 = await ranAs(whole, configuration, { ...half, outDtype: "f32" }, unrounded);
      worst.add(pair, ran.mare);
      worst.add(`${pair} to f32`, f32.mare);
      console.log([whole.name, pair, ...ran.cells, f32.mare.toExponential(2)].join("\t"));
    }
  }
  worst.print();
}

function suiteProblems(path?: string): ConvProblem[] {
  const file = path ?? new URL("suites/winrs_bfc.txt", import.meta.url);
  return parseSuite(Deno.readTextFileSync(file), String(file), "bwd-filter");
}

/** A problem with few channels, or as it is. */
function fewer(whole: ConvProblem): ConvProblem {
  if (wholeProblems) return whole;
  return convProblem({ ...whole, groups: 1, inChannels: CHANNELS, outChannels: CHANNELS });
}

/** Runs a problem of few channels with the pair, segments and parts of sums of the whole one. */
async function ranAs(
  whole: ConvProblem,
  { pair, segmentation }: Configuration,
  more: Partial<PlanRequest>,
  data: Data,
) {
  const problem = fewer(whole);
  const request = requestFor(problem, {
    ...more,
    ...(wholeProblems ? { sizes: "constant" } : { policy: "8x8x8_4x4" }),
  });
  const options = expectPlanned(configureOptions(request));
  const configuration = configureAs(problem, pair, segmentation, options);
  const plan = expectPlanned(planConfiguration(request, request.sizes!, configuration));
  const mare = await mareOf(plan, data);
  const { rows, firstColumns, count } = segmentation;
  const longest = Math.ceil(kernelRows(configuration.axes, pair.first) / rows) *
    Math.ceil(pair.k0 / firstColumns) * problem.batch;
  return { configuration, mare, cells: [count, longest, mare.toExponential(2)] };
}

function kernelsOf({ pair: { first, second } }: Configuration): Omega[] {
  return [first, ...(second ? [second] : [])];
}

/** The least and the most of figures by name. */
function worstOf() {
  const figures = new Map<string, number[]>();
  return {
    add: (name: string, value: number) => figures.set(name, [...figures.get(name) ?? [], value]),
    print() {
      for (const [name, values] of figures) {
        const [least, most] = [Math.min(...values), Math.max(...values)];
        console.log(`${name}: ${least.toExponential(2)} to ${most.toExponential(2)}`);
      }
    },
  };
}
