import { type Tensor, tensor } from "../mod.ts";

/** A 5 x 5 kernel, row by row. */
type Kernel = readonly (readonly number[])[];

const GAUSSIAN: Kernel = outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1], 1 / 256);
const BLUR: Kernel = outer([0, 1, 2, 1, 0], [0, 1, 2, 1, 0], 1 / 16);
const SHARPEN: Kernel = combine([[delta(), 2.5], [GAUSSIAN, -1.5]]);
const SOBEL_X: Kernel = outer([0, 1, 2, 1, 0], [0, -1, 0, 1, 0], 1 / 4);
const SOBEL_Y: Kernel = outer([0, -1, 0, 1, 0], [0, 1, 2, 1, 0], 1 / 4);
const EDGES: Kernel = combine([[delta(), 4], [GAUSSIAN, -4]]);
const EMBOSS: Kernel = [
  [0, 0, 0, 0, 0],
  [0, -1, -1, 0, 0],
  [0, -1, 0, 1, 0],
  [0, 0, 1, 1, 0],
  [0, 0, 0, 0, 0],
];

/** What red, green and blue weigh in a pixel's brightness (Rec. 709). */
const LUMINANCE = [0.2126, 0.7152, 0.0722];
const RGB = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

/** One entry an output channel: its name, its kernel, what each input channel weighs. */
const CHANNELS: readonly [name: string, kernel: Kernel, weights: readonly number[]][] = [
  ["blur, red", BLUR, RGB[0]!],
  ["blur, green", BLUR, RGB[1]!],
  ["blur, blue", BLUR, RGB[2]!],
  ["sharpen, red", SHARPEN, RGB[0]!],
  ["sharpen, green", SHARPEN, RGB[1]!],
  ["sharpen, blue", SHARPEN, RGB[2]!],
  ["Sobel, horizontal", SOBEL_X, LUMINANCE],
  ["Sobel, vertical", SOBEL_Y, LUMINANCE],
  ["edges", EDGES, LUMINANCE],
  ["emboss", EMBOSS, LUMINANCE],
];

export const FILTER_NAMES: readonly string[] = CHANNELS.map(([name]) => name);

/** The whole filter, K R S C = [10, 5, 5, 3]. */
export function photoFilter(): Tensor<"f32"> {
  const values = CHANNELS.flatMap(([, kernel, weights]) =>
    kernel.flatMap((row) => row.flatMap((value) => weights.map((weight) => value * weight)))
  );
  return tensor("f32", [CHANNELS.length, 5, 5, 3], Float32Array.from(values));
}

function outer(column: readonly number[], row: readonly number[], scale: number): Kernel {
  return column.map((down) => row.map((across) => down * across * scale));
}

function delta(): Kernel {
  return outer([0, 0, 1, 0, 0], [0, 0, 1, 0, 0], 1);
}

function combine(terms: readonly (readonly [Kernel, number])[]): Kernel {
  return delta().map((row, r) =>
    row.map((_, s) => terms.reduce((sum, [kernel, scale]) => sum + scale * kernel[r]![s]!, 0))
  );
}
