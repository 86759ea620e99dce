/** A square kernel, row by row. */
export type Kernel = readonly (readonly number[])[];

const delta = (size: number): Kernel =>
  square(size, (r, s) => r === s && 2 * r === size - 1 ? 1 : 0);
const gaussian = (size: number, sigma: number): Kernel => {
  const middle = (size - 1) / 2;
  const weight = (r: number, s: number) =>
    Math.exp(-((r - middle) ** 2 + (s - middle) ** 2) / (2 * sigma ** 2));
  const sum = square(size, weight).flat().reduce((a, b) => a + b);
  return square(size, (r, s) => weight(r, s) / sum);
};

/** What the page offers, by name. */
export const FILTERS: Readonly<Record<string, Kernel>> = {
  "blur, 5 x 5": gaussian(5, 1.2),
  "blur, 11 x 11": gaussian(11, 2.5),
  "sharpen, 3 x 3": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]],
  "unsharp mask, 7 x 7": sum(delta(7), 3, gaussian(7, 1.6), -2),
  "edges, 3 x 3": [[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]],
  "emboss, 3 x 3": [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]],
};

/** The filter of a convolution that treats `channels` channels alike and apart: K R S C. */
export function filterTensor(kernel: Kernel, channels: number): Float32Array<ArrayBuffer> {
  const values = Array.from(
    { length: channels },
    (_, k) =>
      kernel.map((row) =>
        row.map((value) => Array.from({ length: channels }, (_, c) => c === k ? value : 0))
      ),
  );
  return Float32Array.from(values.flat(3));
}

function square(size: number, value: (r: number, s: number) => number): Kernel {
  return Array.from(
    { length: size },
    (_, r) => Array.from({ length: size }, (_, s) => value(r, s)),
  );
}

function sum(a: Kernel, aScale: number, b: Kernel, bScale: number): Kernel {
  return square(a.length, (r, s) => aScale * a[r]![s]! + bScale * b[r]![s]!);
}
