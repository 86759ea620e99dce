/**
 * How fast threads multiply whose loop does nothing else, by the length of its text, by threads and their results, with and without
 * loads from workgroup memory and a barrier: what of a main loop's time is its products' (docs/performance/machine_code.md).
 *   deno run -A bench/product_rate.ts [--match '8x16 256.*registers'] [--multiprocessors 132] [--mhz 1980] [--backend dawn]
 * TFLOP/s of the device, and the share of 128 products a clock and multiprocessor; a workgroup a multiprocessor. The clock is the
 * highest of an H200 where nothing is said.
 */
import { timeProbe } from "./probes/probe.ts";
import {
  productCount,
  productFault,
  productLoopName,
  productLoopProbe,
  productLoops,
} from "./probes/products.ts";
import { openProbes } from "./probes/run.ts";

const { gpu: opened, multiprocessors: workgroups, clocks, asks } = await openProbes();
using gpu = opened;
console.log(`${"loop".padEnd(62)} TFLOP/s  share`);
for (const loop of productLoops().filter((one) => asks(productLoopName(one)))) {
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
