import type { FilterLayout, Layout } from "../tensor/layout.ts";
import {
  type ConvDType,
  type ConvOutDType,
  type ConvProblem,
  resultDtypes,
} from "./conv_problem.ts";
import { type Epilogue, isScale, SCALE_RANGE } from "./epilogue.ts";

/** A convolution with the element types and layouts of its tensors. */
export interface ConvElements {
  readonly problem: Pick<ConvProblem, "op">;
  readonly dtype: ConvDType;
  /** What `resultDtypes()` has first where absent. */
  readonly outDtype?: ConvOutDType | undefined;
  readonly layout: Layout;
  readonly filterLayout: FilterLayout;
  readonly epilogue: Epilogue;
}

/** What element types do not go with, as a clause: int8 is forward, in nhwc, and stays with whole numbers; undefined if nothing. */
export function convElementsFault(
  { problem: { op }, dtype, outDtype, layout, filterLayout, epilogue }: ConvElements,
): string | undefined {
  const { activation, scale } = epilogue;
  const results = resultDtypes(dtype);
  if (outDtype !== undefined && !results.includes(outDtype)) {
    return `outDtype ${outDtype} is none of ${results.join(", ")}`;
  }
  if ((scale === undefined) === (outDtype === "i8")) {
    return "results in i8 take a scale (--scale), and no others do";
  }
  if (typeof scale === "number" && !isScale(scale)) {
    return `scale ${scale} is no number from ${SCALE_RANGE}`;
  }
  if (dtype !== "i8") return undefined;
  if (op !== "fwd") return `convolutions of i8 are forward, not ${op}`;
  if (layout !== "nhwc" || filterLayout !== "krsc") {
    const [from, to] = layout === "nhwc" ? [filterLayout, "krsc"] : [layout, "nhwc"];
    return `i8 tensors lie as nhwc with filters krsc, not as ${layout} with ${filterLayout} ` +
      `(wgconv tensor convert IN OUT --from-layout ${from} --to-layout ${to} converts)`;
  }
  return activation === "none" || activation === "relu"
    ? undefined
    : `${activation} leads out of the integers, i8 convolutions take relu`;
}
