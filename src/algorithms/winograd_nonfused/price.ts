import { deviceOf } from "../device/h200.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import { operandBytes, partialBytes, resultBytes, resultElements } from "../tensors.ts";
import { geometryOf, type WinogradGeometry } from "./geometry.ts";
import { operandMarks, summedPatches } from "./split.ts";
import type { SplitMarks } from "../../kernels/split_marks.ts";
import { plannedTile } from "./tiles.ts";
import { chooseChunks } from "./workspace.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { tensorShape } from "../../problem/conv_problem.ts";
import type { PlanRequest } from "../request.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import {
  type DeviceModel,
  moveTime,
  overlappedTime,
  passTime,
  productTime,
} from "../device/model.ts";
import { inMath as convInMath } from "../halves.ts";

/** Products a tile and pair of channels, α0·α1, from which on a transform is large. */
const LARGE = 64;
/** Up to which backward-filter's kernels of halves stay in a multiprocessor's memory for instructions, all of a plan's together. */
const SHORT = 36;

/**
 * Microseconds of non-fused Winograd whose request says how products are multiplied: each chunk's transforms move the tensors and what
 * is made of them, then its products run on the main loop. Refused if `maxWorkspaceBytes` is too small for one image.
 */
export function timeInMath(request: PlanRequest): Planned<number> {
  const device = deviceOf(request);
  const { problem, layout } = request;
  const [read, summed] = [operandBytes(request), partialBytes(request)];
  const tile = plannedTile(request);
  const geometry = geometryOf(request, tile);
  const chunk = chooseChunks(request, geometry, tile);
  if (isRefusal(chunk)) return chunk;
  const chunks = chunk.images === 0 ? 1 : problem.batch / chunk.images;
  const { operandElements, resultElements: summedProducts, cut: { cost, splits } } = chunk;
  const transformed = scalarBytes(tile.stored);
  const products = summed * summedProducts;
  const stored = splits * products;
  const filterFirst = geometry.operands.some(({ role }) => role === "filter");
  const { large, gradient, halves, halvesText } = device.shares.transforms;
  const innermost = layout === "nhwc";
  const stream = device.rates.stream * (innermost || tile.products < LARGE ? 1 : large);
  const reading = innermost || filterFirst ? 1 : gradient;
  // However few tiles there are, each is transformed by one thread.
  const alphas = tile.transforms[0].alpha + tile.transforms[1].alpha;
  const alone = tile.products * alphas * device.times.transform;
  let each = 0;
  const marks = tile.stored === "halves" ? operandMarks(request, geometry, chunk).marks : undefined;
  let once = marks === undefined ? 0 : marksTime(request, geometry, marks, device);
  geometry.operands.forEach(({ role, which }, index) => {
    const made = transformed * operandElements[index]!;
    const source = read * elementCount(tensorShape(problem, which));
    if (role === "filter") {
      once += passTime(alone, moveTime(source + made, device.rates.filterStream), device);
    } else {
      const byTile = marks !== undefined && marks[index]!.by === "tile";
      const rate = byTile
        ? halves * (tile.products < LARGE ? 1 : large) * device.rates.stream
        : stream;
      each += passTime(alone, moveTime(source / reading / chunks + made, rate), device);
    }
  });
  const moved = transformed * (operandElements[0]! + operandElements[1]!) + stored;
  const movement = moveTime(moved, device.rates.stream);
  each +=
    overlappedTime(productTime(cost, device.rates.packed), movement, tile.stored === "halves") +
    device.times.dispatch;
  if (marks !== undefined && !filterFirst) {
    each *= 1 + halvesText * Math.max(0, tile.products - SHORT);
  }
  const results = resultBytes(request) * resultElements(problem);
  const finish = passTime(
    alone,
    moveTime(products + (filterFirst ? results / chunks : results), stream),
    device,
  );
  return once + Math.ceil(chunks) * each + (filterFirst ? Math.ceil(chunks) : 1) * finish;
}

/** Microseconds of the passes that find the largest values of images and channels. */
function marksTime(
  request: PlanRequest,
  { operands }: WinogradGeometry,
  marks: readonly SplitMarks[],
  device: DeviceModel,
): number {
  return operands.reduce((time, { which }, index) => {
    // Those of tiles are found as they are transformed.
    if (marks[index]!.by === "tile") return time;
    const bytes = operandBytes(request) * elementCount(tensorShape(request.problem, which));
    return time + passTime(0, moveTime(bytes, device.rates.stream), device);
  }, device.times.dispatch);
}

/** The request with how its products are multiplied. */
export function inMath(request: PlanRequest): Planned<PlanRequest> {
  return convInMath(request, {
    products: (split) => summedPatches(geometryOf(split, plannedTile(split)), split.problem.batch),
    time: timeInMath,
    clearly: 0.95,
  });
}

/** Microseconds of non-fused Winograd, as {@linkcode timeInMath} has them. */
export function nonfusedTime(asked: PlanRequest): Planned<number> {
  const request = inMath(asked);
  return isRefusal(request) ? request : timeInMath(request);
}
