/**
 * Compares what `auto` chooses with what was measured, without a GPU:
 *   deno run -A bench/planner_check.ts [-v] [--device-model FILE] RECORDS...
 * A case is a problem, operation and layout; the best measured is what counts. Cases whose choice was not measured are
 * counted apart. -v lists every case. Choices are an H200's unless a file says what the device reaches.
 */
import { parseArgs } from "node:util";
import { predictMs, rankRivals, requestFor } from "../src/algorithms/cost/choose.ts";
import { H200 } from "../src/algorithms/device/h200.ts";
import { readDeviceModel } from "../src/bench/calibrate/model_file.ts";
import type { Rival } from "../src/algorithms/rival.ts";
import { rivalName } from "../src/algorithms/cost/plan_fastest.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import type { AlgorithmName } from "../src/algorithms/names.ts";
import { defaultTile } from "../src/algorithms/winograd_nonfused/tiles.ts";
import { formatTile } from "../src/winograd/tile.ts";
import { measuredCases } from "./measured_case.ts";

/** A choice counts as good where it takes at most this much longer than the best. */
const GOOD = 1.05;

interface Measured {
  readonly algorithm: AlgorithmName;
  readonly tile?: string;
  readonly ms: number;
}
interface Case {
  readonly name: string;
  readonly request: PlanRequest;
  readonly measured: Measured[];
}

const { values, positionals } = parseArgs({
  options: { verbose: { type: "boolean", short: "v" }, "device-model": { type: "string" } },
  allowPositionals: true,
});
const { verbose, "device-model": file } = values;
const device = file === undefined ? H200 : readDeviceModel(file);
const cases = new Map<string, Case>();
for (const record of measuredCases(positionals)) {
  const { name, algorithm, ms } = record;
  const request = { ...record.request, device };
  const tile = record.tile ??
    (algorithm === "winograd2d-nonfused" ? formatTile(defaultTile(request.problem)) : undefined);
  const one = cases.get(name) ?? { name, request, measured: [] };
  one.measured.push({ algorithm, ms, ...(tile === undefined ? {} : { tile }) });
  cases.set(name, one);
}

/** The best time of a rival, whatever its policy; undefined where it was not measured. */
function timeOf({ measured }: Case, { algorithm, tile }: Rival): number | undefined {
  const same = measured.filter((one) => one.algorithm === algorithm && one.tile === tile);
  return same.length === 0 ? undefined : Math.min(...same.map(({ ms }) => ms));
}

const groups = new Map<string, { good: number; measured: number; all: number }>();
const errors = new Map<string, number[]>();
const bad: [number, string][] = [];
const unknown: string[] = [];
let slowest = 0;
for (const one of cases.values()) {
  if (one.measured.length < 2) continue;
  const start = performance.now();
  const ranked = rankRivals(one.request).filter(({ reason }) => reason === undefined);
  slowest = Math.max(slowest, performance.now() - start);
  const best = one.measured.reduce((a, b) => b.ms < a.ms ? b : a);
  const chosen = ranked[0];
  const time = chosen === undefined ? undefined : timeOf(one, chosen);
  const group = one.request.problem.op;
  const counts = groups.get(group) ?? { good: 0, measured: 0, all: 0 };
  counts.all++;
  groups.set(group, counts);
  const text = `${one.name}: ${chosen === undefined ? "nothing" : rivalName(chosen)} predicted ` +
    `${chosen?.predictedMs?.toPrecision(3)}, measured ${time ?? "not"}; best ` +
    `${best.algorithm} ${best.tile ?? ""} ${best.ms}`;
  if (time === undefined) {
    unknown.push(text);
  } else {
    counts.measured++;
    counts.good += Number(time / best.ms <= GOOD);
    if (time / best.ms > GOOD) bad.push([time / best.ms, text]);
  }
  if (verbose) console.log(text);
  for (const measured of one.measured) {
    const { algorithm, tile } = measured;
    const rival = { algorithm, amplification: 1, ...(tile === undefined ? {} : { tile }) };
    if (timeOf(one, rival) !== measured.ms) continue;
    const predicted = predictMs(requestFor(one.request, rival), algorithm);
    if (typeof predicted !== "number") continue;
    const key = `${algorithm} ${group} ${one.request.layout}`;
    errors.set(key, [...errors.get(key) ?? [], Math.log(predicted / measured.ms)]);
  }
}
for (const [op, { good, measured, all }] of groups) {
  console.log(`${op}: ${good} of ${measured} choices within 5 % of the best measured`);
  if (measured < all) console.log(`  of ${all - measured} more the choice was not measured`);
}
console.log("\nworst choices:");
for (const [ratio, text] of bad.sort(([a], [b]) => b - a).slice(0, 15)) {
  console.log(`  ${ratio.toFixed(2)} ${text}`);
}
if (unknown.length > 0) console.log("\nnot measured:");
for (const text of unknown) console.log(`  ${text}`);
console.log(
  "\npredicted over measured, geometric mean and spread (RMS of the logarithm about it):",
);
for (const [key, logs] of [...errors].sort(([a], [b]) => a < b ? -1 : 1)) {
  const mean = logs.reduce((sum, one) => sum + one, 0) / logs.length;
  const spread = Math.sqrt(logs.reduce((sum, one) => sum + (one - mean) ** 2, 0) / logs.length);
  console.log(
    `  ${key}: ${Math.exp(mean).toFixed(2)}, ${(100 * spread).toFixed(0)} %, ${logs.length} cases`,
  );
}
console.log(`\nthe slowest choice took ${slowest.toFixed(0)} ms`);
