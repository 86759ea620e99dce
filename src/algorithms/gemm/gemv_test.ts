import assert from "#assert";
import { H200_LIMITS as limits, H200_UNITS as matrixUnits } from "../../../bench/h200_limits.ts";
import { elementsOf } from "../../elements/elements.ts";
import { gemvBlocks, gemvWorkgroups } from "../../kernels/gemv_shape.ts";
import { THIN_POLICIES } from "../../kernels/policy.ts";
import {
  GEMM_DTYPES,
  type GemmDType,
  type GemmProblem,
  gemmProblem,
  TRANSPOSES,
} from "../../problem/gemm_problem.ts";
import { H200 } from "../device/h200.ts";
import { softwareDevice } from "../device/software.ts";
import type { DeviceModel } from "../device/model.ts";
import { longestLoops, MOST_ITERATIONS } from "../passes.ts";
import { expectPlanned, isRefusal } from "../refusal.ts";
import { chooseGemm } from "./choose.ts";
import { chooseGemv, gemvArithmetic, gemvProduct, gemvThreads, gemvTime } from "./gemv.ts";
import type { GemmRequest } from "./operands.ts";
import { planGemm, tryPlanGemm } from "./plan.ts";

function request(
  [m, n, k]: readonly [number, number, number],
  { transpose = "nn", batch = 1, ...more }:
    & Partial<Omit<GemmRequest, "problem">>
    & Partial<Pick<GemmProblem, "transpose" | "batch">> = {},
): GemmRequest {
  return { problem: gemmProblem({ m, n, k, transpose, batch }), dtype: "f32", limits, ...more };
}

/** The product as gemv is dealt. */
function dealt(asked: GemmRequest) {
  const gemv = expectPlanned(
    chooseGemv({ ...asked, schedule: { ...asked.schedule, policy: "gemv" } }, () => 0),
  );
  return gemv!.shape;
}

Deno.test("the side of fewer is the vectors', and what lies along the depth is said of both", () => {
  const types = elementsOf({ dtype: "f32" });
  const product = (m: number, n: number, transpose: GemmProblem["transpose"]) => {
    const { side, vectors, places, matrix, vector } = gemvProduct(
      gemmProblem({ m, n, k: 6, transpose }),
      types,
    );
    return [side, vectors, places, matrix, vector];
  };
  assert.deepEqual(product(2, 9, "nn"), ["rows", 2, 9, "place", "depth"]);
  assert.deepEqual(product(2, 9, "tt"), ["rows", 2, 9, "depth", "place"]);
  assert.deepEqual(product(9, 2, "nn"), ["columns", 2, 9, "depth", "place"]);
  assert.deepEqual(product(9, 2, "tt"), ["columns", 2, 9, "place", "depth"]);
  // A single row or column lies along the depth either way.
  assert.deepEqual(product(1, 9, "tn"), ["rows", 1, 9, "place", "depth"]);
  assert.deepEqual(product(9, 1, "nn"), ["columns", 1, 9, "depth", "depth"]);
  assert.deepEqual(product(1, 1, "tn"), ["rows", 1, 1, "depth", "depth"]);
});

Deno.test("int8 is in words where both operands lie along a depth of whole fours", () => {
  const types = elementsOf({ dtype: "i8" });
  const word = (k: number, transpose: GemmProblem["transpose"], m = 2) =>
    gemvProduct(gemmProblem({ m, n: 9, k, transpose }), types).word;
  assert.equal(word(8, "nt"), 4);
  assert.equal(word(9, "nt"), 1);
  assert.equal(word(8, "nn"), 1);
  assert.equal(word(8, "tt"), 1);
  assert.equal(word(8, "tt", 1), 4);
});

