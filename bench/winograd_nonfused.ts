/**
 * Times the passes of winograd2d-nonfused on the GPU at hand, and whole plans by chunk size:
 *   deno run -A bench/winograd_nonfused.ts [DESCRIPTORS] [OPS] [LAYOUTS] [TILES] [MIB]
 * Comma lists. TILES: of the forward operations, `auto` for the default. MIB: limits of the workspace, 0 for the default.
 * Direct TFLOP/s; microseconds; a pass alone is timed without the ones before it.
 */
import { modelOf } from "../src/algorithms/device/h200.ts";
import type { Plan } from "../src/algorithms/plan.ts";
import { planConv } from "../src/algorithms/planner.ts";
import { timePlan } from "../src/run/timing.ts";
import { upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, preparePlan } from "../src/gpu/execute.ts";
import { directFlops, OPERATIONS } from "../src/problem/conv_problem.ts";
import { parseDescriptor } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, LAYOUTS } from "../src/tensor/layout.ts";

const RESNET = [
  'mb64ic64ih56oc64oh56kh3ph1n"Conv2N64"',
  'mb64ic128ih28oc128oh28kh3ph1n"Conv3N64"',
  'mb64ic256ih14oc256oh14kh3ph1n"Conv4N64"',
  'mb64ic512ih7oc512oh7kh3ph1n"Conv5N64"',
].join(",");
const [descriptors, ops = "fwd", layouts = "nchw", tiles = "auto", mebibytes = "0"] = Deno.args;

using gpu = await openDevice();
console.log(gpu.info.adapter);
for (const descriptor of (descriptors || RESNET).split(",")) {
  for (const op of OPERATIONS.filter((one) => ops.split(",").includes(one))) {
    for (const layout of LAYOUTS.filter((one) => layouts.split(",").includes(one))) {
      for (const tile of splitTiles(tiles)) {
        for (const limit of mebibytes.split(",").map(Number)) {
          await measure(descriptor, op, layout, tile, limit);
        }
      }
    }
  }
}

async function measure(
  descriptor: string,
  op: typeof OPERATIONS[number],
  layout: typeof LAYOUTS[number],
  tile: string,
  limit: number,
): Promise<void> {
  const problem = { ...parseDescriptor(descriptor), op };
  const plan = planConv({
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: "winograd2d-nonfused",
    ...(tile === "auto" ? {} : { tile }),
    ...(limit === 0 ? {} : { maxWorkspaceBytes: limit * 1024 * 1024 }),
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight),
  });
  using buffers = createPlanBuffers(gpu, plan);
  plan.buffers.forEach(({ bytes }, place) => {
    const data = fillTensor("f32", [Math.min(bytes / 4, 2 ** 24)], "uniform11", place).data;
    for (let at = 0; at < bytes; at += 4 * data.length) {
      const part = data.subarray(0, Math.min(data.length, (bytes - at) / 4));
      upload(gpu, buffers.buffers[place]!, at, part);
    }
  });
  const whole = await microseconds(plan, buffers);
  const rate = directFlops(problem) / whole / 1e6;
  console.log(
    `${problem.name} ${op} ${layout} ${tile} ${limit || "default"} MiB: ${whole.toFixed(1)} us, ` +
      `${rate.toFixed(1)} TFLOP/s, ${(plan.workspaceBytes / 2 ** 20).toFixed(0)} MiB`,
  );
  for (const note of plan.notes) console.log(`  ${note}`);
  const seen = new Set<string>();
  for (const pass of plan.passes) {
    if (seen.has(pass.kernel.name)) continue;
    seen.add(pass.kernel.name);
    const times = plan.passes.filter(({ kernel }) => kernel.name === pass.kernel.name).length;
    const alone = await microseconds({ ...plan, passes: [pass] }, buffers);
    console.log(`  ${times} x ${alone.toFixed(1)} us ${pass.kernel.name}`);
  }
}

async function microseconds(
  plan: Plan,
  buffers: ReturnType<typeof createPlanBuffers>,
): Promise<number> {
  using prepared = await preparePlan(gpu, plan, buffers);
  return 1000 * (await timePlan(gpu, [prepared], { samples: 9, fillMs: 5 })).median;
}

/** `F(2x2,3x3),auto` holds commas of two kinds. */
function splitTiles(list: string): string[] {
  return list.match(/F\([^)]*\)|auto/g) ?? ["auto"];
}
