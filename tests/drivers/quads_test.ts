/** Quads as kernels pack and unpack them, against what `src/simulate` makes of the same values. */
import assert from "#assert";
import { openDevice } from "../../src/gpu/device.ts";
import { moduleBuilder, sizedKernel, WHOLE } from "../../src/kernels/module.ts";
import { DEFAULT_LIMITS, type Plan } from "../../src/algorithms/plan.ts";
import { pass } from "../../src/algorithms/passes.ts";
import { expectPlanned } from "../../src/algorithms/refusal.ts";
import { BufferList } from "../../src/algorithms/tensors.ts";
import { runPlan } from "../../src/run/run_plan.ts";
import { roundQuads } from "../../src/simulate/quads.ts";
import { fillTensor } from "../../src/tensor/fill.ts";
import { backend } from "./driver.ts";

/** A plan that packs `count` values, and unpacks them by fours or one by one. */
function roundTrip(count: number, vector: 1 | 4): Plan {
  const kernelOf = (name: string, from: Parameters<typeof access>[1], to: typeof from) => {
    const module = moduleBuilder("constant");
    const read = access(module, from, "read");
    const write = access(module, to, "write");
    const wgsl = [
      module.declarations(),
      "@compute @workgroup_size(64)",
      "fn main(@builtin(global_invocation_id) id: vec3u) {",
      `  if (id.x < ${count / from.vector}u) { ${write.store("id.x", read.load("id.x"))} }`,
      "}",
    ].join("\n");
    return sizedKernel(name, "constant", wgsl, module, [64, 1, 1], 0);
  };
  const buffers = new BufferList(DEFAULT_LIMITS);
  const places = {
    input: buffers.add("input", "input", count, "f32"),
    output: buffers.add("output", "output", count, "f32"),
    packed: buffers.add("packed", "workspace", count, "quad"),
  };
  const packed = { name: "packed", element: "quad" } as const;
  const kernels = [
    kernelOf("pack", { name: "input", element: "f32", vector: 4 }, { ...packed, vector: 4 }),
    kernelOf("unpack", { ...packed, vector }, { name: "output", element: "f32", vector }),
  ];
  return expectPlanned(buffers.plan({
    kernel: "quads",
    algorithm: "direct",
    passes: kernels.map((kernel) =>
      pass(kernel, buffers, places, Math.ceil(count / 64), DEFAULT_LIMITS)
    ),
    multiplications: 0,
    arithmetic: {},
    notes: [],
  }));
}

function access(
  module: ReturnType<typeof moduleBuilder>,
  { name, element, vector }: { name: string; element: "f32" | "quad"; vector: 1 | 4 },
  kind: "read" | "write",
) {
  return module.tensor(name, kind, vector, WHOLE, element);
}

/** Values of every size that quads hold, of unlike sizes, whole numbers and zeros. */
function values(): Float32Array<ArrayBuffer> {
  const normal = fillTensor("f32", [4096], "normal", 1).data;
  const scaled = normal.map((value, i) => value * 2 ** (((i >> 2) % 123) - 63));
  const unlike = normal.map((value, i) => value * 10 ** (i % 7));
  const whole = normal.map((value) => Math.round(100 * value));
  const edges = [
    [0, 0, 0, 0],
    [1, -1, 0.5, 2 ** -14],
    [1.5, 1.4999999, -1.5, 0],
    [8191, -8191, 1, -1],
    [65504, -65504, 6e-5, 0],
    [1e19, -1e18, 1, 0],
    [1e-30, 2e-30, 0, 1],
    [3, 2 ** -20, -3, 0.1],
  ].flat();
  return Float32Array.from([...normal, ...scaled, ...unlike, ...whole, ...edges]);
}

Deno.test("kernels round what they store in quads as simulated arithmetic does", async () => {
  using gpu = await openDevice({ backend });
  const input = values();
  const expected = Float64Array.from(input);
  roundQuads(expected, 1, 4);
  const result = { role: "output", dtype: "f32", shape: [input.length] } as const;
  for (const vector of [4, 1] as const) {
    const run = await runPlan(gpu, roundTrip(input.length, vector), { input }, result, 1);
    const got = run.result as Float32Array;
    for (let first = 0; first < input.length; first += 4) {
      // A division that is off by its last bit may turn a tie: a step of the largest.
      const largest = Math.max(...input.subarray(first, first + 4).map(Math.abs));
      for (let i = first; i < first + 4; i++) {
        const off = Math.abs(got[i]! - expected[i]!);
        assert.ok(off <= 1.5 * 2 ** -12 * largest, `${input[i]}: ${got[i]}, not ${expected[i]}`);
        assert.ok(Math.abs(got[i]! - input[i]!) <= 1.51 * 2 ** -13 * largest, `${input[i]}`);
      }
    }
    const same = got.filter((value, i) => value === Math.fround(expected[i]!)).length;
    assert.ok(same > 0.999 * input.length, `${same} of ${input.length}`);
  }
});

Deno.test("NaN, infinity and what is too large for quads make NaN of all four", async () => {
  using gpu = await openDevice({ backend });
  const input = Float32Array.from([1, NaN, 2, 3, Infinity, 1, 1, 1, 1, 2, 3, 3e38, 1, 2, 3, 4]);
  const result = { role: "output", dtype: "f32", shape: [input.length] } as const;
  const { result: got } = await runPlan(gpu, roundTrip(16, 4), { input }, result, 1);
  assert.ok((got as Float32Array).subarray(0, 12).every(Number.isNaN), String(got));
  const expected = Float64Array.from(input);
  roundQuads(expected, 1, 4);
  assert.deepEqual([...got as Float32Array], [...expected]);
});
