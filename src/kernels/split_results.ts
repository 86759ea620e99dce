import { range } from "./lists.ts";
import type { Matrix } from "../winograd/matrix.ts";
import { literalOf } from "../elements/scalar.ts";
import { type ModuleBuilder, WHOLE } from "./module.ts";
import { loopIterations } from "./sized_kernel.ts";
import {
  DRIFT_FACTOR,
  markPlaces,
  needsFp32Recompute,
  SPLIT_RESULTS,
  type SplitMarks,
} from "./split_marks.ts";
import type { TiledTensor } from "./winograd_tiles.ts";

/** How products of halves become results: multiplied back to their size, or summed as they are where halves do not hold them. */
export interface SplitOutput {
  /** Of the operand whose patches are images, and of the other. */
  readonly marks: readonly [SplitMarks, SplitMarks];
  readonly plain: PlainSums;
  /** By how much results are enlarged, in units of 2^-23 (`splitDrift()`). */
  readonly drift: number;
}

/** What a result is a sum of, for those that are summed in f32 as they are: of stride 1, along two axes. */
export interface PlainSums {
  /** Of a filter's gradient that of the output. */
  readonly filter: TiledTensor;
  /** With all of its images. */
  readonly data: TiledTensor;
  /** What is computed: results of places, or taps of a filter. */
  readonly op: "fwd" | "bwd-data" | "bwd-filter";
}

/** What a kernel of one thread a tile of results says where its products are of halves. */
export interface SplitResults {
  readonly trait: string;
  /** Functions, and workgroup memory. */
  readonly functions: string;
  readonly iterations: number;
  readonly begin: readonly string[];
  /** After the sum of products in row i and column j of a tile is loaded. */
  loaded(name: string, i: number, j: number): string;
  /**
   * After a tile is transformed: declares `y{i}_{j}`, its results taken back to their size, in a block that is left open, or lists the
   * thread.
   *
   * @param live WGSL of whether the thread has a tile.
   */
  rescaled(results: readonly (readonly string[])[], live: string): string[];
  /**
   * After that block: all threads together sum the results of those that are listed, a tile at a time.
   *
   * @param tile Declares what a tile is of, given its thread's `i`.
   * @param corner WGSL of its first result's place along both axes.
   * @param store Stores `value`, the results from `e` on, in row `down` and column `across` of the tile of thread `listed`.
   */
  plain(tile: readonly string[], corner: readonly [string, string], store: string): string[];
}

/** Bytes that threads list each other and share sums in. */
export function splitResultBytes(threads: number): number {
  return 2 * (4 * threads + 4);
}

/** The largest entry of a column, whatever its sign. */
function largestEntry(matrix: Matrix, column: number): number {
  return Math.max(...matrix.map((row) => Math.abs(row[column]!.valueOf())));
}

/** The largest L1 norm of a row. */
function largestNorm(matrix: Matrix): number {
  return Math.max(
    ...matrix.map((row) => row.reduce((sum, value) => sum + Math.abs(value.valueOf()), 0)),
  );
}

/** The most threads, a power of two, that each of so many results can have. */
function lanesOf(results: number, threads: number): number {
  return 2 ** Math.max(0, Math.floor(Math.log2(threads / results)));
}

/**
 * What the kernel says. Binds `data`, `filter` and `marks`.
 *
 * @param matrices Of the output's transform.
 * @param store Threads of the workgroup, and results that leave in one store.
 */
