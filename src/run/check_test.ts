import assert from "#assert";
import { F32 } from "../accuracy/mod.ts";
import { convProblem } from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { simulateConv } from "../simulate/conv_yardstick.ts";
import { checkAgainst, computeReference } from "./check.ts";
import { convSubject, referenceInputs } from "./conv_subject.ts";
import { fillOperands } from "./operands.ts";

const LAYOUTS = { layout: "nchw", filterLayout: "kcrs" } as const;

Deno.test("checkAgainst() measures Winograd's outputs by the products of their tile, other sums by their own", async () => {
  const problem = convProblem({
    batch: 1,
    inChannels: 8,
    outChannels: 4,
    inputSize: [12, 12],
    filterSize: [3, 3],
    paddingBegin: [1, 1],
  });
  // One place of each image is not 0: most outputs have no products, but the rounding errors of their tile.
  const subject = convSubject({ problem, ...LAYOUTS });
  const operands = fillOperands(subject, "normal", 1);
  operands.input!.forEach((value, i, input) => input[i] = i % 144 === 40 ? value : 0);
  const reference = await computeReference({ subject, operands, mode: "full", seed: 1 });
  const inputs = referenceInputs(problem, operands, LAYOUTS);
  const simulated = { problem, inputs, epilogue: NO_EPILOGUE, seed: 1, precision: F32 };
  const arithmetic: PlanArithmetic = { tiles: [{ axes: [{ n: 4, r: 3 }, { n: 4, r: 3 }] }] };
  const { result } = simulateConv({ ...simulated, arithmetic }, { start: 7 });
  assert.ok(result.some((value, i) => reference.magnitudes[i] === 0 && value !== 0));
  const tiled = checkAgainst(reference, result, arithmetic);
  assert.deepEqual([tiled.verdict, tiled.message], ["pass", undefined]);
  assert.ok(tiled.accuracy.max_bound_ratio < tiled.accuracy.bound_limit);
  assert.notEqual(tiled.accuracy.worst_group, null);
  const off = result.map((value) => value * 1.00005);
  assert.equal(checkAgainst(reference, off, arithmetic).verdict, "fail");
  const plain = checkAgainst(reference, result, {});
  assert.equal(plain.verdict, "fail");
  assert.equal(plain.accuracy.max_bound_ratio, Infinity);
});
