import assert from "#assert";
import { type DType, DTYPES } from "./dtype.ts";
import { type FillKind, fillTensor } from "./fill.ts";

function first(dtype: DType, kind: FillKind, seed = 1): number[] {
  return Array.from(fillTensor(dtype, [6], kind, seed).data, Number);
}

/** Mean, variance, skewness and kurtosis. */
function moments(values: ArrayLike<number>): [number, number, number, number] {
  const n = values.length;
  let mean = 0;
  for (let i = 0; i < n; i++) mean += values[i]! / n;
  const powers = [0, 0, 0];
  for (let i = 0; i < n; i++) {
    const d = values[i]! - mean;
    powers[0]! += d * d / n;
    powers[1]! += d * d * d / n;
    powers[2]! += d * d * d * d / n;
  }
  const [variance, third, fourth] = powers as [number, number, number];
  return [mean, variance, third / variance ** 1.5, fourth / variance ** 2];
}

Deno.test("fillTensor() gives the same bits on every machine", () => {
  assert.deepEqual(first("f32", "uniform01"), [
    0.3946724534034729,
    0.3313447833061218,
    0.14775007963180542,
    0.24871611595153809,
    0.1668834686279297,
    0.9747467041015625,
  ]);
  assert.deepEqual(first("f32", "uniform11"), [
    -0.2106550931930542,
    -0.33731043338775635,
    -0.7044998407363892,
    -0.5025677680969238,
    -0.6662330627441406,
    0.949493408203125,
  ]);
  assert.deepEqual(first("f64", "normal"), [
    -0.26716126049637057,
    -0.4362028341314391,
    -1.046131848838978,
    -0.6785353848381841,
    -0.9665540284860048,
    1.9556489555888146,
  ]);
  assert.deepEqual(first("f16", "uniform01"), [
    0.39453125,
    0.3310546875,
    0.1474609375,
    0.24853515625,
    0.16650390625,
    0.974609375,
  ]);
  assert.deepEqual(first("i8", "integer"), [-2, -3, -6, -4, -6, 8]);
  assert.deepEqual(first("u8", "integer"), [3, 2, 1, 2, 1, 8]);
});

Deno.test("fillTensor() gives f32 and f64 the same uniform values, and f32 rounded normal ones", () => {
  for (const kind of ["uniform01", "uniform11"] as const) {
    assert.deepEqual(first("f32", kind), first("f64", kind));
  }
  assert.deepEqual(first("f32", "normal"), first("f64", "normal").map(Math.fround));
});

Deno.test("fillTensor() has the moments of each distribution", () => {
  const n = 1 << 20;
  // Six deviations of each moment's estimate, rounded up.
  const cases: [kind: FillKind, moments: number[]][] = [
    ["uniform01", [0.5, 1 / 12, 0, 1.8]],
    ["uniform11", [0, 1 / 3, 0, 1.8]],
    ["normal", [0, 1, 0, 3]],
    ["integer", [0, 24, 0, 3 - 6 * 290 / (5 * 288)]],
  ];
  for (const [kind, expected] of cases) {
    for (const dtype of ["f32", "f16"] as const) {
      const found = moments(Float64Array.from(fillTensor(dtype, [n], kind, 3).data));
      const scale = Math.sqrt(expected[1]!);
      const bounds = [0.01 * scale, 0.02 * scale ** 2, 0.02, 0.05];
      if (dtype === "f16" && kind === "uniform01") bounds[0]! += 2 ** -11;
      found.forEach((value, i) =>
        assert(
          Math.abs(value - expected[i]!) < bounds[i]!,
          `${kind} ${dtype} moment ${i}: ${value}`,
        )
      );
    }
  }
});

Deno.test("fillTensor() has the tails of the normal distribution", () => {
  const n = 1 << 21;
  const { data } = fillTensor("f32", [n], "normal", 11);
  // Two-sided probabilities beyond 1 to 4 deviations.
  [0.3173105, 0.0455003, 0.0026998, 0.00006334].forEach((probability, i) => {
    const beyond = data.reduce((count, value) => count + (Math.abs(value) > i + 1 ? 1 : 0), 0);
    const expected = n * probability;
    assert(Math.abs(beyond - expected) < 5 * Math.sqrt(expected), `${i + 1}: ${beyond}`);
  });
});

