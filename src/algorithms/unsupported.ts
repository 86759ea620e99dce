import type { ConvOutDType } from "../problem/conv_problem.ts";
import type { Algorithm } from "./algorithm.ts";
import { variesLoop } from "../kernels/main_loop_variant.ts";
import type { PlanRequest } from "./request.ts";

/** Why an algorithm cannot do the problem, or undefined if it can. */
export function unsupported(
  { name, heeds, dtypes = ["f32"], refuse }: Algorithm,
  request: PlanRequest,
): string | undefined {
  // What was asked for by name must not be passed over in silence.
  if (request.algorithm === name) {
    if (request.tile !== undefined && !heeds.includes("tile")) return "it has no Winograd tiles";
    if (request.pair !== undefined && !heeds.includes("pair")) return "it has no pairs of kernels";
  }
  const { dtype, outDtype = dtype } = request;
  // Whole sums are of operands that the algorithm takes, or does not.
  const takes = (one: ConvOutDType) => one === "i32" || dtypes.includes(one);
  if (!takes(dtype) || !takes(outDtype)) return `its tensors are ${dtypes.join(" or ")}`;
  const { halfTransforms = false } = request.variant ?? {};
  if (halfTransforms && !heeds.includes("half-transforms")) return "it keeps no transformed data";
  if (halfTransforms && dtype !== "f16") return "half-transforms is of f16";
  return variesLoop(request.variant) && !heeds.includes("variant")
    ? "its kernels come in one variant only"
    : refuse(request);
}