export function splitResults(
  module: ModuleBuilder,
  { marks, plain, drift }: SplitOutput,
  [matrix0, matrix1]: readonly [Matrix, Matrix],
  { threads, vector }: { readonly threads: number; readonly vector: 1 | 4 },
): SplitResults {
  const gradient = plain.op === "bwd-filter";
  const [rows, columns] = [matrix0.length, matrix1.length];
  const results = rows * columns;
  const lanes = lanesOf(results, threads);
  const at = threads / lanes;
  const share = (gradient ? gradientShare : placeShare)(module, plain, lanes);
  const known = module.tensor("marks", "read", 1, WHOLE, "u32");
  const [a, b] = [
    markPlaces(module, "split_a", marks[0], "channel"),
    markPlaces(module, "split_b", marks[1], gradient ? "image" : "channel"),
  ] as const;
  const outer = gradient
    ? "image"
    : `image + ${module.parameter("split_images_before", marks[0].before.images)}`;
  const round = loopIterations(Math.log2(lanes)) + share.iterations;
  return {
    trait: `halves_${plain.op.replace("-", "_")}_${marks.map(({ by }) => by).join("_")}`,
    functions: [
      SPLIT_RESULTS,
      "var<workgroup> doubts: atomic<u32>;",
      "var<workgroup> all_doubts: u32;",
      `var<workgroup> doubtful: array<u32, ${threads}>;`,
      `var<workgroup> shares: array<f32, ${threads}>;`,
      share.text,
    ].join("\n"),
    // All threads of a workgroup may be listed.
    iterations: loopIterations(threads, loopIterations(Math.ceil(results / at), round)),
    begin: [
      "if (t == 0u) { atomicStore(&doubts, 0u); }",
      "workgroupBarrier();",
      "var spread = 0.0f;",
    ],
    loaded(name, i, j) {
      const most = literalOf("f32", largestEntry(matrix0, i) * largestEntry(matrix1, j));
      return `spread = max(spread, abs(${name}) * ${most});`;
    },
    rescaled(tile, live) {
      const enlarged = largestNorm(matrix0) * largestNorm(matrix1);
      return [
        `let bits_a = ${known.load(a.key)};`,
        `let bits_b = ${known.load(b.key)};`,
        `let dark = f32(${known.load(a.row)}) + f32(${known.load(b.row)});`,
        "let beyond = beyond_halves(bits_a) || beyond_halves(bits_b);",
        `if (${live} && (beyond || (${needsFp32Recompute("dark", "spread", enlarged)}))) {`,
        "  doubtful[atomicAdd(&doubts, 1u)] = t;",
        "} else {",
        "// In two steps: each factor is a normal number.",
        "let exponent = split_exponent(bits_a) + split_exponent(bits_b);",
        `let drift = ${module.size("split_drift", drift)};`,
        `let part = power_of_two(exponent >> 1u) * ${DRIFT_FACTOR};`,
        "let rest = power_of_two(exponent - (exponent >> 1u));",
        ...tile.flatMap((row, i) =>
          row.map((value, j) => `let y${i}_${j} = ${value} * part * rest;`)
        ),
      ];
    },
    plain(tile, [y, x], store) {
      const sum = (k: number) => `shares[${lanes}u * (${vector}u * t + ${k}u)]`;
      const value = vector === 1 ? sum(0) : `vec4f(${[0, 1, 2, 3].map(sum).join(", ")})`;
      return [
        "workgroupBarrier();",
        "if (t == 0u) { all_doubts = atomicLoad(&doubts); }",
        "let doubted = workgroupUniformLoad(&all_doubts);",
        "for (var d = 0u; d < doubted; d++) {",
        "  let listed = doubtful[d];",
        "  let i = first + listed;",
        ...tile,
        `  for (var first_result = 0u; first_result < ${results}u; first_result += ${at}u) {`,
        // Threads beyond the last result sum that.
        `    let mine = min(first_result + t / ${lanes}u, ${results - 1}u);`,
        `    shares[t] = plain_share(group, ${outer}, channel, ${y} + mine / ${columns}u, ` +
        `${x} + mine % ${columns}u, t % ${lanes}u);`,
        "    workgroupBarrier();",
        `    for (var half = ${Math.floor(lanes / 2)}u; half > 0u; half /= 2u) {`,
        `      if (t % ${lanes}u < half) { shares[t] += shares[t + half]; }`,
        "      workgroupBarrier();",
        "    }",
        `    let e = first_result + ${vector}u * t;`,
        `    if (t < ${at / vector}u && e < ${results}u) {`,
        `      let down = e / ${columns}u;`,
        `      let across = e % ${columns}u;`,
        `      let value = ${value};`,
        `      ${store}`,
        "    }",
        "    workgroupBarrier();",
        "  }",
        "}",
      ];
    },
  };
}

/** WGSL of a tensor's sizes. */
function sizesOf(module: ModuleBuilder, name: string, tensor: TiledTensor) {
  const size = (what: string, value: number) =>
    module.size(`${name}_${what}`, value < 0 ? value + 2 ** 32 : value);
  const [outer, inner] = tensor.axes;
  return {
    group: size("group_stride", tensor.groupStride),
    batch: size("batch_stride", tensor.batchStride),
    channel: size("channel_stride", tensor.channelStride),
    strides: [size("stride0", outer.stride), size("stride1", inner.stride)],
    sizes: [size("size0", outer.size), size("size1", inner.size)],
    origins: [size("origin0", outer.origin), size("origin1", inner.origin)],
  };
}

/** `plain_share(group, outer, channel, y, x, lane)`, and the iterations of its loops. */
interface ShareText {
  readonly text: string;
  readonly iterations: number;
}

