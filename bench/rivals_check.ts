/**
 * Holds what a device model chooses against times of rivals that `bench/planner_rivals.ts --jsonl` wrote, without a GPU:
 *   deno run -A bench/rivals_check.ts [-v] [--device-model FILE] RIVALS...
 * A line a choice that takes more than 5 % longer than the best rival (-v: every choice), then how many there are, and the
 * predicted over the measured times of each algorithm, operation and layout: geometric mean and spread (RMS of the logarithm
 * about it). Choices whose kernel was not timed, and those without a rival that was, are counted apart. An H200 where no model is
 * given; plans are for an H200's limits. Exit 1 where fewer than 90 % of the choices with rivals are good, or one is far off.
 */
import { parseArgs } from "node:util";
import { rankRivals, requestFor } from "../src/algorithms/cost/choose.ts";
import { H200 } from "../src/algorithms/device/h200.ts";
import { planConv, tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { rms } from "../src/bench/calibrate/fit.ts";
import { readDeviceModel } from "../src/bench/calibrate/model_file.ts";
import { OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";
import { H200_LIMITS } from "./h200_limits.ts";

/** A choice counts as good where it takes at most this much longer than the best, and none may take FAR times as long. */
const GOOD = 1.05;
const FAR = 1.15;

/** A line of `planner_rivals.ts`: what was timed of a case, null where it did not run. */
interface RivalsRecord {
  readonly problem: string;
  readonly op: string;
  readonly layout: string;
  readonly taken: readonly { readonly kernel: string; readonly ms: number | null }[];
}

const { values, positionals } = parseArgs({
  options: { verbose: { type: "boolean", short: "v" }, "device-model": { type: "string" } },
  allowPositionals: true,
});
const file = values["device-model"];
const device = file === undefined ? H200 : readDeviceModel(file);

const SHARE = 0.9;
const ratios: number[] = [];
let alone = 0;
const errors = new Map<string, number[]>();
let unknown = 0;
for (const path of positionals) {
  for (const line of Deno.readTextFileSync(path).trim().split("\n")) {
    check(JSON.parse(line) as RivalsRecord);
  }
}
if (ratios.length === 0) {
  console.error(
    "rivals_check: no choice was timed, give files that planner_rivals.ts --jsonl wrote",
  );
  Deno.exit(2);
}
const good = ratios.filter((ratio) => ratio <= GOOD).length;
const worst = Math.max(...ratios);
console.log(
  `${good} of ${ratios.length} choices within ${GOOD} times the best, ` +
    `${ratios.filter((ratio) => ratio > FAR).length} beyond ${FAR}, the worst ` +
    `${
      worst.toFixed(3)
    }; ${alone} of them had no rival; of ${unknown} more the kernel was not timed`,
);
const rivals = ratios.length - alone;
if (good - alone < SHARE * rivals || worst > FAR) Deno.exitCode = 1;
for (const [name, logs] of [...errors].sort()) {
  const mean = logs.reduce((sum, one) => sum + one, 0) / logs.length;
  const spread = rms(logs.map((one) => one - mean));
  console.log(
    `${name.padEnd(40)}${Math.exp(mean).toFixed(2)}  ${
      (100 * spread).toFixed(0)
    } %  ${logs.length}`,
  );
}

function check({ problem, op, layout, taken }: RivalsRecord): void {
  const request = requestOf(problem, op, layout);
  const timed = new Map(taken.filter(({ ms }) => ms !== null).map((one) => [one.kernel, one.ms!]));
  const best = Math.min(...timed.values());
  const { kernel, predictedMs } = planConv(request);
  const ms = timed.get(kernel);
  if (ms === undefined) unknown++;
  else {
    ratios.push(ms / best);
    if (timed.size === 1) alone++;
    if (values.verbose || ms > GOOD * best) {
      const [fastest] = [...timed].find(([, time]) => time === best)!;
      console.log(
        `${(ms / best).toFixed(3)}  ${op} ${layout} ${problem}: ${kernel} ${
          ms.toPrecision(4)
        } ms, ` +
          `predicted ${predictedMs?.toPrecision(4)}; best ${fastest} ${best.toPrecision(4)}`,
      );
    }
  }
  for (const rival of rankRivals(request)) {
    if (rival.reason !== undefined || rival.predictedMs === undefined) continue;
    const plan = tryPlanConv(requestFor(request, rival));
    const measured = isRefusal(plan) ? undefined : timed.get(plan.kernel);
    if (measured === undefined) continue;
    const name = `${rival.algorithm} ${op} ${layout}`;
    errors.set(name, [...errors.get(name) ?? [], Math.log(rival.predictedMs / measured)]);
  }
}

function requestOf(problem: string, opName: string, layoutName: string): PlanRequest {
  const op = OPERATIONS.find((one) => one === opName)!;
  const layout = LAYOUTS.find((one) => one === layoutName)!;
  return {
    problem: parseDescriptor(problem, op),
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    limits: H200_LIMITS,
    device,
  };
}
