/**
 * Times a plan pass by pass on the GPU at hand, and whole:
 *   deno run -A bench/passes.ts DESCRIPTOR [OPS] [LAYOUTS]
 *   deno run -A bench/passes.ts DESCRIPTOR fwd nhwc --backend dawn --algorithm winograd2d-nonfused --tile 'F(4x4,3x3)' --math f16x3
 *   deno run -A bench/passes.ts gemm M,N,K [TRANSPOSES] --backend dawn --math f16x3 --policy matrix-tall --balance none
 * OPS, LAYOUTS and TRANSPOSES are comma lists; convolutions are by implicit GEMM where no algorithm is said. --dtype, --out-dtype and --flush too. Microseconds of
 * normal data, of i8 of its bits; a pass alone is timed without the ones before it.
 */
import { parseArgs } from "node:util";
import { modelOf } from "../src/algorithms/device/h200.ts";
import { planGemm } from "../src/algorithms/gemm/plan.ts";
import type { GemmRequest } from "../src/algorithms/gemm/request.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { timePlan } from "../src/run/timing.ts";
import { upload } from "../src/gpu/buffers.ts";
import type { PlanRequest } from "../src/algorithms/request.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, preparePlan } from "../src/gpu/execute.ts";
import { OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { gemmProblem, type Transpose, TRANSPOSES } from "../src/problem/gemm_problem.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

const { values, positionals } = parseArgs({
  options: {
    backend: { type: "string", default: "wgpu" },
    dtype: { type: "string", default: "f32" },
    "out-dtype": { type: "string" },
    math: { type: "string" },
    policy: { type: "string" },
    balance: { type: "string" },
    flush: { type: "string" },
    algorithm: { type: "string", default: "implicit-gemm" },
    tile: { type: "string" },
  },
  allowPositionals: true,
});
const { backend, dtype, math, policy, balance, algorithm, tile } = values;
const outDtype = values["out-dtype"];
const half = dtype === "f16";
using gpu = await openDevice({
  backend: backend as "wgpu" | "dawn",
  features: half ? ["shader-f16"] : [],
  robust: false,
});
console.log(gpu.info.adapter);
const elements = { dtype, ...(outDtype && { outDtype }) } as
  & Pick<PlanRequest, "dtype" | "outDtype">
  & Pick<GemmRequest, "dtype" | "outDtype">;
const common = {
  limits: gpu.limits,
  device: modelOf(gpu.workgroupsInFlight),
  ...(gpu.matrixUnits && { matrixUnits: gpu.matrixUnits }),
  ...(policy && { policy }),
  ...(values.flush !== undefined && { flush: Number(values.flush) }),
};
for (const { name, plan } of positionals[0] === "gemm" ? products() : convolutions()) {
  console.log(`${name}: ${(await microseconds(plan)).toFixed(1)} us whole`);
  for (const pass of plan.passes) {
    const alone = await microseconds({ ...plan, passes: [pass] });
    console.log(`  ${alone.toFixed(1)} us ${pass.kernel.name}`);
  }
}

function products(): { name: string; plan: Plan }[] {
  const [, size = "", transposes = "nn"] = positionals;
  const [m = 0, n = 0, k = 0] = size.split(",").map(Number);
  const asked = { math, balance } as Pick<GemmRequest, "math" | "balance">;
  const given = Object.fromEntries(Object.entries(asked).filter(([, one]) => one !== undefined));
  return TRANSPOSES.filter((one) => transposes.split(",").includes(one)).map(
    (transpose: Transpose) => {
      const problem = gemmProblem({ m, n, k, transpose });
      const plan = planGemm({ problem, ...elements, ...common, ...given });
      return { name: `${size} ${transpose}`, plan };
    },
  );
}

function convolutions(): { name: string; plan: Plan }[] {
  const [descriptor = "", ops = "fwd", layouts = "nchw"] = positionals;
  return OPERATIONS.filter((one) => ops.split(",").includes(one)).flatMap((op) =>
    LAYOUTS.filter((one) => layouts.split(",").includes(one)).map((layout) => {
      const plan = planConv({
        problem: { ...parseDescriptor(descriptor), op },
        dtype: elements.dtype,
        layout,
        filterLayout: filterLayoutFor(layout),
        epilogue: NO_EPILOGUE,
        algorithm: algorithm as PlanRequest["algorithm"],
        ...(tile && { tile }),
        ...(math && { math: math as "f32" | "f16x3" }),
        ...common,
      });
      return { name: `${op} ${layout}`, plan };
    })
  );
}

async function microseconds(plan: Plan): Promise<number> {
  using buffers = createPlanBuffers(gpu, plan);
  plan.buffers.forEach(({ bytes, role }, place) => {
    if (role === "workspace") return;
    const data = fillTensor(half ? "f16" : "f32", [bytes / (half ? 2 : 4)], "normal", place).data;
    upload(gpu, buffers.buffers[place]!, 0, data);
  });
  using prepared = await preparePlan(gpu, plan, buffers);
  return 1000 * (await timePlan(gpu, [prepared], { samples: 9, fillMs: 5 })).median;
}
