import { lines, range } from "../lists.ts";
import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { OperandPlace } from "./image_loader.ts";
import type { OperandLoader } from "../loop/mainloop.ts";
import { copyThreads } from "./tile.ts";

/** The transformed filter as its pass leaves it: [group][slice][depth][places], padded to whole tiles. */
export interface SlicedFilterShape {
  readonly slices: number;
  readonly places: number;
  readonly depth: number;
}

/**
 * Copies the slices of a transformed filter into the tile: aligned vectors, no masks. The threads that multiply a slice copy it
 * too, or a share of those that multiply all, the tile's `together` rows at once, or a row in several rounds: what a thread copies differs by numbers.
 */
export function filterLoader(
  module: ModuleBuilder,
  filter: TensorAccess,
  { slices, places, depth }: SlicedFilterShape,
  at: OperandPlace,
): OperandLoader {
  const p = `${at.side}_`;
  const { together } = at.tile;
  const vectors = at.extent / 4;
  const threads = copyThreads(at.threads, slices);
  const idle = at.threads > threads * slices;
  const across = Math.ceil(vectors / threads);
  const rowVectors = module.size("filter_row_vectors", places / 4);
  const total = module.size("filter_depth", depth);
  const first = at.side === "a" ? "first_row" : "first_column";
  const items = range(at.depth / together * across).map((i) => ({
    load: `${p}load${i}`,
    row: Math.floor(i / across) * together,
    vector: i % across * threads,
  }));
  // The last round of a row may be for some threads alone, and so may rows that do not fill the threads.
  const used = together * vectors;
  const guarded = ({ vector }: { vector: number }, text: string) => {
    const taking = [
      ...(vector + threads <= used ? [] : [`${p}own < ${used - vector}u`]),
      ...(idle ? [`${p}slice < ${slices}u`] : []),
    ];
    return taking.length === 0 ? text : `    if (${taking.join(" && ")}) {\n${text}\n    }`;
  };
  const [own, row] = together === 1 ? [`${p}own`, "0u"] : [`${p}own % ${vectors}u`, `${p}row`];
  return {
    places: lines(
      `  let ${p}own = t % ${threads}u;`,
      `  let ${p}slice = t / ${threads}u;`,
      `  let ${p}row = ${p}own / ${vectors}u;`,
      `  let ${p}base = ((group * ${slices}u + ${p}slice) * ${total} + ${row}) * ${rowVectors} + ` +
        `${first} / 4u + ${own};`,
    ),
    registers: items.map(({ load }) => `  var ${load} = vec4f();`).join("\n"),
    fetch: lines(
      `    let ${p}at = ${p}base + at * ${at.depth}u * ${rowVectors};`,
      items.map((item) => {
        const value = filter.load(`${p}at + ${item.row}u * ${rowVectors} + ${item.vector}u`);
        return guarded(item, `    ${item.load} = ${value};`);
      }),
    ),
    store: items.map((item) => {
      const vector = at.tile.vector(`${at.tile.first[at.side] + item.vector}u + ${own}`);
      const row = at.tile.rowOf(item.row, `${p}row`);
      return guarded(item, `    ${at.tile.slice(`${p}slice`)}${row}${vector} = ${item.load};`);
    }).join("\n"),
  };
}
