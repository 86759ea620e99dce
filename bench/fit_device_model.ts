/**
 * Fits the figures of a device model to measured records, without a GPU:
 *   deno run -A bench/fit_device_model.ts [--rounds 8] [--figures rates.depthwise,shares.single] [--out model.json] [--all]
 *     RECORDS...
 * Each record's algorithm, tile and policy are predicted as they ran; a figure is kept where it lowers the error of the
 * half of the problems that are fitted to. Prints the error, as RMS of log(predicted / measured), of that half and of the
 * other; --all fits to both; --rounds 0 only tells. Records of what `auto` chose say nothing of what it did not: fitted to
 * them alone, a policy that is rarely chosen looks better than it is, so name the figures that the records do cover with
 * --figures, and look at the choices of other suites before they are taken. What it writes is a file for `--device-model`, and what `src/algorithms/device/h200.ts` holds.
 */
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { H200 } from "../src/algorithms/device/h200.ts";
import type { DeviceModel } from "../src/algorithms/device/model.ts";
import {
  figure,
  type FigurePath,
  figurePaths,
  type FitCase,
  fitFigures,
  predictionError,
  predictRequest,
  rms,
} from "../src/bench/calibrate/fit.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { policyTile, TILE_POLICIES } from "../src/kernels/policy.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { type MeasuredCase, measuredCases } from "./measured_case.ts";

/** How strongly a figure is held where it was: what few records say should not move far. */
const HELD = 2e-3;

interface Case extends FitCase {
  readonly name: string;
  readonly request: PlanRequest;
  readonly fitted: boolean;
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
    ...(policy === undefined ? {} : { policy }),
  };
  return {
    name: `${name} ${kernel}`,
    fitted: values.all || digest[0]! % 2 === 0,
    ms,
    request: ran,
    predict: (model) => predictRequest(ran, model),
  };
}

/** Figures that are asked for, by the beginnings of their paths; all where none are. */
const wanted = values.figures.split(",");

const isWanted = (path: FigurePath) =>
  wanted.some((one) => `${path.join(".")}.`.startsWith(one === "" ? "" : `${one}.`));
const errorOf = (one: Case, device: DeviceModel) => predictionError(one, device) ?? 0;

const cases = measuredCases(positionals)
  .map(asItRan)
  .filter((one) => predictionError(one, H200) !== undefined);
const fitted = cases.filter((one) => one.fitted);
const paths = figurePaths(H200).filter(isWanted);
const model = fitFigures(H200, fitted, {
  groups: paths.map((path) => [path]),
  steps: Array.from({ length: Number(values.rounds) }, (_, round) => 0.3 * 0.7 ** round),
  penalty: (change) => HELD * fitted.length * change ** 2,
  onRound: (one) =>
    console.error(`${(100 * rms(fitted.map((each) => errorOf(each, one)))).toFixed(1)} %`),
});

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
