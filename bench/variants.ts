/**
 * Times variants of algorithms on the GPU at hand, and compares each result with the first variant's:
 *   deno run -A bench/variants.ts DESCRIPTORS OPS LAYOUTS VARIANTS
 * Lists are separated by semicolons. A variant is algorithm:tile:policy:splits:pair:flush:without:balance, all but
 * the first empty for the planner's choice; `without` lists techniques of the main loop, with + between them. One line a case: TFLOP/s of direct flops, relative L2 distance from the first, workspace.
 */
import type { Balance } from "../src/algorithms/balance.ts";
import { modelOf } from "../src/algorithms/device/h200.ts";
import { planConv } from "../src/algorithms/planner.ts";
import type { AlgorithmName } from "../src/algorithms/names.ts";
import { download, upload } from "../src/gpu/buffers.ts";
import { openDevice } from "../src/gpu/device.ts";
import { createPlanBuffers, execute, preparePlan } from "../src/gpu/execute.ts";
import { parseVariant } from "../src/kernels/main_loop_variant.ts";
import {
  type ConvProblem,
  directFlops,
  OPERATIONS,
  resultTensor,
} from "../src/problem/conv_problem.ts";
import { parseDescriptors } from "../src/problem/descriptor.ts";
import { NO_EPILOGUE } from "../src/problem/epilogue.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { filterLayoutFor, type Layout, LAYOUTS } from "../src/tensor/layout.ts";

const [descriptors = "", ops = "fwd", layouts = "nchw", variants = "auto"] = Deno.args;
/** The first megaword of a result is compared. */
const COMPARED = 2 ** 20;
const made = new Map<string, Float32Array<ArrayBuffer>>();
const list = (text: string) => text.split(";").filter((one) => one !== "");
using gpu = await openDevice();
console.log(gpu.info.adapter);
for (const base of list(descriptors).flatMap((text) => parseDescriptors(text))) {
  for (const op of OPERATIONS.filter((op) => list(ops).includes(op))) {
    for (const layout of LAYOUTS.filter((layout) => list(layouts).includes(layout))) {
      const problem = { ...base, op };
      console.log(`${problem.name ?? ""} ${op} ${layout}`);
      let first: Float32Array | undefined;
      for (const variant of list(variants)) {
        try {
          first = await time(problem, layout, variant, first);
        } catch (error) {
          console.log(`  ${variant}: ${error instanceof Error ? error.message : error}`);
        }
      }
    }
  }
}

/** Data is made once for all variants of a size. */
function operand(count: number, seed: number): Float32Array<ArrayBuffer> {
  const key = `${count},${seed}`;
  const known = made.get(key);
  if (known !== undefined) return known;
  if (made.size > 4) made.clear();
  const { data } = fillTensor("f32", [count], "uniform11", seed);
  made.set(key, data);
  return data;
}

async function time(
  problem: ConvProblem,
  layout: Layout,
  variant: string,
  first: Float32Array | undefined,
): Promise<Float32Array> {
  const [
    algorithm = "auto",
    tile = "",
    policy = "",
    splits = "",
    pair = "",
    flush = "",
    without = "",
    balance = "",
  ] = variant.split(":");
  const mainLoop = parseVariant(without.split("+").filter((name) => name !== ""), []);
  const plan = planConv({
    problem,
    dtype: "f32",
    layout,
    filterLayout: filterLayoutFor(layout),
    epilogue: NO_EPILOGUE,
    algorithm: algorithm as AlgorithmName | "auto",
    ...(tile === "" ? {} : { tile }),
    ...(policy === "" ? {} : { policy }),
    ...(splits === "" ? {} : { splits: Number(splits) }),
    ...(pair === "" ? {} : { pair }),
    ...(flush === "" ? {} : { flush: Number(flush) }),
    ...(balance === "" ? {} : { balance: balance as Balance }),
    ...(mainLoop === undefined ? {} : { variant: mainLoop }),
    limits: gpu.limits,
    device: modelOf(gpu.workgroupsInFlight),
  });
  using buffers = createPlanBuffers(gpu, plan);
  plan.buffers.forEach((buffer, place) => {
    if (buffer.role === "workspace" || buffer.role === resultTensor(problem.op)) return;
    upload(gpu, buffers.buffers[place]!, 0, operand(buffer.bytes / 4, 1 + place));
  });
  using prepared = await preparePlan(gpu, plan, buffers);
  const once = await execute(gpu, prepared, { samples: 1, repeats: 2, warmup: 1 });
  const repeats = Math.max(1, Math.ceil(5e6 / once.samplesNs[0]!));
  // An idle GPU clocks down; a quarter of a second of work brings it back.
  const warmup = gpu.info.software ? 0 : 50 * repeats;
  const timed = await execute(gpu, prepared, { samples: 5, repeats, warmup });
  const median = timed.samplesNs.toSorted((a, b) => a - b)[timed.samplesNs.length >> 1]!;
  const result = buffers.get(resultTensor(problem.op));
  const values = new Float32Array(Math.min(COMPARED, result.size / 4));
  await download(gpu, result, 0, values.byteLength, new Uint8Array(values.buffer));
  let [difference, norm] = [0, 0];
  values.forEach((value, i) => {
    const expected = first?.[i] ?? value;
    difference += (value - expected) ** 2;
    norm += expected ** 2;
  });
  const rate = (directFlops(problem) / median / 1e3).toFixed(1);
  const distance = Math.sqrt(difference / norm).toExponential(1);
  const megabytes = (plan.workspaceBytes / 2 ** 20).toFixed(0);
  console.log(
    `  ${rate.padStart(6)} TFLOP/s  ${
      (median / 1e3).toFixed(1).padStart(8)
    } us  ${distance}  ${megabytes} MiB  ${variant}  ${plan.kernel}`,
  );
  return first ?? values;
}
