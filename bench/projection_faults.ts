/**
 * How many faults the sample finds, the projection, and both; and false alarms of healthy checks.
 *
 *     deno run -A bench/projection_faults.ts faults [trials] [small|large|lavapipe]
 *     deno run -A bench/projection_faults.ts alarms [checks]
 *     deno run -A bench/projection_faults.ts seconds [repeats]
 */
import process from "node:process";
import {
  checkAgainst,
  computeReference,
  convCoverage,
  type ReferenceRequest,
} from "../src/bench/check.ts";
import { fillOperand, type HostOperands, referenceInputs } from "../src/bench/operands.ts";
import { convProjection } from "../src/bench/conv_projection.ts";
import { convolve } from "../src/convolve.ts";
import { openDevice } from "../src/gpu/device.ts";
import {
  accumulationLength,
  type ConvProblem,
  operandTensors,
  OPERATIONS,
  resultTensor,
  tensorShape,
} from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { projectConv } from "../src/reference/projection.ts";
import { referenceConv } from "../src/reference/reference.ts";
import { randomStream } from "../src/reference/sample.ts";
import { markdownTable } from "../src/report/table.ts";
import { type FillKind, fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";
import { elementCount } from "../src/tensor/tensor.ts";
import {
  judgeProjection,
  measureProjection,
  type ProjectionReport,
} from "../src/accuracy/projection.ts";
import { F32 } from "../src/accuracy/mod.ts";
import { gemmPrecision } from "../src/bench/gemm_check.ts";
import { fillGemm } from "../src/bench/gemm_operands.ts";
import { gemmNoise, projectionNoise } from "../src/bench/projection_noise.ts";
import { F16_CHAIN } from "../src/kernels/micro_kernel.ts";
import { gemmProblem, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import type { GemmInputs } from "../src/reference/gemm.ts";
import { projectGemm } from "../src/reference/gemm_projection.ts";
import { convYardstick, simulateConv } from "../src/simulate/conv_yardstick.ts";
import { gemmYardstick, simulateGemm } from "../src/simulate/gemm_yardstick.ts";

const PROBLEMS = {
  large: "mb32ic64ih224oc64kh3ph1",
  small: "mb32ic256ih14oc256kh3ph1",
  lavapipe: "mb32ic256ih14oc256kh3ph1",
} as const;

/** Of √L·u: what one accumulator errs by, relative to the result's RMS (docs/accuracy.md). */
const TYPICAL = 0.3;

/** A result in nchw that faults are put into; `typical` is the RMS of its healthy errors. */
interface Target {
  readonly data: Float32Array<ArrayBuffer>;
  readonly batch: number;
  readonly channels: number;
  readonly height: number;
  readonly width: number;
  readonly typical: number;
}

/** Puts a fault in and gives what takes it out again. */
type Fault = (target: Target, random: () => number) => () => void;

function below(random: () => number, count: number): number {
  return Math.floor(random() * count);
}

/** Changes the elements that `each` visits. */
function changed(
  data: Float32Array,
  each: (visit: (index: number) => void) => void,
  value: (index: number) => number,
): () => void {
  const before = new Map<number, number>();
  each((index) => before.set(index, data[index]!));
  const after = [...before.keys()].map((index) => [index, value(index)] as const);
  for (const [index, y] of after) data[index] = y;
  return () => before.forEach((y, index) => data[index] = y);
}

/** A tile of 64 channels and 128 places in the order of the batch's pictures. */
function tileOf({ batch, channels, height, width }: Target, random: () => number) {
  const area = height * width;
  const first = 64 * below(random, channels / 64);
  const start = 128 * below(random, Math.floor(batch * area / 128));
  return (visit: (index: number) => void) => {
    for (let channel = first; channel < first + 64; channel++) {
      for (let place = start; place < start + 128; place++) {
        const image = Math.floor(place / area);
        visit((image * channels + channel) * area + place % area);
      }
    }
  };
}

const FAULTS: { readonly [what: string]: Fault } = {
  "a 64x128 tile zeroed": (target, random) => changed(target.data, tileOf(target, random), () => 0),
  "6x6 places zeroed in one channel": (target, random) => {
    const { batch, channels, height, width } = target;
    const plane = below(random, batch * channels) * height * width;
    const y = 6 * below(random, Math.floor(height / 6));
    const x = 6 * below(random, Math.floor(width / 6));
    return changed(target.data, (visit) => {
      for (let i = 0; i < 36; i++) visit(plane + (y + Math.floor(i / 6)) * width + x + i % 6);
    }, () => 0);
  },
  "a 64x128 tile off by 1 %": (target, random) =>
    changed(target.data, tileOf(target, random), (index) => 1.01 * target.data[index]!),
  "an image's last row stale": (target, random) => {
    const { batch, channels, height, width, data } = target;
    const image = 1 + below(random, batch - 1);
    const pitch = channels * height * width;
    return changed(data, (visit) => {
      for (let channel = 0; channel < channels; channel++) {
        const row = ((image * channels + channel) * height + height - 1) * width;
        for (let x = 0; x < width; x++) visit(row + x);
      }
    }, (index) => data[index - pitch]!);
  },
  "two channels swapped": (target, random) => {
    const { batch, channels, height, width, data } = target;
    const area = height * width;
    const one = below(random, channels);
    const other = (one + 1 + below(random, channels - 1)) % channels;
    const swap = () => {
      for (let image = 0; image < batch; image++) {
        const [first, second] = [one, other].map((channel) => {
          const start = (image * channels + channel) * area;
          return data.subarray(start, start + area);
        }) as [Float32Array, Float32Array];
        const kept = first.slice();
        first.set(second);
        second.set(kept);
      }
    };
    swap();
    return swap;
  },
  "one output off by 20 times typical": (target, random) => {
    const at = below(random, target.data.length);
    const sign = random() < 0.5 ? -1 : 1;
    return changed(
      target.data,
      (visit) => visit(at),
      () => target.data[at]! + sign * 20 * target.typical,
    );
  },
};

function request(problem: ConvProblem, fill: FillKind, seed: number): ReferenceRequest {
  const layouts = { layout: "nchw", filterLayout: "kcrs" } as const;
  const operands: HostOperands = Object.fromEntries(
    operandTensors(problem.op).map((which) => [
      which,
      fillOperand(problem, which, layouts, fill, seed),
    ]),
  );
  return { problem, ...layouts, operands, epilogue: NO_EPILOGUE, mode: "auto", seed };
}

/** A healthy result: a driver's, or the reference with rounding errors of the usual size. */
async function healthy(
  asked: ReferenceRequest,
  driver: boolean,
): Promise<Float32Array<ArrayBuffer>> {
  const { problem, operands } = asked;
  if (driver) {
    using gpu = await openDevice();
    const { result } = await convolve(gpu, problem, operands, { algorithm: "implicit-gemm" });
    return result;
  }
  const { values, magnitudes } = await referenceConv(
    problem,
    referenceInputs(problem, operands, asked),
  );
  const noise = fillTensor("f32", [2 ** 20 + 7], "normal", 99).data;
  const typical = TYPICAL * Math.sqrt(accumulationLength(problem)) * 2 ** -24 *
    (rms(values) / rms(magnitudes));
  return Float32Array.from(
    values,
    (value, i) => value + typical * magnitudes[i]! * noise[i % noise.length]!,
  );
}

function rms(values: Float64Array | Float32Array): number {
  let squares = 0;
  for (const value of values) squares += value * value;
  return Math.sqrt(squares / values.length);
}

async function faults(trials: number, names: readonly (keyof typeof PROBLEMS)[]): Promise<void> {
  for (const name of names) {
    for (const fill of ["uniform01", "normal"] as const) {
      const problem = parseDescriptor(PROBLEMS[name]);
      const asked = request(problem, fill, 1);
      if (convCoverage(asked) !== "projected") {
        throw new Error(`${PROBLEMS[name]} is not projected`);
      }
      const data = await healthy(asked, name === "lavapipe");
      const reference = await computeReference(asked);
      const projection = (await convProjection(asked))!;
      const [height, width] = problem.outputSize as [number, number];
      const target: Target = {
        data,
        batch: problem.batch,
        channels: problem.outChannels,
        height,
        width,
        typical: TYPICAL * Math.sqrt(accumulationLength(problem)) * 2 ** -24 * rms(data),
      };
      const random = randomStream(7);
      const rows: string[][] = [];
      const check = async () => {
        const sampled = checkAgainst(reference, data, {});
        const none = { ...sampled, verdict: "pass" as const };
        const projected = await projection.check(none, { result: data, arithmetic: {} });
        return {
          sample: sampled.verdict === "fail",
          projected: projected.verdict === "fail",
          reasons: [sampled.message, projected.message].filter((reason) => reason !== undefined),
        };
      };
      const before = await check();
      if (before.reasons.length > 0) {
        throw new Error(`A healthy result fails: ${name} ${fill}: ${before.reasons.join("; ")}`);
      }
      for (const [what, fault] of Object.entries(FAULTS)) {
        const found = { sample: 0, projected: 0, both: 0 };
        for (let trial = 0; trial < trials; trial++) {
          const repair = fault(target, random);
          const { sample, projected } = await check();
          repair();
          if (sample) found.sample++;
          if (projected) found.projected++;
          if (sample || projected) found.both++;
        }
        const share = (count: number) => `${(100 * count / trials).toFixed(0)} %`;
        rows.push([what, share(found.sample), share(found.projected), share(found.both)]);
      }
      console.log(`\n${name}: ${PROBLEMS[name]}, ${fill} data, ${trials} trials each\n`);
      console.log(markdownTable(
        [
          { title: "fault" },
          { title: "by sample", align: "right" },
          { title: "by projection", align: "right" },
          { title: "by both", align: "right" },
        ],
        rows,
      ));
    }
  }
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
  const operands = fillGemm(problem, dtype, some(FILLS), check) as GemmInputs;
  const arithmetic = {
    sums: dtype === "f64" ? "f64" : accumulate,
    ...(accumulate === "f16" ? { chain: F16_CHAIN } : {}),
  } as const;
  const precision = gemmPrecision(dtype, arithmetic);
  const request = { problem, operands, arithmetic, precision, seed: check };
  const result = simulateGemm(request, { separate: random() < 0.5 });
  const projection = await projectGemm(problem, operands, { seed: check });
  const { report } = measureProjection(projection, projection.project(result), {
    noise: gemmNoise(gemmYardstick(request).sample, problem, dtype, arithmetic),
  });
  return report;
}

/** Healthy results of one accumulator in f32, of all operations, layouts and kinds of data: none may be an alarm. */
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
    const [kind, fill] = [some(Object.keys(DATA)), some(FILLS)];
    const operands: HostOperands = Object.fromEntries(
      operandTensors(op).map((which) => {
        const data = fillOperand(problem, which, layouts, fill, check);
        DATA[kind]!(data, which === "filter" ? 1 : problem.batch);
        return [which, data];
      }),
    );
    const inputs = referenceInputs(problem, operands, layouts);
    const result = op === "bwd-filter" ? "kcrs" : "nchw";
    const simulated = {
      problem,
      inputs,
      epilogue: NO_EPILOGUE,
      arithmetic: {},
      precision: F32,
      seed: check,
    };
    const { result: healthy } = simulateConv(simulated, { separate: random() < 0.5 });
    const projection = await projectConv(problem, { ...inputs, result }, { seed: check });
    const { report } = measureProjection(projection, projection.project(healthy), {
      noise: projectionNoise(convYardstick(simulated).sample, F32),
    });
    judged(report, `${op} ${text} ${layout} ${kind} ${fill}`);
  }
  const share = (value: number) => `${(100 * value).toFixed(0)} %`;
  console.log(
    `${alarms} alarms in ${checks} healthy checks; at most ${share(largest)} of the limit of a ` +
      `place and ${share(patch)} of a patch's`,
  );
  if (alarms > 0) Deno.exit(1);
}

