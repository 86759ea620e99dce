/** Convolutions on matrix units, by the gate, on the devices of `matrix_units_test.ts`. */
import assert from "#assert";
import fc from "fast-check";
import type { PlanRequest } from "../../src/algorithms/request.ts";
import { convProblem, type ConvProblemInit, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedResult, convRequest } from "../checked_plan.ts";
import { randomAxes, randomSizes, sizeModes } from "../random_axes.ts";
import { full, test } from "./driver.ts";

type Asked = Partial<PlanRequest> & Pick<PlanRequest, "algorithm">;

/** Eights, of which eight are loaded at once, as often as other counts. */
const channels = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(8, 16, 24, 40));

const problems = randomSizes({
  axes: randomAxes({ more: 7, stride: 3 }),
  batch: fc.constantFrom(1, 2, 3, 5, 8),
  groups: fc.constantFrom(1, 1, 2),
  groupIn: channels,
  groupOut: channels,
});

test.units("random convolutions of f16 on matrix units, implicit products and windows built on the way, agree with the reference", async (gpu) => {
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
          schedule: { policy: "matrix-small", splits, ...(flush === undefined ? {} : { flush }) },
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

test.units("random int8 convolutions on matrix units are exactly the reference's", async (gpu) => {
  let [wide, unfolded] = [0, 0];
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
          outChannels: fours(init.outChannels),
        });
        const request = convRequest(gpu, problem, {
          algorithm: "implicit-gemm",
          layout: "nhwc",
          epilogue: outDtype === undefined ? NO_EPILOGUE : { ...NO_EPILOGUE, scale: 0.002 },
          dtype: "i8",
          ...(outDtype === undefined ? {} : { outDtype }),
          sizes,
          schedule: { policy: "matrix-small", splits },
          matrixUnits: gpu.matrixUnits!,
        });
        const operands = fillOperands(convSubject(request), "int8", 5);
        const { plan } = await checkedResult(gpu, request, operands);
        if (plan.passes.length > 0) assert.match(plan.kernel, /_i8_.*mma/);
        // Of channels that are no whole vectors: padded to such, and with taps among them.
        if (plan.passes.some(({ kernel }) => kernel.name.startsWith("unfold_i8"))) unfolded++;
        else if (plan.passes.length > 1 && /b4_/.test(plan.kernel)) wide++;
      },
    ),
    { numRuns: full ? 300 : 60, seed: 20261122 },
  );
  assert.ok(wide >= 8 && unfolded >= 3, `${wide} padded to vectors, ${unfolded} unfolded`);
});

test.checked("convolutions on matrix units are the same where the device checks indices itself", async (gpu) => {
  const shape = { batch: 3, inChannels: 16, outChannels: 40, inputSize: [9, 11] };
  const square = { ...shape, filterSize: [3, 3], paddingBegin: [1, 1] };
  const strided = { ...square, stride: [2, 2] };
  const { m, n, k } = gpu.matrixUnits!.units.find(({ component }) => component === "f16")!;
  const implicit = { algorithm: "implicit-gemm", dtype: "f16", layout: "nhwc" } as const;
  const tapRows = { ...implicit, schedule: { tapRows: true } } as const;
  const ring = `${2 * m}x${6 * n}x${2 * k}_${2 * m}x${3 * n}m`;
  const runs: readonly (readonly [RegExp, ConvProblemInit, Asked])[] = [
    [/_fwd_.*_row3/, { ...square, op: "fwd" }, tapRows],
    [/_bwd_data_.*_row3/, { ...square, op: "bwd-data" }, tapRows],
    [/_bwd_filter_.*_row3/, { ...square, op: "bwd-filter" }, {
      ...tapRows,
      schedule: { ...tapRows.schedule, policy: ring },
    }],
    [/_fwd_.*_tap_/, { ...strided, op: "fwd" }, {
      ...implicit,
      outDtype: "f32",
      schedule: { flush: 16 },
    }],
    [/_bwd_data_.*_classes/, { ...strided, op: "bwd-data" }, implicit],
    [/_bwd_filter_.*_rsc_/, { ...strided, op: "bwd-filter" }, {
      ...implicit,
      schedule: { splits: 3 },
    }],
    [/_fwd_.*_nhwc_to_nchw_/, { ...square, op: "fwd", inChannels: 13 }, {
      ...implicit,
      layout: "nchw",
      schedule: { channelsLast: true },
    }],
    [/_fwd_.*_chwn_/, { ...square, op: "fwd" }, { ...implicit, layout: "chwn" }],
    [/_fwd_i8_/, { ...square, op: "fwd" }, { ...implicit, dtype: "i8" }],
    [/^im2win_fused/, { ...square, op: "fwd" }, {
      algorithm: "im2win-fused",
      dtype: "f16",
      layout: "nhwc",
    }],
    // Its kernels have a policy of their own.
    [/^winrs_f16_.*_mma/, { ...square, op: "bwd-filter" }, {
      ...{ algorithm: "winrs", dtype: "f16", layout: "nhwc" },
      schedule: { halfTile: true },
    }],
  ];
  const results = [];
  for (const sizes of ["constant", "uniform"] as const) {
    for (const [kernel, init, asked] of runs) {
      const request = convRequest(gpu, convProblem(init), {
        ...{ ...asked, sizes, matrixUnits: gpu.matrixUnits! },
        schedule: {
          ...(asked.algorithm === "winrs" ? {} : { policy: "matrix-small" }),
          ...asked.schedule,
        },
      });
      const kind = asked.dtype === "i8" ? "int8" : "uniform11";
      const operands = fillOperands(convSubject(request), kind, 5);
      const { plan, result } = await checkedResult(gpu, request, operands);
      assert.match(plan.kernel, kernel);
      assert.ok(plan.passes.some(({ kernel }) => kernel.wgsl.includes("subgroupMatrixLoad")));
      results.push(result);
    }
  }
  return results;
});
