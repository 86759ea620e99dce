/**
 * Fits the figures of a device model to measured records, without a GPU:
 *   deno run -A bench/fit_device_model.ts [--rounds 8] [--figures rates.depthwise,shares.single] [--all]
 *     [--out src/algorithms/device/h200.json] RECORDS...
 * Each record's algorithm, tile and policy are predicted as they ran; a figure is kept where it lowers the error of the
 * half of the problems that are fitted to. Prints the error, as RMS of log(predicted / measured), of that half and of the
 * other; --all fits to both; --rounds 0 only tells. Records of what `auto` chose say nothing of what it did not: fitted to
 * them alone, a policy that is rarely chosen looks better than it is, so name the figures that the records do cover with
 * --figures, and look at the choices of other suites before they are taken. What it writes is a file for `--device-model`, and
 * what H200 reads: nobody edits that by hand. Of records here, bench/results/h200/{layers.f32,im2win12,fused,resnet50.f32}.jsonl say
 * something (206 cases); those of planner_rivals.ts --jsonl say most, and
 * planner_unmeasured.ts times a GPU that is hardly warm, at half its rates.
 */
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { H200 } from "../src/algorithms/device/h200.ts";
import type { DeviceModel } from "../src/algorithms/device/model.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { predictMs } from "../src/algorithms/cost/auto.ts";
import { figure, figurePaths, withFigure } from "./figures.ts";
import { policyTile, TILE_POLICIES } from "../src/kernels/policy.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { type MeasuredCase, measuredCases, rms } from "./measured_case.ts";

/** How strongly a figure is held where it was: what few records say should not move far. */
const HELD = 2e-3;
/** Errors beyond this count no more than it: something else is the matter. */
const FAR = 0.5;

interface Case {
  readonly name: string;
  readonly request: PlanRequest;
  readonly fitted: boolean;
  readonly ms: number;
}

const { values, positionals } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "8" },
    figures: { type: "string", default: "" },
    out: { type: "string" },
    all: { type: "boolean", default: false },
  },
  allowPositionals: true,
});

/** A case with the policy that its kernel's name has, where that is one to be asked for. */
function asItRan({ name, request, algorithm, tile, kernel, ms }: MeasuredCase): Case {
  const main = TILE_POLICIES.find((one) => kernel.includes(`_${policyTile(one)}_`))?.name;
  const sliced = /_(\d+x\d+x\d+_\d+x\d+)_/.exec(kernel)?.[1];
  const policy = /^winograd[12]d$/.test(algorithm)
    ? sliced
    : ["winrs", "depthwise", "direct"].includes(algorithm)
    ? undefined
    : main;
  // All operations and layouts of a problem are in one half.
  const { problem } = request;
  const digest = createHash("sha256").update(printDescriptor({ ...problem, op: "fwd" })).digest();
  const ran = {
    ...request,
    algorithm,
    ...(tile === undefined ? {} : { tile }),
    schedule: { ...request.schedule, ...(policy === undefined ? {} : { policy }) },
  };
  return {
    name: `${name} ${kernel}`,
    fitted: values.all || digest[0]! % 2 === 0,
    ms,
    request: ran,
  };
}

/** Figures that are asked for, by the beginnings of their paths; all where none are. */
const wanted = values.figures.split(",");

/** log(predicted / measured); undefined where nothing is predicted. */
function predictionError({ request, ms }: Case, device: DeviceModel): number | undefined {
  const predicted = request.algorithm === "auto"
    ? undefined
    : predictMs({ ...request, device }, request.algorithm);
  return typeof predicted === "number" ? Math.log(predicted / ms) : undefined;
}
const errorOf = (one: Case, device: DeviceModel) => predictionError(one, device) ?? 0;

const cases = measuredCases(positionals)
  .map(asItRan)
  .filter((one) => predictionError(one, H200) !== undefined);
const fitted = cases.filter((one) => one.fitted);
/** Whether a path is a name's, or lies below it. */
const isBelow = (path: readonly string[], name: string) =>
  `${path.join(".")}.`.startsWith(`${name}.`);
const paths = figurePaths(H200).filter((path) =>
  wanted.some((one) => one === "" || isBelow(path, one))
);
const model = fit();

/** One figure after the other is changed by the round's step, and keeps what lowers the errors by more than it costs. */
function fit(): DeviceModel {
  const squares = (device: DeviceModel, some: readonly Case[]) =>
    some.reduce((sum, one) => sum + Math.min(FAR, Math.abs(errorOf(one, device))) ** 2, 0);
  const touched = paths.map((path) => {
    const nearby = withFigure(H200, path, 1.3 * figure(H200, path));
    return fitted.filter((one) => errorOf(one, nearby) !== errorOf(one, H200));
  });
  let best = H200;
  for (let round = 0; round < Number(values.rounds); round++) {
    const step = 1 + 0.3 * 0.7 ** round;
    paths.forEach((path, place) => {
      const loss = (device: DeviceModel) =>
        squares(device, touched[place]!) +
        HELD * fitted.length * Math.log(figure(device, path) / figure(H200, path)) ** 2;
      const tried = [step, 1 / step].map((factor) =>
        withFigure(best, path, Number((factor * figure(best, path)).toPrecision(3)))
      );
      if (touched[place]!.length > 0) {
        best = [best, ...tried].reduce((a, b) => loss(b) < loss(a) ? b : a);
      }
    });
    console.error(`${(100 * rms(fitted.map((each) => errorOf(each, best)))).toFixed(1)} %`);
  }
  return best;
}

for (const [title, device] of [["before", H200], ["after", model]] as const) {
  for (const half of [true, false]) {
    const groups = new Map<string, number[]>();
    for (const one of cases.filter(({ fitted }) => fitted === half)) {
      const { algorithm, problem: { op }, layout } = one.request;
      const key = `${algorithm} ${op} ${layout}`;
      groups.set(key, [...groups.get(key) ?? [], errorOf(one, device)]);
    }
    const all = [...groups.values()].flat();
    if (all.length === 0) continue;
    const which = half ? "fitted" : "other";
    console.log(`${title}, ${which} half: ${(100 * rms(all)).toFixed(1)} % of ${all.length} cases`);
    if (title === "before") continue;
    for (const [key, errors] of [...groups].sort()) {
      const mean = errors.reduce((sum, one) => sum + one, 0) / errors.length;
      const text = `${Math.exp(mean).toFixed(2)}, ${(100 * rms(errors)).toFixed(0)} %`;
      console.log(`  ${key}: ${text}, ${errors.length} cases`);
    }
  }
}
const worst = cases
  .map((one) => ({ name: one.name, error: errorOf(one, model) }))
  .toSorted((a, b) => Math.abs(b.error) - Math.abs(a.error));
console.log("\nfarthest off, predicted over measured:");
for (const { name, error } of worst.slice(0, 25)) {
  console.log(`  ${Math.exp(error).toFixed(2)} ${name}`);
}
console.log("\nfigures that changed:");
for (const path of paths) {
  const [before, after] = [figure(H200, path), figure(model, path)];
  if (before !== after) console.log(`  ${path.join(".")}: ${before} -> ${after}`);
}
if (values.out !== undefined) {
  Deno.writeTextFileSync(values.out, JSON.stringify(model, null, 2) + "\n");
}
