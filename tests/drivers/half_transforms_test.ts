/** Winograd whose transformed f16 data is in half the bytes, on data of all sizes and of mean zero, against FP64. */
import assert from "#assert";
import { planConv } from "../../src/algorithms/planner.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { convProblem, type Operation, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { convSubject } from "../../src/run/conv_subject.ts";
import { fillOperands } from "../../src/run/operands.ts";
import { checkResult } from "../../src/run/projected.ts";
import { runPlan } from "../../src/run/run_plan.ts";
import type { HostData, HostOperands } from "../../src/run/subject.ts";
import { LAYOUTS } from "../../src/tensor/layout.ts";
import { parseTile } from "../../src/winograd/tile.ts";
import { convRequest } from "../checked_plan.ts";

const backend = Deno.env.get("WGCONV_TEST_BACKEND") === "dawn" ? "dawn" : "wgpu";

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
          const { result } = await runPlan(gpu, plan, operands, subject.result, 1);
          const checked = await checkResult({
            subject,
            operands,
            mode: "full",
            seed: 1,
            result: result as HostData,
            arithmetic: plan.arithmetic,
          });
          const what = `${tile} ${layout} ${kind}`;
          assert.equal(checked.verdict, "pass", `${what}: ${checked.message}`);
          const error = checked.accuracy!.rel_l2;
          assert.ok(error <= (ALLOWED.get(tile) ?? 4) * DIRECT, `${what}: ${error}`);
        }
      }
    }
  });
}
