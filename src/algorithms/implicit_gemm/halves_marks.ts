/** What is kept of operands in halves, and by how much results are enlarged. */
import { type PlaceMarks, placeMarks } from "../../kernels/split_rescale.ts";
import { imagePlaces } from "../../kernels/split_windows.ts";
import type { ConvProblem } from "../../problem/conv_problem.ts";
import type { PlanRequest } from "../request.ts";
import { type HalvesWay, sumsPlaces } from "./halves_operands.ts";

/** What is kept of the operands: of rows and columns of the product, and of images and their places, which columns are made of. */
export interface HalvesMarks extends PlaceMarks {
  /** Before the largest values of images, and before the counts of their places, which are two kinds. */
  readonly images: { readonly largest: number; readonly counts: number; readonly places: number };
  /** Before the words that say how fine B's values are, one of each largest value. */
  readonly fine: number;
}

/** Where the marks of a request lie. */
export function halvesMarks(request: PlanRequest): HalvesMarks {
  const { problem } = request;
  const { op, inChannels, outChannels } = problem;
  if (sumsPlaces(request)) {
    const marks = placeMarks(outChannels, inChannels);
    return {
      ...marks,
      words: marks.words + inChannels,
      images: { largest: 0, counts: 0, places: 0 },
      fine: marks.words,
    };
  }
  const rows = op === "fwd" ? outChannels : inChannels;
  const marks = placeMarks(rows, imagePlaces(problem, "result"), 4);
  const places = imagePlaces(problem, "source");
  const counts = marks.words + problem.batch;
  return {
    ...marks,
    words: counts + 2 * places + problem.batch,
    images: { largest: marks.words, counts, places },
    fine: counts + 2 * places,
  };
}

/** Share of the values along the depth that are no padding. */
export function filledShare(
  { problem }: PlanRequest,
  { request: { problem: doubled } }: Pick<HalvesWay, "request">,
): number {
  const { op } = problem;
  const count = ({ batch, inChannels, outChannels }: ConvProblem) =>
    op === "fwd" ? inChannels : op === "bwd-data" ? outChannels : batch;
  return 2 * count(problem) / count(doubled);
}

/** Mean share of a gradient's places that meet the input: others meet its padding. */
export function metShare({ problem }: PlanRequest): number {
  const { inputSize, outputSize, filterSize, stride, dilation, paddingBegin } = problem;
  return outputSize.reduce((share, places, d) => {
    let met = 0;
    for (let tap = 0; tap < filterSize[d]!; tap++) {
      const first = tap * dilation[d]! - paddingBegin[d]!;
      const begin = Math.max(0, Math.ceil(-first / stride[d]!));
      const end = Math.min(places, Math.ceil((inputSize[d]! - first) / stride[d]!));
      met += Math.max(0, end - begin);
    }
    return share * met / (places * filterSize[d]!);
  }, 1);
}
