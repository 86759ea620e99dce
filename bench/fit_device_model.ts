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
import { predictMs } from "../src/algorithms/cost/choose.ts";
import { H200 } from "../src/algorithms/device/h200.ts";
import type { DeviceModel } from "../src/algorithms/device/model.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { policyTile, TILE_POLICIES } from "../src/kernels/policy.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { type MeasuredCase, measuredCases } from "./measured_case.ts";

/** Errors beyond this count no more: what no figure explains should not pull at all of them. */
const FAR = 0.4;
/** How strongly a figure is held where it was: what few records say should not move far. */
const HELD = 2e-3;

interface Case {
  readonly name: string;
  readonly fitted: boolean;
  readonly request: PlanRequest;
  readonly ms: number;
}

/** A figure of a model by its path. */
type Path = readonly string[];

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
  return {
    name: `${name} ${kernel}`,
    fitted: values.all || digest[0]! % 2 === 0,
    ms,
    request: {
      ...request,
      algorithm,
      ...(tile === undefined ? {} : { tile }),
      ...(policy === undefined ? {} : { policy }),
    },
  };
}

/** log(predicted / measured); undefined where nothing is predicted. */
function errorOf({ request, ms }: Case, device: DeviceModel): number | undefined {
  if (request.algorithm === "auto") return undefined;
  const predicted = predictMs({ ...request, device }, request.algorithm);
  return typeof predicted === "number" ? Math.log(predicted / ms) : undefined;
}

/** Figures that are asked for, by the beginnings of their paths; all where none are. */
const wanted = values.figures.split(",");

/** Paths of the figures that may be fitted: rates, shares, times and costs. */
function* figurePaths(value: unknown, path: Path = []): Generator<Path> {
  if (typeof value === "number") {
    const asked = wanted.some((one) =>
      `${path.join(".")}.`.startsWith(one === "" ? "" : `${one}.`)
    );
    if (asked && ["rates", "shares", "times", "costs"].includes(path[0]!)) yield path;
  } else if (typeof value === "object" && value !== null) {
    for (const [name, field] of Object.entries(value)) yield* figurePaths(field, [...path, name]);
  }
}

function figure(model: unknown, path: Path): number {
  return path.reduce((value, name) => (value as Record<string, unknown>)[name], model) as number;
}

function withFigure<T>(model: T, [name, ...rest]: Path, value: number): T {
  const field = (model as Record<string, unknown>)[name!];
  return { ...model, [name!]: rest.length === 0 ? value : withFigure(field, rest, value) };
}

const cost = (error: number) =>
  Math.abs(error) < FAR ? error * error : FAR * (2 * Math.abs(error) - FAR);
const rms = (errors: readonly number[]) =>
  Math.sqrt(errors.reduce((sum, one) => sum + one * one, 0) / Math.max(1, errors.length));

const cases = measuredCases(positionals)
  .map(asItRan)
  .filter((one) => errorOf(one, H200) !== undefined);
const fitted = cases.filter((one) => one.fitted);
const paths = [...figurePaths(H200)];

/** What a model errs by on the fitted cases of `which`. */
function loss(model: DeviceModel, which: readonly number[]): number {
  return which.reduce((sum, i) => sum + cost(errorOf(fitted[i]!, model) ?? 0), 0);
}

let model = H200;
const everywhere = fitted.map((_, i) => i);
let step = 0.3;
for (let round = 0; round < Number(values.rounds); round++, step *= 0.7) {
  for (const path of paths) {
    const now = figure(model, path);
    const before = fitted.map((one) => errorOf(one, model) ?? 0);
    const touched = everywhere.filter((i) =>
      [1 + step, 1 / (1 + step)].some((by) =>
        (errorOf(fitted[i]!, withFigure(model, path, now * by)) ?? 0) !== before[i]
      )
    );
    if (touched.length === 0) continue;
    const start = figure(H200, path);
    const held = (value: number) => HELD * fitted.length * Math.log(value / start) ** 2;
    let best = { value: now, loss: loss(model, touched) + held(now) };
    for (const by of [1 + step, 1 / (1 + step), 1 + step / 3, 1 / (1 + step / 3)]) {
      const value = now * by;
      const tried = loss(withFigure(model, path, value), touched) + held(value);
      if (tried < best.loss) best = { value, loss: tried };
    }
    model = withFigure(model, path, Number(best.value.toPrecision(3)));
  }
  const errors = fitted.map((one) => errorOf(one, model) ?? 0);
  console.error(`round ${round + 1}: ${(100 * rms(errors)).toFixed(1)} %`);
}

for (const [title, device] of [["before", H200], ["after", model]] as const) {
  for (const half of [true, false]) {
    const groups = new Map<string, number[]>();
    for (const one of cases.filter(({ fitted }) => fitted === half)) {
      const { algorithm, problem: { op }, layout } = one.request;
      const key = `${algorithm} ${op} ${layout}`;
      groups.set(key, [...groups.get(key) ?? [], errorOf(one, device) ?? 0]);
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
  .map((one) => ({ name: one.name, error: errorOf(one, model) ?? 0 }))
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
