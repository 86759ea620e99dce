import assert from "#assert";
import { F32 } from "../accuracy/mod.ts";
import {
  convProblem,
  operandTensors,
  type Operation,
  OPERATIONS,
  tensorShape,
} from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { AxisTile } from "../problem/plan_arithmetic.ts";
import { fillTensor } from "../tensor/fill.ts";
import { simulateConv } from "../../tests/support/simulate_conv.ts";

function simulated(op: Operation, axes: readonly AxisTile[], size: number) {
  const problem = convProblem({
    ...{ op, batch: 2, inChannels: 6, outChannels: 4, padding: 1 },
    ...{ inputSize: axes.map(() => size), filterSize: axes.map(() => 3) },
  });
  const inputs = Object.fromEntries(
    operandTensors(op).map((which, i) => {
      const { data } = fillTensor("f32", tensorShape(problem, which), "normal", i);
      return [which, { data, layout: which === "filter" ? "kcrs" : "nchw" } as const];
    }),
  );
  const asked = { problem, inputs, epilogue: NO_EPILOGUE, precision: F32, seed: 1 };
  return (arithmetic: Parameters<typeof simulateConv>[0]["arithmetic"]) =>
    simulateConv({ ...asked, arithmetic });
}

for (const op of OPERATIONS) {
  for (const axes of [1, 2, 3]) {
    Deno.test(`Fourier transforms of tiles convolve, and err as f32 does: ${op}, ${axes} axes`, () => {
      const tile = op === "bwd-filter" ? { n: 3, r: 6 } : { n: 6, r: 3 };
      const tiles = Array.from({ length: axes }, () => tile);
      const of = simulated(op, tiles, 7);
      const plain = of({}), fft = of({ math: "fft", tiles: [{ axes: tiles }] });
      let squares = 0, errors = 0, off = 0;
      plain.reference.values.forEach((value, i) => {
        const { values, magnitudes } = fft.reference;
        assert.ok(Math.abs(values[i]! - value) < 1e-12 * plain.reference.magnitudes[i]!);
        assert.ok(Math.abs(magnitudes[i]! / plain.reference.magnitudes[i]! - 1) < 1e-9);
        squares += value * value;
        errors += (fft.result[i]! - value) ** 2;
        if (fft.result[i] !== Math.fround(value)) off++;
      });
      const relL2 = Math.sqrt(errors / squares);
      assert.ok(relL2 > 3e-8 && relL2 < 1e-6, `${relL2}`);
      assert.ok(off > 0);
    });
  }
}
