/**
 * How fast threads load from workgroup memory and store to it, by width and stride (openCNN's Table 1), without a GPU's
 * machine code: the kernels do nothing else.
 *   deno run -A bench/workgroup_memory.ts [--match 'STS.*stride 4'] [--multiprocessors 132] [--mhz 1980] [--backend dawn]
 * TB/s of the device, and bytes a clock and multiprocessor, of which 128 is what NVIDIA's 32 banks have. `half`: 16 of 32
 * threads rest, as in openCNN's Figure 5. The clock is the highest of an H200 where nothing is said.
 */
import { timeProbe } from "./probes/probe.ts";
import { openProbes } from "./probes/run.ts";
import { wayBytes, wayFault, wayName, wayProbe, ways } from "./probes/workgroup_memory.ts";

const { gpu: opened, multiprocessors, clocks, asks } = await openProbes();
using gpu = opened;
const { software } = gpu.info;
const [rounds, workgroups] = software ? [8, 8] : [256, 16 * multiprocessors];
console.log("way                       TB/s  bytes/clock");
for (const way of ways().filter((one) => asks(wayName(one)))) {
  const { ns, result } = await timeProbe(gpu, wayProbe(way, rounds, workgroups));
  const wrong = wayFault(way, rounds, result);
  if (wrong >= 0) throw new Error(`${wayName(way)} leaves ${result[wrong]} at ${wrong}`);
  const rate = wayBytes(way, rounds, workgroups) / ns * 1e9;
  console.log(
    `${wayName(way).padEnd(22)} ${(rate / 1e12).toFixed(3).padStart(7)}  ${
      (rate / clocks).toFixed(1).padStart(11)
    }`,
  );
}
