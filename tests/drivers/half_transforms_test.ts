/** Winograd whose transformed f16 data is in half the bytes, on data of all sizes and of mean zero, against FP64. */
import assert from "#assert";
import type { Plan } from "../../src/algorithms/plan.ts";
import { planConv, tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal } from "../../src/algorithms/refusal.ts";
import { algorithmOf } from "../../src/algorithms/registry.ts";
import { unsupported } from "../../src/algorithms/unsupported.ts";
import { openDevice } from "../../src/gpu/device.ts";
import {
  convProblem,
  operandTensors,
  type Operation,
  OPERATIONS,
  tensorShape,
} from "../../src/problem/conv_problem.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import type { HostOperands } from "../../src/run/subject.ts";
import { convertLayout, LAYOUTS } from "../../src/tensor/layout.ts";
import { tensor } from "../../src/tensor/tensor.ts";
import { parseTile } from "../../src/winograd/tile.ts";
import { checkRun, convRequest } from "../checked_plan.ts";
import { loadGoldenCases } from "../golden.ts";
import { backend } from "./driver.ts";

/** Tiles that f16 results take unasked, and F(6x6,3x3), which is asked for. */
const TILES: readonly (readonly [string, readonly Operation[]])[] = [
  ...["F(2,3)", "F(3,3)", "F(4,3)", "F(5,3)", "F(6,3)", "F(4,5)"]
    .map((tile) => [tile, ["fwd", "bwd-data"]] as const),
  ...["F(2x2,3x3)", "F(3x3,3x3)", "F(4x4,3x3)", "F(6x6,3x3)", "F(2x2,5x5)", "F(4x3,3x3)"]
    .map((tile) => [tile, ["fwd", "bwd-data"]] as const),
  ...["F(3,4)", "F(3x3,2x2)", "F(3x3,4x4)", "F(5x5,2x2)"]
    .map((tile) => [tile, ["bwd-filter"]] as const),
];
/** Relative L2 error of direct sums, rounded to f16, on normal data; what is allowed of it. */
const DIRECT = 2.09e-4;
const ALLOWED = new Map([["F(6x6,3x3)", 13]]);

/** Random signs, and sizes from 1e-3 to 1e3, of `small` a thousandth: their logarithms are evenly spread. */
function allSizes(operands: HostOperands, small: string): HostOperands {
  return Object.fromEntries(
    Object.entries(operands).map(([role, data]) => {
      const scale = role === small ? 1e-3 : 1;
      const made = Float16Array.from(
        data as Float16Array,
        (value, i) => (i * 7 % 3 === 0 ? -1 : 1) * scale * 10 ** (3 * value),
      );
      return [role, made];
    }),
  );
}

for (const op of OPERATIONS) {
  Deno.test(`${op} with transformed data in half the bytes errs by 4 times what direct sums do`, async () => {
    using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
    if (!gpu.features.has("shader-f16")) return;
    const tiles = TILES.filter(([, operations]) => operations.includes(op)).map(([tile]) => tile);
    for (const [index, tile] of tiles.entries()) {
      const { n, r } = parseTile(tile);
      const filterSize = op === "bwd-filter" ? n : r;
      const problem = convProblem({
        op,
        batch: 3,
        inChannels: 18,
        outChannels: 13,
        inputSize: filterSize.map((_, axis) => 11 + 2 * axis),
        filterSize,
        paddingBegin: filterSize.map(() => 1),
        paddingEnd: filterSize.map(() => 2),
      });
      // Every layout of the tiles that auto weighs most, of the others one after the other.
      const all = ["F(4x4,3x3)", "F(3x3,4x4)"].includes(tile);
      for (const layout of LAYOUTS.filter((_, i) => all || i === index % LAYOUTS.length)) {
        const request = convRequest(gpu, problem, {
          algorithm: "winograd2d-nonfused",
          dtype: "f16",
          layout,
          tile,
          variant: { halfTransforms: true },
          policy: "tiny",
        });
        const plan = planConv(request);
        assert.match(plan.kernel, /_half_transforms/);
        const subject = convSubject(request);
        const zeroMean = fillOperands(subject, "uniform11", 5);
        for (
          const [kind, operands] of [["zero mean", zeroMean], [
            "all sizes",
            allSizes(zeroMean, op === "bwd-filter" ? "output" : "filter"),
          ]] as const
        ) {
          const checked = await checkRun(gpu, plan, subject, operands);
          const what = `${tile} ${layout} ${kind}`;
          assert.equal(checked.verdict, "pass", `${what}: ${checked.message}`);
          const error = checked.accuracy!.rel_l2;
          assert.ok(error <= (ALLOWED.get(tile) ?? 4) * DIRECT, `${what}: ${error}`);
        }
      }
    }
  });
}