Deno.test("few rows or columns are a matrix times vectors, by price", () => {
  const kernel = (...asked: Parameters<typeof request>) => planGemm(request(...asked)).kernel;
  for (const transpose of TRANSPOSES) {
    for (const dtype of GEMM_DTYPES) {
      for (const vectors of [1, 2, 4]) {
        assert.match(kernel([vectors, 4096, 4096], { transpose, dtype }), /^gemv_/);
        assert.match(kernel([4096, vectors, 4096], { transpose, dtype }), /^gemv_/);
      }
      assert.match(kernel([17, 4096, 4096], { transpose, dtype }), /^gemm_/);
    }
  }
  assert.match(kernel([8, 4096, 4096]), /^gemv_/);
  assert.match(kernel([16, 4096, 4096], { transpose: "nt" }), /^gemv_/);
  // Vectors whose values lie apart are loaded line by line: of eight that takes longer than the mainloop.
  assert.match(kernel([4096, 8, 4096]), /^gemm_/);
  assert.match(kernel([3, 5, 7]), /^gemv_/);
  // Of few places most threads of a tile have none.
  assert.match(kernel([16, 16, 1024], { batch: 1000 }), /^gemm_/);
  assert.match(kernel([12, 12, 16_384], { batch: 64 }), /^gemm_/);
});

Deno.test("what is said of the main loop keeps it", () => {
  const size = [1, 512, 512] as const;
  for (const policy of ["tiny", ...THIN_POLICIES]) {
    assert.match(planGemm(request(size, { schedule: { policy } })).kernel, /^gemm_/);
  }
  assert.match(planGemm(request(size, { schedule: { prefetch: false } })).kernel, /^gemm_/);
  assert.match(planGemm(request(size, { schedule: { balance: "stream-k" } })).kernel, /^gemm_/);
  const half = planGemm(request(size, { dtype: "f16", matrixUnits, schedule: { flush: 64 } }));
  assert.match(half.kernel, /^gemm_/);
  const chained = request(size, { dtype: "f16", accumulate: "f16" });
  assert.match(planGemm(chained).kernel, /^gemm_f16_sum16/);
  const halves = planGemm(request(size, { math: "f16x3", matrixUnits }));
  assert.match(halves.kernel, /^gemm_f32_f16x3/);
  assert.match(planGemm(request(size, { matrixUnits })).kernel, /^gemv_f32/);
  assert.match(planGemm(request(size, { matrixUnits, dtype: "f16" })).kernel, /^gemv_f16/);
  // On units few rows of f16 take less than vectors do.
  const few = planGemm(request([16, 4096, 4096], { matrixUnits, dtype: "f16" }));
  assert.match(few.kernel, /_mma/);
});

Deno.test("gemv is asked for by name, and refused in a sentence", () => {
  const refused = (...asked: Parameters<typeof request>) => {
    const plan = tryPlanGemm(
      request(asked[0], { ...asked[1], schedule: { policy: "gemv", ...asked[1]?.schedule } }),
    );
    return isRefusal(plan) ? plan.text : `planned ${plan.kernel}`;
  };
  assert.match(
    planGemm(request([4096, 16, 4096], { schedule: { policy: "gemv" } })).kernel,
    /^gemv_/,
  );
  assert.equal(
    refused([17, 64, 64]),
    "policy gemv is of products with up to 16 rows or columns, these are 17 x 64",
  );
  assert.equal(
    refused([1, 64, 64], { dtype: "f16", accumulate: "f16" }),
    "policy gemv sums in f32, not in f16",
  );
  assert.equal(
    refused([1, 64, 64], { schedule: { unroll: false } }),
    "policy gemv has no main loop, which variants are of",
  );
  assert.equal(
    refused([1, 64, 64], { math: "f16x3", matrixUnits }),
    "policy gemv multiplies f32 as it is, math f16x3 on matrix units",
  );
  assert.equal(
    refused([1, 64, 64], { schedule: { balance: "stream-k" } }),
    "policy gemv has no tiles, which stream-k is of",
  );
  assert.equal(
    refused([1, 64, 64], { schedule: { splits: 2, balance: "none" } }),
    "balance none contradicts 2 splits",
  );
  // Of nothing to sum there is nothing to refuse.
  assert.equal(planGemm(request([1, 64, 0], { schedule: { policy: "gemv" } })).passes.length, 1);
  assert.equal(planGemm(request([0, 64, 8], { schedule: { policy: "gemv" } })).passes.length, 0);
});

