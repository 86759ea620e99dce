/**
 * What the gate's constants come from: errors of simulated f32 kernels, as docs/accuracy.md quotes them.
 * `deno run -A bench/accuracy_bench.ts [metrics | channels]`
 */
import {
  type AccuracyReport,
  channelRmsLimit,
  gateFor,
  measureAccuracy,
} from "../src/accuracy/mod.ts";
import { KERNELS, simulate, type SimulatedCase, simulatedCase } from "../src/accuracy/simulated.ts";

const UNIT_ROUNDOFF = 2 ** -24;

function measure(given: SimulatedCase, results: Float32Array): AccuracyReport {
  return measureAccuracy(results, given.reference, {
    strides: [given.channels * given.outputs, given.outputs, 1],
    channelAxis: 1,
    unitRoundoff: UNIT_ROUNDOFF,
  });
}

/** How large the figures of healthy kernels are, in units of their limits' formulas. */
async function metrics(): Promise<void> {
  console.log("64 channels of 64 outputs; u = 2^-24, L = depth");
  console.log("fill      depth kernel        bound ratio / √L  rel L2 / √L·u  L2 / u·‖Σ|a||b|‖");
  for (const fill of ["uniform01", "uniform11", "normal"] as const) {
    for (const depth of [1, 9, 64, 288, 1152, 4608]) {
      const given = await simulatedCase(fill, depth, 64, 64);
      for (const [name, kernel] of Object.entries(KERNELS)) {
        const report = measure(given, simulate(given, kernel));
        const root = Math.sqrt(depth);
        console.log(
          `${fill.padEnd(10)}${`${depth}`.padEnd(6)}${name.padEnd(14)}` +
            report.max_bound_ratio.toFixed(2).padStart(11) +
            (report.max_bound_ratio / root).toFixed(2).padStart(5) +
            (report.rel_l2 / root / UNIT_ROUNDOFF).toFixed(3).padStart(15) +
            (report.rel_l2 / report.condition / UNIT_ROUNDOFF).toFixed(3).padStart(18),
        );
      }
    }
  }
}

/** How often the channel rule cries wolf, and how often it finds one channel with four times the error. */
async function channels(): Promise<void> {
  const depth = 64;
  const gate = gateFor({ accumulationLength: depth, unitRoundoff: UNIT_ROUNDOFF });
  console.log(
    "one accumulator, depth 64; ratio of the worst channel's RMS to the median channel's",
  );
  console.log("fill      channels outputs trials  ratio p50   p99   max  limit  alarms  found");
  for (const fill of ["uniform01", "normal"] as const) {
    for (
      const [count, outputs] of [[2, 64], [8, 16], [64, 4], [64, 16], [64, 64], [512, 64]] as const
    ) {
      const trials = Math.min(1000, Math.ceil(3e7 / (count * outputs * depth)));
      const ratios = new Float64Array(trials);
      let limit = 0, alarms = 0, found = 0;
      for (let trial = 0; trial < trials; trial++) {
        const given = await simulatedCase(fill, depth, count, outputs, 2 * trial);
        const results = simulate(given, KERNELS.fused!);
        const healthy = measure(given, results);
        limit = channelRmsLimit(healthy, gate);
        ratios[trial] = healthy.channel_rms_ratio;
        if (healthy.channel_rms_ratio > limit) alarms++;
        const first = (trial % count) * outputs;
        for (let i = first; i < first + outputs; i++) {
          const ref = given.reference.values[i]!;
          results[i] = ref + 4 * (results[i]! - ref);
        }
        const bad = measure(given, results);
        if (bad.channel_rms_ratio > channelRmsLimit(bad, gate)) found++;
      }
      ratios.sort();
      console.log(
        `${fill.padEnd(10)}${`${count}`.padEnd(9)}${`${outputs}`.padEnd(8)}${
          `${trials}`.padEnd(6)
        }` +
          ratios[trials >> 1]!.toFixed(2).padStart(11) +
          ratios[Math.floor(0.99 * trials)]!.toFixed(2).padStart(6) +
          ratios.at(-1)!.toFixed(2).padStart(6) + limit.toFixed(2).padStart(7) +
          `${alarms}`.padStart(8) + `${(100 * found / trials).toFixed(1)} %`.padStart(8),
      );
    }
  }
}

const [what] = Deno.args;
if (what !== "channels") await metrics();
if (what !== "metrics") await channels();
