import { scalarBytes } from "../../elements/scalar.ts";
import { amplification2d } from "../../winograd/amplification.ts";
import { formatTile, type WinogradTile } from "../../winograd/tile.ts";
import { pointless } from "../algorithm.ts";
import { deviceOf } from "../device/h200.ts";
import { copyTime, moveTime, overlappedTime, passTime, productTime } from "../device/model.ts";
import { geometryInMath, type MathGeometry } from "../halves.ts";
import type { Candidate } from "../plan.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import {
  operandBytes,
  partialBytes,
  resultBytes,
  resultElements,
  tensorElements,
} from "../tensors.ts";
import {
  type ChunkLayout,
  defaultTile,
  geometryOf,
  nonfusedReason,
  plannedTile,
  type WinogradGeometry,
} from "./geometry.ts";
import { chooseChunks, operandMarks, summedPatches } from "./workspace.ts";

/**
 * What backward-filter in halves takes longer for each product of a tile beyond so many: its two transforms are kernels as long, which push
 * the others out of a multiprocessor's memory for instructions.
 */
const HALVES_TEXT = 0.0035;
const SHORT = 36;
/** Products a tile and pair of channels, α0·α1, from which on a transform is large. */
const LARGE = 64;

/**
 * Microseconds of non-fused Winograd: each chunk's transforms move the tensors and what is made of them, then its products run on the
 * mainloop.
 */
function timeOf({ geometry, chunk }: ChunkedGeometry): number {
  const { request, tile, operands } = geometry;
  const { problem, layout } = request;
  const device = deviceOf(request);
  const { rates, times, shares } = device;
  const [read, summed] = [operandBytes(request), partialBytes(request)];
  const chunks = chunk.images === 0 ? 1 : problem.batch / chunk.images;
  const { operandElements, resultElements: summedProducts, cut: { cost, splits } } = chunk;
  const products = summed * summedProducts;
  const filterFirst = operands.some(({ role }) => role === "filter");
  const isLarge = layout !== "nhwc" && tile.products >= LARGE;
  const stream = rates.stream * (isLarge ? shares.largeTransforms : 1);
  // However few tiles there are, each is transformed by one thread.
  const alphas = tile.transforms[0].alpha + tile.transforms[1].alpha;
  const pass = (bytes: number, rate: number) =>
    passTime(tile.products * alphas * times.transform, moveTime(bytes, rate), device);
  // The largest values of images and channels are found by passes, those of tiles as they are transformed.
  const marks = tile.stored === "halves" ? operandMarks(geometry, chunk.depth).marks : undefined;
  let once = marks === undefined ? 0 : times.dispatch;
  let each = 0;
  operands.forEach(({ role, which }, index) => {
    const made = scalarBytes(tile.stored) * operandElements[index]!;
    const source = read * tensorElements(problem, which);
    const isMarked = marks !== undefined && marks[index]!.by !== "tile";
    if (isMarked) once += copyTime(source, rates.stream, device);
    if (role === "filter") once += pass(source + made, rates.filterStream);
    else each += pass(source / chunks + made, stream);
  });
  const moved = scalarBytes(tile.stored) * (operandElements[0]! + operandElements[1]!) +
    splits * products;
  const product = productTime(cost, rates.packed);
  each += overlappedTime(product, moveTime(moved, rates.stream), marks !== undefined) +
    times.dispatch;
  if (marks !== undefined && !filterFirst) {
    each *= 1 + HALVES_TEXT * Math.max(0, tile.products - SHORT);
  }
  const results = resultBytes(request) * resultElements(problem);
  const finish = pass(products + (filterFirst ? results / chunks : results), stream);
  return once + Math.ceil(chunks) * each + (filterFirst ? Math.ceil(chunks) : 1) * finish;
}

/** A request's products and the chunks of the batch in which they are made. */
export interface ChunkedGeometry {
  readonly geometry: WinogradGeometry;
  readonly chunk: ChunkLayout;
}

/** Of a request whose math is said. */
export function chunkedGeometry(request: PlanRequest): Planned<ChunkedGeometry> {
  const geometry = geometryOf(request);
  const chunk = chooseChunks(geometry);
  return isRefusal(chunk) ? chunk : { geometry, chunk };
}

/** The same in the math that is asked for, or that takes less. */
export function nonfusedGeometry(request: PlanRequest): Planned<MathGeometry<ChunkedGeometry>> {
  return geometryInMath(request, {
    products: (split) => summedPatches(geometryOf(split), split.problem.batch),
    geometry: chunkedGeometry,
    time: timeOf,
    clearly: 0.95,
  });
}

/** Predicted microseconds. */
export function nonfusedTime({ geometry }: MathGeometry<ChunkedGeometry>): number {
  return timeOf(geometry);
}

/**
 * Steps of tiles, 2 or what α allows: F(2x2,3x3), F(4x4,3x3), F(5x5,3x3), which 14 places waste the least of, F(6x6,3x3) and what is like
 * them. Of backward-filter's a step is what the transform takes for its filter. F(3x3,8x8) errs 1.6 times as much as F(3x3,7x7), and is
 * more than 5 % faster on two of 25 layers.
 */
const STEPS = [2, 4, 5, 6, 7];
/** Largest α of the tiles above: F(7x7,3x3) and others of 9 enlarge errors more than is allowed unasked, but a filter's gradient. */
const ALPHA = { data: 8, filter: 9 };
/** Longest filters that have others than the default. */
const LONGEST = 9;

/** Non-fused Winograd as `auto` weighs it: a candidate a tile. */
export function nonfusedCandidates(request: PlanRequest): Candidate[] {
  const algorithm = "winograd2d-nonfused";
  const reason = nonfusedReason(request);
  if (reason !== undefined) return [{ algorithm, amplification: 1, reason }];
  const tiles = request.tile === undefined ? nonfusedTiles(request) : [request.tile];
  if (tiles.length === 0) return [pointless(algorithm)];
  return tiles.map((tile) => ({
    algorithm,
    tile,
    amplification: amplification2d(...plannedTile({ ...request, tile }).transforms),
  }));
}

/** Tiles that multiply less than the direct algorithm: the default, and those of other steps, whose transforms slow compilers take minutes for. */
function nonfusedTiles(request: PlanRequest): string[] {
  const { problem } = request;
  const { op, filterSize } = problem;
  const backward = op === "bwd-filter";
  const most = ALPHA[backward ? "filter" : "data"];
  const stepped = STEPS.map((step): WinogradTile => {
    const steps = filterSize.map((size) =>
      size === 1 ? 1 : Math.max(2, Math.min(step, most + 1 - size))
    );
    return backward ? { n: [...filterSize], r: steps } : { n: steps, r: [...filterSize] };
  });
  const longest = Math.max(...filterSize);
  const others = longest > LONGEST || deviceOf(request).slowCompiler ? [] : stepped;
  const tiles = [defaultTile(problem), ...others];
  // Of halves every product saves something, but sums of which a tile has one alone are doubtful where they cancel.
  const whole = request.math === "f16x3";
  return [...new Set(tiles.filter((tile) => whole || saves(tile)).map(formatTile))];
}

/** Whether a tile has fewer products than the direct algorithm. */
function saves({ n, r }: WinogradTile): boolean {
  return n.some((size, axis) => size > 1 && r[axis]! > 1);
}