Deno.test("a single vector is dealt to as many threads as keep memory busy without splits", () => {
  const across = dealt(request([1, 8192, 8192]));
  assert.deepEqual(across.threads, { lanes: 64, groups: 16, each: 1, ahead: 2 });
  assert.equal(across.splits, 1);
  const along = dealt(request([1, 8192, 8192], { transpose: "nt" }));
  assert.deepEqual(along.threads, { lanes: 256, groups: 1, each: 1, ahead: 2 });
  assert.equal(along.splits, 1);
  // Where workgroups have 256 threads at most more of them share the depth.
  const small = { ...limits, maxComputeInvocationsPerWorkgroup: 256 };
  assert.ok(dealt(request([1, 8192, 8192], { limits: small })).splits > 1);
  // Few places, whose depth is long, are shared in any case.
  assert.ok(dealt(request([1, 64, 1_000_000], { transpose: "nt" })).splits > 4);
  assert.ok(dealt(request([1, 1, 1_000_000])).splits > 4);
  // A short depth has threads for places.
  const short = dealt(request([1, 1_000_000, 8]));
  assert.deepEqual([short.threads.lanes, short.splits], [1, 1]);
});

Deno.test("threads fill workgroups that the device has, whatever the product", () => {
  for (const most of [256, 384, 512, 640, 768, 896, 1024]) {
    for (const dtype of GEMM_DTYPES) {
      const types = elementsOf({ dtype });
      for (const transpose of TRANSPOSES) {
        for (const [m, n] of [[1, 4096], [1000, 1], [2, 77], [16, 16], [9, 12_345]] as const) {
          for (const k of [1, 7, 64, 333, 100_000]) {
            const product = gemvProduct(gemmProblem({ m, n, k, transpose }), types);
            const allowed = { ...limits, maxComputeInvocationsPerWorkgroup: most };
            for (const device of [H200, softwareDevice(4)]) {
              for (const { lanes, groups } of gemvThreads(product, types, allowed, device)) {
                const threads = lanes * groups;
                assert.ok(threads <= most && threads >= (device.software ? 64 : 256));
                assert.ok([lanes, groups].every((one) => Number.isInteger(Math.log2(one))));
              }
            }
          }
        }
      }
    }
  }
});

Deno.test("splits are taken as they are asked for, and none is without blocks", () => {
  for (const k of [3, 40, 333, 4096]) {
    for (const splits of [1, 2, 3, 7, 100]) {
      const shape = dealt(request([2, 50, k], { schedule: { splits } }));
      const { blocks, perSplit } = gemvBlocks(shape);
      assert.ok(shape.splits <= splits && perSplit * (shape.splits - 1) < blocks);
    }
  }
  assert.equal(dealt(request([1, 8192, 8192])).splits, 1);
  assert.ok(dealt(request([1, 8192, 8192], { schedule: { balance: "split-k" } })).splits >= 2);
  assert.equal(dealt(request([1, 4, 1_000_000], { schedule: { balance: "none" } })).splits, 1);
  const { notes } = planGemm(request([1, 50, 16], { schedule: { splits: 9, policy: "gemv" } }));
  assert.match(notes[1]!, /^fewer splits than asked for: 4 of 9/);
});

Deno.test("partial results keep within a buffer and its binding", () => {
  const small = { ...limits, maxStorageBufferBindingSize: 65_536 };
  const shape = dealt(request([4, 1000, 1_000_000], { limits: small }));
  assert.ok(shape.splits * 4 * 1000 * 4 <= 65_536);
});

