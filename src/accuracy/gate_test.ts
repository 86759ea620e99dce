import assert from "#assert";
import type { Operation } from "../problem/conv_problem.ts";
import { channelRmsLimit, gateFor, independentErrors, judge, measureAccuracy } from "./mod.ts";
import {
  KERNELS,
  simulate,
  type SimulatedCase,
  simulatedCase,
  type SimulatedData,
} from "./simulated.ts";

const UNIT_ROUNDOFF = 2 ** -24;
const CHANNELS = 32;
const OUTPUTS = 64;

function check(given: SimulatedCase, results: Float32Array) {
  const { channels, outputs, depth } = given;
  const report = measureAccuracy(results, given.reference, {
    strides: [channels * outputs, outputs, 1],
    channelAxis: 1,
    unitRoundoff: UNIT_ROUNDOFF,
    lengths: given.lengths,
  });
  const gate = gateFor({ accumulationLength: depth, unitRoundoff: UNIT_ROUNDOFF });
  return { report, ...judge(report, gate) };
}

for (const fill of ["uniform01", "normal"] as const) {
  for (const depth of [288, 4608]) {
    Deno.test(`judge() passes healthy kernels and finds one bad channel: ${fill}, depth ${depth}`, async () => {
      const given = await simulatedCase(fill, depth, CHANNELS, OUTPUTS);
      for (const [name, kernel] of Object.entries(KERNELS)) {
        const results = simulate(given, kernel);
        const healthy = check(given, results);
        assert.deepEqual([healthy.verdict, healthy.reasons], ["pass", []], name);
        for (const channel of [0, 13, CHANNELS - 1]) {
          const bad = results.slice();
          for (let i = channel * OUTPUTS; i < (channel + 1) * OUTPUTS; i++) {
            const ref = given.reference.values[i]!;
            bad[i] = ref + 4 * (bad[i]! - ref);
          }
          const found = check(given, bad);
          assert.equal(found.verdict, "fail", `${name}, channel ${channel}`);
          assert.equal(found.report.worst_channel, channel);
          assert.match(found.reasons.join("; "), new RegExp(`RMS error of channel ${channel} `));
          // What the gate has to be better than: one RMS over everything.
          assert.ok(found.report.rel_l2 < 2 * healthy.report.rel_l2);
        }
      }
    });

    Deno.test(`judge() finds gross errors: ${fill}, depth ${depth}`, async () => {
      const given = await simulatedCase(fill, depth, CHANNELS, OUTPUTS);
      const results = simulate(given, KERNELS.fused!);
      const broken = (change: (values: Float32Array) => void) => {
        const copy = results.slice();
        change(copy);
        return check(given, copy);
      };
      const one = broken((y) => y[77] = y[77]! * 1.001 + 0.01);
      assert.equal(one.verdict, "fail");
      assert.deepEqual(one.report.worst[0]?.index, [0, 1, 13]);
      const nan = broken((y) => y[5] = NaN);
      assert.deepEqual([nan.verdict, nan.report.nan, nan.report.mismatched], ["fail", 1, 1]);
      assert.deepEqual(nan.report.worst[0]?.index, [0, 0, 5]);
      assert.deepEqual(nan.reasons, [
        "1 output is NaN or infinite where the reference is not the same, or the other way round",
      ]);
      assert.equal(broken((y) => y[5] = Infinity).verdict, "fail");
      const zeros = broken((y) => y.fill(0));
      assert.deepEqual([zeros.verdict, zeros.report.rel_l2], ["fail", 1]);
      const swapped = broken((y) => {
        const first = y.slice(0, OUTPUTS);
        y.copyWithin(0, OUTPUTS, 2 * OUTPUTS);
        y.set(first, OUTPUTS);
      });
      assert.equal(swapped.verdict, "fail");
    });
  }
}

const UNLIKE_CHANNELS: { readonly [name: string]: SimulatedData } = {
  "activations and signed filters": { input: "uniform01", filter: "normal" },
  "activations and filters of either sign": { input: "uniform01", filter: "uniform11" },
  "one dense filter beside sparse ones": {
    input: "uniform01",
    filter: "uniform01",
    dropped: (channel, tap) => channel > 0 && tap % 25 !== channel % 25,
  },
  "half of the filters sparse": {
    input: "uniform01",
    filter: "normal",
    dropped: (channel, tap) => channel % 2 === 0 && (tap * 7 + channel) % 9 !== 0,
  },
  "filters of every sparsity": {
    input: "normal",
    filter: "normal",
    dropped: (channel, tap) => (tap * 13 + channel * 5) % CHANNELS > channel,
  },
};

