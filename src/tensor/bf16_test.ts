import assert from "#assert";
import { fromBf16, toBf16 } from "./convert.ts";
import { FILL_KINDS, fillTensor } from "./fill.ts";

function rounded(values: Float64Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>): number[] {
  const back = new Float32Array(values.length);
  fromBf16(toBf16(values), back);
  return [...back];
}

Deno.test("every value of bf16 goes to f32 and back, and NaN stays one", () => {
  const bits = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
  const values = new Float32Array(bits.length);
  fromBf16(bits, values);
  assert.deepEqual([values[0x3f80], values[0xc0a0], values[0x7f80]], [1, -5, Infinity]);
  const back = toBf16(values);
  assert.deepEqual(back, bits);
  const low = new Uint32Array(values.buffer.slice(0, 4)).fill(0x7f800001);
  assert.deepEqual([...toBf16(new Float32Array(low.buffer))], [0x7fc0]);
});

Deno.test("toBf16() rounds once, to nearest even", () => {
  const step = 2 ** -7;
  const half = 1 + step / 2;
  const values = [half, half + step, half + 2 ** -50, half - 2 ** -50, half + 2 ** -23];
  const expected = [1, 1 + 2 * step, 1 + step, 1, 1 + step];
  assert.deepEqual(rounded(Float64Array.from(values)), expected);
  assert.deepEqual(
    rounded(Float64Array.from(values, (value) => -value)),
    expected.map((value) => -value),
  );
  const large = 2 ** 127 * (2 - step);
  const edge = large + 2 ** 119;
  assert.deepEqual(rounded(Float64Array.of(large, edge, edge * (1 - 2 ** -53), -1e300)), [
    large,
    Infinity,
    large,
    -Infinity,
  ]);
  const least = 2 ** -133;
  assert.deepEqual(rounded(Float64Array.of(least / 2, least / 2 * (1 + 2 ** -52), -1e-300)), [
    0,
    least,
    -0,
  ]);
  const whole = 2n ** 62n;
  const place = 2n ** 54n;
  assert.deepEqual(
    rounded(BigInt64Array.of(whole + place, whole + place + 1n, -whole - 3n * place)),
    [
      2 ** 62,
      2 ** 62 + 2 ** 55,
      -(2 ** 62 + 2 ** 56),
    ],
  );
});

Deno.test("fillTensor() draws values that bf16 holds", () => {
  for (const kind of FILL_KINDS) {
    const { data } = fillTensor("bf16", [1000], kind, 3);
    const back = new Float32Array(data.length);
    fromBf16(toBf16(data), back);
    assert.deepEqual(back, data);
    if (!kind.startsWith("uniform")) continue;
    assert.ok(data.every((value) => value >= (kind === "uniform01" ? 0 : -1) && value < 1));
  }
});