/** Milliseconds of processor time: what others run on the machine does not count. */
function coreMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** What a projection takes of one core, the least of some repeats. */
async function seconds(repeats: number): Promise<void> {
  const rows: string[][] = [];
  for (const text of ["mb8ic64ih224oc64kh3ph1", "mb32ic256ih14oc256kh3ph1"]) {
    for (const op of OPERATIONS) {
      for (const layout of LAYOUTS) {
        const problem = { ...parseDescriptor(text), op };
        const layouts = { layout, filterLayout: filterLayoutFor(layout) };
        const operands: HostOperands = Object.fromEntries(
          operandTensors(op).map((which) => [
            which,
            fillOperand(problem, which, layouts, "normal", 1),
          ]),
        );
        const inputs = referenceInputs(problem, operands, layouts);
        const which = resultTensor(op);
        const result = fillOperand(problem, which, layouts, "normal", 2);
        const where = { ...inputs, result: which === "filter" ? layouts.filterLayout : layout };
        let reference = Infinity, own = Infinity;
        for (let repeat = 0; repeat < repeats; repeat++) {
          const start = coreMs();
          const projection = await projectConv(problem, where, { seed: 1, workers: 0 });
          const between = coreMs();
          projection.project(result);
          reference = Math.min(reference, between - start);
          own = Math.min(own, coreMs() - between);
        }
        const products = elementCount(tensorShape(problem, op === "fwd" ? "output" : "input")) *
          accumulationLength(problem) /
          (op === "fwd" ? problem.outChannels : problem.inChannels);
        rows.push([
          text,
          op,
          layout,
          `${reference.toFixed(0)} ms`,
          op === "bwd-filter" ? "-" : `${(reference / products * 1e6).toFixed(2)} s`,
          `${(result.length / own / 1e6).toFixed(2)}e9`,
        ]);
      }
    }
  }
  console.log(markdownTable(
    [
      { title: "problem" },
      { title: "operation" },
      { title: "layout" },
      { title: "reference", align: "right" },
      { title: "a 10⁹ products", align: "right" },
      { title: "outputs a second", align: "right" },
    ],
    rows,
  ));
}

const [what, count, ...names] = Deno.args;
const number = Number(count ?? (what === "faults" ? 100 : what === "seconds" ? 5 : 1000));
if (what === "faults") {
  const known = Object.keys(PROBLEMS) as (keyof typeof PROBLEMS)[];
  await faults(number, names.length > 0 ? known.filter((name) => names.includes(name)) : known);
} else if (what === "alarms") {
  await alarms(number);
} else if (what === "seconds") {
  await seconds(number);
} else {
  throw new TypeError(`Cannot measure ${what}: expected faults, alarms or seconds`);
}
