/** Convolutions whose last channels fill no tile, in two parts, on the driver at hand against FP64. */
import assert from "#assert";
import fc from "fast-check";
import { channelParts, joinParts } from "../../src/algorithms/channel_parts.ts";
import { planConv, tryPlanConv } from "../../src/algorithms/planner.ts";
import { isRefusal } from "../../src/algorithms/refusal.ts";
import { openDevice } from "../../src/gpu/device.ts";
import { convProblem, OPERATIONS } from "../../src/problem/conv_problem.ts";
import { ACTIVATIONS } from "../../src/problem/activations.ts";
import { NO_EPILOGUE } from "../../src/problem/epilogue.ts";
import { FILTER_LAYOUTS } from "../../src/tensor/layout.ts";
import { checkedPlan, convRequest } from "../checked_plan.ts";
import { randomAxes, sizeModes, spatialSizes } from "../random_axes.ts";
import { backend, full } from "./driver.ts";

/** By what the first part may be computed. */
const FIRST = {
  "fwd": ["implicit-gemm", "winograd1d", "winograd2d"],
  "bwd-data": ["implicit-gemm", "winograd1d", "winograd2d"],
  "bwd-filter": ["implicit-gemm", "depthwise"],
};

Deno.test("parts of channels agree with the reference, whatever the first is computed by", async () => {
  using gpu = await openDevice({ backend, optionalFeatures: ["shader-f16"], robust: false });
  const { matrixUnits } = gpu;
  const types = [
    { layout: "nchw", dtype: "f32" },
    { layout: "nhwc", dtype: "f32" },
    { layout: "nhwc", dtype: "f16" },
  ] as const;
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        // Winograd's axes have stride and dilation 1.
        axes: fc.oneof(
          randomAxes({ more: 5, stride: 3 }),
          randomAxes({ more: 5, stride: 1, dilation: 1 }),
        ),
        batch: fc.constantFrom(1, 2, 4),
        // Bindings of f32 begin at every 64th channel, of f16 at every 128th.
        tiles: fc.constantFrom(32, 64, 64, 64),
        rest: fc.integer({ min: 1, max: 3 }),
        others: fc.constantFrom(1, 3, 4, 8, 8, 12),
      }),
      fc.record({
        type: fc.constantFrom(...types),
        filterLayout: fc.constantFrom(...FILTER_LAYOUTS),
        sizes: sizeModes,
        ofInputs: fc.boolean(),
      }),
      fc.constantFrom(...OPERATIONS),
      fc.nat(),
      fc.constantFrom(1, 2),
      fc.constantFrom(...ACTIVATIONS),
      async (
        { axes, batch, tiles, rest, others },
        { type, ofInputs, ...choice },
        op,
        which,
        splits,
        activation,
      ) => {
        if (type.dtype === "f16" && !gpu.features.has("shader-f16")) return;
        const algorithm = FIRST[op][which % FIRST[op].length]!;
        const filling = type.dtype === "f32" ? tiles : 2 * tiles;
        const inputs = op === "bwd-data" || op === "bwd-filter" && ofInputs;
        const [inChannels, outChannels] = inputs
          ? [filling + rest, others]
          : [others, filling + rest];
        const problem = convProblem({ op, batch, inChannels, outChannels, ...spatialSizes(axes) });
        const epilogue = op === "fwd" ? { bias: true, activation } : NO_EPILOGUE;
        const request = convRequest(gpu, problem, {
          ...{ algorithm: "auto", epilogue, ...type, ...choice },
          ...(matrixUnits && { matrixUnits }),
        });
        const parts = channelParts(request);
        if (parts === undefined) return;
        const units = matrixUnits !== undefined && type.dtype === "f16";
        const schedule = algorithm !== "implicit-gemm" ? {} : {
          policy: units ? "matrix-small" : "tiny",
          ...(splits === 1 ? {} : { splits }),
        };
        const first = tryPlanConv({ ...parts.first, schedule, algorithm });
        if (isRefusal(first)) return;
        const plan = joinParts(parts, first, planConv(parts.rest));
        await checkedPlan(gpu, plan, request);
        seen.add(algorithm);
        if (plan.kernel.includes("_mma")) seen.add("_mma");
        if (/^join_runs/.test(plan.passes.at(-1)?.kernel.name ?? "")) seen.add("joined");
      },
    ),
    { numRuns: full ? 900 : 50, seed: 20261129 },
  );
  for (const one of [...Object.values(FIRST).flat(), "joined"]) {
    assert.ok(seen.has(one), `no ${one}`);
  }
  if (matrixUnits !== undefined) assert.ok(seen.has("_mma"));
});
