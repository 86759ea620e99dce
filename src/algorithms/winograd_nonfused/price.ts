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

/**
 * Microseconds of non-fused Winograd: each chunk's transforms move the tensors and what is made of them, then its
 * products run on the main loop. Refused if `maxWorkspaceBytes` is too small for one image.
 */
export function nonfusedTime(request: PlanRequest): Planned<number> {
  const device = deviceOf(request);
  const { problem } = request;
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
  let once = 0;
  let each = 0;
  geometry.operands.forEach(({ role, which }, index) => {
    const made = transformed * operandElements[index]!;
    const source = read * elementCount(tensorShape(problem, which));
    if (role === "filter") {
      once += passTime(0, moveTime(source + made, device.rates.filterStream), device);
    } else {
      each += passTime(0, moveTime(source / chunks + made, device.rates.stream), device);
    }
  });
  const rate = device.rates.packed * (tile.stored === "quad" ? device.shares.unpacking : 1);
  const moved = transformed * (operandElements[0]! + operandElements[1]!) + stored;
  each += overlappedTime(productTime(cost, rate), moveTime(moved, device.rates.stream)) +
    device.times.dispatch;
  const results = resultBytes(request) * resultElements(problem);
  const finish = passTime(
    0,
    moveTime(products + (filterFirst ? results / chunks : results), device.rates.stream),
    device,
  );
  return once + Math.ceil(chunks) * each + (filterFirst ? Math.ceil(chunks) : 1) * finish;
}
