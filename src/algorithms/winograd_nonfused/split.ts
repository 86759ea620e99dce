import type { SplitMaxima } from "../../kernels/split_halves.ts";
import type { SplitMarks } from "../../kernels/split_marks.ts";
import type { SplitOutput } from "../../kernels/split_results.ts";
import { tensorTiles } from "../../kernels/winograd_tiles.ts";
import type { PlanArithmetic } from "../../problem/plan_arithmetic.ts";
import { halvesArithmetic } from "../halves.ts";
import { maximaPasses } from "../passes.ts";
import { type Product, productUnit } from "../product.ts";
import type { PlanRequest } from "../request.ts";
import type { ChunkLayout, Context, WinogradGeometry, WinogradOperand } from "./geometry.ts";

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
  { geometry, tensors: { buffers, tensor }, marks: place, drift: { drift = 0 } }: Context,
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
        splits: buffers.splits(places),
      },
    },
    places: { marks: place, ...places },
  };
}
