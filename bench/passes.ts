/**
 * Times a plan whole and pass by pass on the GPU at hand:
 *   deno run -A bench/passes.ts DESCRIPTOR [--op fwd] [--layout nhwc] [--algorithm auto] [--tile T] [--pair P]
 *   deno run -A bench/passes.ts "M N K [t n]" [--balance none]
 * And --dtype f32|f16|i8, --math f16x3, --policy P, --backend dawn. Microseconds on random data; a pass alone is timed without
 * the ones before it.
 */
import { parseArgs } from "node:util";
import type { AlgorithmName } from "../src/algorithms/plan.ts";
import { expectPlanned } from "../src/algorithms/refusal.ts";
import type { Balance } from "../src/algorithms/schedule.ts";
import { MATHS } from "../src/algorithms/request.ts";
import { oneOf } from "../src/cli/values.ts";
import { openDevice } from "../src/gpu/device.ts";
import { BACKENDS } from "../src/gpu/provider.ts";
import { OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { parseGemm } from "../src/problem/gemm_suite.ts";
import { convSubject } from "../src/run/conv_subject.ts";
import { gpuPlanning } from "../src/run/executor.ts";
import { gemmSubject } from "../src/run/gemm_subject.ts";
import { timePlans } from "../src/run/time_plans.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

const { values, positionals: [problem = ""] } = parseArgs({
  options: {
    backend: { type: "string", default: "wgpu" },
    op: { type: "string", default: "fwd" },
    layout: { type: "string", default: "nhwc" },
    dtype: { type: "string", default: "f32" },
    algorithm: { type: "string", default: "auto" },
    math: { type: "string" },
    policy: { type: "string" },
    tile: { type: "string" },
    pair: { type: "string" },
    balance: { type: "string" },
  },
  allowPositionals: true,
});
const { policy, tile, pair } = values;
const dtype = oneOf(["f32", "f16", "i8"])(values.dtype);
const layout = oneOf(LAYOUTS)(values.layout);
const subject = /^\d+ /.test(problem) ? gemmSubject(parseGemm(problem), { dtype }) : convSubject({
  problem: parseDescriptor(problem, oneOf(OPERATIONS)(values.op)),
  layout,
  filterLayout: filterLayoutFor(layout),
  dtype,
});
using gpu = await openDevice({
  backend: oneOf(BACKENDS)(values.backend),
  features: dtype === "f16" ? ["shader-f16"] : [],
  robust: false,
});
const plan = expectPlanned(subject.planner.plan({
  ...gpuPlanning(gpu, {}),
  algorithm: values.algorithm as AlgorithmName | "auto",
  ...(values.math && { math: oneOf(MATHS)(values.math) }),
  schedule: {
    ...gpuPlanning(gpu, {}).schedule,
    ...(values.balance && { balance: values.balance as Balance }),
    ...(policy && { policy }),
  },
  ...(tile && { tile }),
  ...(pair && { pair }),
}));
console.log(`${gpu.info.adapter}: ${plan.kernel}`);
const alone = plan.passes.map((pass) => ({ ...plan, passes: [pass] }));
const protocol = { samples: 9, fillMs: 5 };
const plans = [plan, ...alone].map((one) => ({ plan: one, dtype }));
for (const [place, time] of (await timePlans(gpu, plans, protocol)).entries()) {
  const what = plan.passes[place - 1]?.kernel.name ?? "whole";
  console.log(typeof time === "string" ? time : `${(1000 * time.median).toFixed(1)} us ${what}`);
}
