import assert from "#assert";
import { convProblem } from "../../problem/conv_problem.ts";
import { parseDescriptor } from "../../problem/descriptor.ts";
import { NO_EPILOGUE } from "../../problem/epilogue.ts";
import { H200 } from "../device/h200.ts";
import { DEFAULT_LIMITS } from "../plan.ts";
import { planConv, tryPlanConv } from "../planner.ts";
import { isRefusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { blockOf } from "./baseline.ts";
import { enlarged, kernelRates, mayTakeHalf } from "./half.ts";
import { omegaName, OMEGAS, parseOmega } from "./omega.ts";

function request(width: number, more: Partial<PlanRequest> = {}): PlanRequest {
  return {
    problem: convProblem({
      op: "bwd-filter",
      batch: 32,
      inChannels: 64,
      outChannels: 64,
      inputSize: [56, 56],
      filterSize: [width, width],
      paddingBegin: [width >> 1, width >> 1],
    }),
    dtype: "f16",
    layout: "nhwc",
    filterLayout: "krsc",
    epilogue: NO_EPILOGUE,
    algorithm: "winrs",
    limits: {
      ...DEFAULT_LIMITS,
      maxComputeInvocationsPerWorkgroup: 1024,
      maxComputeWorkgroupStorageSize: 49_152,
    },
    ...more,
    schedule: { halfTile: true, ...more.schedule },
  };
}

const taken = (more: Partial<PlanRequest>) =>
  OMEGAS.filter((omega) => mayTakeHalf(request(3, more), omega)).map(omegaName);

Deno.test("mayTakeHalf() keeps within four times the error of rounded results, or the user's bound", () => {
  const four = ["a2n1r1", "a4n2r3", "a4n3r2", "a4n2r3xa4n2r3", "a4n3r2xa4n3r2"];
  assert.deepEqual(taken({}), four);
  assert.deepEqual(taken({ outDtype: "f32" }), ["a2n1r1"]);
  assert.deepEqual(taken({ exact: true }), ["a2n1r1"]);
  const bound = (omega: string) => enlarged(request(3), parseOmega(omega));
  assert.ok(bound("a16n9r8") > bound("a8n7r2") && bound("a8n7r2") > bound("a4n3r2"));
  assert.deepEqual(taken({ maxBoundRatio: 1e3 }), ["a2n1r1"]);
  assert.deepEqual(taken({ maxBoundRatio: 1e9 }), OMEGAS.map(omegaName));
});

Deno.test("kernelRates() leaves out kernels in f16 above the gate's ceiling where no bound is allowed", () => {
  const rates = (more: Partial<PlanRequest>) => {
    const rate = kernelRates(request(3, more));
    return Object.fromEntries(OMEGAS.map((omega) => [omegaName(omega), rate(omega)]));
  };
  const { winrs } = H200.rates;
  assert.deepEqual(rates({ schedule: { halfTile: false } }), winrs);
  // Slices in two kernels are of channels innermost alone.
  const { "a4n3r2xa8n3r6": three, "a4n2r3xa8n4r5": four, ...others } = rates({
    schedule: { halfTile: false },
    layout: "nchw",
    filterLayout: "kcrs",
  });
  assert.ok(Math.max(three!, four!) < 1e-6);
  assert.deepEqual({ ...winrs, ...others }, winrs);
  assert.equal(rates({}).a8n3r6, H200.shares.winrsHalf * winrs.a8n3r6!);
  assert.ok(rates({}).a16n9r8! < 1e-6);
  assert.ok(rates({ maxBoundRatio: 1e9 })["a4n3r2xa4n3r2"]! < 1e-6);
  assert.ok(rates({ outDtype: "f32" }).a8n3r6! < 1e-6);
  assert.equal(rates({ maxBoundRatio: 1e9 }).a16n9r8, H200.shares.winrsHalf * winrs.a16n9r8!);
});

Deno.test("half-tile names kernels, halves the tile, and says how transformed data is rounded", () => {
  const half = planConv(request(3));
  const whole = planConv(request(3, { schedule: { halfTile: false } }));
  assert.match(half.kernel, /^winrs_f16_a8n3r6_.*_half_tile/);
  assert.doesNotMatch(whole.kernel, /half_tile/);
  assert.equal(half.arithmetic.transformed, "f16");
  assert.equal(whole.arithmetic.transformed, undefined);
  const { wgsl } = half.passes[0]!.kernel;
  assert.match(wgsl, /var<workgroup> tile: array<array<array<array<vec4<f16>, 32>, 8>, 8>, 1>/);
  assert.match(wgsl, /var<workgroup> sums: array<array<array<vec4f, 32>/);
  assert.ok(half.amplification! > whole.amplification!);
  assert.ok(half.predictedMs! > whole.predictedMs!);
});

Deno.test("tiles in f16 leave room for deeper ones, and α = 16 fits where channels lie apart", () => {
  const kernel = (more: Partial<PlanRequest>, width = 3) => planConv(request(width, more)).kernel;
  const few = { ...request(3).limits, maxComputeWorkgroupStorageSize: 16_384 };
  const f32 = { halfTile: false };
  assert.match(kernel({ limits: few, pair: "a8n3r6", schedule: { ...f32 } }), /_32x32x4_8x8_/);
  assert.match(kernel({ limits: few, pair: "a8n3r6" }), /_32x32x8_8x8_/);
  const apart = { layout: "nchw", filterLayout: "kcrs", pair: "a16n9r8" } as const;
  assert.match(kernel({ ...apart, schedule: { ...f32 } }, 9), /_64x32x7_8x16_/);
  assert.match(kernel({ ...apart, maxBoundRatio: 1e9 }, 9), /_64x32x8_8x16_/);
});

Deno.test("kernels in f16 that err too much are refused by name, and not chosen", () => {
  const refusal = (asked: PlanRequest) => {
    const planned = tryPlanConv(asked);
    return isRefusal(planned) ? `${planned.kind}: ${planned.text}` : "";
  };
  assert.match(
    refusal(request(9, { pair: "a16n9r8" })),
    /^accuracy: winrs F\(1x9,1x8\) typically errs by 4\.7e-2 .* of f16, 0\.02 is allowed/,
  );
  assert.match(planConv(request(9)).kernel, /a8n3r6/);
  assert.match(planConv(request(9, { maxBoundRatio: 1e9 })).kernel, /a16n9r8/);
  assert.match(
    refusal(request(3, { schedule: { prefetch: false } })),
    /by rotated-loop, half-tile and matrix-units alone/,
  );
});

Deno.test("auto takes kernels in f16 where they are predicted to be faster and err little enough", () => {
  const { schedule: _, ...asked } = request(3, { algorithm: "auto" });
  const device = (winrsHalf: number) => ({ ...H200, shares: { ...H200.shares, winrsHalf } });
  assert.doesNotMatch(planConv(asked).kernel, /half_tile/);
  const fast = planConv({ ...asked, device: device(3) });
  assert.match(fast.kernel, /^winrs_f16_a4n3r2_.*half_tile/);
  assert.match(fast.notes.at(-1)!, /winrs a4n3r2 half_tile is predicted/);
  const wide = planConv({ ...asked, device: device(3), maxBoundRatio: 1e6 });
  assert.match(wide.kernel, /^winrs_f16_a8n3r6_.*half_tile/);
  const f32 = planConv({ ...asked, dtype: "f32", device: device(3) });
  assert.doesNotMatch(f32.kernel, /half_tile/);
});

Deno.test("matrix units multiply where results are f16, channels lie in vectors, and nothing else is asked for", () => {
  const units = [[16, 16, 16], [16, 8, 8]] as const;
  const matrixUnits = {
    lanes: 32,
    units: units.map(([m, n, k]) => ({ component: "f16", result: "f32", m, n, k }) as const),
  };
  const asked = request(9, { matrixUnits, maxBoundRatio: 1e9 });
  const kernel = (more: Partial<PlanRequest>) => planConv({ ...asked, ...more }).kernel;
  assert.match(kernel({ pair: "a4n3r2" }), /_64x64x16_mma16x16x16_4x4_/);
  assert.match(kernel({ pair: "a8n3r6" }), /_64x64x16_mma16x16x16_4x4_/);
  const groups = { ...asked.problem, groups: 16 };
  const others: Partial<PlanRequest>[] = [
    { pair: "a2n1r1" },
    { problem: groups },
    { dtype: "f32" },
    { outDtype: "f32" },
    { layout: "nchw", filterLayout: "kcrs" },
    { layout: "chwn", filterLayout: "crsk" },
    { schedule: { halfTile: true, policy: "16x16x4_4x4" } },
    { schedule: {} },
    { schedule: { halfTile: true, matrixUnits: false } },
  ];
  for (const more of others) {
    const taken = kernel({ ...(more.pair ? {} : { pair: "a8n3r6" }), ...more });
    assert.doesNotMatch(taken, /_mma/, JSON.stringify(more));
  }
});

Deno.test("of four slices a multiprocessor runs two workgroups; of eight one, of two steps a round", () => {
  const unit = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;
  const asked = request(3, { matrixUnits: { lanes: 32, units: [unit] }, maxBoundRatio: 1e9 });
  const pass = (pair: string, splits: number) =>
    planConv({ ...asked, pair, schedule: { ...asked.schedule, splits } }).passes[0]!;
  const count = (wgsl: string, found: RegExp) => wgsl.match(found)?.length ?? 0;
  for (const [pair, inFlight, rounds] of [["a4n3r2", 2, false], ["a8n3r6", 1, true]] as const) {
    const block = blockOf(asked, H200, parseOmega(pair));
    assert.deepEqual(block, { outChannels: 64, inChannels: 64, perMultiprocessor: inFlight });
    const passes = [pass(pair, 1), pass(pair, 56)] as const;
    const [parts, whole] = passes.map(({ kernel }) => kernel.wgsl) as [string, string];
    assert.equal(count(parts, /let at = first_step;/g), 1);
    assert.equal(count(whole, /let at = first_step;/g), 1);
    for (const one of passes) {
      assert.equal(count(one.kernel.wgsl, /step\+\+\) \{/g), rounds ? 0 : 1);
      assert.equal(count(one.kernel.wgsl, /round \+= 2u\) \{/g), rounds ? 1 : 0);
    }
  }
});

Deno.test("parts of sums are whole rounds of two steps with eight slices", () => {
  const unit = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;
  const asked = request(3, { matrixUnits: { lanes: 32, units: [unit] }, maxBoundRatio: 1e9 });
  const stored = (pair: string) =>
    planConv({ ...asked, pair, schedule: { ...asked.schedule, splits: 1, flush: 48 } }).notes.join()
      .match(/stored every (\d+)/)![1];
  assert.equal(stored("a4n3r2"), "48");
  assert.equal(stored("a8n3r6"), "64");
});

Deno.test("sixteen slices are two kernels of eight, of which the second adds to what the first stores, and each step asks for the end", () => {
  const unit = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;
  const asked = request(9, { matrixUnits: { lanes: 32, units: [unit] }, maxBoundRatio: 1e9 });
  const { passes, notes, multiplications } = planConv({
    ...asked,
    pair: "a16n9r8",
    schedule: { ...asked.schedule, splits: 56 },
  });
  const [first, second, ...others] = passes;
  assert.match(first!.kernel.name, /a16n9r8_64x64x16_mma16x16x16_4x4_.*_buckets_half_tile_set0/);
  assert.match(second!.kernel.name, /_buckets_add_half_tile_set1/);
  assert(others.every(({ kernel }) => !kernel.name.startsWith("winrs")));
  assert.deepEqual(first!.grid, second!.grid);
  for (const { kernel: { wgsl } } of [first!, second!]) {
    assert.match(wgsl, /step < workgroupUniformLoad\(&loop_end\); step\+\+/);
    assert.match(wgsl, /if \(t == 0u\) \{ loop_end = end_step; \}/);
  }
  assert.match(notes.join(), /2 times \d+ workgroups of 256 threads/);
  const [one, two] = [first!, second!].map((pass) => pass.multiplications!);
  assert.equal(one! + two!, multiplications);
  assert.equal(one, two);
});

Deno.test("segments fill all workgroups that run at once on matrix units", () => {
  const unit = { component: "f16", result: "f32", m: 16, n: 16, k: 16 } as const;
  const problem = parseDescriptor("mb64ic512ih14oc512kh2", "bwd-filter");
  const { passes } = planConv(request(2, { problem, matrixUnits: { lanes: 32, units: [unit] } }));
  // 128 workgroups a segment, of which 264 run at once: 256 would have sums of 2,240 products, in two parts.
  assert.equal(passes[0]!.grid[0], 512);
});
