/**
 * How fast threads multiply whose loop does nothing else, by the length of its text, by threads and their results, with and without
 * loads from workgroup memory and a barrier: what of a main loop's time is its products' (docs/performance/machine_code.md).
 *   deno run -A bench/product_rate.ts [--match '8x16 256.*registers'] [--multiprocessors 132] [--mhz 1980] [--backend dawn]
 * TFLOP/s of the device, and the share of 128 products a clock and multiprocessor; a workgroup a multiprocessor. The clock is the
 * highest of an H200 where nothing is said.
 */
import { parseArgs } from "node:util";
import { openDevice } from "../src/gpu/device.ts";
import { parsePattern } from "../src/cli/values.ts";
import { timeProbe } from "./probes/probe.ts";
import {
  productCount,
  productFault,
  productLoopName,
  productLoopProbe,
  productLoops,
} from "./probes/products.ts";

const { values } = parseArgs({
  options: {
    match: { type: "string", default: "" },
    multiprocessors: { type: "string", default: "132" },
    mhz: { type: "string", default: "1980" },
    backend: { type: "string", default: "wgpu" },
  },
});
const backend = values.backend === "dawn" ? "dawn" : "wgpu";
using gpu = await openDevice({ backend, robust: false });
const workgroups = Number(values.multiprocessors);
const clocks = workgroups * Number(values.mhz) * 1e6;
const pattern = parsePattern(values.match);
console.log(gpu.info.adapter);
console.log(`${"loop".padEnd(62)} TFLOP/s  share`);
for (const loop of productLoops().filter((one) => pattern.test(productLoopName(one)))) {
  const rounds = gpu.info.software ? 4 : Math.round(8192 / loop.depth);
  const { ns, result } = await timeProbe(gpu, productLoopProbe(loop, rounds, workgroups));
  const wrong = productFault(loop, rounds, result);
  if (wrong >= 0) throw new Error(`${productLoopName(loop)} leaves ${result[wrong]} at ${wrong}`);
  const rate = productCount(loop, rounds, workgroups) / ns * 1e9;
  console.log(
    `${productLoopName(loop).padEnd(62)} ${(2 * rate / 1e12).toFixed(1).padStart(7)}  ${
      (rate / clocks / 128).toFixed(3)
    }`,
  );
}
