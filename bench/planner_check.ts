/**
 * Compares what `auto` chooses with what was measured, without a GPU:
 *   deno run -A bench/planner_check.ts [-v] [--device-model FILE] RECORDS...
 * RECORDS are of `wgconv bench`, of `bench/planner_rivals.ts --jsonl`, or parts that `bench/planner_unmeasured.ts` wrote. A case is a problem, operation and layout of which
 * several kernels were measured. Prints the choices that take more than 5 % longer than the best (-v: every choice), those
 * that were not measured, and the predicted over the measured times of each algorithm, operation and layout: geometric mean
 * and spread (RMS of the logarithm about it). Choices are an H200's unless a file says what the device reaches. Exit 1 where
 * fewer than 90 % of the choices are good, or one takes more than 1.15 times as long as the best; 2 where none was measured.
 */
import { parseArgs } from "node:util";
import {
  GPU_GOODNESS,
  type MeasuredCase,
  measuredCases,
  printGoodness,
  rms,
} from "./measured_case.ts";
import { predictMs, requestFor } from "../src/algorithms/cost/auto.ts";
import { H200 } from "../src/algorithms/device/h200.ts";
import { planConv } from "../src/algorithms/planner.ts";
import { defaultTile } from "../src/algorithms/winograd_nonfused/geometry.ts";
import { readDeviceModel } from "../src/bench/calibrate/model_file.ts";
import { formatTile } from "../src/winograd/tile.ts";

const { values, positionals } = parseArgs({
  options: { verbose: { type: "boolean", short: "v" }, "device-model": { type: "string" } },
  allowPositionals: true,
});
const file = values["device-model"];
const device = file === undefined ? H200 : readDeviceModel(file);

/** What runs, whatever its policy: `winograd2d-nonfused F(4x4,3x3)`. */
function wayOf({ algorithm, tile, request: { problem } }: MeasuredCase): string {
  const own = algorithm === "winograd2d-nonfused" ? formatTile(defaultTile(problem)) : "";
  return `${algorithm} ${tile ?? own}`;
}

const fastest = (some: readonly MeasuredCase[]) => some.reduce((a, b) => b.ms < a.ms ? b : a);
const ratios: number[] = [];
const bad: [number, string][] = [];
const unknown: string[] = [];
const errors = new Map<string, number[]>();
const cases = Map.groupBy(measuredCases(positionals), ({ name }) => name);
for (const [name, measured] of cases) {
  if (measured.length < 2) continue;
  const request = { ...measured[0]!.request, device };
  const { kernel, predictedMs } = planConv(request);
  const best = fastest(measured);
  const same = measured.filter((one) => one.kernel === kernel);
  const text = `${name}: ${kernel} predicted ${predictedMs?.toPrecision(3)}; ` +
    `best ${wayOf(best)} ${best.kernel} ${best.ms.toPrecision(4)} ms`;
  if (same.length === 0) {
    unknown.push(text);
  } else {
    const ratio = fastest(same).ms / best.ms;
    ratios.push(ratio);
    if (values.verbose || ratio > GPU_GOODNESS.good) bad.push([ratio, text]);
  }
  for (const [, some] of Map.groupBy(measured, wayOf)) {
    const { algorithm, tile, ms } = fastest(some);
    const rival = { algorithm, amplification: 1, ...(tile === undefined ? {} : { tile }) };
    const predicted = predictMs(requestFor(request, rival), algorithm);
    if (typeof predicted !== "number") continue;
    const key = `${algorithm} ${request.problem.op} ${request.layout}`;
    errors.set(key, [...errors.get(key) ?? [], Math.log(predicted / ms)]);
  }
}
for (const [ratio, text] of bad.sort(([a], [b]) => b - a)) {
  console.log(`${ratio.toFixed(3)} ${text}`);
}
for (const text of unknown) console.log(`not measured: ${text}`);
for (const [key, logs] of [...errors].sort()) {
  const mean = logs.reduce((sum, one) => sum + one, 0) / logs.length;
  const spread = (100 * rms(logs.map((one) => one - mean))).toFixed(0);
  console.log(
    `${key.padEnd(40)}${Math.exp(mean).toFixed(2)}  ${spread} %  ${logs.length} cases`,
  );
}
if (ratios.length === 0) {
  console.error("planner_check: no choice was measured beside another kernel of its case");
  Deno.exit(2);
}
if (!printGoodness(ratios, GPU_GOODNESS)) Deno.exitCode = 1;
