import assert from "#assert";
import { H200_LIMITS as limits, H200_UNITS as matrixUnits } from "../../../bench/h200_limits.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { gemmProblem } from "../../problem/gemm_problem.ts";
import { H200 } from "../device/h200.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { tryPlanConv } from "../planner.ts";
import { expectPlanned, isRefusal } from "../refusal.ts";
import { cutGemm } from "./choose.ts";
import type { GemmRequest } from "./operands.ts";
import { tryPlanGemm } from "./plan.ts";

/** A device that is measured to take so much of f16's rate for values of halves, of which a product has two. */
const measured = (f16x3: number) => ({ ...H200, shares: { ...H200.shares, f16x3 } });

function plan(size: readonly [number, number, number], more: Partial<GemmRequest> = {}) {
  const [m, n, k] = size;
  const problem = gemmProblem({ m, n, k });
  return tryPlanGemm({ problem, dtype: "f32", limits, matrixUnits, ...more });
}

/** Whether a plan multiplies halves. */
function inHalves(...request: Parameters<typeof plan>): boolean {
  const { kernel, passes, arithmetic } = expectPlanned(plan(...request));
  const named = kernel.startsWith("gemm_f32_f16x3_");
  assert.equal(arithmetic.math === "f16x3", named);
  assert.equal(passes.some(({ kernel: { name } }) => name.startsWith("split_halves")), named);
  assert.equal(passes.some(({ kernel: { name } }) => /_flagged/.test(name)), named);
  return named;
}

Deno.test("products of f32 are in halves where that is asked for, and of auto where it is measured to be faster", () => {
  const large = [4096, 4096, 4096] as const;
  assert.ok(inHalves(large, { math: "f16x3" }));
  assert.ok(inHalves(large));
  assert.ok(!inHalves(large, { device: measured(0) }));
  assert.ok(inHalves(large, { device: measured(1) }));
  assert.ok(
    inHalves(large, { device: measured(1), math: "auto", schedule: { policy: "matrix-eight" } }),
  );
  assert.ok(!inHalves(large, { device: measured(0.01) }));
  for (
    const more of [
      { math: "f32" },
      {
        matrixUnits: {
          ...matrixUnits,
          units: matrixUnits.units.filter(({ component }) => component === "i8"),
        },
      },
      { schedule: { matrixUnits: false } },
      { schedule: { policy: "huge" } },
    ] as const
  ) {
    assert.ok(!inHalves(large, { device: measured(1), ...more }), JSON.stringify(more));
  }
  // Few products a sum, and tensors that take longer to look at than to multiply.
  assert.ok(!inHalves([4096, 4096, 31], { device: measured(100) }));
  assert.ok(!inHalves([4096, 8, 4096], { device: measured(1) }));
  assert.ok(!inHalves([5, 0, 7], { math: "f16x3" }));
  assert.ok(!inHalves([5, 6, 0], { math: "f16x3" }));
  const half = expectPlanned(plan(large, { dtype: "f16", device: measured(1) }));
  assert.match(half.kernel, /^gemm_f16_\d+x\d+x\d+_mma/);
});

