import type { ModuleBuilder, TensorAccess } from "../module.ts";
import type { OperandPlace } from "./image_loader.ts";
import type { StepLoader } from "../loop/step_loop.ts";

/** The transformed filter as its pass leaves it: [group][slice][depth][places], padded to whole tiles. */
export interface SlicedFilterShape {
  readonly slices: number;
  readonly places: number;
  readonly depth: number;
}

/** Copies the slices of a transformed filter into the tile: aligned vectors, no masks. */
export function filterLoader(
  module: ModuleBuilder,
  filter: TensorAccess,
  { slices, places, depth }: SlicedFilterShape,
  at: OperandPlace,
): StepLoader {
  const p = `${at.side}_`;
  const vectors = at.extent / 4;
  const count = slices * at.depth * vectors;
  const items = Math.ceil(count / at.threads);
  const rowVectors = module.size("filter_row_vectors", places / 4);
  const total = module.size("filter_depth", depth);
  const firstName = at.side === "a" ? "first_row" : "first_column";
  const range = Array.from({ length: items }, (_, i) => i);
  const begin = range.map((i) =>
    [
      `  let ${p}index${i} = t + ${i * at.threads}u;`,
      `  let ${p}vector${i} = ${p}index${i} % ${vectors}u;`,
      `  let ${p}row${i} = (${p}index${i} / ${vectors}u) % ${at.depth}u;`,
      `  let ${p}slice${i} = ${p}index${i} / ${vectors * at.depth}u;`,
      `  let ${p}base${i} = ((group * ${slices}u + ${p}slice${i}) * ${total} + ${p}row${i}) * ${rowVectors} + ${firstName} / 4u + ${p}vector${i};`,
    ].join("\n")
  ).join("\n");
  const guarded = (i: number, text: string) =>
    (i + 1) * at.threads <= count ? text : `    if (${p}index${i} < ${count}u) {\n${text}\n    }`;
  return {
    places: begin,
    registers: range.map((i) => `  var ${p}load${i} = vec4f();`).join("\n"),
    fetch: range.map((i) =>
      guarded(
        i,
        `    ${p}load${i} = ${filter.load(`${p}base${i} + at * ${at.depth}u * ${rowVectors}`)};`,
      )
    ).join("\n"),
    store: range.map((i) =>
      guarded(
        i,
        `    tile[${at.fill}][${p}slice${i}][${p}row${i}][${at.offset}u + ${p}vector${i}] = ${p}load${i};`,
      )
    ).join("\n"),
  };
}
