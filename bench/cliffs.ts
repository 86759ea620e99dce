/**
 * Neighbours of problems that cost more than their share, by plans for an H200 without a GPU:
 *   deno run -A bench/cliffs.ts [--problems 250] [--seed 1] [--dtype f32] [--layout nchw,nhwc] [--op LIST] [--worst 40] [--jsonl FILE]
 * A problem is a layer of the lists of networks, as it is or with other channels and sizes. A neighbour has one of its sizes more or
 * less by one, or dilation 2 for 1 with as many outputs. It costs its predicted time over the problem's, over what explains that: the
 * ratio of flops or that of bytes, whichever is larger. f16 is planned for matrix units.
 */
import { parseArgs } from "node:util";
import { H200_LIMITS, H200_UNITS } from "./h200_limits.ts";
import { problemsOf } from "./gpu_workers.ts";
import { autoRequest } from "./measured_case.ts";
import { predictPlanMs } from "../src/algorithms/cost/auto.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { tryPlanConv } from "../src/algorithms/planner.ts";
import { isRefusal } from "../src/algorithms/refusal.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { someOf, wholeNumber } from "../src/cli/values.ts";
import {
  CONV_DTYPES,
  type ConvProblem,
  convProblem,
  directFlops,
  OPERATIONS,
  tensorBytes,
} from "../src/problem/conv_problem.ts";
import { printDescriptor } from "../src/problem/descriptor.ts";
import { LAYOUTS } from "../src/tensor/layout.ts";
import { RandomWords } from "../src/tensor/random.ts";

/** A neighbour costs too much from so many times its share on. */
const CLIFF = 1.3;
const MOST_FLOPS = 2e12;

/** A problem beside another. */
interface Neighbour {
  /** What differs: `inChannels +1`. */
  readonly what: string;
  readonly problem: ConvProblem;
}

interface Priced {
  readonly plan: Plan;
  readonly ms: number;
}

const { values } = parseArgs({
  options: {
    problems: { type: "string", default: "250" },
    seed: { type: "string", default: "1" },
    dtype: { type: "string", default: "f32" },
    layout: { type: "string", default: "nchw,nhwc" },
    op: { type: "string", default: OPERATIONS.join() },
    worst: { type: "string", default: "40" },
    jsonl: { type: "string" },
  },
});
const words = new RandomWords(wholeNumber(0)(values.seed));
const layers = problemsOf("networks,more_networks");
const cases = Array.from({ length: wholeNumber(1)(values.problems) }, () => ({
  problem: drawn(),
  dtype: pick(someOf(CONV_DTYPES)(values.dtype)),
  layout: pick(someOf(LAYOUTS)(values.layout)),
}));
let neighbours = 0;
const costs = cases.flatMap(({ problem, dtype, layout }) => {
  const request: PlanRequest = {
    ...autoRequest(problem, layout, dtype),
    ...(dtype === "f32" ? {} : { matrixUnits: H200_UNITS, limits: H200_LIMITS }),
  };
  const base = priced(request);
  if (base === undefined) return [];
  return neighboursOf(problem).flatMap(({ what, problem: other }) => {
    const one = priced({ ...request, problem: other });
    if (one === undefined) return [];
    neighbours++;
    const size = dtype === "f32" ? 4 : 2;
    const share = Math.max(
      directFlops(other) / directFlops(problem),
      tensorBytes(other, size) / tensorBytes(problem, size),
    );
    const cost = one.ms / base.ms / share;
    return [{
      ...{
        op: problem.op,
        layout,
        dtype,
        what,
        cost: rounded(cost),
        ratio: rounded(one.ms / base.ms),
      },
      ...{ base: printDescriptor(problem), problem: printDescriptor(other) },
      ...{ baseMs: rounded(base.ms), ms: rounded(one.ms) },
      ...{ baseKernel: kernelOf(base.plan), kernel: kernelOf(one.plan) },
    }];
  });
});
if (values.jsonl !== undefined) {
  Deno.writeTextFileSync(values.jsonl, costs.map((one) => `${JSON.stringify(one)}\n`).join(""));
}
const worst = costs.filter(({ cost }) => cost > CLIFF).sort((a, b) => b.cost - a.cost);
const slower = worst.filter(({ ratio }) => ratio > 1).length;
console.log(
  `${worst.length} of ${neighbours} neighbours of ${cases.length} problems cost above ${CLIFF} times their share, ` +
    `${slower} of them more than the problem itself`,
);
const causes = Map.groupBy(
  worst,
  ({ op, layout, dtype, what, baseKernel, kernel }) =>
    `${dtype} ${layout} ${op} ${what.replace(/ \d+ of/, " of")}: ${algorithmOf(baseKernel)} -> ${
      algorithmOf(kernel)
    }`,
);
for (const [cause, list] of [...causes].sort((a, b) => b[1].length - a[1].length)) {
  console.log(`${String(list.length).padStart(5)}  ${cause}, up to ${list[0]!.cost}`);
}
for (const one of worst.slice(0, wholeNumber(0)(values.worst))) {
  const { op, layout, dtype, what, cost, base, baseMs, ms, baseKernel, kernel } = one;
  console.log(
    `${cost}  ${dtype} ${layout} ${op} ${base} ${what}: ${baseMs} ms ${baseKernel}, ${ms} ${kernel}`,
  );
}