Deno.test("auto takes f32 where halves want more bindings or larger buffers than there are", () => {
  const large = [4096, 4096, 4096] as const;
  const bytes = 4 * 4096 ** 2;
  const few = { ...limits, maxStorageBuffersPerShaderStage: 3 };
  // 4097 rows are more in whole tiles.
  const small = { ...limits, maxBufferSize: 4 * 4097 * 4096 };
  for (
    const [size, less, reason] of [
      [large, few, /^kernel split_halves.* binds 4 storage buffers, .*ShaderStage is 3$/],
      [[4097, 4096, 4096], small, /^halves of a takes \d+ bytes, the device's maxBufferSize is/],
    ] as const
  ) {
    assert.ok(inHalves(size));
    assert.ok(!inHalves(size, { limits: less }));
    const refused = plan(size, { limits: less, math: "f16x3" });
    assert.match(isRefusal(refused) ? refused.text : refused.kernel, reason);
  }
  assert.ok(inHalves(large, { limits: { ...limits, maxBufferSize: bytes } }));
});

Deno.test("a product of more bindings than the device has is refused when it is planned", () => {
  const few = {
    ...limits,
    maxStorageBufferBindingSize: 2 ** 25,
    maxStorageBuffersPerShaderStage: 5,
  };
  const refused = plan([4096, 4096, 4096], { math: "f32", limits: few });
  assert.match(
    isRefusal(refused) ? refused.text : refused.kernel,
    /^kernel gemm_f32_.* binds 6 storage/,
  );
});

Deno.test("what cannot be in halves is refused with a sentence that says why", () => {
  const size = [64, 64, 64] as const;
  const cases: (readonly [Partial<GemmRequest>, RegExp, (readonly [number, number, number])?])[] = [
    [{ dtype: "f16" }, /^math f16x3 is of f32 operands, the dtype is f16$/],
    [{ matrixUnits: { lanes: 32, units: [] } }, /^math f16x3 wants matrix units of f16 with f32/],
    [
      { schedule: { policy: "tiny" } },
      /^policy tiny has no matrix units, which math f16x3 multiplies on$/,
    ],
    [{ schedule: { policy: "tinny" } }, /^policy tinny is none of /],
    [
      { schedule: { policy: "matrix-ahead" } },
      /^policy matrix-ahead has steps of an odd number of matrices, /,
    ],
    [
      { schedule: { policy: "matrix-ahead" }, math: "auto" },
      /^policy matrix-ahead has steps of an odd number/,
    ],
    [
      { schedule: { policy: "128x128x16_64x64m" } },
      /no tile of 16x16x16 matrices.*, of an even number of matr/,
    ],
    [{ schedule: { matrixUnits: false } }, /matrix units, which the variant leaves out$/],
    [{}, /^math f16x3 takes sums of fewer than 2\^24 products/, [1, 1, 2 ** 24]],
    [{ limits: DEFAULT_LIMITS }, /^no tile policy fits the device$/],
    [
      { limits: DEFAULT_LIMITS, schedule: { policy: "matrix-small" } },
      /does not fit the device's 16384 bytes/,
    ],
  ];
  for (const [more, expected, other] of cases) {
    const refused = plan(other ?? size, { math: "f16x3", ...more });
    assert.match(isRefusal(refused) ? refused.text : refused.kernel, expected);
  }
  const wrong = plan(size, { math: "f32", dtype: "i8" });
  assert.ok(isRefusal(wrong) && wrong.text === "math f32 is of f32 operands, the dtype is i8");
  const conv = tryPlanConv({
    problem: parseDescriptor("mb2ic8ih9oc8kh3"),
    dtype: "f32",
    math: "f16x3",
    layout: "nhwc",
    filterLayout: "krsc",
    epilogue: NO_EPILOGUE,
    algorithm: "auto",
    limits,
  });
  assert.match(isRefusal(conv) ? conv.text : conv.kernel, /^math f16x3 wants matrix units of f16/);
});

Deno.test("sums that are stored on their way are priced as such, whatever their splits", () => {
  // Steps of 16 products each: up to 512 products are one sum, then a quarter of the depth up to 2,048.
  for (const [steps, most] of [[32, 0], [33, 18], [256, 64], [1024, 128]] as const) {
    const size = [4096, 4096, 16 * steps] as const;
    const cost = (storeAgain: number) => {
      const device = { ...H200, costs: { ...H200.costs, storeAgain } };
      const problem = gemmProblem({ m: size[0], n: size[1], k: size[2] });
      const cut = cutGemm({
        ...{ problem, dtype: "f32", math: "f16x3", limits, matrixUnits, device },
        schedule: { ...{ policy: "matrix-tall", splits: 1, balance: "none" } },
      });
      return isRefusal(cut) ? 0 : cut.cost;
    };
    const { kernel } = expectPlanned(
      plan(size, {
        math: "f16x3",
        schedule: { policy: "matrix-tall", splits: 1, balance: "none" },
      }),
    );
    const [, parts = 0] = /_stored(\d+)_/.exec(kernel) ?? [];
    assert.ok(most === 0 ? parts === 0 : Number(parts) > 0 && Number(parts) <= most, kernel);
    assert.equal(cost(2000) > cost(0), most > 0, `${steps} steps`);
  }
});

Deno.test("a multiprocessor runs as many tiles as its workgroup memory holds", () => {
  const tiles = (n: number, more = {}) => {
    const problem = gemmProblem({ m: 4096, n, k: 4096 });
    const { kernel, notes, passes } = expectPlanned(
      tryPlanGemm({
        schedule: { policy: "matrix-wide", balance: "stream-k" },
        ...{ problem, dtype: "f16", limits, matrixUnits },
        ...more,
      }),
    );
    const main = passes.find(({ kernel: { name } }) => /_mma/.test(name))!;
    const head = Number(/stream-K: (\d+) tiles whole/.exec(notes.join())![1]);
    return [main.kernel.workgroupBytes, head, kernel] as const;
  };
  // Loads of eight halves: 22 KB, so two tiles side by side, and a head of whole waves of 264.
  const [bytes, head] = tiles(4864);
  assert.ok(bytes <= 24_576 && head % 264 === 0, `${bytes}, ${head}`);
  // Rows of 4860 are no whole eights: sums have memory of their own, and one tile runs alone.
  const [more, alone, kernel] = tiles(4860);
  assert.ok(more > 24_576 && alone % 132 === 0 && alone % 264 !== 0, `${more}, ${alone} ${kernel}`);
});

Deno.test("tiles of halves leave room for a second workgroup where subgroups are four", () => {
  for (const policy of ["matrix-small", "matrix-tall", "matrix-square"]) {
    for (const transpose of ["nn", "nt", "tn", "tt"] as const) {
      const problem = gemmProblem({ m: 4096, n: 4096, k: 4096, transpose });
      const request = { problem, dtype: "f32", math: "f16x3", limits, matrixUnits } as const;
      const { passes } = expectPlanned(tryPlanGemm({ ...request, schedule: { policy } }));
      for (const { kernel: { workgroupBytes, name } } of passes) {
        assert.ok(workgroupBytes <= 24_576, `${name} takes ${workgroupBytes}`);
      }
    }
  }
});
