import { InputTypeError } from "../errors.ts";
import { convertValues } from "./convert.ts";
import { arrayConstructor, type DType, type TensorData } from "./dtype.ts";
import { normalQuantile, RandomWords } from "./random.ts";
import { elementCount, type Tensor, tensor, zeros } from "./tensor.ts";

/**
 * How values are drawn: `uniform01` from [0, 1), `uniform11` from [-1, 1), `normal` with mean 0 and
 * deviation 1, `integer` whole numbers from -8 to 8, or 0 to 8 in unsigned dtypes and 0 to 1 in bool, `int8`
 * from -128 to 127, or 0 to 127 and 0 to 1. `constant` is 0.1 everywhere (3 in integer dtypes, 1 in bool): sums of it round to one
 * side. `outliers` is uniform01 with one value in 1024 times 1000; `mixed` is normal, each slice along the first axis times a
 * power of ten from -2.5 to 2.5.
 */
export type FillKind =
  | "uniform01"
  | "uniform11"
  | "normal"
  | "constant"
  | "outliers"
  | "mixed"
  | "integer"
  | "int8";

/** All of them, in the order of help texts. */
export const FILL_KINDS: readonly FillKind[] = [
  "uniform01",
  "uniform11",
  "normal",
  "constant",
  "outliers",
  "mixed",
  "integer",
  "int8",
];

/** Fills of whole numbers, which every dtype takes. */
const WHOLE: readonly FillKind[] = ["constant", "integer", "int8"];

/** Values drawn at once: they stay in the cache. */
const BLOCK = 4096;

/**
 * A tensor of seeded random values, the same bits on every machine. Uniform values have 24 bits (11 in
 * f16, 8 in bf16), so that the dtype holds them exactly and f32 and f64 get the same ones; normal values are
 * rounded to the dtype.
 *
 * @throws {TypeError} for integer dtypes with a fill of fractions.
 * @throws {RangeError} for a seed that is no whole number >= 0, or sizes that are none.
 * @example
 * ```ts
 * import { fillTensor } from "@wgconv/wgconv";
 * import assert from "node:assert/strict";
 *
 * const { shape, data } = fillTensor("f32", [2, 3], "integer", 1);
 * assert.deepEqual(shape, [2, 3]);
 * assert.ok(data.every((value) => Number.isInteger(value) && Math.abs(value) <= 8));
 * ```
 */
export function fillTensor<D extends DType>(
  dtype: D,
  shape: readonly number[],
  kind: FillKind,
  seed: number,
): Tensor<D> {
  if (!isReal(dtype) && !WHOLE.includes(kind)) {
    throw new InputTypeError(
      `Cannot fill with ${kind}: ${dtype} takes only the fills ${WHOLE.join(", ")}`,
    );
  }
  const random = new RandomWords(seed);
  if (shape.includes(0)) return zeros(dtype, shape);
  // Sizes are checked before memory is taken for them.
  const empty = tensor(dtype, [0, ...shape], new (arrayConstructor(dtype))(0));
  const result = zeros(dtype, empty.shape.slice(1));
  const data: TensorData = result.data;
  const words = new Uint32Array(BLOCK);
  const values = new Float64Array(BLOCK);
  const draw = drawing(dtype, kind, 32 - (dtype === "f16" ? 11 : dtype === "bf16" ? 8 : 24));
  const count = elementCount(shape);
  for (let start = 0; start < count; start += BLOCK) {
    random.fill(words);
    draw(words, values);
    const block = values.subarray(0, Math.min(BLOCK, count - start));
    if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
      const part = data.subarray(start, start + block.length);
      convertValues(block, "f64", part, dtype === "i64" ? "i64" : "u64");
    } else {
      data.set(block, start);
    }
  }
  if (kind === "mixed") mixScales(result, random);
  if (dtype === "bf16") convertValues(data, "f32", result.data, dtype);
  return result;
}

function isReal(dtype: DType): boolean {
  return dtype === "bf16" || dtype.startsWith("f");
}

/** Multiplies each slice along the first axis by a power of ten of its own. */
function mixScales({ data, shape }: Tensor, random: RandomWords): void {
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) return;
  const slices = shape[0] ?? 1;
  const words = new Uint32Array(slices);
  random.fill(words);
  const size = data.length / slices;
  for (let slice = 0; slice < slices; slice++) {
    const scale = 10 ** (5 * words[slice]! / 2 ** 32 - 2.5);
    // Rounded to f32 first, as normal values are.
    for (let i = slice * size; i < (slice + 1) * size; i++) data[i] = Math.fround(data[i]! * scale);
  }
}

/** Turns words into values; each is a loop of its own, which the engine makes fast. */
function drawing(
  dtype: DType,
  kind: FillKind,
  drop: number,
): (words: Uint32Array, values: Float64Array) => void {
  const real = isReal(dtype);
  switch (kind) {
    case "uniform01":
      return (words, values) => scale(words, values, drop, 1 / (1 << (32 - drop)), 0);
    case "uniform11":
      return (words, values) => scale(words, values, drop, 1 / (1 << (31 - drop)), -1);
    case "constant":
      return (_, values) => values.fill(real ? 0.1 : dtype === "bool" ? 1 : 3);
    case "outliers":
      return (words, values) => {
        scale(words, values, drop, 1 / (1 << (32 - drop)), 0);
        for (let i = 0; i < words.length; i++) if (isOutlier(words[i]!)) values[i]! *= 1000;
      };
    case "mixed":
    case "normal":
      return dtype === "f64" ? normals : singleNormals;
    case "integer":
    case "int8": {
      const [least, most] = kind === "int8" ? [-128, 127] : [-8, 8];
      const [low, high] = dtype === "bool"
        ? [0, 1]
        : dtype.startsWith("u")
        ? [0, most]
        : [least, most];
      return (words, values) => integers(words, values, low, high - low + 1);
    }
  }
}

/** One word in 1024, whatever its upper bits. */
function isOutlier(word: number): boolean {
  return (Math.imul(word, 0x9e3779b1) >>> 22) === 0;
}

function scale(words: Uint32Array, values: Float64Array, drop: number, step: number, base: number) {
  for (let i = 0; i < words.length; i++) values[i] = (words[i]! >>> drop) * step + base;
}

function normals(words: Uint32Array, values: Float64Array) {
  for (let i = 0; i < words.length; i++) values[i] = normalQuantile(words[i]!);
}

/** Rounded to f32 first, so that f16 does not depend on the way a machine rounds to it. */
function singleNormals(words: Uint32Array, values: Float64Array) {
  for (let i = 0; i < words.length; i++) values[i] = Math.fround(normalQuantile(words[i]!));
}

function integers(words: Uint32Array, values: Float64Array, low: number, count: number) {
  // The product is exact; the bias of 2^-32 a value cannot be seen.
  for (let i = 0; i < words.length; i++) {
    values[i] = low + Math.floor(words[i]! * count / 0x1_0000_0000);
  }
}
