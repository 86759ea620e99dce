import { lines, range } from "../lists.ts";
import {
  eachElement,
  loopIterations,
  type ModuleBuilder,
  type SizedKernel,
  sizedKernel,
  type TensorAccess,
} from "../module.ts";
import { compensationText } from "../sums.ts";
import type { SliceStore } from "./exchange.ts";
import { blockPlaceText, type SliceCut, type SliceLoopShape, type SplitBlocks } from "./loop.ts";

/** Blocks whose depth workgroups share, each of so many results (a tile's) of each of its places. */
export interface BlockParts {
  readonly split: SplitBlocks;
  readonly results: number;
}

type BlockSize = Pick<SliceCut, "rows" | "columns">;

/** Vectors that a thread loads at once: of several parts, where they have few results. */
const AT_ONCE = 24;

/** Vectors of one result of a block. */
function blockVectors({ rows, columns }: BlockSize): number {
  return rows * columns / 4;
}

/** Elements of all parts. */
export function partElements({ split, results }: BlockParts, block: BlockSize): number {
  return split.count * split.splits * results * block.rows * block.columns;
}

/** WGSL of where a block's result `i` of a vector lies; `at` counts parts. */
function partPlace(
  at: string,
  i: number,
  results: number,
  place: string,
  block: BlockSize,
): string {
  return `(${at} * ${results}u + ${i}u) * ${blockVectors(block)}u + ${place}`;
}

/**
 * Stores what a workgroup makes of its block beside what others do, vectors of columns side by side.
 *
 * @param again Whether the loop stores its sums in parts, of which each is added to what is there `again`.
 */
export function splitStore(
  parts: TensorAccess,
  { results }: BlockParts,
  block: BlockSize,
  again: boolean,
): SliceStore {
  return {
    declarations: "",
    text(outputs) {
      const across = block.columns / 4;
      return lines(
        `      let in_block = (row - first_row) * ${across}u + (column - first_column) / 4u;`,
        outputs.map((output, i) => {
          const to = partPlace("part", i, results, "in_block", block);
          const sum = `var sum${i} = ${output};`;
          const add = `if (again) { sum${i} += ${parts.load(to)}; }`;
          return again
            ? `      ${sum} ${add} ${parts.store(to, `sum${i}`)}`
            : `      ${parts.store(to, output)}`;
        }),
      );
    },
  };
}

/**
 * Sums the parts of each block, in a fixed order, with compensation (which compilers may drop), and stores the results as
 * whole blocks are. Binds `parts` and what the store does.
 *
 * @param name All that the text depends on, but for sizes.
 */
export function sumPartsKernel(
  name: string,
  module: ModuleBuilder,
  shape: Pick<SliceLoopShape, "rows" | "columns">,
  { split, results }: BlockParts,
  block: BlockSize,
  parts: TensorAccess,
  store: SliceStore,
): SizedKernel {
  const each = blockVectors(block);
  const count = module.size("vectors", split.count * each);
  const splits = module.size("splits", split.splits);
  const all = range(results);
  const atOnce = Math.max(1, Math.min(4, Math.floor(AT_ONCE / results)));
  const ahead = range(atOnce);
  const body = lines(
    eachElement(count),
    `  let place = i % ${each}u;`,
    `  let own = i / ${each}u;`,
    `  let block = ${module.size("first_tile", split.first)} + own;`,
    blockPlaceText(module, "block", shape, block),
    "  let group = batch;",
    `  let row = first_row + place / ${block.columns / 4}u;`,
    `  let column = first_column + place % ${block.columns / 4}u * 4u;`,
    all.map((i) => `  var sum${i} = vec4f(); var lost${i} = vec4f();`),
    // Loads of several parts are on their way at once; those beyond the last add nothing.
    `  for (var split = 0u; split < ${splits}; split += ${atOnce}u) {`,
    ahead.map((k) => [
      `    let part${k} = own * ${splits} + min(split + ${k}u, ${splits} - 1u);`,
      all.map((i) =>
        `    let value${k}_${i} = ${parts.load(partPlace(`part${k}`, i, results, "place", block))};`
      ),
    ]),
    ahead.map((k) =>
      all.map((i) => [
        `    let term${k}_${i} = select(vec4f(), value${k}_${i}, split + ${k}u < ${splits}) - lost${i};`,
        `    let next${k}_${i} = sum${i} + term${k}_${i};`,
        `    lost${i} = lost_of(sum${i}, term${k}_${i}, next${k}_${i});`,
        `    sum${i} = next${k}_${i};`,
      ])
    ),
    "  }",
    store.text(all.map((i) => `sum${i}`)),
    "}\n",
  );
  const wgsl = lines(
    `// ${name}: sums the parts of blocks whose depth workgroups share.`,
    module.declarations(),
    store.declarations,
    compensationText("f32", 4),
    body,
  );
  return sizedKernel(module, name, wgsl, {
    workgroups: Math.ceil(split.count * each / 256),
    iterations: loopIterations(Math.ceil(split.splits / atOnce)),
  });
}
