/** With sizes in a uniform, kernels of one name are one pipeline: a name says all that a text knows. */
import assert from "#assert";
import fc from "fast-check";
import { H200 } from "../../src/algorithms/device/h200.ts";
import { softwareDevice } from "../../src/algorithms/device/software.ts";
import { tryPlanGemm } from "../../src/algorithms/gemm/plan.ts";
import { algorithmNames } from "../../src/algorithms/registry.ts";
import { DEFAULT_LIMITS } from "../../src/algorithms/plan.ts";
import { tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal } from "../../src/algorithms/refusal.ts";
import { convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { GEMM_DTYPES, gemmProblem, TRANSPOSES } from "../../src/problem/gemm_problem.ts";
import { FILTER_LAYOUTS, LAYOUTS } from "../../src/tensor/layout.ts";

/** A device with matrix units, and bindings that tensors take several of. */
const UNITS = {
  limits: {
    ...DEFAULT_LIMITS,
    maxComputeWorkgroupStorageSize: 49_152,
    maxComputeInvocationsPerWorkgroup: 1024,
    maxStorageBufferBindingSize: 65_536,
    maxStorageBuffersPerShaderStage: 16,
  },
  matrixUnits: {
    lanes: 32,
    cutsOff: true,
    units: [{ component: "f16", result: "f32", m: 16, n: 16, k: 16 }],
  },
} as const;
const DEVICES = [H200, softwareDevice(2), { ...H200, multiprocessors: 1 / 64 }];

Deno.test("kernels of one name have one text", () => {
  const texts = new Map<string, string>();
  fc.assert(
    fc.property(
      fc.record({
        op: fc.constantFrom(...OPERATIONS),
        batch: fc.constantFrom(1, 3, 4),
        groups: fc.constantFrom(1, 2, 3, 8),
        inputs: fc.constantFrom(1, 2, 3, 4, 5, 8, 40),
        outputs: fc.constantFrom(1, 2, 4, 6, 8, 12, 40),
        filterSize: fc.constantFrom([3, 3], [1, 1], [2, 1], [1, 2], [3, 2], [5], [2, 3, 1]),
        stride: fc.constantFrom(1, 2, 3),
        padding: fc.constantFrom(0, 1),
      }),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(...FILTER_LAYOUTS),
      fc.constantFrom(...algorithmNames()),
      fc.constantFrom(...DEVICES),
      fc.constantFrom("f32", "f16", "bf16"),
      // Tiles of one tap, of filters in one piece and in several.
      fc.option(fc.constantFrom("F(2,1)", "F(2x2,2x1)", "F(2x2,1x1)"), { nil: undefined, freq: 2 }),
      fc.constantFrom(0, 0, 500),
      (init, layout, filterLayout, algorithm, device, dtype, tile, wide) => {
        const { op, batch, groups, inputs, outputs, filterSize, stride, padding } = init;
        const plan = tryPlanConv({
          problem: convProblem({
            op,
            batch,
            groups,
            inChannels: groups * (inputs + wide),
            outChannels: groups * outputs,
            inputSize: filterSize.map(() => 9),
            filterSize,
            stride: filterSize.map(() => stride),
            paddingBegin: filterSize.map(() => padding),
          }),
          dtype,
          layout,
          filterLayout,
          epilogue: NO_EPILOGUE,
          algorithm,
          limits: wide > 0 ? UNITS.limits : DEFAULT_LIMITS,
          sizes: "uniform",
          device,
          // Of Winograd in separate passes in halves, scaled by tile and by image.
          ...(algorithm === "winograd2d-nonfused" && dtype === "f32" && !device.software
            ? { ...UNITS, math: "f16x3" as const }
            : {}),
          ...(tile === undefined ? {} : { tile }),
        });
        if (isRefusal(plan)) return;
        for (const { kernel: { name, wgsl } } of plan.passes) {
          assert.equal(texts.get(name) ?? wgsl, wgsl, name);
          texts.set(name, wgsl);
        }
      },
    ),
    { numRuns: 14_000, seed: 20261122 },
  );
  assert.ok(texts.size > 1000, `${texts.size} names`);
});

Deno.test("kernels of one name have one text on matrix units too", () => {
  const texts = new Map<string, string>();
  const limits = {
    ...DEFAULT_LIMITS,
    maxComputeWorkgroupStorageSize: 49_152,
    maxComputeInvocationsPerWorkgroup: 1024,
  };
  const unit = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;
  let [rows, rings] = [0, 0];
  fc.assert(
    fc.property(
      fc.record({
        op: fc.constantFrom(...OPERATIONS),
        groups: fc.constantFrom(1, 2),
        inputs: fc.constantFrom(8, 12, 24, 40),
        outputs: fc.constantFrom(4, 8, 16, 72),
        filterSize: fc.constantFrom([3, 3], [3, 2], [1, 4], [2, 1], [3], [2, 3, 2]),
        stride: fc.constantFrom(1, 1, 2),
        dilation: fc.constantFrom(1, 2),
      }),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(...FILTER_LAYOUTS),
      fc.constantFrom("matrix-small", "matrix-square", "64x64x64_32x32m", "64x96x32_32x48m"),
      fc.constantFrom(
        { splits: 1 },
        { splits: 3 },
        { balance: "stream-k" } as const,
      ),
      fc.constantFrom({}, { tapRows: true }, { doubleBuffer: true }),
      fc.constantFrom("f32", "f16", "bf16"),
      fc.constantFrom(undefined, 64),
      (init, layout, filterLayout, policy, cut, variant, outDtype, flush) => {
        const { op, groups, inputs, outputs, filterSize, stride, dilation } = init;
        const plan = tryPlanConv({
          problem: convProblem({
            op,
            batch: 16,
            groups,
            inChannels: groups * inputs,
            outChannels: groups * outputs,
            inputSize: filterSize.map(() => 12),
            filterSize,
            stride: filterSize.map(() => stride),
            paddingBegin: filterSize.map(() => 1),
            dilation: filterSize.map(() => dilation),
          }),
          dtype: "f16",
          outDtype,
          layout,
          filterLayout,
          epilogue: NO_EPILOGUE,
          algorithm: "implicit-gemm",
          limits,
          sizes: "uniform",
          device: softwareDevice(4),
          matrixUnits: { lanes: 32, units: [unit] },
          schedule: { policy, ...variant, ...cut, ...(flush === undefined ? {} : { flush }) },
        });
        if (isRefusal(plan)) return;
        if (/_row\d/.test(plan.kernel)) rows++;
        if (/bwd_filter.*_row\d/.test(plan.kernel)) rings++;
        for (const { kernel: { name, wgsl } } of plan.passes) {
          assert.equal(texts.get(name) ?? wgsl, wgsl, name);
          texts.set(name, wgsl);
        }
      },
    ),
    { numRuns: 4000, seed: 20261125 },
  );
  assert.ok(
    texts.size > 300 && rows > 100 && rings > 20,
    `${texts.size} names, ${rows} plans by rows, ${rings} of them by rings`,
  );
});

Deno.test("kernels of products with few rows or columns that have one name have one text", () => {
  const texts = new Map<string, string>();
  fc.assert(
    fc.property(
      fc.tuple(fc.integer({ min: 1, max: 16 }), fc.constantFrom(1, 6, 64, 257, 1000, 4096)),
      fc.boolean(),
      fc.constantFrom(1, 6, 40, 333, 1024, 100_000),
      fc.constantFrom(1, 3),
      fc.constantFrom(...TRANSPOSES),
      fc.constantFrom(...GEMM_DTYPES),
      fc.constantFrom(
        {},
        { beta: 2, bias: "row" },
        { activation: "relu", residual: true } as const,
      ),
      fc.constantFrom(undefined, 1, 3),
      fc.constantFrom(...DEVICES),
      fc.constantFrom(DEFAULT_LIMITS, UNITS.limits),
      ([vectors, places], rows, k, batch, transpose, dtype, epilogue, splits, device, limits) => {
        const [m, n] = rows ? [vectors, places] : [places, vectors];
        const problem = gemmProblem({ m, n, k, batch, transpose, ...epilogue });
        const asked = {
          problem,
          dtype,
          device,
          limits,
          schedule: { policy: "gemv" },
          sizes: "uniform",
        } as const;
        const plan = tryPlanGemm({
          ...asked,
          schedule: { ...asked.schedule, ...(splits === undefined ? {} : { splits }) },
        });
        if (isRefusal(plan)) return;
        for (const { kernel: { name, wgsl } } of plan.passes) {
          assert.equal(texts.get(name) ?? wgsl, wgsl, name);
          texts.set(name, wgsl);
        }
      },
    ),
    { numRuns: 3000, seed: 20261126 },
  );
  assert.ok(texts.size > 300, `${texts.size} names`);
});
