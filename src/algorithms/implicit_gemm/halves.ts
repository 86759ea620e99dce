/** Products of f32 in halves: how they are cut, and what they take. */
import { addsUp } from "../conv_product.ts";
import { type Cut, cutProduct } from "../cut.ts";
import { deviceOf } from "../device/h200.ts";
import { copyTime, productTime } from "../device/model.ts";
import { splittingCost } from "../gemm/operands.ts";
import { copiedElements } from "./channels_copy.ts";
import { implicitTime, operandsProduct } from "./product.ts";
import { type Product, productUnit } from "../product.ts";
import { isRefusal, type Planned, refusal } from "../refusal.ts";
import type { PlanRequest } from "../request.ts";
import { resultElements, tensorElements } from "../tensors.ts";
import { flagWords } from "../../kernels/split_rest.ts";
import {
  accumulationLength,
  type ConvTensor,
  operandTensors,
  resultTensor,
} from "../../problem/conv_problem.ts";
import {
  halvesMarks,
  type HalvesOperands,
  halvesOperands,
  inHalves,
  sumsPlaces,
  turnedImages,
  writtenElements,
  writtenOperands,
} from "./halves_operands.ts";

/** The product of a request in halves, how it is cut and what it takes. */
export interface HalvesProduct extends HalvesOperands {
  readonly product: Product;
  readonly cut: Cut;
  /** Predicted microseconds. */
  readonly time: number;
}

/** Why implicit GEMM has no halves of a convolution, as a clause; undefined if it has. */
export function refuseHalves({ problem, layout }: PlanRequest): string | undefined {
  if (problem.groups > 1) return "its halves are of one group";
  if (layout === "chwn") return "its halves are of nchw and nhwc";
  const tensors = [...operandTensors(problem.op), resultTensor(problem.op)];
  const empty = tensors.some((which) => tensorElements(problem, which) === 0);
  return empty ? "there is nothing to sum" : undefined;
}

/** The product of a request in halves that is predicted to take least. */
export function halvesProduct(asked: PlanRequest): Planned<HalvesProduct> {
  const reason = refuseHalves(asked);
  if (reason !== undefined) {
    return refusal("problem", `math f16x3 by implicit-gemm cannot be: ${reason}`);
  }
  const request = inHalves(asked);
  const tried = halvesOperands(asked, request).map((operands): Planned<HalvesProduct> => {
    const way = { request, operands };
    const product = productOf(asked, way);
    const cut = cutProduct(request, product);
    if (isRefusal(cut)) return cut;
    const { depth, name } = cut.policy;
    const whole = sumsPlaces(asked)
      ? request.problem.batch
      : operands.pack(cut.policy)!.paddedChannels;
    if (operands.crossesTaps(cut.policy) || whole % depth !== 0) {
      return refusal(
        "problem",
        `policy ${name} has steps of ${depth}, halves lie in runs of ${whole}`,
      );
    }
    return { ...way, product, cut, time: timeOf(asked, way, cut) };
  });
  return tried.reduce((best, one) =>
    !isRefusal(one) && (isRefusal(best) || one.time < best.time) ? one : best
  );
}

/** Values of an operand, as gemm has them for what splitting costs. */
function splitting(asked: PlanRequest, which: ConvTensor): number {
  const depth = tensorElements(asked.problem, which);
  return splittingCost(deviceOf(asked), {
    ...{ places: 1, depth, batches: 1, along: "depth", batchStride: 0, vector: 4 },
  });
}

/** The product of halves, before it is cut. */
function productOf(asked: PlanRequest, way: HalvesOperands): Product {
  const { request, operands } = way;
  const elements = resultElements(asked.problem);
  return {
    ...operandsProduct(operands, request),
    elements,
    finishedApart: true,
    workspaceBytes: (policy) => {
      const { a, b } = writtenOperands(asked, way, policy);
      const turned = turnedImages(asked).reduce((sum, { copy }) => sum + copiedElements(copy), 0);
      return 2 * (writtenElements(a) + writtenElements(b)) +
        4 * (turned + halvesMarks(asked).words + flagWords(elements));
    },
    matrix: productUnit(
      request,
      addsUp(operands.result, operands.rows),
      accumulationLength(asked.problem),
    ),
    a: { ...operands.a, packing: () => splitting(asked, operandTensors(asked.problem.op)[1]) },
    b: operands.b,
  };
}

/** Microseconds of a product in halves: images in halves, then the product as f16 has it. */
function timeOf(asked: PlanRequest, { request, operands }: HalvesOperands, cut: Cut): number {
  const device = deviceOf(asked);
  const { rates, times } = device;
  // Places are counted, and flagged results looked for.
  const beside = 2 * times.dispatch;
  const images = productTime(splitting(asked, operandTensors(asked.problem.op)[0]), rates.gathered);
  const turned = turnedImages(asked).reduce((sum, { copy }) => {
    return sum + copyTime(2 * 4 * copiedElements(copy), rates.filterStream, device);
  }, 0);
  return images + turned + beside +
    implicitTime(request, { ...operands, pack: () => undefined }, cut);
}
