/** Convolutions on matrix units, by the gate, on the devices of `matrix_units_test.ts`. */
import assert from "#assert";
import fc from "fast-check";
import { convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { ACTIVATIONS, NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { full, openMatrixUnits } from "./driver.ts";

/** Eights, of which eight are loaded at once, as often as any number. */
const channels = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(8, 16, 24, 40));

const problems = randomSizes({
  axes: randomAxes({ more: 7, stride: 3 }),
  batch: fc.constantFrom(1, 2, 3, 5, 8),
  groups: fc.constantFrom(1, 1, 2),
  groupIn: channels,
  groupOut: channels,
});

Deno.test("random convolutions of f16 on matrix units, implicit products and windows built on the way, agree with the reference", async () => {
  using gpu = await openMatrixUnits();
  if (gpu === undefined) return;
  let [ran, eights, built, stored] = [0, 0, 0, 0];
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom(...OPERATIONS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom("f32", "f16"),
      fc.constantFrom(...ACTIVATIONS),
      fc.constantFrom(1, 1, 3),
      sizeModes,
      fc.boolean(),
      fc.constantFrom(undefined, 16, 16, 64),
      async (init, op, layout, outDtype, activation, splits, sizes, windows, flush) => {
        const request = convRequest(gpu, convProblem({ ...init, op }), {
          algorithm: windows && op === "fwd" ? "im2win-fused" : "implicit-gemm",
          layout,
          epilogue: op === "fwd" ? { bias: true, activation } : NO_EPILOGUE,
          dtype: "f16",
          outDtype,
          sizes,
          policy: "matrix-small",
          splits,
          ...(flush === undefined ? {} : { flush }),
          matrixUnits: gpu.matrixUnits!,
        });
        const { plan } = await checkedResult(gpu, request);
        if (plan.passes.length > 0) assert.match(plan.kernel, /_mma/);
        if (/_stored/.test(plan.kernel)) stored++;
        if (/b8_/.test(plan.kernel)) eights++;
        if (plan.kernel.startsWith("im2win_fused")) built++;
        ran++;
      },
    ),
    { numRuns: full ? 600 : 160, seed: 20261122 },
  );
  assert.ok(
    ran >= 100 && eights >= 8 && built >= 8 && stored >= 8,
    `${ran} problems, ${eights} that load eights, ${built} that build windows, ${stored} in parts`,
  );
});

Deno.test("random int8 convolutions on matrix units are exactly the reference's", async () => {
  using gpu = await openMatrixUnits();
  if (gpu === undefined) return;
  await fc.assert(
    fc.asyncProperty(
      problems,
      fc.constantFrom("i8", undefined),
      fc.constantFrom(1, 1, 3),
      sizeModes,
      async (init, outDtype, splits, sizes) => {
        // A word has one writer: int8 results are of whole words.
        const fours = (channels: number) =>
          Math.ceil(channels / (4 * init.groups)) * 4 * init.groups;
        const problem = convProblem({
          ...init,
          op: "fwd",
          inChannels: fours(init.inChannels),
          outChannels: fours(init.outChannels),
        });
        const request = convRequest(gpu, problem, {
          algorithm: "implicit-gemm",
          layout: "nhwc",
          epilogue: outDtype === undefined ? NO_EPILOGUE : { ...NO_EPILOGUE, scale: 0.002 },
          dtype: "i8",
          ...(outDtype === undefined ? {} : { outDtype }),
          sizes,
          policy: "matrix-small",
          splits,
          matrixUnits: gpu.matrixUnits!,
        });
        const operands = fillOperands(convSubject(request), "int8", 5);
        const { plan } = await checkedResult(gpu, request, operands);
        if (plan.passes.length > 0) assert.match(plan.kernel, /_i8_.*mma/);
      },
    ),
    { numRuns: full ? 300 : 30, seed: 20261122 },
  );
});
