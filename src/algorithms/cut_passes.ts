import { sumOf } from "../elements/elements.ts";
import { type EpilogueFactory, NO_STEPS } from "../kernels/epilogue.ts";
import { mainLoopWorkgroups } from "../kernels/main_loop.ts";
import { fullVariant } from "../kernels/main_loop_variant.ts";
import type { ModuleBuilder, SizeMode } from "../kernels/module.ts";
import type { TilePartials } from "../kernels/reduce.ts";
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

/** What the main loop does of a cut product. */
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
 * The passes of a cut product: the main loop, and the pass that sums partial results, whose buffer it adds. Where the kernel of
 * stream-K would have more bindings than the device, the depth is not cut.
 *
 * @param make The pass of the main loop, with loaders of its own.
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
): { product: Pass; sums: Pass[]; cut: Cut } {
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
  const whole = () => part({ splits: 1 }, target, epilogue);
  if (splits === 1) return { product: whole(), sums: [], cut };
  if (head !== undefined) {
    const product = whole();
    if (product.bindings.length >= limits.maxStorageBuffersPerShaderStage) {
      return { product, sums: [], cut: { policy, splits: 1, cost: cut.cost, unbound: true } };
    }
  }
  const buffer = buffers.add(
    "partial results",
    "workspace",
    partialResultElements(cut, { rows, columns, batches: groups, elements }),
    sum,
  );
  const places = { partials: buffer, result, bias, scale };
  if (head === undefined) {
    const sums = reducePass(
      reduceShape(request, splits),
      mode,
      epilogue,
      buffers,
      places,
      limits,
      types.result,
    );
    const to = { ...target, buffer, element: sum, split: elements };
    return { product: part({ splits }, to, NO_STEPS), sums: [sums], cut };
  }
  const tiles: TilePartials = {
    policy,
    range: { first: head, count: cutTiles(shape, groups) - head },
    splits,
    rows,
    columns,
    strides: target,
    classText: shape.classText,
    vector: targetVector(target, rows, request.variant),
    raster: fullVariant(request.variant).raster,
  };
  const row = (module: ModuleBuilder, row: string) =>
    `group * ${module.size("rows", rows)} + ${row}`;
  const sums = reduceTilesPass(
    tiles,
    mode,
    epilogue,
    buffers,
    places,
    limits,
    types.result,
    row,
  );
  const streamed = { tiles, buffer, element: sum };
  return { product: part({ splits, streamed }, target, epilogue), sums: [sums], cut };
}
