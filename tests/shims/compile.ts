/**
 * Compiles kernels on the device that is there and runs none of them: what `auto` takes on it, and every Nth forced kernel of
 * tests/compilers. `deno run -A tests/shims/compile.ts FOLDER BACKEND N` writes a JSON line before and after each kernel to
 * FOLDER/compiled.jsonl. What that file has is not begun again, so that a driver's crash costs its kernel alone.
 */
import { modelOf } from "../../src/algorithms/device/known.ts";
import { tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal } from "../../src/algorithms/refusal.ts";
import { readGemmSuite, readSuite } from "../../src/bench/suite_files.ts";
import { openDevice } from "../../src/gpu/device.ts";
import type { GpuDevice } from "../../src/gpu/gpu_device.ts";
import { pipelineOf, pipelinesOf } from "../../src/gpu/prepare.ts";
import type { Backend } from "../../src/gpu/provider.ts";
import { matrixPolicies } from "../../src/kernels/matrix_policies.ts";
import type { MatrixUnits } from "../../src/kernels/matrix_units.ts";
import { kernels } from "../matrix_kernels.ts";
import { canonicalName, type Kernel } from "../../src/kernels/kernel.ts";
import { CONV_DTYPES, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { gemmSubject } from "../../src/run/gemm_subject.ts";
import { everyKernel } from "../compilers/kernels/every.ts";
import { request } from "../plan_request.ts";

interface Wanted {
  readonly kernel: Kernel;
  readonly auto: boolean;
}

/** What `auto` takes of layers of every kind and of products, in all operations and types that the device has. */
function autoKernels(gpu: GpuDevice, every: number): Wanted[] {
  const planning = {
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight, undefined, gpu.info.adapter),
    ...(gpu.matrixUnits && { matrixUnits: gpu.matrixUnits }),
  };
  const problems = ["networks", "resnet3x3", "more_networks"].flatMap((name) =>
    readSuite(`bench/suites/${name}.txt`).filter((_, i) => i % (2 * every) === 0)
  );
  const dtypes = CONV_DTYPES.filter((dtype) => dtype !== "f16" || gpu.features.has("shader-f16"));
  const plans = dtypes.flatMap((dtype) => {
    const products = readGemmSuite("bench/suites/gemm.txt").map((problem) =>
      gemmSubject(problem, { dtype }).planner.plan(planning)
    );
    const ops = dtype === "i8" ? ["fwd" as const] : OPERATIONS;
    const layouts = dtype === "i8" ? ["nhwc" as const] : ["nhwc" as const, "nchw" as const];
    const convolutions = problems.flatMap((problem) =>
      ops.flatMap((op) =>
        layouts.map((layout) =>
          tryPlanConv(request({ ...problem, op }, { ...planning, dtype, layout }))
        )
      )
    );
    return [...convolutions, ...products];
  });
  return plans.flatMap((plan) => isRefusal(plan) ? [] : plan.passes)
    .map(({ kernel }) => ({ kernel, auto: true }));
}

/** Of kernels that differ in baked sizes alone the first, within the device's limits. */
function distinct(wanted: readonly Wanted[], { limits, features }: GpuDevice): Wanted[] {
  const fits = ({ kernel }: Wanted) =>
    kernel.workgroupBytes <= limits.maxComputeWorkgroupStorageSize &&
    kernel.workgroupSize.reduce((a, b) => a * b) <= limits.maxComputeInvocationsPerWorkgroup &&
    kernel.bindings.length <= limits.maxStorageBuffersPerShaderStage &&
    kernel.features.every((name) => features.has(name));
  const first = new Map<string, Wanted>();
  for (const one of wanted.filter(fits)) {
    const name = canonicalName(one.kernel);
    if (!first.has(name)) first.set(name, one);
  }
  return [...first.values()];
}

/** Products on each of the device's matrix units, whatever the tile. */
function unitKernels({ lanes, units }: MatrixUnits): Kernel[] {
  return units.flatMap((unit) => {
    const dtype = unit.component;
    return matrixPolicies(unit, lanes).length === 0 ? [] : kernels({ unit, lanes, dtype });
  });
}

const [folder, backend, every = "16"] = Deno.args;
const path = `${folder}/compiled.jsonl`;
Deno.openSync(path, { create: true, append: true }).close();
const begun = new Set(
  Deno.readTextFileSync(path).split("\n").map((line) => line && JSON.parse(line).begin),
);
const write = (line: unknown) =>
  Deno.writeTextFileSync(path, JSON.stringify(line) + "\n", { append: true });
// As commands open it.
const gpu = await openDevice({
  backend: backend as Backend,
  robust: false,
  optionalFeatures: ["shader-f16"],
});
write({ device: gpu.info.adapter, units: gpu.matrixUnits?.units.length ?? 0 });
const forced = [...everyKernel(), ...(gpu.matrixUnits ? unitKernels(gpu.matrixUnits) : [])].filter((
  _,
  i,
) => i % Number(every) === 0)
  .map((kernel) => ({ kernel, auto: false }));
for (
  const { kernel, auto } of distinct([...autoKernels(gpu, Number(every)), ...forced], gpu)
) {
  const { name } = kernel;
  if (begun.has(name)) continue;
  write({ begin: name });
  // The layer cannot know it otherwise.
  Deno.env.set("WGCONV_MACHINE_CODE_KERNEL", name);
  const error = await pipelineOf(gpu, kernel).then(() => undefined, (error) => String(error));
  pipelinesOf(gpu).delete(name);
  write({ end: name, auto, ...(error && { error: error.slice(0, 800) }) });
}
Deno.exit(0);