for (const [name, data] of Object.entries(UNLIKE_CHANNELS)) {
  Deno.test(`judge() passes healthy channels that differ: ${name}`, async () => {
    let found = 0;
    let tried = 0;
    for (const depth of [25, 288, 1024]) {
      for (const seed of [1, 2, 3]) {
        const given = await simulatedCase(data, depth, CHANNELS, OUTPUTS, seed);
        for (const [kernelName, kernel] of Object.entries(KERNELS)) {
          const results = simulate(given, kernel);
          const { verdict, reasons } = check(given, results);
          assert.deepEqual([verdict, reasons], ["pass", []], `${kernelName}, ${depth}, ${seed}`);
          const channel = (7 * tried) % CHANNELS;
          for (let i = channel * OUTPUTS; i < (channel + 1) * OUTPUTS; i++) {
            const ref = given.reference.values[i]!;
            results[i] = ref + 6 * (results[i]! - ref);
          }
          tried++;
          if (check(given, results).verdict === "fail") found++;
        }
      }
    }
    assert.ok(found >= 0.7 * tried, `${found} of ${tried} bad channels were found`);
  });
}

Deno.test("judge() passes results that are right to the last place of subnormal numbers", () => {
  const values = Float64Array.from({ length: 64 }, (_, i) => (i + 0.4) * 2 ** -140);
  const reference = { values, magnitudes: values, shape: [1, 1, 64] };
  const options = { strides: [64, 64, 1], channelAxis: 1, unitRoundoff: UNIT_ROUNDOFF };
  const gate = gateFor({ accumulationLength: 9, unitRoundoff: UNIT_ROUNDOFF });
  for (const got of [Float32Array.from(values), new Float32Array(64)]) {
    assert.deepEqual(judge(measureAccuracy(got, reference, options), gate).reasons, []);
  }
});

Deno.test("judge() passes exact results of integers, and finds one that is off", async () => {
  const given = await simulatedCase("integer", 288, CHANNELS, OUTPUTS);
  const results = simulate(given, KERNELS.fused!);
  const exact = check(given, results);
  assert.deepEqual([exact.verdict, exact.report.max_bound_ratio], ["pass", 0]);
  assert.deepEqual([exact.report.mare, exact.report.channel_rms_ratio], [0, 0]);
  results[9]! += 1;
  assert.equal(check(given, results).verdict, "fail");
});

Deno.test("judge() passes a single channel, and single outputs", async () => {
  for (const [channels, outputs] of [[1, 64], [1, 1], [16, 1], [2, 2]] as const) {
    for (const depth of [1, 9, 288]) {
      const given = await simulatedCase("normal", depth, channels, outputs);
      const { verdict, reasons } = check(given, simulate(given, KERNELS.fused!));
      assert.deepEqual([verdict, reasons], ["pass", []], `${channels}x${outputs}, ${depth}`);
    }
  }
});

Deno.test("judge() counts equal outputs of a channel once: constant data passes", async () => {
  const given = await simulatedCase("uniform01", 288, CHANNELS, OUTPUTS);
  const results = simulate(given, KERNELS.fused!);
  // Two sums in turn a channel, as the inside and the edges of a flat image give.
  const source = (i: number) => i - i % OUTPUTS + i % 2;
  const { values, magnitudes, shape } = given.reference;
  const reference = {
    shape,
    values: values.map((_, i) => values[source(i)]!),
    magnitudes: magnitudes.map((_, i) => magnitudes[source(i)]!),
  };
  const flat = { ...given, reference };
  const { report, verdict, reasons } = check(flat, results.map((_, i) => results[source(i)]!));
  assert.deepEqual([verdict, reasons], ["pass", []]);
  assert.equal(report.worst_channel_checked, 2);
  assert.ok(report.channel_rms_ratio > 2, "this is no test of the rule");
});

