import { elementsOf, sumOf } from "../../elements/elements.ts";
import { scalarBytes, type Stored } from "../../elements/scalar.ts";
import { unitDepth } from "../../kernels/matrix_units.ts";
import type { TilePolicy } from "../../kernels/policy.ts";
import { halvesDepth, type SplitMaxima } from "../../kernels/split_halves.ts";
import type { SplitMarks } from "../../kernels/split_marks.ts";
import type { SplitOutput } from "../../kernels/split_results.ts";
import { type MatrixStack, tensorTiles } from "../../kernels/winograd_tiles.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import { ceilTo } from "../geometry.ts";
import { halvesArithmetic } from "../halves.ts";
import { maximaPasses } from "../passes.ts";
import { type Product, productUnit } from "../product.ts";
import { isRefusal, manyChunks, MOST_CHUNKS, type Planned, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { bufferBytes } from "../tensors.ts";
import type { ChunkLayout, Context, WinogradGeometry, WinogradOperand } from "./geometry.ts";

export const SPLIT_NOTE =
  "f16x3: of transformed f32 in two halves three products; passes before it find powers of two for tiles or images, and " +
  "for channels, and the output's transform sums in f32 what halves do not hold";

/**
 * The matrix unit of transformed halves; undefined where the device has none, or they are none. Their sums move to registers, in which
 * tiles of 64 results a thread hold both.
 */
export function splitUnit(request: PlanRequest): Product["matrix"] {
  return request.math === "f16x3" ? productUnit(request, false) : undefined;
}

/** Products of a sum over so many images. */
export function summedPatches({ operands: [a] }: WinogradGeometry, images: number): number {
  const tensor = a.tensor(images);
  return a.depth === "tile" ? tensorTiles(tensor) : tensor.channels;
}

/** The marks of both operands, in one buffer. */
interface OperandMarks {
  readonly words: number;
  readonly marks: readonly [SplitMarks, SplitMarks];
}

/** Threads that have all channels of a tile: more would leave few registers each. */
const MOST_CHANNELS = 512;

/** What an operand's largest values are of: of images those of a tile, where one workgroup has all of its channels. */
function marksBy(
  { role, along }: WinogradOperand,
  { problem, limits }: PlanRequest,
  depth: number,
): SplitMarks["by"] {
  if (role !== "data" || problem.op === "bwd-filter") return "row";
  const most = Math.min(MOST_CHANNELS, limits.maxComputeInvocationsPerWorkgroup);
  return along === "channel" && depth > 0 && depth <= most ? "tile" : "image";
}

/**
 * Where the marks of both operands lie.
 *
 * @param depth Of a chunk: its channels, padded.
 * @param images Of chunks before this one.
 */
export function operandMarks(
  { request, operands }: WinogradGeometry,
  depth: number,
  images = 0,
): OperandMarks {
  const { batch, groups } = request.problem;
  const counts = operands.map((operand) => {
    const tensor = operand.tensor(batch);
    const by = marksBy(operand, request, depth);
    // Of a filter what is counted as its tiles are its outputs.
    const rows = operand.depth === "tile" ? tensor.channels : tensorTiles(tensor);
    return { by, rows, keys: by === "image" ? batch : groups * rows };
  });
  let words = 0;
  const next = (count: number) => (words += count) - count;
  const firstKeys = counts.map(({ keys }) => next(keys));
  const marks = counts.map(({ by, rows }, which): SplitMarks => ({
    by,
    firstKey: firstKeys[which]!,
    firstRow: next(groups * rows),
    rows,
    before: { images, tiles: tensorTiles(operands[which]!.tensor(images)) },
  }));
  return { words, marks: marks as [SplitMarks, SplitMarks] };
}

/** The sides of an operand's tensor by which largest values are found. */
function maximaOf(
  { tensor, role }: WinogradOperand,
  { problem }: PlanRequest,
  { by, firstKey }: SplitMarks,
): SplitMaxima {
  const { groups, groupStride, batch, batchStride, channels, channelStride, axes } = tensor(
    problem.batch,
  );
  const spots = axes.map(({ size, stride }) => ({ count: size, stride }));
  const images = { count: batch, stride: batchStride };
  // Groups follow each other along channels, of a filter along what is its batch.
  const all = { count: groups * channels, stride: channelStride };
  if (by === "image") return { keys: [images], rest: [all, ...spots], firstKey };
  if (role !== "filter") return { keys: [all], rest: [images, ...spots], firstKey };
  const side = { count: channels, stride: channelStride };
  if (problem.op === "fwd") {
    return { keys: [{ ...images, count: groups * batch }], rest: [side, ...spots], firstKey };
  }
  const keys = [{ count: groups, stride: groupStride }, side];
  return { keys, rest: [images, ...spots], firstKey };
}

/** The passes that find the largest values of an operand, of halves; those of tiles are found as they are transformed. */
export function markPasses(
  { geometry, tensors, marks: place }: Context,
  which: 0 | 1,
  depth: number,
) {
  if (place === undefined) return [];
  const { request, operands: { [which]: operand } } = geometry;
  const marks = operandMarks(geometry, depth).marks[which];
  if (marks.by === "tile") return [];
  const shape = maximaOf(operand, request, marks);
  return maximaPasses(tensors.buffers, { marks: place }, shape, tensors.tensor[operand.which]);
}

/** How products of halves are summed; of a chain two values are one product. */
export function splitArithmetic(
  geometry: WinogradGeometry,
  { cut, depth, images }: ChunkLayout,
  { marks }: OperandMarks,
): PlanArithmetic {
  const { request } = geometry;
  const products = summedPatches(geometry, images);
  const { cutsOff } = request.matrixUnits!;
  return {
    ...halvesArithmetic(cut, 2 * depth, products, splitUnit(request)?.chain, cutsOff),
    ...(marks.some(({ by }) => by === "tile") ? { scaled: "tiles" as const } : {}),
  };
}

/** What takes products of halves to results, or sums these as they are, and the buffers that it binds; nothing of f32. */
export function outputSplit(
  { geometry, tensors: { tensor }, marks: place, drift: { drift = 0 } }: Context,
  depth: number,
  first: number,
): { split: SplitOutput | undefined; places: Readonly<Record<string, number>> } {
  if (place === undefined) return { split: undefined, places: {} };
  const { request: { problem: { op, batch } }, operands } = geometry;
  const { marks } = operandMarks(geometry, depth, first);
  // The operand whose patches are images, and the filter or the gradient.
  const [data, other] = operands[0].role === "data" ? [0, 1] as const : [1, 0] as const;
  const places = { data: tensor[operands[data].which], filter: tensor[operands[other].which] };
  return {
    split: {
      marks: [marks[data], marks[other]],
      drift,
      plain: {
        op,
        data: operands[data].tensor(batch),
        filter: operands[other].tensor(batch),
      },
    },
    places: { marks: place, ...places },
  };
}

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

/** How a mainloop reads the operand. */
export function loadedAlong({ along, depth }: WinogradOperand): "place" | "depth" {
  return along === depth ? "depth" : "place";
}

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

/**
 * Elements of workspace buffers beside those of operands: products of one chunk, after splits are summed; and sums of each split, in one
 * buffer or, where chunks add to each other, in two.
 */
export function workspaceOf(
  geometry: WinogradGeometry,
  { images, cut: { splits }, resultElements }: ChunkLayout,
) {
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