Deno.test("software devices keep loops short, however long the depth", () => {
  for (const transpose of TRANSPOSES) {
    for (const dtype of ["f32", "i8"] as const) {
      for (const [m, n] of [[1, 8], [8, 1], [5, 6]] as const) {
        const device = softwareDevice(4);
        const asked = request([m, n, 20_000_000], {
          transpose,
          dtype,
          device,
          schedule: { policy: "gemv" },
        });
        assert.ok(longestLoops(planGemm(asked)) <= MOST_ITERATIONS);
      }
    }
  }
});

Deno.test("int8 that is loaded one by one is counted so, and left to the main loop where that is too much", () => {
  const huge = { ...limits, maxBufferSize: 2 ** 34, maxStorageBufferBindingSize: 2 ** 34 };
  const asked = request([1, 65_537, 32_768], { batch: 3, dtype: "i8", limits: huge });
  assert.match(planGemm(asked).kernel, /^gemm_i8/);
  const refused = tryPlanGemm({ ...asked, schedule: { ...asked.schedule, policy: "gemv" } });
  assert.ok(isRefusal(refused) && /loads, kernels count up to 2\^32$/.test(refused.text));
});

Deno.test("arithmetic has a thread's chains, and the tree over them as two levels", () => {
  const arithmetic = (size: readonly [number, number, number], transpose: "nn" | "nt") => {
    const shape = dealt(request(size, { transpose }));
    return { shape, ...gemvArithmetic(shape, { accumulate: "f32" }) };
  };
  // 64 lanes of 2048 blocks of four, one sum each: 64 chains of 128.
  const across = arithmetic([1, 8192, 8192], "nn");
  assert.deepEqual([across.chain, across.segment], [128, 1024]);
  // 256 lanes with four sums each: 1024 chains of 8.
  const along = arithmetic([1, 8192, 8192], "nt");
  assert.deepEqual([along.chain, along.segment], [8, 256]);
  for (const [m, n, k] of [[1, 50, 333], [3, 1000, 4096], [9, 9, 100_000]] as const) {
    for (const transpose of ["nn", "nt"] as const) {
      const { shape, chain, segment, sums } = arithmetic([m, n, k], transpose);
      assert.equal(sums, "f32");
      assert.ok(chain! * shape.splits * shape.threads.lanes * 4 >= k && segment! >= chain!);
      assert.ok(chain! <= Math.ceil(k / shape.splits / shape.threads.lanes) + 4);
    }
  }
});

Deno.test("prices scale with the rates, and follow what moves", () => {
  const time = (device: DeviceModel, dtype: GemmDType, size: readonly [number, number, number]) =>
    gemvTime(dealt(request(size, { dtype, device })), elementsOf({ dtype }), device);
  const sizes = [[1, 8192, 8192], [8, 4096, 4096], [4096, 3, 1000]] as const;
  const { rates, times } = H200;
  const scaled = (figures: object, by: number) =>
    Object.fromEntries(
      Object.entries(figures).map((
        [name, one],
      ) => [name, typeof one === "number" ? by * one : one]),
    );
  const half = {
    ...H200,
    rates: scaled(rates, 1 / 2),
    times: scaled(times, 2),
  } as unknown as DeviceModel;
  for (const size of sizes) {
    const [one, two] = [time(H200, "f32", size), time(half, "f32", size)];
    assert.ok(Math.abs(two / one - 2) < 1e-9, `${size}`);
    assert.ok(time(H200, "f16", size) < one);
  }
  // 268 MB at 4.5 TB/s are 59.7 us.
  const whole = time(H200, "f32", [1, 8192, 8192]);
  assert.ok(whole > 60 && whole < 70, `${whole}`);
});

Deno.test("chooseGemm() compares the main loop's time, and batches fill the device", () => {
  const { gemv } = expectPlanned(chooseGemm(request([1, 4096, 4096])));
  assert.ok(gemv !== undefined);
  const single = dealt(request([1, 64, 4096]));
  const many = dealt(request([1, 64, 4096], { batch: 500 }));
  assert.equal(gemvWorkgroups({ ...many, splits: 1 }) % 500, 0);
  assert.ok(single.splits > many.splits && many.splits === 1);
});