function priced(request: PlanRequest): Priced | undefined {
  const plan = tryPlanConv(request);
  if (isRefusal(plan)) return undefined;
  const ms = predictPlanMs({ ...request, algorithm: plan.algorithm }, plan);
  return ms === undefined ? undefined : { plan, ms };
}

/** What tells ways apart: the kernel that names the plan, and how many passes there are. */
function kernelOf({ kernel, passes }: Plan): string {
  return `${kernel.replace(/_[0-9a-f]{8,}$/, "")}+${passes.length - 1}`;
}

function algorithmOf(kernel: string): string {
  return /^(implicit_gemm|im2win_fused|winograd\dd(_nonfused)?|[a-z]+)/.exec(kernel)![0];
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/** A number from 0 to `below`, which it is not. */
function random(below: number): number {
  const word = new Uint32Array(1);
  words.fill(word);
  return Math.floor(word[0]! / 2 ** 32 * below);
}

function pick<T>(list: readonly T[]): T {
  return list[random(list.length)]!;
}

/** A layer as it is or scaled, of a drawn operation. */
function drawn(): ConvProblem {
  for (;;) {
    const op = pick(someOf(OPERATIONS)(values.op));
    const { name: _, outputSize: __, ...layer } = pick(layers);
    const factor = () => pick([0.5, 0.75, 1, 1, 1, 1.25, 1.5, 2]);
    const { groups, inChannels, outChannels } = layer;
    const depthwise = groups > 1 && inChannels === groups;
    const scaled = pick([true, false]);
    const to = (value: number) =>
      scaled && value > 4 ? Math.max(1, Math.round(value * factor() / 4) * 4) : value;
    const channels = depthwise ? to(groups) : groups * to(inChannels / groups);
    const problem = {
      ...layer,
      op,
      batch: scaled ? Math.max(1, Math.round(layer.batch * factor())) : layer.batch,
      groups: depthwise ? channels : groups,
      inChannels: channels,
      outChannels: depthwise ? channels * outChannels / groups : groups * to(outChannels / groups),
      inputSize: scaled
        ? layer.inputSize.map((size) => size > 1 ? Math.ceil(size * factor()) : size)
        : layer.inputSize,
    };
    const made = attempt(problem);
    if (made !== undefined && directFlops(made) <= MOST_FLOPS) return made;
  }
}

/** The problem of such sizes; undefined where they do not fit together. */
function attempt(sizes: Parameters<typeof convProblem>[0]): ConvProblem | undefined {
  try {
    return convProblem(sizes);
  } catch {
    return undefined;
  }
}

/** What differs from a problem by one. */
function neighboursOf({ outputSize: _, ...problem }: ConvProblem): Neighbour[] {
  const { groups, inChannels, outChannels, batch } = problem;
  const depthwise = groups > 1 && inChannels === groups;
  const found: Neighbour[] = [];
  const add = (what: string, change: Partial<ConvProblem>) => {
    const one = attempt({ ...problem, ...change });
    if (one !== undefined && directFlops(one) > 0) found.push({ what, problem: one });
  };
  const moved = (values: readonly number[], axis: number, by: number) =>
    values.map((value, d) => d === axis ? value + by : value);
  for (const by of [-1, 1]) {
    const sign = by > 0 ? "+1" : "-1";
    add(`batch ${sign}`, { batch: batch + by });
    if (depthwise) {
      const count = groups + by;
      const each = outChannels / groups;
      add(`channels ${sign}`, { groups: count, inChannels: count, outChannels: count * each });
    } else {
      add(`inChannels ${sign}`, { inChannels: inChannels + by * groups });
      add(`outChannels ${sign}`, { outChannels: outChannels + by * groups });
    }
    problem.inputSize.forEach((_, d) => {
      add(`input axis ${d - problem.inputSize.length} ${sign}`, {
        inputSize: moved(problem.inputSize, d, by),
      });
      add(`filter axis ${d - problem.inputSize.length} ${sign}`, {
        filterSize: moved(problem.filterSize, d, by),
      });
    });
  }
  if (problem.dilation.every((one) => one === 1) && problem.filterSize.some((taps) => taps > 1)) {
    add("dilation 2", {
      dilation: problem.dilation.map(() => 2),
      paddingBegin: problem.paddingBegin.map((before, d) =>
        before + Math.floor((problem.filterSize[d]! - 1) / 2)
      ),
      paddingEnd: problem.paddingEnd.map((after, d) =>
        after + Math.ceil((problem.filterSize[d]! - 1) / 2)
      ),
    });
  }
  return found;
}