/**
 * Bytes of a binding of which the plan's largest buffer takes three, or its largest tensor two, but no buffer more than six: kernels
 * of many parts take seconds to compile.
 */
function fewParts({ buffers }: Plan, ofTensor: boolean): number {
  const largest = Math.max(...buffers.map(({ bytes }) => bytes));
  const tensors = buffers.filter(({ role }) => role !== "workspace").map(({ bytes }) => bytes);
  const bytes = ofTensor ? Math.max(largest / 6, Math.max(...tensors) / 2) : largest / 3;
  return 256 * Math.ceil(bytes / 256);
}

/** Whether a kernel binds a part of a tensor that is not its beginning. */
function hasTensorInParts({ buffers, passes }: Plan): boolean {
  return passes.some(({ bindings }) =>
    bindings.some(({ buffer, offset }) => offset > 0 && buffers[buffer]!.role !== "workspace")
  );
}

Deno.test("golden cases of f16 in half the bytes agree with the reference, also with tensors in parts", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"] });
  if (!gpu.features.has("shader-f16")) return;
  let ran = 0, parts = 0, tensors = 0;
  for (const [index, golden] of loadGoldenCases().entries()) {
    for (const [which, op] of OPERATIONS.entries()) {
      // Then with smaller bindings.
      let maxStorageBufferBindingSize = gpu.limits.maxStorageBufferBindingSize;
      for (const small of [false, true]) {
        // Each case in one layout an operation.
        const layout = LAYOUTS[(index + which) % LAYOUTS.length]!;
        const limits = { ...gpu.limits, maxStorageBufferBindingSize };
        const request = convRequest({ limits }, golden.problems[op], {
          algorithm: "winograd2d-nonfused",
          dtype: "f16",
          layout,
          variant: { halfTransforms: true },
          policy: "tiny",
        });
        if (unsupported(algorithmOf("winograd2d-nonfused")!, request) !== undefined) continue;
        const subject = convSubject(request);
        const canonical = {
          input: golden.input,
          filter: golden.filter,
          output: golden.gradOutput,
        };
        const operands = Object.fromEntries(
          operandTensors(op).map((which) => {
            const whole = tensor("f32", tensorShape(golden.problems[op], which), canonical[which]);
            const { data } = which === "filter"
              ? convertLayout(whole, "kcrs", request.filterLayout)
              : convertLayout(whole, "nchw", layout);
            return [which, Float16Array.from(data)];
          }),
        );
        const plan = tryPlanConv(request);
        // So small bindings may be too many; tiles of long filters err too much.
        if (isRefusal(plan)) {
          assert.ok(small || plan.kind === "accuracy", plan.text);
          break;
        }
        maxStorageBufferBindingSize = fewParts(plan, which === index % OPERATIONS.length);
        const { verdict, message } = await checkRun(gpu, plan, subject, operands);
        assert.equal(verdict, "pass", `${golden.name} ${plan.kernel} ${layout}: ${message}`);
        ran++;
        if (plan.passes.some(({ kernel }) => /quads.*_parts/.test(kernel.name))) parts++;
        if (hasTensorInParts(plan)) tensors++;
      }
    }
  }
  const counts = `${ran}, ${parts} in parts, ${tensors} with a tensor in parts`;
  assert.ok(ran >= 18 && parts >= 3 && tensors >= 6, counts);
});
