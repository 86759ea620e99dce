/**
 * False alarms of the projection: healthy results in simulated arithmetic, of convolutions and products.
 *
 *     deno run -A bench/projection_alarms.ts [checks]
 */
import { convSubject, referenceInputs } from "../src/run/conv_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { type ConvProblem, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import type { TileShare } from "../src/problem/plan_arithmetic.ts";
import { projectConv } from "../src/reference/projection.ts";
import { randomStream } from "../src/reference/sample.ts";
import type { FillKind } from "../src/tensor/fill.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";
import {
  judgeProjection,
  measureProjection,
  type ProjectionReport,
  varianceFloors,
} from "../src/accuracy/projection.ts";
import { F32 } from "../src/accuracy/mod.ts";
import { gemmPrecision, gemmSubject } from "../src/run/gemm_subject.ts";
import { gemmNoise, projectionNoise } from "../src/run/projection_noise.ts";
import { F16_CHAIN } from "../src/kernels/loop/accumulate.ts";
import { gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import type { GemmInputs } from "../src/reference/gemm.ts";
import { projectGemm } from "../src/reference/gemm_projection.ts";
import { convFloors } from "../src/simulate/conv_floors.ts";
import { convYardstick, simulateConv } from "../src/simulate/conv_yardstick.ts";
import { gemmYardstick, simulateGemm } from "../src/simulate/gemm_yardstick.ts";

function below(random: () => number, count: number): number {
  return Math.floor(random() * count);
}

/** Data beyond the fills: what rounds to one side, and what is unlike itself. */
const DATA: { readonly [what: string]: (data: Float32Array, batch: number) => void } = {
  uniform01: () => {},
  "constant 0.1": (data) => data.fill(0.1),
  "positive with outliers": (data) => {
    for (let i = 17; i < data.length; i += 101) data[i]! *= 1e4;
  },
  "images of unlike scale": (data, batch) => {
    const each = data.length / batch;
    data.forEach((value, i) => data[i] = value * 1e5 ** Math.floor(i / each));
  },
  "one image constant": (data, batch) => data.fill(0.3, 0, data.length / batch),
  "bands of one sign": (data) => data.forEach((value, i) => data[i] = i % 97 < 48 ? value : -value),
  smooth: (data) => data.forEach((_, i) => data[i] = Math.sin(i / 40)),
  "dark for the most part": (data) =>
    data.forEach((value, i) => data[i] = i % 16 < 11 ? value * 1e-11 : value),
};
const FILLS: readonly FillKind[] = ["uniform01", "uniform11", "normal"];

/** A healthy product: chains as kernels have them, and every step of the epilogue rounded. */
async function productReport(check: number, random: () => number): Promise<ProjectionReport> {
  const some = <T>(list: readonly T[]) => list[below(random, list.length)]!;
  const dtype = some(["f32", "f16", "f64"] as const);
  const accumulate = dtype === "f16" ? some(["f32", "f16"] as const) : "f32";
  const problem = gemmProblem({
    m: 8 + below(random, 40),
    n: 1 + below(random, 60),
    k: 1 + below(random, 200),
    batch: some([1, 1, 3]),
    transpose: some(TRANSPOSES),
    alpha: some([1, 1, -0.5]),
    beta: some([0, 0, 2]),
    bias: some(["none", "row", "column"]),
    residual: random() < 0.3,
  });
  const operands = fillOperands(gemmSubject(problem, { dtype }), some(FILLS), check) as GemmInputs;
  const arithmetic = {
    sums: dtype === "f64" ? "f64" : accumulate,
    ...(accumulate === "f16" ? { chain: F16_CHAIN } : {}),
  } as const;
  const precision = gemmPrecision({ dtype }, arithmetic);
  const request = { problem, operands, arithmetic, precision, seed: check };
  const result = simulateGemm(request, { separate: random() < 0.5 });
  const projection = await projectGemm(problem, operands, { seed: check });
  const { report } = measureProjection(projection, projection.project(result), {
    noise: gemmNoise(gemmYardstick(request).sample, problem, dtype, precision),
  });
  return report;
}

/** A tile along the last axis or the last two, of filters with three rows. */
function tileOf({ op, filterSize: [, columns] }: ConvProblem, random: () => number): TileShare {
  const size = (taps: number) => {
    const other = 2 + below(random, 5);
    return op === "bwd-filter" ? { n: taps, r: other } : { n: other, r: taps };
  };
  return { axes: [random() < 0.5 ? size(3) : { n: 1, r: 1 }, size(columns!)] };
}

/**
 * Healthy results of one accumulator in f32 and of Winograd, of all operations, layouts and kinds of data: none may be an
 * alarm.
 */
async function alarms(checks: number): Promise<void> {
  const random = randomStream(11);
  const some = <T>(list: readonly T[]) => list[below(random, list.length)]!;
  let alarms = 0, largest = 0, patch = 0;
  const judged = (report: ProjectionReport, what: string) => {
    largest = Math.max(largest, report.max_ratio / report.limit);
    patch = Math.max(patch, report.patch.rms / report.patch.limit);
    const reasons = judgeProjection(report, (index) => `[${index}]`);
    if (reasons.length === 0) return;
    alarms++;
    console.log(`alarm: ${what}: ${reasons.join("; ")}`);
  };
  for (let check = 0; check < checks; check++) {
    if (check % 3 === 2) {
      judged(await productReport(check, random), `product ${check}`);
      continue;
    }
    const groups = some([1, 1, 2]);
    const size = () => 5 + below(random, 9);
    const text =
      `g${groups}mb${some([1, 2, 3])}ic${groups * some([1, 4, 9])}ih${size()}iw${size()}` +
      `oc${groups * some([8, 12, 32])}kh3kw${some([1, 2, 3])}ph1sh${some([1, 1, 2])}`;
    const op = some(OPERATIONS);
    const problem = { ...parseDescriptor(text), op };
    const layout = some(LAYOUTS);
    const layouts = { layout, filterLayout: filterLayoutFor(layout) };
    const subject = convSubject({ problem, ...layouts });
    const [kind, fill] = [some(Object.keys(DATA)), some(FILLS)];
    const operands = fillOperands(subject, fill, check);
    for (const [which, data] of Object.entries(operands)) {
      DATA[kind]!(data as Float32Array, which === "filter" ? 1 : problem.batch);
    }
    const inputs = referenceInputs(problem, operands, layouts);
    const result = op === "bwd-filter" ? "kcrs" : "nchw";
    const tiled = problem.stride.every((step) => step === 1) && random() < 0.5;
    const arithmetic = tiled ? { tiles: [tileOf(problem, random)] } : {};
    const simulated = {
      problem,
      inputs,
      epilogue: NO_EPILOGUE,
      arithmetic,
      precision: F32,
      seed: check,
    };
    const { result: healthy } = simulateConv(simulated, { separate: random() < 0.5 });
    const floors = convFloors(simulated);
    const projection = await projectConv(problem, { ...inputs, result }, { seed: check });
    const { report } = measureProjection(projection, projection.project(healthy), {
      noise: projectionNoise(convYardstick({ ...simulated, floors }).sample, F32),
      tiles: subject.mixed(arithmetic),
      floorOf: varianceFloors(projection, floors, subject.length),
    });
    judged(report, `${JSON.stringify(arithmetic)} ${op} ${text} ${layout} ${kind} ${fill}`);
  }
  const share = (value: number) => `${(100 * value).toFixed(0)} %`;
  console.log(
    `${alarms} alarms in ${checks} healthy checks; at most ${share(largest)} of the limit of a ` +
      `place and ${share(patch)} of a patch's`,
  );
  if (alarms > 0) Deno.exit(1);
}

await alarms(Number(Deno.args[0] ?? 1000));
