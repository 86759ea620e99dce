import assert from "#assert";
import { convertDType } from "./convert.ts";
import { type DType, DTYPES } from "./dtype.ts";
import { type Tensor, tensor } from "./tensor.ts";

function f64(...values: number[]) {
  return tensor("f64", [values.length], new Float64Array(values));
}

function convert(values: number[], ...dtypes: DType[]): number[] {
  let last: Tensor = f64(...values);
  for (const dtype of dtypes) last = convertDType(last, dtype);
  return Array.from(last.data, Number);
}

Deno.test("convertDType() keeps small whole numbers between all dtypes", () => {
  for (const from of DTYPES) {
    for (const to of DTYPES) {
      const values = from === "bool" || to === "bool" ? [0, 1] : [0, 1, 5, 127];
      assert.deepEqual(convert(values, from, to), values, `${from} to ${to}`);
    }
  }
});

Deno.test("convertDType() is the same object where nothing changes, and keeps the shape", () => {
  const source = tensor("i32", [2, 1], new Int32Array([1, 2]));
  assert.equal(convertDType(source, "i32"), source);
  assert.deepEqual(convertDType(source, "i64").shape, [2, 1]);
});

Deno.test("convertDType() rounds floats to nearest even and overflows to infinity", () => {
  assert.deepEqual(convert([2049, 2051, 1e5, -1e5, NaN], "f16"), [
    2048,
    2052,
    Infinity,
    -Infinity,
    NaN,
  ]);
  assert.deepEqual(convert([1 + 2 ** -24, 1 + 3 * 2 ** -24], "f32"), [1, 1 + 2 ** -22]);
});

Deno.test("convertDType() rounds 64-bit integers once, to nearest even", () => {
  // Halfway between values of f32, and just beside it where f64 takes it for halfway.
  const step = 2n ** 39n;
  const ties: [value: bigint, rounded: bigint][] = [0n, 1n].flatMap((odd) => {
    const low = 2n ** 62n + odd * step;
    const half = low + step / 2n;
    return [
      [half, odd === 0n ? low : low + step],
      [half + 1n, low + step],
      [half - 1n, low],
    ] as [bigint, bigint][];
  });
  const signed = [...ties, ...ties.map(([value, rounded]) => [-value, -rounded] as const)];
  const from = tensor("i64", [12], BigInt64Array.from(signed, ([value]) => value));
  assert.deepEqual(
    Array.from(convertDType(from, "f32").data, BigInt),
    signed.map(([, rounded]) => rounded),
  );
  const unsigned = tensor("u64", [6], BigUint64Array.from(ties, ([value]) => value * 2n));
  assert.deepEqual(
    Array.from(convertDType(unsigned, "f32").data, BigInt),
    ties.map(([, rounded]) => rounded * 2n),
  );
  const most = tensor("u64", [3], BigUint64Array.of(2n ** 64n - 1n, 2n ** 53n + 1n, 65519n));
  assert.deepEqual([...convertDType(most, "f32").data], [2 ** 64, 2 ** 53, 65519]);
  assert.deepEqual([...convertDType(most, "f64").data], [2 ** 64, 2 ** 53, 65519]);
  assert.deepEqual([...convertDType(most, "f16").data], [Infinity, Infinity, 65504]);
  // Ties of f64 itself.
  const exact = tensor("i64", [3], BigInt64Array.of(2n ** 53n + 1n, 2n ** 53n + 3n, -(2n ** 62n)));
  assert.deepEqual([...convertDType(exact, "f64").data], [2 ** 53, 2 ** 53 + 4, -(2 ** 62)]);
});

Deno.test("convertDType() rounds f64 to f16 once", () => {
  // Beside a tie of f16, where f32 takes it for one.
  const values = [1 + 2 ** -11 + 2 ** -40, 1 + 2 ** -11, 1 + 3 * 2 ** -11 - 2 ** -40, 2 ** -25];
  assert.deepEqual(convert([...values, 2 ** -25 + 2 ** -60], "f16"), [
    1 + 2 ** -10,
    1,
    1 + 2 ** -10,
    0,
    2 ** -24,
  ]);
});

Deno.test("convertDType() cuts fractions off and makes all but zero true", () => {
  assert.deepEqual(convert([-1.9, -0.9, 0.9, 127.9, -128.9], "i8"), [-1, 0, 0, 127, -128]);
  assert.deepEqual(convert([-0.9, 255.9], "u8"), [0, 255]);
  assert.deepEqual(convert([-1.5, 2 ** 40 + 0.5], "i64"), [-1, 2 ** 40]);
  assert.deepEqual(convert([0, -0, 0.1, -5, NaN], "bool"), [0, 0, 1, 1, 1]);
  assert.deepEqual(convert([0, -3], "i64", "bool"), [0, 1]);
});

Deno.test("convertDType() keeps 64-bit integers whole", () => {
  const large = tensor("i64", [2], new BigInt64Array([2n ** 63n - 1n, 2n ** 53n + 1n]));
  assert.deepEqual(
    convertDType(large, "u64").data,
    new BigUint64Array([2n ** 63n - 1n, 2n ** 53n + 1n]),
  );
});

Deno.test("convertDType() refuses values that an integer dtype cannot hold", () => {
  const cases: [value: number, dtypes: DType[]][] = [
    [NaN, ["i32"]],
    [Infinity, ["i64"]],
    [128, ["i8"]],
    [-129, ["i8"]],
    [-1, ["i64", "u8"]],
    [-1, ["i8", "u64"]],
    [-1, ["i64", "u64"]],
    [2 ** 63, ["u64", "i64"]],
    [2 ** 63, ["i64"]],
    [2 ** 64, ["u64"]],
    [300, ["i16", "u8"]],
    [40000, ["u16", "i16"]],
    [2 ** 32, ["i64", "u32"]],
  ];
  for (const [value, dtypes] of cases) {
    const to = dtypes.at(-1);
    assert.throws(() => convert([0, value], ...dtypes), {
      name: "RangeError",
      message: new RegExp(
        `^Cannot convert the tensor to ${to}: element 1 is ${
          dtypes.length > 1 ? BigInt(value) : value
        }, ${to} holds -?\\d+ to \\d+$`,
      ),
    });
  }
});

Deno.test("convertDType() says what to do with u8 that is beyond i8", () => {
  assert.throws(() => convert([217], "u8", "i8"), {
    message: "Cannot convert the tensor to i8: element 0 is 217, i8 holds -128 to 127; " +
      "subtract 128, or convolve, which takes u8 and zero points",
  });
  assert.throws(
    () => convert([2 ** 63], "u64", "i64"),
    / is 9223372036854775808, i64 holds -9223372036854775808 to 9223372036854775807$/,
  );
});
