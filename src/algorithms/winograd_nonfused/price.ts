import { deviceOf } from "../device/h200.ts";
import { isRefusal, type Planned } from "../refusal.ts";
import { operandBytes, partialBytes, resultBytes, resultElements } from "../tensors.ts";
import { geometryOf } from "./geometry.ts";
import { plannedTile } from "./tiles.ts";
import { chooseChunks } from "./workspace.ts";
import { elementCount } from "../../tensor/tensor.ts";
import { tensorShape } from "../../problem/conv_problem.ts";
import type { PlanRequest } from "../request.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import { moveTime, overlappedTime, passTime, productTime } from "../device/model.ts";

/** Products a tile and pair of channels, α0·α1, from which on a transform is large. */
const LARGE = 64;

/**
 * Microseconds of non-fused Winograd: each chunk's transforms move the tensors and what is made of them, then its
 * products run on the main loop. Refused if `maxWorkspaceBytes` is too small for one image.
 */
export function nonfusedTime(request: PlanRequest): Planned<number> {
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
  const products = scalarBytes(chunk.stored) * summedProducts;
  const stored = splits === 1 ? products : splits * summed * summedProducts;
  const filterFirst = geometry.operands.some(({ role }) => role === "filter");
  const { large, gradient } = device.shares.transforms;
  const innermost = layout === "nhwc";
  const stream = device.rates.stream * (innermost || tile.products < LARGE ? 1 : large);
  const reading = innermost || filterFirst ? 1 : gradient;
  // However few tiles there are, each is transformed by one thread.
  const alphas = tile.transforms[0].alpha + tile.transforms[1].alpha;
  const alone = tile.products * alphas * device.times.transform;
  let once = 0;
  let each = 0;
  geometry.operands.forEach(({ role, which }, index) => {
    const made = transformed * operandElements[index]!;
    const source = read * elementCount(tensorShape(problem, which));
    if (role === "filter") {
      once += passTime(alone, moveTime(source + made, device.rates.filterStream), device);
    } else {
      each += passTime(alone, moveTime(source / reading / chunks + made, stream), device);
    }
  });
  const rate = device.rates.packed * (tile.stored === "quad" ? device.shares.unpacking : 1);
  const moved = transformed * (operandElements[0]! + operandElements[1]!) + stored;
  each += overlappedTime(productTime(cost, rate), moveTime(moved, device.rates.stream)) +
    device.times.dispatch;
  const results = resultBytes(request) * resultElements(problem);
  const finish = passTime(
    alone,
    moveTime(products + (filterFirst ? results / chunks : results), stream),
    device,
  );
  return once + Math.ceil(chunks) * each + (filterFirst ? Math.ceil(chunks) : 1) * finish;
}
