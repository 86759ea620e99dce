import type { ConvOutDType } from "../problem/conv_problem.ts";
import type { Algorithm, AlgorithmOption } from "./algorithm.ts";
import { fullVariant, TUNED_VARIANT, variesLoop } from "../kernels/main_loop_variant.ts";
import type { PlanRequest } from "./request.ts";

/** Choices that only some algorithms have, and what they choose among. */
const CHOICES = {
  tile: "Winograd tiles",
  pair: "pairs of kernels",
  policy: "tile policies",
  splits: "splits of the depth",
} as const satisfies { readonly [option in AlgorithmOption]?: string };

/** The first choice of a request that an algorithm does not have. */
export function missingOption(
  { options }: Algorithm,
  request: PlanRequest,
): keyof typeof CHOICES | undefined {
  return (Object.keys(CHOICES) as (keyof typeof CHOICES)[])
    .find((option) => request[option] !== undefined && !options.includes(option));
}

/** Why an algorithm cannot do the problem, or undefined if it can. */
export function unsupported(algorithm: Algorithm, request: PlanRequest): string | undefined {
  const { name, options, dtypes = ["f32"], refuse } = algorithm;
  // What was asked for by name must not be passed over in silence.
  const passedOver = request.algorithm === name ? missingOption(algorithm, request) : undefined;
  if (passedOver !== undefined) return `it has no ${CHOICES[passedOver]}`;
  const { dtype, outDtype = dtype } = request;
  // i32 sums come with any operands; u8 is stored as i8 is.
  const takes = (one: ConvOutDType) => one === "i32" || dtypes.includes(one === "u8" ? "i8" : one);
  if (!takes(dtype) || !takes(outDtype)) return `its tensors are ${dtypes.join(" or ")}`;
  if (request.math === "f16x3" && !options.includes("math")) return "it multiplies f32 as it is";
  const { outputLayout } = fullVariant(request.variant);
  if (outputLayout !== TUNED_VARIANT.outputLayout && !options.includes("output-layout")) {
    return "it has no other layout of sums";
  }
  const { rotatedLoop: _, ...others } = request.variant ?? {};
  const varied = options.includes("slice-loop") ? others : request.variant;
  return variesLoop(varied) && !options.includes("variant")
    ? "its kernels come in one variant only"
    : refuse(request);
}