Deno.test("fillTensor() fills the whole range evenly and does not repeat itself", () => {
  const n = 1 << 20;
  const { data } = fillTensor("f32", [n], "uniform01", 5);
  const bins = new Uint32Array(256);
  let products = 0;
  for (let i = 0; i < n; i++) {
    assert(data[i]! >= 0 && data[i]! < 1);
    bins[Math.floor(data[i]! * 256)]! += 1;
    products += (data[i]! - 0.5) * (data[(i + 1) % n]! - 0.5);
  }
  const chiSquare = bins.reduce((sum, count) => sum + (count - n / 256) ** 2 / (n / 256), 0);
  assert(chiSquare > 150 && chiSquare < 380, `${chiSquare}`);
  assert(Math.abs(products / n) < 6 / 12 / Math.sqrt(n), `${products}`);
});

Deno.test("fillTensor() draws other streams for other seeds", () => {
  const n = 1 << 16;
  const a = fillTensor("f32", [n], "uniform11", 1).data;
  for (const seed of [0, 2, 3, 2 ** 32 + 1]) {
    const b = fillTensor("f32", [n], "uniform11", seed).data;
    const correlation = a.reduce((sum, value, i) => sum + value * b[i]!, 0) * 3 / n;
    assert(Math.abs(correlation) < 6 / Math.sqrt(n), `${seed}: ${correlation}`);
  }
});

Deno.test("fillTensor() fills every dtype with integers it holds, and every shape", () => {
  for (const dtype of DTYPES) {
    const { data, shape } = fillTensor(dtype, [3, 1000, 3], "integer", 2);
    assert.deepEqual(shape, [3, 1000, 3]);
    const values = Array.from(data, Number);
    const [low, high] = dtype === "bool" ? [0, 1] : dtype.startsWith("u") ? [0, 8] : [-8, 8];
    assert.equal(Math.min(...values), low, dtype);
    assert.equal(Math.max(...values), high, dtype);
    assert(values.every(Number.isInteger));
    const bytes = Array.from(fillTensor(dtype, [100, 100], "int8", 2).data, Number);
    assert.equal(Math.min(...bytes), dtype === "bool" || dtype.startsWith("u") ? 0 : -128, dtype);
    assert.equal(Math.max(...bytes), dtype === "bool" ? 1 : 127, dtype);
  }
  assert.equal(fillTensor("f32", [], "normal", 1).data.length, 1);
  assert.equal(fillTensor("f32", [4, 0], "normal", 1).data.length, 0);
});

Deno.test("fillTensor() refuses fractions for integer dtypes, and sizes that are none", () => {
  for (const dtype of DTYPES.filter((dtype) => !dtype.startsWith("f") && dtype !== "bf16")) {
    for (const kind of ["uniform01", "uniform11", "normal"] as const) {
      assert.throws(() => fillTensor(dtype, [2], kind, 1), {
        name: "TypeError",
        message: `Cannot fill with ${kind}: ${dtype} takes only the fills constant, integer, int8`,
      });
    }
  }
  assert.throws(() => fillTensor("f32", [2, -1], "normal", 1), RangeError);
  assert.throws(() => fillTensor("f32", [1.5], "normal", 1), RangeError);
});

Deno.test("fillTensor() makes constants, outliers and slices of unlike scale", () => {
  assert.deepEqual(first("f32", "constant"), Array(6).fill(Math.fround(0.1)));
  assert.deepEqual(first("i8", "constant"), Array(6).fill(3));
  assert.deepEqual(first("bool", "constant"), Array(6).fill(1));
  const outliers = fillTensor("f32", [2 ** 18], "outliers", 1).data;
  const large = outliers.filter((value) => value >= 1).length;
  assert.ok(large > 200 && large < 320, `${large}`);
  assert.ok(outliers.every((value) => value >= 0 && value < 1000));
  const mixed = fillTensor("f32", [64, 1000], "mixed", 1).data;
  const sizes = Array.from({ length: 64 }, (_, slice) => {
    const part = mixed.subarray(slice * 1000, (slice + 1) * 1000);
    return Math.sqrt(part.reduce((sum, value) => sum + value * value, 0) / 1000);
  }).sort((a, b) => a - b);
  assert.ok(
    sizes[0]! < 0.02 && sizes[0]! > 0.003 && sizes[63]! > 50 && sizes[63]! < 330,
    `${sizes}`,
  );
});
