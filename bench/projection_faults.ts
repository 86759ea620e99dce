/**
 * How many faults the sample finds, the projection, and both.
 *
 *     deno run -A bench/projection_faults.ts [trials] [small|large|lavapipe]
 */
import {
  checkAgainst,
  computeReference,
  coverage,
  type ReferenceRequest,
} from "../src/run/check.ts";
import { convSubject } from "../src/run/conv_subject.ts";
import { fillOperands } from "../src/run/operands.ts";
import { projectResult } from "../src/run/projected.ts";
import { convolve } from "../src/convolve.ts";
import { openDevice } from "../src/gpu/device.ts";
import { accumulationLength, type ConvProblem } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { randomStream } from "../src/reference/sample.ts";
import { markdownTable } from "../src/report/table.ts";
import { type FillKind, fillTensor } from "../src/tensor/fill.ts";

const PROBLEMS = {
  large: "mb32ic64ih224oc64kh3ph1",
  small: "mb32ic256ih14oc256kh3ph1",
  lavapipe: "mb32ic256ih14oc256kh3ph1",
} as const;

/** Of √L·u: what one accumulator errs by, relative to the result's RMS. */
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
  const subject = convSubject({ problem, ...layouts });
  return { subject, operands: fillOperands(subject, fill, seed), mode: "auto", seed };
}

/** A healthy result: a driver's, or the reference with rounding errors of the usual size. */
async function healthy(
  problem: ConvProblem,
  { subject, operands }: ReferenceRequest,
  driver: boolean,
): Promise<Float32Array<ArrayBuffer>> {
  if (driver) {
    using gpu = await openDevice();
    const { result } = await convolve(gpu, problem, operands, { algorithm: "implicit-gemm" });
    return result;
  }
  const { values, magnitudes } = await subject.reference.of(operands, {});
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
      if (coverage(asked) !== "projected") {
        throw new Error(`${PROBLEMS[name]} is not projected`);
      }
      const data = await healthy(problem, asked, name === "lavapipe");
      const reference = await computeReference(asked);
      const projection = (await projectResult(asked, reference))!;
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

const [count = "100", ...names] = Deno.args;
const known = Object.keys(PROBLEMS) as (keyof typeof PROBLEMS)[];
await faults(
  Number(count),
  names.length > 0 ? known.filter((name) => names.includes(name)) : known,
);
