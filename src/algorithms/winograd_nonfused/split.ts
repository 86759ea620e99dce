import type { SizeMode } from "../../kernels/module.ts";
import type { SplitMaxima } from "../../kernels/split_halves.ts";
import type { SplitMarks } from "../../kernels/split_marks.ts";
import { tensorTiles, type TiledTensor } from "../../kernels/winograd_tiles.ts";
import type { SplitOutput } from "../../kernels/split_results.ts";
import { type Product, productUnit } from "../product.ts";
import type { Cut } from "../cut.ts";
import { halvesArithmetic } from "../halves.ts";
import { clearMarksPass, maximaPasses } from "../split_passes.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import type { Context } from "./context.ts";
import type { Pass } from "../plan.ts";
import type { PlanRequest } from "../request.ts";
import type { BufferList } from "../tensors.ts";
import type { WinogradGeometry, WinogradOperand } from "./geometry.ts";

/** What a plan says of it. */
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
export interface OperandMarks {
  readonly words: number;
  readonly marks: readonly [SplitMarks, SplitMarks];
}

/** Threads that have all channels of a tile: more would leave few registers each. */
const MOST_CHANNELS = 512;

/** What an operand's largest values are of: of images those of a tile, where one workgroup has all of its channels. */
function marksBy(
  { role, along }: WinogradOperand,
  { problem, limits }: PlanRequest,
  { depth }: { readonly depth: number },
): SplitMarks["by"] {
  if (role !== "data" || problem.op === "bwd-filter") return "row";
  const most = Math.min(MOST_CHANNELS, limits.maxComputeInvocationsPerWorkgroup);
  return along === "channel" && depth > 0 && depth <= most ? "tile" : "image";
}

/**
 * Where the marks of both operands lie.
 *
 * @param layout Of a chunk: its channels, padded.
 * @param images Of chunks before this one.
 */
export function operandMarks(
  request: PlanRequest,
  { operands }: WinogradGeometry,
  layout: { readonly depth: number },
  images = 0,
): OperandMarks {
  const { batch, groups } = request.problem;
  const counts = operands.map((operand) => {
    const tensor = operand.tensor(batch);
    const tiles = tensorTiles(tensor);
    const by = marksBy(operand, request, layout);
    // Of a filter what is counted as its tiles are its outputs.
    const rows = operand.depth === "tile" ? tensor.channels : tiles;
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
  operand: WinogradOperand,
  request: PlanRequest,
  { by, firstKey }: SplitMarks,
): SplitMaxima {
  const { groups, groupStride, batch, batchStride, channels, channelStride, axes }: TiledTensor =
    operand.tensor(request.problem.batch);
  const spots = axes.map(({ size, stride }) => ({ count: size, stride }));
  const images = { count: batch, stride: batchStride };
  // Groups follow each other along channels, of a filter along what is its batch.
  const filter = operand.role === "filter";
  const all = { count: groups * channels, stride: channelStride };
  if (by === "image") return { keys: [images], rest: [all, ...spots], firstKey };
  if (!filter) return { keys: [all], rest: [images, ...spots], firstKey };
  const side = { count: channels, stride: channelStride };
  return request.problem.op === "fwd"
    ? { keys: [{ ...images, count: groups * batch }], rest: [side, ...spots], firstKey }
    : {
      keys: [{ count: groups, stride: groupStride }, side],
      rest: [images, ...spots],
      firstKey,
    };
}

/** The passes before the transforms: one that clears marks, and those that find the largest values of each operand. */
export function markPasses(
  request: PlanRequest,
  mode: SizeMode,
  { operands }: WinogradGeometry,
  { words, marks }: OperandMarks,
  buffers: BufferList,
  places: { readonly marks: number; readonly tensors: readonly [number, number] },
): { clear: Pass; maxima: Pass[][] } {
  const context = { mode, buffers, limits: request.limits, places: { marks: places.marks } };
  const maxima = operands.map((operand, which) => {
    // Those of tiles are found as they are transformed.
    if (marks[which]!.by === "tile") return [];
    return maximaPasses(context, maximaOf(operand, request, marks[which]!), places.tensors[which]!);
  });
  return { clear: clearMarksPass(context, words), maxima };
}

/** How products of halves are summed; of a chain two values are one product. */
export function splitArithmetic(
  request: PlanRequest,
  geometry: WinogradGeometry,
  { cut, depth, images }: {
    readonly cut: Cut;
    readonly depth: number;
    readonly images: number;
  },
  { marks }: OperandMarks,
): PlanArithmetic {
  return {
    ...halvesArithmetic(
      cut,
      2 * depth,
      summedPatches(geometry, images),
      splitUnit(request)?.chain,
      request.matrixUnits!.cutsOff,
    ),
    ...(marks.some(({ by }) => by === "tile") ? { scaled: "tiles" as const } : {}),
  };
}

/** The operand whose patches are images, and the filter or the gradient. */
function sidesOf({ operands: [a] }: WinogradGeometry) {
  return a.role === "data" ? [0, 1] as const : [1, 0] as const;
}

/** What takes products of halves to results, or sums these as they are. */
export function outputSplit(
  { request, geometry, buffers, tensors, drift: { drift = 0 } }: Context,
  layout: { readonly depth: number },
  first: number,
): SplitOutput {
  const { op, batch } = request.problem;
  const { marks } = operandMarks(request, geometry, layout, first);
  const [data, other] = sidesOf(geometry);
  const tensor = (which: 0 | 1) => geometry.operands[which].tensor(batch);
  const split = (which: 0 | 1) => buffers.split(tensors.tensor[geometry.operands[which].which]);
  return {
    marks: [marks[data], marks[other]],
    drift,
    plain: {
      op,
      data: tensor(data),
      filter: tensor(other),
      splits: { data: split(data), filter: split(other) },
    },
  };
}

/** The buffers that it binds. */
export function plainPlaces({ geometry, tensors, marks }: Context) {
  if (marks === undefined) return {};
  const [data, other] = sidesOf(geometry);
  const place = (which: 0 | 1) => tensors.tensor[geometry.operands[which].which];
  return { marks, data: place(data), filter: place(other) };
}
