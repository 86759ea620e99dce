import type { FullMainLoopVariant } from "./main_loop_variant.ts";
import type { TilePolicy } from "./policy.ts";
import type { Accumulation } from "../elements/elements.ts";
import { type Scalar, typeName, zeroOf } from "../elements/scalar.ts";
import type { WorkgroupTile } from "./workgroup_tile.ts";

/** Products of one chain in f16 (docs/accuracy.md), rounded up to the tile's depth. */
export const F16_CHAIN = 32;

/** The policy with 32 x 32 results, 1 x 4 a thread: without a tile of them. */
export function withoutMicroKernel(policy: TilePolicy): TilePolicy {
  return { ...policy, rows: 32, columns: 32, threadRows: 1, threadColumns: 4, warp: [4, 8] };
}

/** Vectors along a side of the thread tile; a side of one place is read as one element. */
export function fragments(places: number): number {
  return Math.ceil(places / 4);
}

/** The text of what a thread does with a tile, and of its sums `c{row}_{fragment}`. */
export interface MicroKernel {
  /** What the sums that leave the loop are in. */
  readonly sum: Scalar;
  /** Declares the sums. */
  readonly sums: string;
  /** Multiplies the tile. */
  readonly multiply: string;
  /** Multiplies what the last step needs of it, where that is a text of its own. */
  readonly multiplyLast?: string;
  /** After each tile: moves finished chains to the sums. Empty where there are none. */
  readonly fold: string;
  /** After the loop. */
  readonly finish: string;
}

/** Makes the text; thread places are `ay{fragment}` and `bx{fragment}`. */
export function microKernel(
  policy: TilePolicy,
  a: WorkgroupTile,
  b: WorkgroupTile,
  accumulation: Accumulation,
  { unroll, last }: Pick<FullMainLoopVariant, "unroll"> & {
    /** Products of the last step, where it is a text of its own. */
    readonly last?: number | undefined;
  },
): MicroKernel {
  const rows = Array.from({ length: policy.threadRows }, (_, r) => r);
  const aFragments = Array.from({ length: fragments(policy.threadRows) }, (_, i) => i);
  const bFragments = Array.from({ length: fragments(policy.threadColumns) }, (_, j) => j);
  const each = (text: (r: number, j: number) => string) =>
    rows.flatMap((r) => bFragments.map((j) => text(r, j)));
  const chained = accumulation === "f16";
  const sum = chained ? "f32" : accumulation;
  const partial = chained ? "h" : "c";
  const factor = (r: number) =>
    policy.threadRows === 1 ? "a0" : `a${Math.floor(r / 4)}.${"xyzw"[r % 4]}`;
  const declare = (name: string, scalar: Scalar) =>
    each((r, j) => `  var ${name}${r}_${j} = ${zeroOf(scalar, 4)};`);

  const body = (k: string) =>
    [
      ...aFragments.map((i) => `      let a${i} = ${converted(a, aVector(k, i), aWidth)};`),
      ...bFragments.map((j) => `      let b${j} = ${converted(b, b.at(k, `bx${j}`), 4)};`),
      ...each((r, j) => `      ${product(`${partial}${r}_${j}`, factor(r), `b${j}`)}`),
    ].join("\n");
  const aWidth = policy.threadRows === 1 ? 1 : 4;
  const depths = Array.from({ length: policy.depth }, (_, k) => `    {\n${body(String(k))}\n    }`);
  const folds = each((r, j) =>
    `      c${r}_${j} += vec4f(h${r}_${j}); h${r}_${j} = ${zeroOf("f16", 4)};`
  ).join("\n");
  const tiles = Math.max(1, Math.floor(F16_CHAIN / policy.depth));
  return {
    sum,
    sums: [...declare("c", sum), ...(chained ? declare("h", "f16") : [])].join("\n"),
    multiply: unroll
      ? depths.join("\n")
      : `    for (var k = 0u; k < ${policy.depth}u; k++) {\n${body("k")}\n    }`,
    ...(last === undefined ? {} : { multiplyLast: depths.slice(0, last).join("\n") }),
    fold: !chained
      ? ""
      : tiles === 1
      ? folds
      : `    if ((step - first_step) % ${tiles}u == ${tiles - 1}u) {\n${folds}\n    }`,
    finish: chained && tiles > 1 ? folds : "",
  };

  function aVector(k: string, i: number): string {
    return policy.threadRows === 1 ? `${a.at(k, "ay0 / 4u")}[ay0 % 4u]` : a.at(k, `ay${i}`);
  }

  /** What multiplies: an f16 tile is converted where the sums are in f32. */
  function converted(tile: WorkgroupTile, text: string, width: 1 | 4): string {
    return tile.scalar === "f16" && !chained ? `${typeName("f32", width)}(${text})` : text;
  }

  function product(to: string, x: string, y: string): string {
    if (accumulation === "i32") {
      const dots = [..."xyzw"].map((one) => `dot4I8Packed(${x}, ${y}.${one})`);
      return `${to} += vec4<i32>(${dots.join(", ")});`;
    }
    return `${to} = fma(${typeName(accumulation, 4)}(${x}), ${y}, ${to});`;
  }
}
