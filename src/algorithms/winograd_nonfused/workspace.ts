import { elementsOf, sumOf } from "../../elements/elements.ts";
import { scalarBytes, type Stored } from "../../elements/scalar.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { halvesDepth } from "../../kernels/split_halves.ts";
import { type MatrixStack, tensorTiles } from "../../kernels/winograd_tiles.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import { ceilTo } from "../geometry.ts";
import type { Product } from "../product.ts";
import { isRefusal, manyChunks, MOST_CHUNKS, type Planned, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes } from "../tensors.ts";
import type { ChunkLayout, WinogradGeometry, WinogradOperand } from "./geometry.ts";
import { operandMarks, splitUnit } from "./split.ts";

/**
 * Bytes of transformed operands and products that one chunk of the batch may take where the user sets no limit: a
 * chunk is large enough to fill any device, and the whole batch of most layers is one.
 */
export const DEFAULT_CHUNK_BYTES = 512 * 1024 * 1024;

/** Passes of a chunk. */
const PASSES = 3;
/** Where a limit takes splits, chunks that have room for them are looked for down to so many times fewer images. */
const SMALLER = 8;

/** Offsets of bindings are multiples of 256 bytes: stacks that are bound one after the other too. */
const ALIGNED_ELEMENTS = 64;

/** Places of an operand in its product: the side that is not the depth. */
function placesOf(operand: WinogradOperand, images: number): { places: number; depth: number } {
  const tensor = operand.tensor(images);
  const tiles = tensorTiles(tensor);
  return operand.depth === "tile"
    ? { places: tensor.channels, depth: tiles }
    : { places: tiles, depth: tensor.channels };
}

/** How a main loop reads the operand. */
export function loadedAlong({ along, depth }: WinogradOperand): "place" | "depth" {
  return along === depth ? "depth" : "place";
}

/** The product of a chunk of `images`. */
function chunkProduct(
  { request, tile, operands: [a, b] }: WinogradGeometry,
  images: number,
): Product & { readonly depth: number } {
  const [left, right] = [placesOf(a, images), placesOf(b, images)];
  const batches = tile.products * request.problem.groups;
  const matrix = splitUnit(request);
  const depth = matrix ? halvesDepth(left.depth, unitDepth(matrix.unit)) : left.depth;
  const side = (operand: WinogradOperand): Product["a"] => ({
    along: loadedAlong(operand),
    ...(matrix ? { vector: 4, value: "f16", steps: [] } : {}),
  });
  return {
    rows: left.places,
    columns: right.places,
    depth: left.depth,
    batches,
    steps: (policy) => Math.ceil(depth / policy.depth),
    elements: ceilTo(batches * left.places * ceilTo(right.places, 4), ALIGNED_ELEMENTS),
    matrix,
    a: side(a),
    b: side(b),
  };
}

/** Values along the depth of a tile: two halves each where they are split. */
export function valuesDeep({ depth, matrix }: TilePolicy): number {
  return matrix?.split ? depth / 2 : depth;
}

/** Lays out the cut products of a chunk of `images`. */
export function layOutChunk(geometry: WinogradGeometry, images: number, cut: Cut): ChunkLayout {
  const [a, b] = geometry.operands;
  const product = chunkProduct(geometry, images);
  const { rows, columns, batches, elements: resultElements } = product;
  const resultColumns = ceilTo(columns, 4);
  const { policy } = cut;
  const depth = ceilTo(product.depth, valuesDeep(policy));
  const stack = (operand: WinogradOperand, extent: number): MatrixStack =>
    operand.depth === "tile"
      ? { along: operand.along, tiles: depth, channels: extent }
      : { along: operand.along, tiles: extent, channels: depth };
  const extents = [ceilTo(rows, policy.rows), ceilTo(columns, policy.columns)] as const;
  return {
    images,
    rows,
    columns,
    batches,
    depth,
    cut,
    stacks: [stack(a, extents[0]), stack(b, extents[1])],
    result: geometry.result.columns === "tile"
      ? { along: "tile", tiles: resultColumns, channels: rows }
      : { along: "channel", tiles: rows, channels: resultColumns },
    resultColumns,
    operandElements: [batches * depth * extents[0], batches * depth * extents[1]],
    resultElements,
  };
}

/** Whether a chunk's products are added to those of others. */
function addsChunks({ request: { problem: { op, batch } } }: WinogradGeometry, images: number) {
  return op === "bwd-filter" && images < batch;
}