/** Values of a loop that a thread loads at once. */
const AT_ONCE = 4;

/** One of so many threads' share of a result's sum: of as many channels one. */
function placeShare(
  module: ModuleBuilder,
  { filter, data, op }: PlainSums,
  lanes: number,
): ShareText {
  const from = module.bind("data", "read", 1);
  const weights = module.bind("filter", "read", 1);
  const [d, f] = [sizesOf(module, "data", data), sizesOf(module, "filter", filter)];
  const forward = op === "fwd";
  const [own, summed] = forward ? [f.batch, f.channel] : [f.channel, f.batch];
  const tap = (axis: 0 | 1, at: string) => forward ? at : `(${f.sizes[axis]} - 1u - ${at})`;
  const depth = module.size("depth", data.channels);
  const products = range(AT_ONCE).map((k) => {
    const c = `(deep + ${k * lanes}u)`;
    const value = from.load(`first + ${c} * ${d.channel}`);
    const factor = weights.load(`weight + ${c} * ${summed}`);
    return `        sum = select(sum, fma(${value}, ${factor}, sum), ${c} < ${depth});`;
  });
  const text = `
fn plain_share(group: u32, outer: u32, channel: u32, y: u32, x: u32, lane: u32) -> f32 {
  var sum = 0.0f;
  for (var i = 0u; i < ${f.sizes[0]}; i++) {
    for (var j = 0u; j < ${f.sizes[1]}; j++) {
      let from_y = y + i + ${d.origins[0]};
      let from_x = x + j + ${d.origins[1]};
      if (from_y >= ${d.sizes[0]} || from_x >= ${d.sizes[1]}) { continue; }
      let first = group * ${d.group} + outer * ${d.batch} + from_y * ${d.strides[0]} + from_x * ${
    d.strides[1]
  };
      let weight = group * ${f.group} + channel * ${own} + ${tap(0, "i")} * ${f.strides[0]} + ${
    tap(1, "j")
  } * ${f.strides[1]};
      for (var deep = lane; deep < ${depth}; deep += ${AT_ONCE * lanes}u) {
${products.join("\n")}
      }
    }
  }
  return sum;
}`;
  const channels = loopIterations(Math.ceil(data.channels / (AT_ONCE * lanes)));
  const [rows, columns] = [filter.axes[0].size, filter.axes[1].size];
  return { text, iterations: loopIterations(rows, loopIterations(columns, channels)) };
}

/** The same of a filter's gradient: of every so many rows of places, of all images, one. */
function gradientShare(
  module: ModuleBuilder,
  { filter, data }: PlainSums,
  lanes: number,
): ShareText {
  const from = module.bind("data", "read", 1);
  const gradient = module.bind("filter", "read", 1);
  const [d, g] = [sizesOf(module, "data", data), sizesOf(module, "filter", filter)];
  const rows = data.batch * filter.axes[0].size;
  const products = range(AT_ONCE).map((k) => {
    const q = `(along + ${k}u)`;
    const x = `(${q} + x + ${d.origins[1]})`;
    const value = from.load(`first + ${x} * ${d.strides[1]}`);
    const factor = gradient.load(`to + ${q} * ${g.strides[1]}`);
    const inside = `${q} < ${g.sizes[1]} && ${x} < ${d.sizes[1]}`;
    return `      chain = select(chain, fma(${value}, ${factor}, chain), ${inside});`;
  });
  const text = `
fn plain_share(group: u32, outer: u32, channel: u32, y: u32, x: u32, lane: u32) -> f32 {
  var sum = 0.0f;
  for (var row = lane; row < ${module.size("rows", rows)}; row += ${lanes}u) {
    let image = row / ${g.sizes[0]};
    let p = row % ${g.sizes[0]};
    let from_y = p + y + ${d.origins[0]};
    if (from_y >= ${d.sizes[0]}) { continue; }
    let first = group * ${d.group} + image * ${d.batch} + channel * ${d.channel} + from_y * ${
    d.strides[0]
  };
    let to = group * ${g.group} + image * ${g.batch} + outer * ${g.channel} + p * ${g.strides[0]};
    var chain = 0.0f;
    for (var along = 0u; along < ${g.sizes[1]}; along += ${AT_ONCE}u) {
${products.join("\n")}
    }
    sum += chain;
  }
  return sum;
}`;
  const along = loopIterations(Math.ceil(filter.axes[1].size / AT_ONCE));
  return { text, iterations: loopIterations(Math.ceil(rows / lanes), along) };
}
