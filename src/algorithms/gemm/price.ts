import { depthOfValue, elementsOf } from "../../elements/elements.ts";
import { scalarBytes } from "../../elements/scalar.ts";
import type { Cut } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import { moveTime, overlappedTime, productTime } from "../device/model.ts";
import type { GemmRequest } from "./request.ts";

/** Microseconds that the main loop should take, cut so, its operands read and its results written once. */
export function mainLoopTime(request: GemmRequest, { cost, policy }: Cut): number {
  const { m, n, k, batch } = request.problem;
  const { rates, times } = deviceOf(request);
  const types = elementsOf(request);
  const operand = scalarBytes(types.storage) / depthOfValue(types);
  const bytes = batch * ((m + n) * k * operand + m * n * scalarBytes(types.result));
  const moved = moveTime(bytes, rates.stream);
  return overlappedTime(productTime(cost, rates.packed), moved, policy.matrix !== undefined) +
    times.dispatch;
}
