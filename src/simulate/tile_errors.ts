import { F32 } from "../accuracy/precision.ts";
import type { ErrorStatistics } from "../accuracy/yardstick.ts";
import { convProblem, tensorShape } from "../problem/conv_problem.ts";
import { NO_EPILOGUE } from "../problem/epilogue.ts";
import type { PlanArithmetic } from "../problem/plan_arithmetic.ts";
import { type FillKind, fillTensor } from "../tensor/fill.ts";
import type { WinogradTile } from "../winograd/tile.ts";
import { convYardstick } from "./conv_yardstick.ts";

/** Images of one tile each, and filters, that a tile is simulated on. */
const IMAGES = 12;
const FILTERS = 12;

/**
 * What Winograd's tile errs by forward, summed over so many channels of seeded data: the relative L2 error of normal
 * data is what `auto` and the gate's ceiling go by.
 *
 * @param arithmetic Chains and segments; one accumulator where absent.
 */
export function tileErrors(
  { n, r }: WinogradTile,
  channels: number,
  fill: FillKind = "normal",
  seed = 1,
  arithmetic: Omit<PlanArithmetic, "tiles"> = {},
): ErrorStatistics {
  const problem = convProblem({
    batch: IMAGES,
    inChannels: channels,
    outChannels: FILTERS,
    inputSize: n.map((size, axis) => size + r[axis]! - 1),
    filterSize: r,
  });
  const input = fillTensor("f32", tensorShape(problem, "input"), fill, seed).data;
  const filter = fillTensor("f32", tensorShape(problem, "filter"), fill, seed + 1).data;
  return convYardstick({
    problem,
    inputs: {
      input: { data: input, layout: "nchw" },
      filter: { data: filter, layout: "kcrs" },
    },
    epilogue: NO_EPILOGUE,
    arithmetic: {
      ...arithmetic,
      tiles: [{ axes: n.map((size, axis) => ({ n: size, r: r[axis]! })) }],
    },
    precision: F32,
    seed,
  }).sample;
}