Deno.test("judge() allows more relative error where the data cancels", () => {
  const reference = {
    values: Float64Array.of(1e-3, -1e-3),
    magnitudes: Float64Array.of(1, 1),
    shape: [1, 1, 2],
  };
  const options = { strides: [2, 2, 1], channelAxis: 1, unitRoundoff: UNIT_ROUNDOFF };
  const gate = gateFor({ accumulationLength: 9, unitRoundoff: UNIT_ROUNDOFF });
  const rounded = reference.values.map((value) => value + 0.5 * UNIT_ROUNDOFF);
  const report = measureAccuracy(rounded, reference, options);
  assert.ok(report.rel_l2 > gate.maxRelL2);
  assert.equal(judge(report, gate).verdict, "pass");
  const wrong = reference.values.map((value) => value + 3 * UNIT_ROUNDOFF);
  assert.equal(judge(measureAccuracy(wrong, reference, options), gate).verdict, "fail");
});

Deno.test("judge() fails where nothing was checked", () => {
  const gate = gateFor({ accumulationLength: 9, unitRoundoff: UNIT_ROUNDOFF });
  const options = { strides: [1, 1, 1], channelAxis: 1, unitRoundoff: UNIT_ROUNDOFF };
  for (const value of [[], [NaN]]) {
    const values = Float64Array.from(value);
    const reference = { values, magnitudes: values, shape: [1, 1, values.length] };
    const verdict = judge(measureAccuracy(values, reference, options), gate);
    assert.deepEqual(verdict, { verdict: "fail", reasons: ["no finite output was checked"] });
  }
});

Deno.test("gateFor() follows √L, the amplification and the activation", () => {
  const gate = gateFor({ accumulationLength: 400, unitRoundoff: 2 ** -24, amplification: 3 });
  assert.deepEqual([gate.maxBoundRatio, gate.maxChannelRmsRatio], [120 * (1 + 24 / 400), 2]);
  assert.equal(gate.maxRelL2, 60 * 2 ** -24);
  const tanh = gateFor({ accumulationLength: 400, unitRoundoff: 2 ** -24, activation: "tanh" });
  assert.equal(tanh.maxBoundRatio, 56);
});

/** 216 results of each of 8 channels, rounded; errors of the sixth `factor` times as large. */
function rounded(factor: number) {
  const values = Float64Array.from({ length: 8 * 216 }, (_, i) => Math.sqrt(i + 2));
  const results = Float32Array.from(values, (value, i) => {
    const error = Math.fround(value) - value;
    return Math.floor(i / 216) === 5 ? value + factor * error : value + error;
  });
  return measureAccuracy(
    results,
    { values, magnitudes: values, shape: [8, 216] },
    { strides: [216, 1], channelAxis: 0, unitRoundoff: UNIT_ROUNDOFF },
  );
}

Deno.test("channelRmsLimit() allows Winograd's few shared errors their chance", () => {
  const report = rounded(1);
  const limit = (op: Operation, accumulationLength: number) =>
    channelRmsLimit(
      report,
      gateFor({
        accumulationLength,
        unitRoundoff: UNIT_ROUNDOFF,
        amplification: 365,
        independentErrors: independentErrors(op, accumulationLength),
      }),
    );
  // What bench/winograd_channels.ts found: WinRS of one row of 14 gradients, of two, F(6x6,3x3) of one channel.
  assert.ok(limit("bwd-filter", 14) > 4.92 && limit("bwd-filter", 14) < 6.5);
  assert.ok(limit("bwd-filter", 28) > 3.05 && limit("bwd-filter", 28) < 4);
  assert.ok(limit("fwd", 9) > 2.32 && limit("fwd", 9) < 3.5);
  assert.equal(limit("bwd-filter", 160), 2);
  assert.equal(limit("fwd", 40), 2);
  const plain = gateFor({ accumulationLength: 14, unitRoundoff: UNIT_ROUNDOFF });
  assert.equal(channelRmsLimit(report, plain), 2);
});

Deno.test("judge() finds a bad channel of Winograd's with few input channels too", () => {
  for (
    const [op, length, factor] of [["fwd", 9, 5], ["bwd-data", 9, 5], [
      "bwd-filter",
      28,
      6,
    ]] as const
  ) {
    const gate = gateFor({
      accumulationLength: length,
      unitRoundoff: UNIT_ROUNDOFF,
      amplification: 100,
      independentErrors: independentErrors(op, length),
    });
    assert.equal(judge(rounded(1), gate).verdict, "pass", op);
    const { verdict, reasons } = judge(rounded(factor), gate);
    assert.equal(verdict, "fail", op);
    assert.match(reasons.join(), /^RMS error of channel 5 over/);
  }
});
