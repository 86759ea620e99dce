import { sumOf } from "../elements/elements.ts";
import { type EpilogueFactory, NO_STEPS } from "../kernels/epilogue.ts";
import { mainLoopWorkgroups } from "../kernels/main_loop.ts";
import { fullVariant } from "../kernels/main_loop_variant.ts";
import type { ModuleBuilder, SizeMode } from "../kernels/module.ts";
import type { TilePartials } from "../kernels/tile_partials.ts";
import { convEpilogue } from "./conv_epilogue.ts";
import {
  type ConvProduct,
  type ProductTarget,
  type ResultTarget,
  targetVector,
} from "./conv_product.ts";
import { type Cut, partialResultElements } from "./cut.ts";
import { reducePass, reduceTilesPass } from "./passes.ts";
import type { Pass } from "./plan.ts";
import type { PlanRequest } from "./request.ts";
import { type problemBuffers, reduceShape, resultElements } from "./tensors.ts";

/** A product whose results are the operation's, and how it was cut. */
export interface CutShape {
  readonly cut: Cut;
  readonly rows: number;
  readonly columns: number;
  /** Where the results go in the end. */
  readonly target: ResultTarget;
  /** As `TilePartials` has it. */
  readonly classText?: TilePartials["classText"];
}

/** What one pass of the main loop does of a cut product. */
export type ProductPart = Pick<
  ConvProduct,
  "rows" | "columns" | "batches" | "splits" | "streamed" | "target" | "epilogue"
>;

/** Whether a convolution's product may run some tiles whole and split others. Without a micro-kernel tiles are small, and so many that they come out even. */
export function streamsOf(request: PlanRequest): boolean {
  return fullVariant(request.variant).microKernel && resultElements(request.problem) > 0;
}

/** Tiles of the whole product. */
export function cutTiles({ rows, columns, cut: { policy } }: CutShape, batches: number): number {
  return mainLoopWorkgroups({ rows, columns, batches, splits: 1 }, policy);
}

/**
 * The passes of a cut product: the main loop over all tiles, or over whole waves of them and then over the rest,
 * and the pass that sums partial results. Adds the buffer of these.
 *
 * @param make The pass of a part, with loaders of its own.
 */
export function cutPasses(
  request: PlanRequest,
  mode: SizeMode,
  shape: CutShape,
  { elements: types, buffers, bias, scale }: Pick<
    ReturnType<typeof problemBuffers>,
    "elements" | "buffers" | "bias" | "scale"
  >,
  make: (part: ProductPart) => Pass,
): { products: Pass[]; sums: Pass[] } {
  const { problem: { groups }, limits } = request;
  const { cut, rows, columns, target } = shape;
  const { policy, splits, head } = cut;
  const result = target.buffer;
  const sum = sumOf(types);
  const elements = resultElements(request.problem);
  const epilogue = convEpilogue(request);
  const part = (
    more: Pick<ProductPart, "splits" | "streamed">,
    to: ProductTarget,
    end: EpilogueFactory,
  ) => make({ rows, columns, batches: groups, ...more, target: to, epilogue: end });
  if (splits === 1) return { products: [part({ splits }, target, epilogue)], sums: [] };
  const product = { rows, columns, batches: groups, elements };
  const partials = buffers.add(
    "partial results",
    "workspace",
    partialResultElements(cut, product),
    sum,
  );
  const places = { partials, result, bias, scale };
  if (head === undefined) {
    const to = { ...target, buffer: partials, element: sum, split: elements };
    return {
      products: [part({ splits }, to, NO_STEPS)],
      sums: [
        reducePass(
          reduceShape(request, splits),
          mode,
          epilogue,
          buffers,
          places,
          limits,
          types.result,
        ),
      ],
    };
  }
  const range = { first: head, count: cutTiles(shape, groups) - head };
  const tail: TilePartials = {
    policy,
    range,
    splits,
    rows,
    columns,
    strides: target,
    classText: shape.classText,
    vector: targetVector(target, rows, request.variant),
    raster: fullVariant(request.variant).raster,
  };
  const before = { splits: 1, streamed: { range: { first: 0, count: head } } };
  const to = { ...target, buffer: partials, element: sum };
  const row = (module: ModuleBuilder, row: string) =>
    `group * ${module.size("rows", rows)} + ${row}`;
  return {
    products: [
      ...(head === 0 ? [] : [part(before, target, epilogue)]),
      part({ splits, streamed: { range, partials: tail } }, to, NO_STEPS),
    ],
    sums: [reduceTilesPass(tail, mode, epilogue, buffers, places, limits, types.result, row)],
  };
}
