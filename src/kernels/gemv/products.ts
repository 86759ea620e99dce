/** The products of a thread of a matrix times vectors, and how a workgroup adds its threads' sums. */
import { type Scalar, typeName } from "../../elements/scalar.ts";
import { range } from "../lists.ts";
import type { TensorAccess } from "../module.ts";
import { treeSum } from "../sums.ts";
import { gemvChains, gemvLoads, type GemvShape } from "./shape.ts";

/** What the products of a thread are made of. */
export interface GemvOperands {
  readonly matrix: TensorAccess;
  readonly vector: TensorAccess;
  /** WGSL of loads of the matrix from one place, or row, to the next, and of blocks of the depth. */
  readonly leading: string;
  readonly blocks: string;
  /** What products are summed in. */
  readonly sum: Scalar;
}

/** A thread's sums: places and vectors, in the order in which they are kept. */
export function gemvValues({ vectors, threads: { each } }: GemvShape): [number, number][] {
  return range(each * vectors).map((i) => [Math.floor(i / vectors), i % vectors]);
}

/** What the sums of a place and a vector are called. */
export function sumName(place: number, vector: number): string {
  return `sum${place}_${vector}`;
}

/** How many sums a variable holds: of four products along the depth, or of four places. */
export function sumWidth(shape: GemvShape): 1 | 4 {
  return shape.matrix === "depth" ? gemvChains(shape) : gemvLoads(shape).width;
}

/** Adds the products of one operand's values with the other's to sums. */
function addProducts(sums: string, one: string, other: string, sum: Scalar, words: boolean) {
  if (sum !== "i32") return `${sums} = fma(${one}, ${other}, ${sums});`;
  return words ? `${sums} += dot4I8Packed(${one}, ${other});` : `${sums} += ${one} * ${other};`;
}

/**
 * WGSL of a round: loads the blocks from `block` on that a thread takes at once, and adds their products to its sums.
 *
 * @param masked Whether blocks may lie at or beyond `end`: they are loaded from before it then, and add nothing.
 */
export function roundText(shape: GemvShape, operands: GemvOperands, masked: boolean): string {
  const { vectors, word, threads: { lanes, each, ahead } } = shape;
  const { matrix, vector, leading, blocks, sum } = operands;
  const { block, width } = gemvLoads(shape);
  const along = shape.matrix === "depth";
  const inTurn = shape.vector === "depth";
  const wide = sumWidth(shape);
  const lines: string[] = [];
  const say = (text: string) => lines.push(`    ${text}`);
  const at = (j: number) => masked ? `block${j}` : j === 0 ? "block" : `(block + ${j * lanes}u)`;
  const load = (name: string, { load }: TensorAccess, index: string, j: number) =>
    say(`let ${name} = ${load(index, masked ? [`inside${j}`] : [])};`);
  /** Of the vectors: value `i` of block `j`. */
  const component = (j: number, i: number, which: number) => {
    if (block === 1) return `v${j}_${which}`;
    // Across the depth the vectors' values of one place follow each other.
    const place = i * vectors + which;
    const [one, at] = inTurn ? [which, i] : [Math.floor(place / 4), place % 4];
    return `v${j}_${one}.${"xyzw"[at]}`;
  };
  const each4 = [0, 1, 2, 3];
  const rows = along ? 1 : block;

  for (let j = 0; masked && j < ahead; j++) {
    say(`let inside${j} = block + ${j * lanes}u < end;`);
    say(`let block${j} = min(block + ${j * lanes}u, end - 1u);`);
  }
  for (let j = 0; j < ahead; j++) {
    for (let i = 0; i < rows; i++) {
      const row = along ? at(j) : `${block === 1 ? at(j) : `(${at(j)} * 4u + ${i}u)`} * ${leading}`;
      for (let place = 0; place < each; place++) {
        load(`m${j}_${i}_${place}`, matrix, `base${place} + ${row}`, j);
      }
    }
  }
  for (let j = 0; j < ahead; j++) {
    for (let which = 0; which < vectors; which++) {
      const far = inTurn
        ? `${which === 0 ? "" : `${which}u * ${blocks} + `}${at(j)}`
        : `${at(j)} * ${vectors}u + ${which}u`;
      load(`v${j}_${which}`, vector, `vector_base + ${far}`, j);
    }
  }
  const add = (sums: string, one: string, other: string) =>
    say(addProducts(sums, one, other, sum, word === 4));
  for (let j = 0; j < ahead; j++) {
    for (let i = 0; i < rows; i++) {
      for (const [place, which] of gemvValues(shape)) {
        const [sums, loaded] = [sumName(place, which), `m${j}_${i}_${place}`];
        if (!along) {
          const one = component(j, i, which);
          add(sums, width === 1 ? one : `${typeName(sum, 4)}(${one})`, loaded);
        } else if (block === 1) {
          add(sums, component(j, 0, which), loaded);
        } else if (wide === 1 || word === 4) {
          for (const i of each4) {
            const part = wide === 1 ? sums : `${sums}.${"xyzw"[i]}`;
            add(part, component(j, i, which), `${loaded}.${"xyzw"[i]}`);
          }
        } else {
          const four = each4.map((i) => component(j, i, which)).join(", ");
          add(sums, inTurn ? `v${j}_${which}` : `${typeName(sum, 4)}(${four})`, loaded);
        }
      }
    }
  }
  return lines.join("\n");
}

/** Sums that one thread adds at once: fewer steps of a tree have fewer barriers. */
const AT_ONCE = 8;

/** How many lanes' sums each step of a tree adds, at most {@linkcode AT_ONCE}, and the last one, which is not among them. */
export function treeSteps(
  lanes: number,
): { readonly before: readonly number[]; readonly last: number } {
  const before: number[] = [];
  let last = lanes;
  while (last > AT_ONCE) {
    const one = Math.min(AT_ONCE, last / AT_ONCE);
    before.push(one);
    last /= one;
  }
  return { before, last };
}

/** Sums that pass through workgroup memory together. */
interface SumsChunk {
  /** WGSL that stores each thread's, `sums[i][at]`. */
  readonly kept: readonly string[];
  /** Steps of the tree: threads that add, and what they do. */
  readonly steps: readonly { readonly threads: number; readonly text: readonly string[] }[];
}

/**
 * Workgroup memory `sums` of [sum][lane][group], in which a tree adds lanes until `last` are left.
 *
 * @param totals WGSL of each sum of a thread.
 */
export function sumsChunk(
  totals: readonly string[],
  lanes: number,
  groups: number,
): SumsChunk {
  let kept = lanes;
  const steps = treeSteps(lanes).before.map((added) => {
    kept /= added;
    const threads = kept * groups;
    const at = (j: number) => j === 0 ? "at" : `at + ${j * threads}u`;
    const text = totals.map((_, i) =>
      `sums[${i}][at] = ${treeSum(range(added).map((j) => `sums[${i}][${at(j)}]`))};`
    );
    return { threads, text };
  });
  return { kept: totals.map((total, i) => `sums[${i}][at] = ${total};`), steps };
}

/** WGSL of the sum over the lanes that are left, of the `one`-th of a chunk's sums and the group `own`. */
export function lastSum(lanes: number, groups: number): string {
  const { last } = treeSteps(lanes);
  return treeSum(
    range(last).map((j) => `sums[one][own${j === 0 ? "" : ` + ${j * groups}u`}]`),
  );
}
