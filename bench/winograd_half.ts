/**
 * What Winograd's f16 results err by where transformed data is stored in half the bytes: relative L2 errors over those of
 * direct sums, whose only rounding is that of the result. Transforms and sums are exact here, so that nothing else shows.
 *
 *     deno run -A bench/winograd_half.ts [tile...]
 */
import { roundQuads } from "../src/simulate/quads.ts";
import { fillTensor } from "../src/tensor/fill.ts";
import { type Matrix, toNumbers, transpose } from "../src/winograd/matrix.ts";
import { parseTile } from "../src/winograd/tile.ts";
import { winogradTransform } from "../src/winograd/transform.ts";

/** Axes of tiles that non-fused Winograd takes by itself, and some beyond them. */
const AXES = [
  ...[2, 4, 6, 7].map((n) => [n, 2]),
  ...[2, 3, 4, 5, 6].map((n) => [n, 3]),
  ...[2, 3, 4, 5].map((n) => [n, 4]),
  ...[2, 4].map((n) => [n, 5]),
  ...[[3, 2], [5, 2], [2, 7]],
] as const;

const TILES = [
  ...AXES.map(([n, r]) => `F(${n},${r})`),
  ...AXES.map(([n, r]) => `F(${n}x${n},${r}x${r})`),
];

/** Signs and sizes from 1e-3 to 1e3, their logarithms evenly spread; filters a thousandth of that. */
const RANGE = "1e-3 to 1e3";
const KINDS = ["normal", "uniform11", "uniform01", RANGE] as const;
type Kind = (typeof KINDS)[number];

const SIZES = { tiles: 64, channels: 64, filters: 16 };

/** How a stack of transforms is stored: neighbours are those of the outermost index. */
type Store = (values: Float64Array, each: number) => void;

const exact: Store = () => {};
const half: Store = (values) => values.forEach((value, i) => values[i] = Math.f16round(value));
const quads: Store = (values, each) => roundQuads(values, each, 4);

/** What is stored how: transformed images, transformed filters, products. */
const WAYS = {
  "f16 V": [half, exact, exact],
  "f16 M": [exact, exact, half],
  "f16 V M": [half, exact, half],
  "f16 V U M": [half, half, half],
  "quads V": [quads, exact, exact],
  "quads V M": [quads, exact, quads],
  "quads V U M": [quads, quads, quads],
} as const;

function data(kind: Kind, shape: readonly number[], seed: number, scale = 1): Float64Array {
  if (kind !== RANGE) return Float64Array.from(fillTensor("f16", shape, kind, seed).data);
  const powers = fillTensor("f32", shape, "uniform11", seed).data;
  const signs = fillTensor("f32", shape, "uniform11", seed + 100).data;
  return Float64Array.from(
    powers,
    (power, i) => Math.f16round(Math.sign(signs[i]!) * scale * 10 ** (3 * power)),
  );
}

/** Patches, row-major, through the matrices of their axes. */
function transformed(patches: Float64Array, axes: readonly Matrix[]): Float64Array {
  const factors = axes.map(toNumbers);
  let values = patches;
  let [outer, inner] = [patches.length, 1];
  for (const rows of factors.toReversed()) {
    const width = rows[0]!.length;
    outer /= width;
    const made = new Float64Array(outer * rows.length * inner);
    for (let o = 0; o < outer; o++) {
      for (const [j, row] of rows.entries()) {
        for (let i = 0; i < inner; i++) {
          let sum = 0;
          for (let k = 0; k < width; k++) sum += row[k]! * values[(o * width + k) * inner + i]!;
          made[(o * rows.length + j) * inner + i] = sum;
        }
      }
    }
    values = made;
    // The next axis lies outside of this one, within a patch.
    inner *= rows.length;
  }
  return values;
}

function errors(tile: string, kind: Kind) {
  const { n, r } = parseTile(tile);
  const axes = n.map((size, axis) => winogradTransform(size, r[axis]!));
  const product = (sizes: readonly number[]) => sizes.reduce((all, size) => all * size, 1);
  const alpha = product(axes.map((axis) => axis.alpha));
  const { tiles, channels, filters } = SIZES;
  const x = data(kind, [tiles, channels, alpha], 1);
  const w = data(kind, [filters, channels, product(r)], 2, 1e-3);
  const v = transformed(x, axes.map(({ d }) => transpose(d)));
  const u = transformed(w, axes.map(({ g }) => g));
  const results = ([ofV, ofU, ofM]: readonly Store[]) => {
    const [left, right] = [v.slice(), u.slice()];
    ofV!(left, channels * alpha);
    ofU!(right, channels * alpha);
    const products = new Float64Array(tiles * filters * alpha);
    for (let t = 0; t < tiles; t++) {
      for (let k = 0; k < filters; k++) {
        for (let c = 0; c < channels; c++) {
          const [a, b] = [(t * channels + c) * alpha, (k * channels + c) * alpha];
          const to = (t * filters + k) * alpha;
          for (let p = 0; p < alpha; p++) products[to + p]! += left[a + p]! * right[b + p]!;
        }
      }
    }
    ofM!(products, filters * alpha);
    return transformed(products, axes.map(({ a }) => transpose(a)));
  };
  const reference = results([exact, exact, exact]);
  const error = (values: Float64Array) => {
    let squares = 0, all = 0, relative = 0;
    for (const [i, value] of values.entries()) {
      const off = Math.f16round(value) - reference[i]!;
      squares += off * off;
      all += reference[i]! * reference[i]!;
      relative += Math.abs(off / reference[i]!);
    }
    return { l2: Math.sqrt(squares / all), mare: relative / values.length };
  };
  const direct = error(reference);
  const ways = Object.entries(WAYS).map(([name, stores]) =>
    [name, error(results(stores))] as const
  );
  return { direct, ways: new Map(ways) };
}

const names = Object.keys(WAYS);
const columns = ["tile", ...names, ...KINDS, "MARE", "direct's"];
console.log(`| ${columns.join(" | ")} |`);
console.log(`| ${columns.map((_, i) => i === 0 ? "---" : "---:").join(" | ")} |`);
for (const tile of Deno.args.length > 0 ? Deno.args : TILES) {
  const of = new Map(KINDS.map((kind) => [kind, errors(tile, kind)]));
  const ratio = (kind: Kind, way: string) =>
    of.get(kind)!.ways.get(way)!.l2 / of.get(kind)!.direct.l2;
  const all = "quads V U M";
  const positive = of.get("uniform01")!;
  const figures = [
    ...names.map((way) => Math.max(...KINDS.map((kind) => ratio(kind, way)))),
    ...KINDS.map((kind) => ratio(kind, all)),
  ].map((value) => Number.isFinite(value) ? value.toFixed(2) : "overflow");
  const mares = [positive.ways.get(all)!, positive.direct].map(({ mare }) => mare.toExponential(1));
  console.log(`| ${[tile, ...figures, ...mares].join(" | ")} |`);
}
