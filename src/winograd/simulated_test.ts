import assert from "#assert";
import { gateFor, independentErrors, judge } from "../accuracy/mod.ts";
import { amplification, amplification2d } from "./amplification.ts";
import { makeMatrix, type Matrix, rational } from "./matrix.ts";
import {
  type Algorithm,
  algorithm1d,
  algorithm2d,
  reportOf,
  type SimulatedResults,
  simulateWinograd,
  UNIT_ROUNDOFF,
} from "./simulated.ts";
import { type WinogradTransform, winogradTransform } from "./transform.ts";

/** What the gate makes of simulated results, and how near they come to its limits. */
function judged(simulated: SimulatedResults, amplified: number) {
  const report = reportOf(simulated);
  const gate = gateFor({
    accumulationLength: simulated.length,
    unitRoundoff: UNIT_ROUNDOFF,
    amplification: amplified,
  });
  const { verdict, reasons } = judge(report, gate);
  return {
    verdict,
    reasons,
    bound: report.max_bound_ratio / gate.maxBoundRatio,
    l2: report.rel_l2 / gate.maxRelL2,
  };
}

function cases(): { name: string; algorithm: Algorithm; amplified: number }[] {
  const one = ([[2, 3], [6, 3], [3, 6], [8, 9], [14, 3]] as const).map(([n, r]) => {
    const transform = winogradTransform(n, r);
    return {
      name: `F(${n},${r})`,
      algorithm: algorithm1d(transform),
      amplified: amplification(transform),
    };
  });
  const two = ([[2, 3], [4, 3]] as const).map(([n, r]) => {
    const transform = winogradTransform(n, r);
    return {
      name: `F(${n}x${n},${r}x${r})`,
      algorithm: algorithm2d(transform, transform),
      amplified: amplification2d(transform, transform),
    };
  });
  return [...one, ...two];
}

Deno.test("healthy kernels stay below about half of the gate's limits", () => {
  for (const { name, algorithm, amplified } of cases()) {
    for (const fill of ["uniform01", "normal"] as const) {
      for (const depth of [1, 3, 32, 256]) {
        const simulated = simulateWinograd(algorithm, { fill, depth, filters: 8, tiles: 32 });
        const { verdict, reasons, bound, l2 } = judged(simulated, amplified);
        const what = `${name} ${fill} ${depth}: ${bound} ${l2} ${reasons}`;
        assert.equal(verdict, "pass", what);
        assert.ok(bound < 0.6 && l2 < 0.65, what);
      }
    }
  }
});

Deno.test("channels of one tile of gradients stand out by chance, which the gate allows", () => {
  // As WinRS has it: 36 rows of input meet one transformed gradient a channel, whose errors they share.
  const transform = winogradTransform(6, 11);
  const algorithm = algorithm1d(transform);
  let above = 0;
  for (let seed = 1; seed < 60; seed += 2) {
    const given = { fill: "normal", depth: 1, filters: 8, tiles: 36, seed } as const;
    const simulated = simulateWinograd(algorithm, given);
    const gate = gateFor({
      accumulationLength: simulated.length,
      unitRoundoff: UNIT_ROUNDOFF,
      amplification: amplification(transform),
      independentErrors: independentErrors("bwd-filter", simulated.length),
    });
    const report = reportOf(simulated);
    if (report.channel_rms_ratio > 2) above++;
    assert.deepEqual(judge(report, gate).reasons, []);
  }
  assert.ok(above >= 5, `${above}`);
});

Deno.test("four times the error in one channel is found", () => {
  for (const { name, algorithm, amplified } of cases()) {
    const given = { fill: "uniform01", depth: 32, filters: 8, tiles: 128 } as const;
    const simulated = simulateWinograd(algorithm, given);
    const { results, reference } = simulated;
    const outputs = results.length / 8;
    for (let i = 3 * outputs; i < 4 * outputs; i++) {
      const value = reference.values[i]!;
      results[i] = value + 4 * (results[i]! - value);
    }
    assert.equal(judged(simulated, amplified).verdict, "fail", name);
  }
});

Deno.test("a constant of a transform that is off by 1 % is found", () => {
  for (const [n, r] of [[2, 3], [6, 3], [3, 6], [8, 9], [14, 3]] as const) {
    const transform = winogradTransform(n, r);
    for (const which of ["a", "g", "d"] as const) {
      for (const point of [1, transform.alpha >> 1, transform.alpha - 2]) {
        const wrong = withWrongEntry(transform, which, point);
        const simulated = simulateWinograd(algorithm1d(wrong), {
          fill: "uniform01",
          depth: 16,
          filters: 8,
          tiles: 16,
        });
        const { verdict } = judged(simulated, amplification(transform));
        assert.equal(verdict, "fail", `F(${n},${r}) ${which} ${point}`);
      }
    }
  }
});

/** A transform with 1 % more in the largest entry that a point has in a matrix. */
function withWrongEntry(
  transform: WinogradTransform,
  which: "a" | "g" | "d",
  point: number,
): WinogradTransform {
  const matrix = transform[which];
  const entries = which === "d" ? matrix.map((row) => row[point]!) : matrix[point]!;
  const sizes = entries.map((value) => Math.abs(value.valueOf()));
  const largest = sizes.indexOf(Math.max(...sizes));
  const [row, column] = which === "d" ? [largest, point] : [point, largest];
  const wrong: Matrix = makeMatrix(matrix.length, matrix[0]!.length, (i, j) => {
    const value = matrix[i]![j]!;
    return i === row && j === column ? value.mul(rational("1.01")) : value;
  });
  return { ...transform, [which]: wrong };
}

Deno.test("flushing the accumulator makes long sums more exact", () => {
  const algorithm = algorithm1d(winogradTransform(6, 3));
  const given = { fill: "uniform01", depth: 1024, filters: 8, tiles: 8 } as const;
  const plain = reportOf(simulateWinograd(algorithm, given));
  const flushed = reportOf(simulateWinograd(algorithm, { ...given, flush: 96 }));
  assert.ok(flushed.mare! < plain.mare! / 2, `${flushed.mare} ${plain.mare}`);
});

Deno.test("algorithm2d() computes the correlation of both axes", () => {
  const algorithm = algorithm2d(winogradTransform(2, 3), winogradTransform(4, 5));
  assert.deepEqual([algorithm.alpha, algorithm.taps, algorithm.meets.length], [32, 15, 8]);
  const { rel_l2 } = reportOf(
    simulateWinograd(algorithm, { fill: "normal", depth: 2, filters: 3, tiles: 3 }),
  );
  assert.ok(rel_l2 < 1e-6, `${rel_l2}`);
});
