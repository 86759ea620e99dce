/**
 * Times a convolution's plan pass by pass on the GPU at hand, and whole:
 *   deno run -A bench/passes.ts DESCRIPTOR OPS LAYOUTS
 * OPS and LAYOUTS are comma lists. Microseconds; a pass alone is timed without the ones before it.
 */
import { modelOf } from "../src/algorithms/device/h200.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { timePlan } from "../src/run/timing.ts";
import { upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, preparePlan } from "../src/gpu/execute.ts";
import { OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

const [descriptor = "", ops = "fwd", layouts = "nchw"] = Deno.args;
using gpu = await openDevice();
console.log(gpu.info.adapter);
for (const op of OPERATIONS.filter((one) => ops.split(",").includes(one))) {
  for (const layout of LAYOUTS.filter((one) => layouts.split(",").includes(one))) {
    const plan = planConv({
      problem: { ...parseDescriptor(descriptor), op },
      dtype: "f32",
      layout,
      filterLayout: filterLayoutFor(layout),
      epilogue: NO_EPILOGUE,
      algorithm: "implicit-gemm",
      limits: gpu.limits,
      device: modelOf(gpu.workgroupsInFlight),
    });
    console.log(`${op} ${layout}: ${(await microseconds(plan)).toFixed(1)} us whole`);
    for (const pass of plan.passes) {
      const alone = await microseconds({ ...plan, passes: [pass] });
      console.log(`  ${alone.toFixed(1)} us ${pass.kernel.name}`);
    }
  }
}

async function microseconds(plan: Plan): Promise<number> {
  using buffers = createPlanBuffers(gpu, plan);
  plan.buffers.forEach(({ bytes }, place) => {
    const data = fillTensor("f32", [bytes / 4], "uniform11", place).data;
    upload(gpu, buffers.buffers[place]!, 0, data);
  });
  using prepared = await preparePlan(gpu, plan, buffers);
  return 1000 * (await timePlan(gpu, [prepared], { samples: 9, fillMs: 5 })).median;
}