/** Workspace buffers beside those of operands, in elements. */
interface WorkspaceElements {
  /** Products of one chunk, after splits are summed. */
  readonly products: number;
  /** Sums of each split; none where the depth is not split. */
  readonly partials: number;
  /** How many of the buffers that chunks write to there are: two where chunks add to each other. */
  readonly targets: 1 | 2;
}

/** What the chunks of a plan need. */
export function workspaceOf(
  geometry: WinogradGeometry,
  { images, cut: { splits }, resultElements }: ChunkLayout,
): WorkspaceElements {
  const adds = addsChunks(geometry, images);
  return {
    products: splits === 1 && adds ? 0 : resultElements,
    partials: splits === 1 && !adds ? 0 : splits * resultElements,
    targets: adds ? 2 : 1,
  };
}

/**
 * Divides the batch into the fewest equal chunks that stay below the limits; where the user's leaves no room for the splits that are
 * cheapest, into what is fastest of these and of more chunks of more splits. Refused if one image takes more than `maxWorkspaceBytes`, or
 * that makes too many chunks.
 */
export function chooseChunks(geometry: WinogradGeometry): Planned<ChunkLayout> {
  const { request, tile: { stored } } = geometry;
  const { problem: { batch }, limits, maxWorkspaceBytes } = request;
  const bindings = Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize);
  const sum = sumOf(elementsOf(request));
  const bytes = (elements: number, element: Stored) =>
    elements === 0 ? 0 : bufferBytes(elements, element);
  const bytesOf = (layout: ChunkLayout, needs = workspaceOf(geometry, layout)) => {
    const { operandElements: [a, b], depth } = layout;
    const marks = stored === "halves" ? operandMarks(geometry, depth).words : 0;
    return bytes(marks, "u32") + bytes(a, stored) + bytes(b, stored) + bytes(needs.products, sum) +
      needs.targets * bytes(needs.partials, sum);
  };
  const cutAndLay = (images: number, asked: PlanRequest = request) => {
    const targets = addsChunks(geometry, images) ? 2 : 1;
    const cut = cutProduct(asked, {
      ...chunkProduct(geometry, images),
      partialBytes: targets * scalarBytes(sum),
      // Beside partial results.
      workspaceBytes(policy) {
        const layout = layOutChunk(geometry, images, { policy, splits: 1, cost: 0 });
        return bytesOf(layout, { products: layout.resultElements, partials: 0, targets });
      },
    });
    return isRefusal(cut) ? cut : layOutChunk(geometry, images, cut);
  };
  const fits = (layout: ChunkLayout) => {
    const own = layout.operandElements
      .filter((_, which) => geometry.operands[which]!.role !== "filter");
    const moving = [
      ...own.map((elements) => scalarBytes(stored) * elements),
      scalarBytes(sum) * layout.resultElements,
    ];
    const all = moving.reduce((sum, value) => sum + value, 0);
    const small = moving.every((value) => value <= bindings) &&
      (maxWorkspaceBytes !== undefined || all <= DEFAULT_CHUNK_BYTES);
    return (small || layout.images <= 1) && bytesOf(layout) <= (maxWorkspaceBytes ?? Infinity);
  };
  const { costs } = deviceOf(request);
  const cost = ({ images, cut }: ChunkLayout) =>
    Math.ceil(batch / images) * (cut.cost + PASSES * costs.dispatch);
  let best: ChunkLayout | undefined;
  let previous = Infinity;
  for (let chunks = 1; chunks <= Math.max(1, Math.min(batch, MOST_CHUNKS)); chunks++) {
    const images = Math.ceil(batch / chunks);
    if (images === previous) continue;
    previous = images;
    if (best !== undefined && images * SMALLER < best.images) break;
    const layout = cutAndLay(images);
    if (isRefusal(layout)) return layout;
    if (!fits(layout)) continue;
    if (best === undefined || cost(layout) < cost(best)) best = layout;
    // More chunks gain nothing where the limit takes nothing.
    const free = cutAndLay(images, { ...request, maxWorkspaceBytes: Infinity });
    if (isRefusal(free) || fits(free)) break;
  }
  if (best !== undefined) return best;
  const single = cutAndLay(Math.min(1, batch));
  if (isRefusal(single)) return single;
  if (fits(single)) return manyChunks("winograd2d-nonfused", batch);
  return refusal(
    "workspace",
    `winograd2d-nonfused takes at least ${bytesOf(single)} bytes of workspace, ` +
      `at most ${maxWorkspaceBytes} are allowed`,
  );
}
